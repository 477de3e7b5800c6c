#!/usr/bin/env python3
"""What was promised beside what pods got, from end to end: biga-extender
promises at the gate, a real kubelet gives, with a device plugin that takes no
preference and gives the lowest index, and with CPU manager static.  The
containers say what they have: each that lacks what it was promised is lost, by
name and with one Event, and no other is."""
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_achieved import (  # noqa: E402
    CARDS, GPUS, KUBELET, RESOURCE, Node, cpus_of, static_rig)
import cards  # noqa: E402
from check import Checks  # noqa: E402
from claims import GATE  # noqa: E402
from proc import wait_for  # noqa: E402

SEED = int(os.environ.get("BIGA_SEED") or random.SystemRandom().randrange(
    1 << 32))
# pods that come and go
MANY = int(os.environ.get("BIGA_PODS") or
           (40 if os.environ.get("NODE_FULL") else 10))
POD_RESOURCES = "--pod-resources=" + KUBELET + "/pod-resources/kubelet.sock"
LOST = "AlignmentLost"


class Promises:
    """A Node whose pods Biga places; what each was promised and has."""

    def __init__(self, n):
        self.n, self.api = n, n.r.c.api
        self.lost, self.all = set(), set()
        extender = n.biga.extender("extender", "--gpu-resources=" + RESOURCE)
        n.biga.leader()
        self.read = n.biga.read_api(extender, n.biga.reader())

    def seen(self, name):
        """Its allocation, as the read API has it."""
        items = self.read.call("GET", "/v1/allocations")["items"]
        return next(a for a in items if a["pod"]["name"] == name)

    def apply(self, gpus=0, cpus=None, claim=False):
        """A host pod that waits at the gate for a card."""
        notes = {} if claim else {"biga.dev/card": "1"}
        return self.n.apply(
            gpus, cpus, claim, labels={"biga.dev/role": "host"},
            annotations=notes, schedulingGates=[{"name": GATE}])

    def up(self, **asks):
        return self.judge(self.apply(**asks))

    def is_lost(self, name, promised):
        """What its container says, beside what it was promised."""
        gpus = {g["pci"] for g in promised["gpus"]}
        if gpus - set(self.n.truth[name]["gpus"]):
            return True
        if not self.has_cpus(name):
            return False
        half = os.cpu_count() // 2
        nodes = {int(cpu >= half) for cpu in cpus_of(self.n.allowed(name))}
        return nodes != {promised["numa"]}

    def has_cpus(self, name):
        """Whether it asks for CPUs of its own."""
        main, = self.n.r.pod(name)["spec"]["containers"]
        return "cpu" in main.get("resources", {}).get("limits", {})

    def judge(self, name):
        """Once it runs: until it is told as what it has; its name."""
        self.n.ready(name)
        promised = self.seen(name)
        lost = self.is_lost(name, promised)
        pinned = promised["gpus"] or self.has_cpus(name)
        state = "lost" if lost else "kept" if pinned else "unknown"
        gpus = self.n.truth[name]["gpus"]

        def told():
            found = self.seen(name)["achieved"]
            assert found["state"] == state and found.get("gpus") == gpus, (
                state, gpus, found)
            return found
        found = wait_for(f"{name} is told as {state}", told)
        assert not pinned or found["relation"], found
        self.all.add(name)
        if lost:
            self.lost.add(name)
            self.wait_event(name, found)
        return name

    def wait_cards(self, name):
        """Until it is told on its cards: a kubelet tells of a claim when it
        has prepared it, which may be later than its GPUs."""
        def told():
            found = self.seen(name)
            assert found["achieved"]["cards"] == [
                c["pci"] for c in found["cards"]], found
            return True
        wait_for(f"{name} is told with its cards", told)

    def events(self, name):
        return [e for e in self.api.list(
            "events", "default", fieldSelector=f"involvedObject.name={name}")
                if e["reason"] == LOST]

    def wait_event(self, name, achieved):
        """It says what the read API says."""
        event, = wait_for("an Event says so", lambda: self.events(name))
        assert event["message"] == achieved["text"], (event, achieved)
        assert event["involvedObject"]["uid"] == self.n.truth[name]["uid"]

    def check_events(self):
        """Each lost pod has one, and none of the others has any."""
        found = {name: len(self.events(name)) for name in self.all}
        assert found == {name: int(name in self.lost)
                         for name in self.all}, (found, self.lost)
        told = {e["involvedObject"]["name"] for e in
                self.api.list("events", "default") if e["reason"] == LOST}
        assert told == self.lost, (told, self.lost)


