#!/usr/bin/env python3
"""critest, the conformance tests of container runtimes, against what a
kubelet would dial.

    critest.py [--chosen] [TARGET…]

Targets are TARGETS' names; by default all that there are here, at the same
time.  --chosen: only the specs of critest.chosen, which take a short while.

critest.expected has the specs that fail at a target, each with the reason.
One that is not there must not fail, and one that is there must not pass; and
what passes at a target's base must pass there.  Whole runs tell how far they
are, end with a table, and leave all results in $BIGA_BUILD/critest.
"""
import collections
import os
import re
import shutil
import sys
import time
import xml.etree.ElementTree

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import rig  # noqa: E402
import cards  # noqa: E402
import images  # noqa: E402
import parts  # noqa: E402
from check import Checks, Skip  # noqa: E402
from proc import HANGS, Process, wait_for  # noqa: E402

LIMIT = 1800  # seconds of one run, which only ends one that hangs
TELL = 30  # seconds from one word of how far it is to the next
RESULTS = os.path.join(cards.BUILD, "critest")
# containerd's answer when two of its calls meet, of which one ends the shim
# (containerd issue 11505): it comes from the runtime, whoever asks
SHIM_ENDED = "ttrpc: closed: unknown"


class Target:
    """way: one of rig.WAYS.  card: on a card, called by itself when the way
    is direct, else as the card of all pods without an allocation.  base: the
    target without Biga."""

    def __init__(self, name, way, card=False, base=None):
        self.name, self.way, self.card, self.base = name, way, card, base

    def lacking(self):
        return rig.WAYS[self.way].lacking() if rig.WAYS[self.way] else None

    def results(self):
        """The file of its last whole run."""
        return os.path.join(RESULTS, self.name + ".xml")

    def start(self):
        """(the rig, arguments of critest, what goes before it)"""
        r = rig.Rig(int(self.card), self.way, card_pods=self.card)
        if r.way:
            # where critest has its files, so its pods' logs
            r.way.settings["pod-logs"] = files_of(r)
        if self.card and r.way:
            # critest's pods have no allocation, and ask for every right
            r.way.settings.update({
                "default-remote": r.rack.cards[0].id, "network": "pod",
                "allow": "privileged,host-pid,host-ipc,ALL",
                "host-paths": "/", "image-gc-high": 100})
        r.start_runtimes()
        place, network = r.rack.host, r.rack.host
        if self.card:  # whose paths those of its pods are
            place = r.rack.cards[0]
            network = r.rack.host if r.way else place
        endpoint = r.endpoint if r.way else f"unix://{place.socket}"
        args = [f"-runtime-endpoint={endpoint}", f"-image-endpoint={endpoint}"]
        if self.card and r.way:
            args += ["-runtime-handler=xpu"]
            # critest pulls without saying for which pod, so to the host
            for image in (*images.OF_CONTAINERS, images.PAUSE):
                r.crictl("pull", image, endpoint=f"unix://{place.socket}")
        return r, args, [*place.enter(), *network.enter_network()]


TARGETS = {t.name: t for t in (
    Target("host", "direct"), Target("card", "direct", card=True),
    Target("router-host", "router", base="host"),
    Target("router-card", "router", card=True, base="card"))}


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
        if self.status not in ("passed", "skipped"):
            self.status = "failed"
        self.seconds = float(case.get("time", 0))
        why = case.find("failure")
        if why is None:
            why = case.find("error")
        if why is None:
            why = case.find("skipped")
        text = "" if why is None else why.get("message") or why.text or ""
        self.why = " ".join(text.split())[:300]


def read(path):
    """{spec: Result} of all; those for measurements are not asked."""
    root = xml.etree.ElementTree.parse(path).getroot()
    return {r.name: r for r in map(Result, (
        case for case in root.iter("testcase")
        if case.get("name").startswith("[It]")
        and "benchmark" not in case.get("name")))}


def focus(chosen):
    """The argument that makes critest run these alone: between their words
    stand tags that short() has taken out."""
    def pattern(name):
        words = [re.escape(w).replace("/", "\\/") for w in name.split()]
        return r"( \[[a-zA-Z0-9.]+\])* ".join(words) + r"( \[\w+\])*$"
    return "-ginkgo.focus=" + "|".join(map(pattern, chosen))


def files_of(r):
    """A folder that is the same for the host and its cards."""
    folder = os.path.join(r.rack.folder, "critest")
    os.makedirs(folder, exist_ok=True)
    return folder


class Progress:
    """How far critest is, by the letters that it writes, from time to time."""

    def __init__(self, t, target, process):
        self.t, self.target, self.process = t, target, process
        self.began = self.told = time.monotonic()

    def ended(self):
        if not self.process.running:
            return True
        now = time.monotonic()
        if now - self.told >= TELL:
            self.told = now
            said = self.process.text()
            done = len("".join(re.findall(r"^[•S]+", said, re.M)))
            total = re.search(r"of (\d+) specs", said)
            self.t.note(f"{self.target.name}: {done} of "
                        f"{total[1] if total else '?'} specs after "
                        f"{now - self.began:.0f} s")
        return False


