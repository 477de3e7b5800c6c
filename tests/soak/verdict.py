#!/usr/bin/env python3
"""Judges a soak by its history alone: what must always hold, and how long
took what the documents promise in seconds.

    verdict.py HISTORY.jsonl

Exit status 1 when something did not hold.  What is written there: record.py;
who writes it: soak.py and its sides.  A made-up bad history for each of
these is in test_verdict.py.
"""
import os
import sys
from collections import Counter

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "kube"))
import measure  # noqa: E402
import rules  # noqa: E402
from record import read  # noqa: E402

SHOWN = 30
STILL = 15.0  # seconds


class Verdict:
    def __init__(self, events):
        self.events = events
        self.found = []            # (what does not hold, text)
        self.made = Counter()      # how often each was looked at

    def bad(self, what, text):
        self.found.append((what, text))

    def judge(self):
        for rule in rules.ALL:
            rule(self)
        return self.found

    def of(self, *names):
        return [e for e in self.events if e["e"] in names]


def count(events):
    """What happened, in numbers."""
    n = Counter(e["e"] for e in events)
    kinds = Counter(e["kind"] for e in events if e["e"] == "fault")
    units = Counter(e["kind"] for e in events if e["e"] == "unit")
    yield f"{n['round']} rounds, {len(events)} events"
    yield f"{n['fault']} faults: " + ", ".join(
        f"{k} {kind}" for kind, k in kinds.most_common())
    yield f"{n['unit']} units of work: " + ", ".join(
        f"{k} {kind}" for kind, k in units.most_common())
    acked = [e for e in events if e["e"] == "bound" and not e["error"]]
    codes = Counter(e["code"] for e in events if e["e"] == "binding")
    yield (f"binds: {codes[201]} in the cluster ({sum(codes.values())} "
           f"asked), {len(acked)} without")
    names = {e["name"] for e in events if e["e"] == "pod-state"}
    yield (f"pods: {len({e['uid'] for e in events if e['e'] == 'pod'})} in "
           f"the cluster, {len(names)} on cards; {n['task']} sandboxes and "
           "containers ran")


def stood_still(events):
    """Programs are looked at every few seconds: when nothing at all was
    written for longer, the machine was away, and so were all promises."""
    last = None
    for e in events:
        if last is not None and e["t"] - last > STILL:
            yield (f"nothing was seen for {e['t'] - last:.0f} s after "
                   f"{last:.0f}: the machine, or the soak, stood still")
        last = max(e["t"], last or 0)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    events = read(sys.argv[1])
    verdict = Verdict(events)
    verdict.judge()
    for line in (*count(events), *stood_still(events)):
        print(line)
    print("looked at: " + ", ".join(
        f"{k} {what}" for what, k in sorted(verdict.made.items())))

    for line in measure.table(events):
        print(line)
    for what, text in verdict.found[:SHOWN]:
        print(f"FOUND: {what}: {text[:1500]}")
    if len(verdict.found) > SHOWN:
        print(f"FOUND: and {len(verdict.found) - SHOWN} more")
    print(f"{len(verdict.found)} findings")
    sys.exit(1 if verdict.found else 0)


if __name__ == "__main__":
    main()
