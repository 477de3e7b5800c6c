#!/usr/bin/env python3
"""How fast a log comes from a card into the kubelet's file, what that costs,
and how late a line is: the copier of biga-cri.

    bench_follow.py [ROUNDS]

Rows, with tabs between.  Medians of ROUNDS, taken in turn:

    read   a log that is there, in MB/s, and by hand: the same bytes by ExecSync
           calls of `biga-card log`, in pieces of 8 MiB; their ratio
    write  one that a container writes meanwhile, in MB/s from its start until
           all is here, and until the card's containerd has written it; their
           ratio
    cpu    of `read`, in seconds of a processor for a GB: the copier, the card
           (its containerd, the shim, commands in the helper), and the card
           when it is read by hand
    late   with lines of every 10 ms and of every 500 ms: ms from the card's
           file to the kubelet's, median, 99th percentile, worst; and how much
           of a processor copier and card took, in percent

Status 77 where there can be no cards, with the reason.
"""
import os
import statistics
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import follow  # noqa: E402
from proc import wait_for  # noqa: E402

LINES = 1000000
LINE = "%09d what a pod has to say, which is about as long as lines of " \
    "logs are, and a bit longer"
PIECE = 8 << 20
LATE = {0.01: 600, 0.5: 30}  # so many lines of each pause
HZ = os.sysconf("SC_CLK_TCK")


def spent(pid, children=False):
    """Seconds of a processor; children: those that it has waited for."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rpartition(")")[2].split()
    return sum(map(int, fields[11:15 if children else 13])) / HZ


class Bench:
    def __init__(self, rack):
        self.card = card = rack.cards[0]
        self.helper = follow.run_helper(card)
        self.copier = follow.Follow(rack, card, self.helper).start()
        self.shims = [pid for pid in card.members() if name(pid) ==
                      "containerd-shim"]
        self.n = 0

    def used(self):
        """(copier, card) in seconds of a processor."""
        return spent(self.copier.process.pid), \
            spent(self.card.containerd.pid) + sum(
                spent(pid, children=True) for pid in self.shims)

    def file(self, name_):
        """(where it is on the card, and where that is here)"""
        remote = follow.log_path(name_, "main.log")
        here = self.card.seen(remote[1:])
        os.makedirs(os.path.dirname(here), exist_ok=True)
        return remote, here

    def copy(self, remote, size):
        """Seconds until all is here."""
        began = time.perf_counter()
        self.n += 1
        self.copier.add(f"{self.n}.log", remote)
        wait_for("all is here", lambda: os.path.getsize(
            self.copier.path(f"{self.n}.log")) >= size, every=0.005)
        return time.perf_counter() - began

    def by_hand(self, remote, size):
        began, at = time.perf_counter(), 0
        while at < size:  # it gives whole lines
            status, out, said = self.card.cri().exec(
                self.helper, "/biga-card", "log", remote, str(at), str(PIECE))
            assert status == 0 and out, said
            at += len(out)
        return time.perf_counter() - began

    def read(self, remote, size):
        """(MB/s, by hand, copier's seconds for a GB, card's, by hand)"""
        before = self.used()
        took = self.copy(remote, size)
        between = self.used()
        hand = self.by_hand(remote, size)
        after = self.used()
        copier, card = (b - a for a, b in zip(before, between))
        return size / took / 1e6, size / hand / 1e6, copier / size * 1e9, \
            card / size * 1e9, (after[1] - between[1]) / size * 1e9

    def write(self, n):
        """(MB/s until all is here, until it is written there)"""
        remote, here = self.file(f"write{n}")
        self.copier.add(f"write{n}.log", remote)
        copied = self.copier.path(f"write{n}.log")
        began = time.perf_counter()
        made = self.card.cri().run_container(
            follow.pod(self.card, f"write{n}"), "main",
            "docker.io/library/busybox:static", ("sh", "-c", WRITE))
        follow.wait_exited(self.card, made)
        written = time.perf_counter() - began
        size = os.path.getsize(here)
        wait_for("all is here", lambda: os.path.getsize(copied) == size,
                 every=0.005)
        took = time.perf_counter() - began
        return size / took / 1e6, size / written / 1e6

    def late(self, pause):
        remote, here = self.file(f"late{pause}")
        self.copier.add(f"late{pause}.log", remote)
        writer = threading.Thread(target=tell, args=(here, pause))
        before, began = self.used(), time.perf_counter()
        writer.start()
        late, rest = [], b""
        with open(self.copier.path(f"late{pause}.log"), "rb") as f:
            while len(late) < LATE[pause]:
                rest += f.read()
                now = time.time()
                *lines, rest = rest.split(b"\n")
                late += [1000 * (now - float(line)) for line in lines]
                time.sleep(0.002)
        writer.join()
        used = [100 * (b - a) / (time.perf_counter() - began)
                for a, b in zip(before, self.used())]
        late.sort()
        return [late[int(len(late) * part)] for part in (.5, .99)] + [
            late[-1], *used]


WRITE = f"""
awk 'BEGIN {{ for (i = 0; i < {LINES}; i++) printf "{LINE}\\n", i }}'"""


def tell(path, pause):
    """Write when each line is written."""
    with open(path, "w", buffering=1, encoding="ascii") as f:
        for _ in range(LATE[pause]):
            f.write(f"{time.time():.6f}\n")
            time.sleep(pause)


def name(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return ""


def row(what, *figures):
    print(what, *(f"{f:.2f}" if f < 10 else f"{f:.0f}" for f in figures),
          sep="\t", flush=True)


def medians(rounds):
    return [statistics.median(column) for column in zip(*rounds)]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    why = cards.lacking()
    if why:
        print(why, file=sys.stderr)
        return 77
    cards.require()
    with cards.Rack(1, host=False) as rack:
        rack.start()
        bench = Bench(rack)
        writes = [bench.write(n) for n in range(rounds)]
        remote, here = bench.file("write0")
        size = os.path.getsize(here)
        bench.by_hand(remote, size)  # all is warm then
        got, hand, *cpu = medians([bench.read(remote, size)
                                   for _ in range(rounds)])
        row("read", got, hand, got / hand)
        got, written = medians(writes)
        row("write", got, written, got / written)
        row("cpu", *cpu)
        for pause in LATE:
            row(f"late {pause}", *bench.late(pause))
        bench.copier.stop()
    return 0


sys.exit(main())
