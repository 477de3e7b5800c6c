#!/usr/bin/env python3
"""What a frozen card costs the others: one host and eight real cards, windows
in which all are well and windows in which one is stopped (SIGSTOP), in turn.
In each, the scheduler's filter is asked, and pods run and go on the other
cards, from the moment of the freeze on.

    bench_frozen.py [WINDOWS [SECONDS]]

Prints a line for each of the two, with tabs between: what, how many in a
window that is well, their p50 and p99 in microseconds, and the same three of
a frozen window.  Status 77 where there can be no cards, with the reason.
"""
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
from node import Node, pod, service  # noqa: E402
from proc import wait_for  # noqa: E402

FILTERS = 20  # between two pods


def quantile(times, q):
    return sorted(times)[int((len(times) - 1) * q)] * 1e6


class Bench:
    def __init__(self, rack, node):
        self.rack, self.node, self.n = rack, node, 0
        self.api = node.extender.api("scheduler")
        self.read = node.extender.api()
        self.probe = {"Pod": pod("probe", "service", {
            "biga.dev/card": 1, "biga.dev/card-cores": 1,
            "biga.dev/card-memory-mib": 1}), "NodeNames": [cards.NODE]}
        # [well, frozen]
        self.filters, self.pods = ([], []), ([], [])

    def state(self, name):
        found = self.read.call("GET", "/v1/pods")["items"]
        return next((p["state"] for p in found if p["name"] == name), None)

    def filter(self, took):
        began = time.perf_counter()
        answer = self.api.call("POST", "/v1/scheduler/filter", self.probe)
        took.append(time.perf_counter() - began)
        assert answer["NodeNames"] == [cards.NODE], answer

    def up_and_down(self, took):
        """A pod from being applied until it is gone; it gets no time to end,
        which would only be waited for."""
        self.n += 1
        name = f"op{self.n}"
        made = service(name, cores=1, terminationGracePeriodSeconds=0)
        began = time.perf_counter()
        self.read.call("POST", "/v1/pods", made)
        wait_for("it runs", lambda: self.state(name) == "running", every=0.002)
        self.node.delete(name)
        wait_for("it is gone", lambda: self.state(name) is None, every=0.002)
        took.append(time.perf_counter() - began)

    def window(self, seconds, frozen):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(FILTERS):
                self.filter(self.filters[frozen])
            self.up_and_down(self.pods[frozen])

    def run(self, windows, seconds):
        # a card that has no room left, so that no pod is waited for that was
        # placed on it before it was found to be lost
        names = [f"svc{i}" for i in range(len(self.rack.cards))]
        self.node.apply([service(names[0], cores=8)])
        self.node.wait_state(names[:1], "running")
        self.node.apply([service(n, cores=5) for n in names[1:]])
        self.node.wait_state(names, "running")
        card = self.node.place_of(names[0])
        self.window(seconds / 2, False)  # all is warm then
        self.filters, self.pods = ([], []), ([], [])
        for i in range(windows):
            self.window(seconds, False)
            card.freeze()
            try:
                self.window(seconds, True)
            finally:
                card.thaw()
            wait_for("it can be chosen again", lambda:
                     card.id in self.node.capacity())
            print(f"window {i + 1} of {windows}", file=sys.stderr)

    def report(self):
        for what, (well, frozen) in (("filter", self.filters),
                                     ("pod", self.pods)):
            print(what, *(f"{x:.0f}" for times in (well, frozen) for x in (
                len(times), quantile(times, 0.5), quantile(times, 0.99))),
                sep="\t")


def main():
    windows = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 12
    why = cards.lacking()
    if why:
        print(why, file=sys.stderr)
        return 77
    with cards.Rack(host=False) as rack:
        rack.start()
        node = Node(rack).start()
        bench = Bench(rack, node)
        bench.run(windows, seconds)
        bench.report()
        node.stop()
    return 0


sys.exit(main())
