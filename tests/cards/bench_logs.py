#!/usr/bin/env python3
"""How fast a log comes from a card: `biga logs` of one real card, in turn
with the same bytes from a file there by ExecSync calls made by hand, of
`dd` in pieces of the same size.

    bench_logs.py [ROUNDS]

Prints the bytes of the log, and the medians of both in MB/s, with tabs
between.  Status 77 where there can be no cards, with the reason.
"""
import os
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import fleet  # noqa: E402
from node import Node, service  # noqa: E402
from proc import wait_for  # noqa: E402

LINES = 1000000
LINE = "%09d what a pod has to say, which is about as long as lines of " \
    "logs are, and a bit longer"
SIZE = len(LINE % 0 + "\n") * LINES
PIECE = 8 << 20

WRITE = f"""
awk 'BEGIN {{ for (i = 0; i < {LINES}; i++) printf "{LINE}\\n", i }}' >/file
cat /file; echo done >/ended; sleep 100000"""


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


def by_hand(card, container):
    began = time.perf_counter()
    size = 0
    for n in range(-(-SIZE // PIECE)):
        status, out, said = card.cri(60).exec(
            container, "busybox", "dd", "if=/file", f"bs={PIECE}", "count=1",
            f"skip={n}")
        assert status == 0, said
        size += len(out)
    assert size == SIZE, size
    return SIZE / (time.perf_counter() - began) / 1e6


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
        container = next(c["id"] for c in card.cri().containers()
                         if c["name"] == "main")
        wait_for("it has written", lambda: card.cri().exec(
            container, "busybox", "test", "-e", "/ended")[0] == 0)
        by_biga(node)  # all is warm then
        found = [(by_biga(node), by_hand(card, container))
                 for _ in range(rounds)]
        print(SIZE, *(f"{statistics.median(x):.1f}" for x in zip(*found)),
              sep="\t")
        node.stop()
    return 0


sys.exit(main())
