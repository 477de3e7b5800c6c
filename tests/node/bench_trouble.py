#!/usr/bin/env python3
"""What a card in trouble costs the calls for pods of the host: those through
biga-cri while a card is frozen, cut off or comes and goes, beside those while
all is well, in turn, in one run.  The promise is a p99 within 1.2 times.

    bench_trouble.py [WINDOWS [SECONDS]]

Prints microseconds and the ratio for each kind of trouble and call.  Status 77
where there can be no node, with the reason.
"""
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
from cri import Cri, field  # noqa: E402
from place import AtCard, Place  # noqa: E402
from pods import WAIT, sh, status_of  # noqa: E402

PODS = 10  # on the host, and on the card
PAUSE = 0.002  # seconds between two calls
FLAP = 1.0


class Bench:
    def __init__(self, r):
        self.cri = Cri(unix=r.way.socket)
        self.card = r.rack.cards[0]
        host, there = Place(r), AtCard(r, self.card)
        names = [p.apply(str(i), sh(WAIT)) for i in range(PODS)
                 for p in (host, there)]
        for name in names:
            host.ready(name)
        one = status_of(r.pod(names[0]))["containerID"].split("//")[-1]
        self.calls = {
            "ListContainers": lambda: self.cri.call("ListContainers"),
            "ListPodSandbox": lambda: self.cri.call("ListPodSandbox"),
            "ContainerStatus": lambda: self.cri.call(
                "ContainerStatus", field(1, one)),
            "ExecSync": lambda: self.cri.exec(one, "true")}
        self.flapped = 0.0

    def window(self, seconds, times, turn=lambda: None):
        ends = time.monotonic() + seconds
        n = 0
        while time.monotonic() < ends:
            n += 1
            for what, call in self.calls.items():
                if what == "ExecSync" and n % 50:
                    continue  # it begins a process
                turn()
                began = time.monotonic()
                call()
                times.setdefault(what, []).append(time.monotonic() - began)
                time.sleep(PAUSE)

    def flap(self):
        if time.monotonic() > self.flapped + FLAP:
            self.flapped = time.monotonic()
            (self.card.thaw if self.card.frozen else self.card.freeze)()

    def end_flapping(self):
        if self.card.frozen:
            self.card.thaw()


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1e6


def main():
    windows = int(sys.argv[1]) if sys.argv[1:] else 4
    seconds = float(sys.argv[2]) if sys.argv[2:] else 10.0
    rig.require("router")
    with rig.Rig(2, "router") as r:
        r.start()
        b = Bench(r)
        b.window(2, {})

        def nothing():
            pass
        kinds = {
            "nothing": (nothing, nothing, nothing),
            "frozen": (b.card.freeze, nothing, b.card.thaw),
            "cut off": (lambda: b.card.silent(True), nothing,
                        lambda: b.card.silent(False)),
            "flapping": (nothing, b.flap, b.end_flapping)}
        for kind, (begin, turn, end) in kinds.items():
            well, ill = {}, {}
            for _ in range(windows):
                b.window(seconds, well)
                begin()
                b.window(seconds, ill, turn)
                end()
            for what, times in well.items():
                p50, p99, q50, q99 = (percentile(t, share) for t in (
                    times, ill[what]) for share in (0.5, 0.99))
                print(f"{kind:9} {what:16} n {len(times)} {len(ill[what])}  "
                      f"p50 {p50:.0f} {q50:.0f} us  p99 {p99:.0f} {q99:.0f} "
                      f"us  ratio {q99 / p99:.2f}", flush=True)


main()
