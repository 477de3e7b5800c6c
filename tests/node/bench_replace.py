#!/usr/bin/env python3
"""How long the kubelet's runtime endpoint is away while biga-cri is replaced:
stopped by SIGTERM, and started as soon as it has ended, as systemd does.

    bench_replace.py [TIMES]

At rest; under load, that is while 12 pods come and go, with 20 exec streams;
and while a card is frozen.  Prints for each: the milliseconds from the last
answered call before to the first answered one after, of a client that calls
all the time on new connections (least, median, most); those of them until the
old process had ended; and how many calls of the kubelet failed, at most.
Status 77 where there can be no node, with the reason.
"""
import os
import re
import statistics
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
import standing  # noqa: E402
from cards import NODE  # noqa: E402
from cri import Cri  # noqa: E402
from pods import WAIT, sh  # noqa: E402
from proc import wait_for  # noqa: E402

STREAMS = 20


class Caller(threading.Thread):
    """Calls all the time; remembers when it was answered."""

    def __init__(self, r):
        super().__init__(daemon=True)
        self.cri, self.answered, self.done = Cri(unix=r.way.socket), [], False
        self.start()

    def run(self):
        while not self.done:
            try:
                self.cri.version()
                self.answered.append(time.monotonic())
            except (OSError, RuntimeError, EOFError):
                pass
            time.sleep(0.001)

    def gap(self, ended):
        """Around that moment; waits for the next answer."""
        wait_for("it answers", lambda: self.answered[-1] > ended,
                 every=0.002)
        after = next(i for i, at in enumerate(self.answered) if at > ended)
        return self.answered[after] - self.answered[after - 1]


def failed_calls(r):
    """Of the kubelet to its runtime, ever."""
    text = r.c.kubectl("get", "--raw", f"/api/v1/nodes/{NODE}/proxy/metrics")
    return sum(float(n) for n in re.findall(
        r"^kubelet_runtime_operations_errors_total\{.*\} (\S+)$", text,
        re.M))


class Load:
    """Pods that come and go, and streams."""

    def __init__(self, r, both):
        self.r, self.both, self.names = r, both, []
        self.talks = [r.talk("exec", "-i", both[n % 2].name, "--", "cat")
                      for n in range(STREAMS)]
        for talk in self.talks:
            talk.write("a\n")
            talk.wait_text("a\n")

    def come(self, turn):
        self.names = [(one.p, one.p.apply(f"load{turn}-{n}", sh(WAIT)))
                      for n in range(6) for one in self.both]
        wait_for("one has begun", lambda: any(
            f"load{turn}-" in s["name"]
            for s in self.r.rack.host.local().sandboxes()))

    def go(self):
        for p, name in self.names:
            p.ready(name)
        self.r.c.kubectl("delete", "pod", *[name for _, name in self.names])

    def end(self):
        for talk in self.talks:
            talk.end()


def replace(r, caller):
    """(gap, until it had ended), in seconds."""
    process = r.way.process
    wait_for("the caller calls", lambda: caller.answered)
    began = time.monotonic()
    process.stop()
    ended = time.monotonic()
    process.start()
    return caller.gap(ended), ended - began


def measure(r, what, times, come=lambda n: None, go=lambda: None):
    gaps, ends, failed = [], [], []
    for n in range(times):
        come(n)
        before = failed_calls(r)
        caller = Caller(r)
        gap, end = replace(r, caller)
        caller.done = True
        gaps.append(gap * 1000)
        ends.append(end * 1000)
        go()
        failed.append(failed_calls(r) - before)
    print(f"{what}: away {min(gaps):.0f} {statistics.median(gaps):.0f} "
          f"{max(gaps):.0f} ms, ended after {min(ends):.0f} "
          f"{statistics.median(ends):.0f} {max(ends):.0f} ms, "
          f"failed calls {max(failed):.0f}", flush=True)


def main():
    times = int(sys.argv[1]) if sys.argv[1:] else 5
    rig.require("router")
    with rig.Rig(2, "router") as r:
        r.start()
        r.start_biga()
        both = standing.begin(r)
        measure(r, "at rest", times)
        load = Load(r, both)
        measure(r, "under load", times, load.come, load.go)
        load.end()
        card = both[1].where
        card.freeze()
        measure(r, "a card frozen", times)
        card.thaw()


main()
