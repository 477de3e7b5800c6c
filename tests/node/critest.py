#!/usr/bin/env python3
"""critest, the conformance tests of container runtimes, against what a
kubelet would dial.

    critest.py [--chosen] [TARGET…]

Targets are TARGETS' names; by default all that there are here.  --chosen:
only the specs of critest.chosen, which take a short while.  Prints what each
spec said that did not pass, and a table; $BIGA_BUILD/critest has all results
of whole runs.
What is expected to fail stands in critest.expected, with the reason.
"""
import os
import re
import sys
import tempfile
import xml.etree.ElementTree

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import rig  # noqa: E402
import cards  # noqa: E402
import images  # noqa: E402
from check import Checks, Skip  # noqa: E402
from proc import HANGS, Process, wait_for  # noqa: E402

LIMIT = 1800  # seconds of one run, which only ends one that hangs


class Target:
    """way: one of rig.WAYS.  card: on a card, called by itself when the way
    is direct, else as the card of all pods without an allocation."""

    def __init__(self, name, way, card=False):
        self.name, self.way, self.card = name, way, card

    def lacking(self):
        return rig.WAYS[self.way].lacking() if rig.WAYS[self.way] else None

    def start(self):
        """(the rig, arguments of critest, what goes before it)"""
        r = rig.Rig(int(self.card), self.way, card_pods=self.card)
        if self.card and r.way:
            # critest's pods have no allocation, and ask for every right
            r.way.settings.update({
                "default-remote": r.rack.cards[0].id, "network": "pod",
                "allow": "ALL", "host-paths": "/"})
        r.start_runtimes()
        place, endpoint, more = r.rack.host, r.endpoint, []
        if self.card and r.way:
            more = ["-runtime-handler=xpu"]
            # critest pulls without saying for which pod, so to the host
            for image in images.OF_CONTAINERS:
                r.crictl("pull", image, endpoint="unix://"
                         + r.rack.cards[0].socket)
        elif self.card:
            place = r.rack.cards[0]
            endpoint = f"unix://{place.socket}"
        return r, [f"-runtime-endpoint={endpoint}",
                   f"-image-endpoint={endpoint}", *more], \
            [*place.enter(), *place.enter_network()]


TARGETS = {t.name: t for t in (
    Target("host", "direct"), Target("card", "direct", card=True),
    Target("router-host", "router"),
    Target("router-card", "router", card=True))}


# --- lists -----------------------------------------------------------------
def lines(file):
    with open(os.path.join(HERE, file), encoding="utf-8") as f:
        return [line.rstrip() for line in f
                if line.strip() and not line.startswith("#")]


def expected(target):
    """{spec: reason} of what fails at a target, by critest.expected: lines
    "TARGET…: REASON", each followed by specs that are indented."""
    found, reason = {}, None
    for line in lines("critest.expected"):
        if line[0] != " ":
            targets, _, reason = line.partition(": ")
            reason = reason if target in targets.split() else None
        elif reason:
            found[line.strip()] = reason
    return found


def short(name):
    """A spec's name, without what they all have."""
    name = re.sub(r"\[(It|k8s\.io|Conformance|Serial)\] ?", "", name)
    return " ".join(name.split())


# --- a run --------------------------------------------------------------------
class Result:
    def __init__(self, case):
        self.name, self.status = short(case.get("name")), case.get("status")
        self.seconds = float(case.get("time", 0))
        why = case.find("failure")
        if why is None:
            why = case.find("error")
        if why is None:
            why = case.find("skipped")
        text = "" if why is None else why.get("message") or why.text or ""
        self.why = " ".join(text.split())[:300]


def results(path):
    """Of all specs; those for measurements are not asked."""
    root = xml.etree.ElementTree.parse(path).getroot()
    return [Result(c) for c in root.iter("testcase")
            if c.get("name").startswith("[It]")
            and "benchmark" not in c.get("name")]


def focus(chosen):
    """The argument that makes critest run these alone: between their words
    stand tags that short() has taken out."""
    def pattern(name):
        words = [re.escape(w).replace("/", "\\/") for w in name.split()]
        return r"( \[[a-zA-Z0-9.]+\])* ".join(words) + r"( \[\w+\])*$"
    return "-ginkgo.focus=" + "|".join(map(pattern, chosen))


def log_folder(r):
    """Where critest has its pods' logs: where a kubelet has them, for
    nothing may be written elsewhere."""
    if not r.way:
        return tempfile.gettempdir()
    os.makedirs(r.rack.host.path("log", "pods"), exist_ok=True)
    return "/var/log/pods"


def run(target, chosen):
    """[Result] of critest at a target."""
    r, args, before = target.start()
    with r:
        report = os.path.join(r.rack.folder, "critest.xml")
        argv = [*before, os.path.join(rig.binaries("cri"), "critest"), *args,
                "-ginkgo.seed=1", "-ginkgo.no-color",
                "-ginkgo.junit-report=" + report]
        if chosen:
            argv.append(focus(chosen))
        process = Process(r.rack.folder, "critest", argv, {
            "TMPDIR": log_folder(r)}).start()
        wait_for("critest ends", lambda: not process.running, max(
            HANGS, LIMIT), every=0.2)
        if not os.path.exists(report):
            raise RuntimeError("critest has told nothing: "
                               + process.text()[-2000:])
        return results(report)


def judge(t, target, found, chosen):
    """Checks of one target; its line of the table."""
    fails = expected(target.name)
    if chosen:
        found = [f for f in found if f.name in chosen]
    names = {kind: [f for f in found if f.status == kind]
             for kind in ("passed", "skipped")}
    bad = [f for f in found if f.status not in names]
    new = [f for f in bad if f.name not in fails]
    with t.check(f"critest, {target.name}: no spec fails but for known "
                 "reasons"):
        assert found, "critest has run no spec"
        assert not new, "\n".join(f"{f.name}: {f.why}" for f in new)
    for f in bad:
        if f.name in fails:
            t.note(f"fails as expected: {f.name}: {fails[f.name]}")
    for f in names["passed"]:
        if f.name in fails:
            t.note(f"passes, though it is expected to fail: {f.name}")
    if not chosen:
        write(target, found)
    return f"{target.name:12} {len(names['passed']):7} " \
        f"{len(bad) - len(new):9} {len(new):7} {len(names['skipped']):8}"


def write(target, found):
    """All results of a target, for a person."""
    folder = os.path.join(cards.BUILD, "critest")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, target.name + ".txt"), "w",
              encoding="utf-8") as f:
        for one in sorted(found, key=lambda one: one.name):
            f.write(f"{one.status:8} {one.seconds:6.1f} s  {one.name}"
                    + (f": {one.why}" if one.why else "") + "\n")


def main(args):
    chosen = lines("critest.chosen") if "--chosen" in args else None
    args = [a for a in args if a != "--chosen"]
    wrong = [a for a in args if a not in TARGETS]
    if wrong:
        sys.exit(f"critest: there is no target {wrong[0]}; there are "
                 + ", ".join(TARGETS))
    rig.require(programs="cri")
    t, table = Checks(), []
    for target in map(TARGETS.get, args or TARGETS):
        why = target.lacking()
        if why:
            with t.check(f"critest, {target.name}"):
                raise Skip(why)
            continue
        table.append(judge(t, target, run(target, chosen), chosen))
        cards.require()  # a network for the next
    if table:
        t.note("target        passed  expected  failed  skipped")
    for line in table:
        t.note(line)
    t.finish()


if __name__ == "__main__":
    main(sys.argv[1:])
