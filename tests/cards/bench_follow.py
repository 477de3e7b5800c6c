#!/usr/bin/env python3
"""How fast a log comes from a card into the kubelet's file, and how late a
line: the copier of biga-cri, in turn with `biga logs` of the same log.

    bench_follow.py [ROUNDS]

Prints the bytes of the log as the container wrote it and as the card has it,
the medians of both in MB/s of the latter and of the former, and their ratio
in bytes of what was written; then how many ms late lines were that come every
10 ms and every 500 ms: median, 99th percentile, worst.  Tabs are between.
Status 77 where there can be no cards, with the reason.
"""
import datetime
import os
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import fleet  # noqa: E402
import follow  # noqa: E402
from node import Node, service  # noqa: E402
from proc import wait_for  # noqa: E402

LINES = 500000
LINE = "%09d what a pod has to say, which is about as long as lines of " \
    "logs are, and a bit longer"
SIZE = len(LINE % 0 + "\n") * LINES
N_LATE = {"0.01": 600, "0.5": 30}

WRITE = f"""
awk 'BEGIN {{ for (i = 0; i < {LINES}; i++) printf "{LINE}\\n", i }}'
echo done >/ended; sleep 100000"""


def by_biga(node):
    began = time.perf_counter()
    with subprocess.Popen(
            [fleet.program("biga"), "logs", "writer", "--limit-bytes",
             str(1 << 40)], stdout=subprocess.PIPE,
            env={**os.environ, **node.env()}) as logs:
        size = 0
        while piece := logs.stdout.read(1 << 20):
            size += len(piece)
    assert logs.returncode == 0 and size == SIZE, (logs.returncode, size)
    return SIZE / (time.perf_counter() - began) / 1e6


def by_copier(copier, n, remote, size):
    """The file is still open there: what counts is when all is here."""
    began = time.perf_counter()
    key = f"{n}.log"
    copier.add(key, remote)
    wait_for("all is here",
             lambda: os.path.getsize(copier.path(key)) == size, every=0.005)
    return size / (time.perf_counter() - began) / 1e6


def lateness(card, copier, pause):
    """How late lines are, in ms, by the time that the card's logger gave
    them; the machine's clock is the same."""
    name, key = f"late{pause}", f"late{pause}.log"
    remote = follow.log_path(name, "main.log")
    copier.add(key, remote)
    card.cri().run_container(
        follow.pod(card, name), "main", "docker.io/library/busybox:static",
        ("sh", "-c", f"for i in $(seq {N_LATE[pause]}); do "
         f"echo line $i; sleep {pause}; done"))
    late, rest = [], b""
    with open(copier.path(key), "rb") as f:
        while len(late) < N_LATE[pause]:
            rest += f.read()
            now = time.time()
            *lines, rest = rest.split(b"\n")
            late += [1000 * (now - when(line)) for line in lines]
            time.sleep(0.0005)
    late = sorted(late[1:])  # the first waits for its container's start
    return [f"{late[int(len(late) * part)]:.0f}" for part in (.5, .99)] \
        + [f"{late[-1]:.0f}"]


def when(line):
    text = line.split(b" ", 1)[0].decode()
    head, _, zone = text.partition(".")
    digits = len(zone) - len(zone.lstrip("0123456789"))
    offset = zone[digits:].replace("Z", "+00:00")
    return datetime.datetime.fromisoformat(head + offset).timestamp() \
        + float("0." + zone[:digits])


def has_all(path):
    if os.path.getsize(path) < SIZE:
        return False
    with open(path, "rb") as f:
        f.seek(-200, os.SEEK_END)
        return f.read().endswith((LINE % (LINES - 1) + "\n").encode())


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    why = cards.lacking()
    if why:
        print(why, file=sys.stderr)
        return 77
    with cards.Rack(1, host=False) as rack:
        rack.start()
        node = Node(rack).start()
        card = rack.cards[0]
        node.apply([service("writer", args=("sh", "-c", WRITE))])
        node.wait_state(["writer"], "running")
        logs = f"pods/{node.pods()['writer']['uid']}/logs/"
        remote = os.path.join(follow.STORE, wait_for(
            "its log is there", lambda: next(
                f for f in card.files() if f.startswith(logs + "main"))))
        there = card.seen(remote[1:])

        wait_for("it has written", lambda: has_all(there))
        size = os.path.getsize(there)
        helper = next(c["id"] for c in card.cri().containers()
                      if c["name"] == "helper")
        copier = follow.Follow(rack, card, helper).start()
        by_biga(node)  # all is warm then
        found = [(by_copier(copier, n, remote, size), by_biga(node))
                 for n in range(rounds)]
        copier.stop()
        copier.added.clear()
        copied, told = (statistics.median(x) for x in zip(*found))
        print(SIZE, size, f"{copied:.1f}", f"{told:.1f}",
              f"{copied * SIZE / size / told:.2f}", sep="\t", flush=True)
        copier.start()
        for pause in N_LATE:
            print(pause, *lateness(card, copier, pause), *copier.count(),
                  sep="\t", flush=True)
        copier.stop()
        node.stop()
    return 0


sys.exit(main())