def run(t, target, chosen):
    """{spec: Result} of critest at a target."""
    r, args, before = target.start()
    with r:
        report = os.path.join(r.rack.folder, "critest.xml")
        argv = [*before, os.path.join(rig.binaries("cri"), "critest"), *args,
                "-ginkgo.seed=1", "-ginkgo.no-color",
                "-ginkgo.junit-report=" + report]
        if chosen:
            argv.append(focus(chosen))
        process = Process(r.rack.folder, "critest", argv, {
            "TMPDIR": files_of(r)}).start()
        progress = Progress(t, target, process)
        wait_for("critest ends", progress.ended, max(HANGS, LIMIT), every=0.2)
        if not os.path.exists(report):
            raise RuntimeError("critest has told nothing: "
                               + process.text()[-2000:])
        if not chosen:
            os.makedirs(RESULTS, exist_ok=True)
            shutil.copyfile(report, target.results())
        return read(report)


# --- what is judged -----------------------------------------------------------
def judge(t, target, found, chosen):
    """Checks of one target."""
    fails = expected(target.name)
    names = chosen or list(found)
    bad = {n: found[n].why for n in names
           if n in found and found[n].status == "failed"}
    for n in [n for n, why in bad.items()
              if n not in fails and SHIM_ENDED in why]:
        t.note(f"containerd's shim had ended: {n}: {bad.pop(n)}")
    with t.check(f"critest, {target.name}: no spec fails but for a known "
                 f"reason ({len(names)} specs)"):
        assert found, "critest has run no spec"
        assert bad.keys() <= fails.keys(), "\n".join(
            f"{n}: {why}" for n, why in bad.items() if n not in fails)
    with t.check(f"critest, {target.name}: what is expected to fail does"):
        good = [n for n in fails if n in names and n not in bad]
        good += [n for n in fails if not chosen and n not in found]
        assert not good, "\n".join(
            f"{n}: {found[n].status if n in found else 'there is none'}"
            for n in good)
    if chosen:
        with t.check(f"critest, {target.name}: all that were chosen run"):
            idle = [n for n in chosen if n not in found
                    or found[n].status == "skipped"]
            assert not idle, "\n".join(idle)
    for n in bad.keys() & fails.keys():
        t.note(f"fails as expected: {n}: {fails[n]}")


def compare(t, target, found):
    """What passes at its base passes there."""
    base = read(TARGETS[target.base].results())
    fails = expected(target.name)
    with t.check(f"critest, {target.name}: what passes at {target.base} "
                 "passes"):
        worse = [f"{n}: {found[n].status if n in found else 'missing'}"
                 for n, b in base.items() if b.status == "passed"
                 and n not in fails
                 and (n not in found or found[n].status != "passed")]
        assert not worse, "\n".join(worse)


def table(t, found):
    """Numbers of each target; results of each spec for a person."""
    t.note("target        passed  failed  skipped  seconds")
    for name, all_of_it in found.items():
        n = collections.Counter(r.status for r in all_of_it.values())
        t.note(f"{name:12} {n['passed']:7} {n['failed']:7} {n['skipped']:8} "
               f"{sum(r.seconds for r in all_of_it.values()):8.0f}")
        with open(os.path.join(RESULTS, name + ".txt"), "w",
                  encoding="utf-8") as f:
            for one in sorted(all_of_it.values(), key=lambda one: one.name):
                f.write(f"{one.status:8} {one.seconds:6.1f} s  {one.name}"
                        + (f": {one.why}" if one.why else "") + "\n")


def run_one(target, chosen):
    """One target in this process; does not return."""
    why = target.lacking()
    t = Checks()
    if why:
        with t.check(f"critest, {target.name}"):
            raise Skip(why)
    else:
        judge(t, target, run(t, target, chosen), chosen)
    t.finish()


def run_all(names, options):
    """Each in a process with a network of its own, all at once; does not
    return."""
    for target in map(TARGETS.get, names):
        if not options and os.path.exists(target.results()):
            os.unlink(target.results())
    bad = parts.run_all([[*options, name] for name in names],
                        os.path.join(HERE, "critest.py"))
    t = Checks()
    found = {name: read(TARGETS[name].results()) for name in names
             if not options and os.path.exists(TARGETS[name].results())}
    for name in found:
        if TARGETS[name].base in found:
            compare(t, TARGETS[name], found[name])
    if found:
        table(t, found)
    sys.exit(1 if bad or t.failed else 0)


def main(args):
    options = [a for a in args if a == "--chosen"]
    names = [a for a in args if a not in options]
    wrong = [a for a in names if a not in TARGETS]
    if wrong:
        sys.exit(f"critest: there is no target {wrong[0]}; there are "
                 + ", ".join(TARGETS))
    if len(names) == 1:
        rig.require(programs="cri")
        run_one(TARGETS[names[0]], lines("critest.chosen") if options else None)
    why = rig.lacking()
    if why:
        print(why)
        sys.exit(77)
    rig.binaries("cri")
    run_all(names or list(TARGETS), options)


if __name__ == "__main__":
    main(sys.argv[1:])
