#!/usr/bin/env python3
"""Judges by records alone what a kubelet was told of containers against what
ran: no container is told as gone that runs, none runs twice, none is
forgotten, none is told as running that has ended for good, and the node is
well all the time.

    checker.py HISTORY.jsonl [BIGA-CRI.log]

Who writes the records: watch.py.  A made-up bad record for each rule is in
test_checker.py.  Exit status 1 when something did not hold.
"""
import calendar
import os
import re
import sys
import time
from collections import Counter, defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), "soak"))
from record import read  # noqa: E402

RUNNING, EXITED = 1, 2  # as CRI has them
FOREVER = float("inf")
HELPER = "biga-helper-"  # uids of biga-cri's own pods
# calls that say of what they name that it does not run any more
ENDS = ("StopContainer", "RemoveContainer", "StopPodSandbox",
        "RemovePodSandbox")
WORD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S*)')


def audit(lines, mono):
    """What biga-cri says that it did, as events; mono: what to take from
    its wall clock."""
    for line in lines:
        if " event=routed " not in line:
            continue
        found = {k: v.strip('"') for k, v in WORD.findall(line)}
        when, ms = found["ts"].rstrip("Z").split(".")
        wall = calendar.timegm(time.strptime(when, "%Y-%m-%dT%H:%M:%S"))
        # it is written down to the ms, and was not later than the next
        yield {"t": wall + (int(ms) + 1) / 1000 - mono, "e": "routed",
               "call": found["call"], "remote": found["remote"],
               "pod": found["pod"], "id": found["id"],
               "code": found["code"]}


class Run:
    """What ran surely from `first` to `last`, and not after `over`."""

    def __init__(self, e):
        self.id, self.place, self.uid = e["id"], e["place"], e["uid"]
        self.container = e["container"] if e["kind"] == "container" else ""
        self.pod, self.first = e["pod"], e["t"]
        self.last = self.over = FOREVER

    def __str__(self):
        return (f"{self.container or 'sandbox'} of {self.pod} "
                f"({self.id[:12]} on {self.place})")


class Checker:
    def __init__(self, events):
        self.events = sorted(events, key=lambda e: e["t"])
        self.found = []
        self.made = Counter()  # how often each was looked at
        self.runs = self._runs()
        self.by_id = defaultdict(list)
        for run in self.runs:
            self.by_id[run.id].append(run)

    def _runs(self):
        """Those of places that told no lies."""
        liars = {e["place"] for e in self.events if e["e"] == "lies"}
        runs, there = [], {}
        for e in self.events:
            key = (e.get("place"), e.get("id"))
            if e["e"] == "task" and e["place"] not in liars:
                there[key] = Run(e)
                runs.append(there[key])
            elif e["e"] == "task-end" and key in there:
                run = there.pop(key)
                run.last, run.over = e["last"], e["t"]
        return runs

    def of(self, *names):
        return [e for e in self.events if e["e"] in names]

    def bad(self, rule, t, text):
        self.found.append((rule, f"{t:.2f}: {text}"))

    def judge(self):
        for rule in (self.twice, self.gone, self.forgotten, self.ended,
                     self.node):
            rule()
        return self.found

    # --- rules ------------------------------------------------------------
    def twice(self):
        """Of a container of a pod one runs at a time; where the pod is to run
        once, one at all."""
        once = {e["uid"] for e in self.of("pod") if e["once"]}
        runs = defaultdict(list)
        for run in self.runs:
            if run.container and not run.uid.startswith(HELPER):
                runs[(run.uid, run.container)].append(run)
        for (uid, _), found in runs.items():
            self.made["containers that ran"] += len(found)
            for one, other in zip(found, found[1:]):
                if other.first < one.last:
                    self.bad("runs twice", other.first,
                             f"{other} beside {one}")
                elif uid in once:
                    self.bad("ran twice", other.first, f"{other} after {one}")

    def _is_gone(self, t, ident, who):
        self.made["told as gone"] += 1
        for run in self.by_id[ident]:
            if run.first < t < run.last:
                self.bad("told as gone, and runs", t, f"{run}, by {who}")

    def gone(self):
        """By lists, by answers that biga-cri wrote down, by the API."""
        for e in self.of("told", "told-gone"):
            if e["e"] == "told-gone" or e["state"] == EXITED:
                self._is_gone(e["t"], e["id"], "a list")
        for e in self.of("routed"):
            if e["call"] in ENDS and e["code"] == "OK":
                self._is_gone(e["t"], e["id"], e["call"])
        for e in self.of("pod"):
            for c in e["containers"]:
                if c["state"] == "terminated":
                    self._is_gone(e["t"], c["id"], "the kubelet")
        for e in self.of("pod-gone"):
            for run in self.runs:
                if run.uid == e["uid"] and run.container:
                    self._is_gone(e["t"], run.id, "its pod's end")

    def forgotten(self):
        """In the end all that runs is a pod's."""
        pods = set()
        for e in self.of("pod", "pod-gone"):
            if e["e"] == "pod":
                pods.add(e["uid"])
            else:
                pods.discard(e["uid"])
        for run in self.runs:
            if run.last == FOREVER and run.uid not in pods and \
                    not run.uid.startswith(HELPER):
                self.bad("is forgotten", self.events[-1]["t"], str(run))

    def ended(self):
        """Whenever the test says that all is at rest, what is told as running
        runs."""
        told, pods = {}, {}
        for e in self.events:
            if e["e"] == "told":
                told[e["id"]] = e
            elif e["e"] == "told-gone":
                told.pop(e["id"], None)
            elif e["e"] == "pod":
                pods[e["uid"]] = e
            elif e["e"] == "pod-gone":
                pods.pop(e["uid"], None)
            elif e["e"] == "rest":
                said = {i for i, what in told.items()
                        if what["state"] == RUNNING}
                said |= {c["id"] for p in pods.values()
                         for c in p["containers"] if c["state"] == "running"}
                self._at_rest(e["t"], said)

    def _at_rest(self, t, said):
        for ident in said:
            self.made["told as running"] += 1
            runs = self.by_id[ident]
            if runs and all(run.over < t for run in runs):
                self.bad("told as running, and has ended", t, str(runs[-1]))

    def node(self):
        """Ready, as the API and the kubelet itself say."""
        for e in self.of("node", "healthz"):
            self.made["looks at the node"] += 1
            if e["ok"] != "True":
                self.bad("the node is not well", e["t"], e["why"])


def check(path, log=None):
    """(what does not hold, how often each was looked at)"""
    events = read(path)
    if log:
        begin = next(e for e in events if e["e"] == "begin")
        with open(log, encoding="utf-8", errors="replace") as f:
            events += audit(f, begin["wall"] - begin["t"])
    c = Checker(events)
    return c.judge(), c.made


def main():
    found, made = check(*sys.argv[1:3])
    for rule, text in found:
        print(f"{rule}: {text}")
    print(", ".join(f"{n} {what}" for what, n in sorted(made.items())))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
