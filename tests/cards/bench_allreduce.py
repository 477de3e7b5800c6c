#!/usr/bin/env python3
"""What the allreduce example measures with 4, 8 and 16 pairs: on eight real
cards, several pairs on one where they are more; where there can be no cards, by
processes on loopback.

    bench_allreduce.py [ROUNDS]

Prints for each number of pairs, with tabs between: it, where ("cards" or
"loopback"), MB/s with offload and without, the first over the second, overlap
in percent with and without, and the time of a sum and as much computing with
offload over that without.
"""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import allreduce  # noqa: E402
import cards  # noqa: E402
from node import Node, pod  # noqa: E402
from proc import wait_for  # noqa: E402

PAIRS = (4, 8, 16)
IMAGE = "biga-allreduce:static"


def pods(n, options):
    made = []
    for i in range(n):
        job = (f"sum{n}", i, n)
        made += [
            pod(f"sum{n}-{i}", "host", {"biga.dev/card": 1}, job=job,
                image=IMAGE, args=(
                    "/allreduce", "rank", "--workers", "/workers", "--wait",
                    "600", *options), restartPolicy="Never"),
            pod(f"sum{n}-{i}-xpu", "xpu",
                {"biga.dev/card": 1, "biga.dev/card-cores": 2,
                 "biga.dev/card-memory-mib": 256}, job=job, image=IMAGE,
                args=("/allreduce", "worker"), restartPolicy="Never")]
    return made


def on_cards(node, n, options):
    """What rank 0 said."""
    made = pods(n, options)
    names = [p["metadata"]["name"] for p in made]
    hosts = names[::2]
    node.apply(made)
    node.wait_state(names, "running")
    # rank by rank, for those of one card need not follow each other
    workers = "\n".join(node.place_of(name).address for name in hosts)
    for name in hosts:
        node.biga("exec", name, "--", "/allreduce", "map", "/workers",
                  workers)
    wait_for("the job has ended", lambda: not set(node.states(
        hosts).values()) - {"gone", "failed"}, timeout=900)
    said = node.biga("logs", hosts[0])
    node.biga("delete", "job", f"sum{n}")
    node.wait_gone(names)
    return said


def print_row(n, where, said):
    shown = allreduce.table(said)
    if len(shown) != len(allreduce.ROWS):
        raise RuntimeError(said)
    with_it, without, ratio = (shown[row] for row in allreduce.ROWS)
    print(n, where, with_it[0], without[0], ratio[0], with_it[4], without[4],
          ratio[2], sep="\t", flush=True)


def main():
    options = ("--rounds", sys.argv[1] if len(sys.argv) > 1 else "8")
    why = cards.lacking()
    if why:
        print(f"on loopback: {why}", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            for n in PAIRS:
                print_row(n, "loopback",
                          allreduce.loopback(folder, n, *options)[0])
        return 0
    cards.own_network()
    with cards.Rack(8) as rack:
        rack.start(images=("biga-card", "busybox", "allreduce"))
        rack.join_cards()
        node = Node(rack).start()
        for n in PAIRS:
            print_row(n, "cards", on_cards(node, n, options))
        node.stop()
    return 0


sys.exit(main())