# --- checks ------------------------------------------------------------------
def test_gpus(t, p):
    with t.check("a pod that got all GPUs that it was promised is kept"):
        name = p.up(gpus=len(GPUS))
        assert name not in p.lost
        p.n.gone(name)
    with t.check("one that was promised two near its card, and got the two "
                 "that are lowest, is lost: by name, and with its cost"):
        name = p.up(gpus=2)
        found = p.seen(name)
        near = [g["pci"] for g in found["gpus"]]
        text = found["achieved"]["text"]
        assert name in p.lost and found["achieved"]["relation"] == "SYS", found
        for part in (f"promised GPUs {near[0]} {near[1]} (",
                     f"to card {found['cards'][0]['pci']}",
                     f"has {GPUS[0]} {GPUS[1]} (SYS)",
                     "each transfer crosses the socket link"):
            assert part in text, text
    with t.check("the command line names it"):
        url = f"https://localhost:{p.read.port}"
        said = p.n.biga.write_reader_token()
        got = cards.run(
            os.path.join(cards.BUILD, "biga"), "allocations",
            env={**os.environ, "BIGA_SERVER": url, "BIGA_TOKEN_FILE": said,
                 "BIGA_CA": p.n.biga.pki("ca.crt")})
        assert any(name in line and "lost" in line
                   for line in got.splitlines()), got
        p.n.gone(name)


def test_cpus(t, p):
    with t.check("a pod with a CPU of its own is lost when that is of another "
                 "NUMA node than its card, and only then"):
        first = p.up(cpus=1)
        p.n.gone(first)
        block = p.up()  # has the card that the first had
        second = p.up(cpus=1)
        assert (first in p.lost) != (second in p.lost), p.lost
        p.n.gone(block, second)


def test_many(t, p):
    rng = random.Random(SEED)
    t.note(f"BIGA_SEED={SEED}")
    with t.check(f"of {MANY} pods that come and go each that got less is "
                 "lost, and no other"):
        left, kept = MANY, []
        while left > 0 or kept:
            new = [p.apply(gpus=rng.randint(1, 4))
                   for _ in range(min(left, len(CARDS) - len(kept)))]
            left -= len(new)
            kept += [p.judge(name) for name in new]
            ends = rng.sample(kept, rng.randint(1, len(kept)))
            p.n.gone(*ends)
            kept = [name for name in kept if name not in ends]
        p.check_events()
        p.n.check_never_wrong()
        t.note(f"{len(p.lost)} of {len(p.all)} lost")


def test_claims(t, p):
    with t.check("with claims nothing is lost"):
        p.n.advertise(*p.n.claims())
        lost = set(p.lost)
        for gpus in (0, len(GPUS)) * 2:
            name = p.up(gpus=gpus, claim=True)
            p.wait_cards(name)
            p.n.gone(name)
        pair = [p.up(claim=True), p.up(claim=True)]
        assert len({p.seen(x)["cards"][0]["pci"] for x in pair}) == 2
        p.n.gone(*pair)
        assert p.lost == lost, p.lost - lost
        p.check_events()


def main():
    with static_rig() as r:
        t = Checks(on_failure=r.tail)
        with t.check("the node is ready, and Biga places pods on it"):
            r.start()
            n = Node(r)
            n.start(POD_RESOURCES)
            p = Promises(n)
        for test in (test_gpus, test_cpus, test_many, test_claims):
            if not t.failed:
                test(t, p)
        t.finish()


main()
