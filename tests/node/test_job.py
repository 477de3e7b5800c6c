#!/usr/bin/env python3
"""deploy/examples/job.yaml, applied to a node with cards as its users apply
it: the host pods run on the host, each xPU pod on the card that its
allocation names; the Job completes, and the cards are free again.

The file is for 16 pairs of 8 processors each.  What this machine is too small
for is changed in its text, and nothing else."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
from cards import NODE, ROOT  # noqa: E402
from check import Checks  # noqa: E402
from place import OnCard, Place, allocation  # noqa: E402
from proc import wait_for  # noqa: E402

FILE = os.path.join(ROOT, "deploy", "examples", "job.yaml")
PAIRS = 4
SMALLER = ((": 16\n", f": {PAIRS}\n", 2), ('"16"', f'"{PAIRS}"', 1),
           ('cpu: "8"', "cpu: 10m", 1), (": 32Gi", ": 64Mi", 2))


def example():
    """Its text, for this machine."""
    with open(FILE, encoding="utf-8") as f:
        text = f.read()
    for old, new, times in SMALLER:
        assert text.count(old) == times, (old, text.count(old))
        text = text.replace(old, new)
    return text


def pods(r, role):
    return [p for p in r.c.api.list("pods", "default")
            if p["metadata"]["labels"].get("biga.dev/role") == role]


def running(r, role):
    found = pods(r, role)
    assert len(found) == PAIRS, f"{len(found)} of role {role}"
    for p in found:
        assert p["status"].get("phase") == "Running", p["status"]
    return found


def free_cards(r):
    """What `biga nodes` says that the node's cards have."""
    return r.run_biga("nodes")


def all_free(r):
    """The same, once it knows the node and all its cards are idle."""
    said = free_cards(r)
    assert NODE in said and f" {PAIRS}/{PAIRS} " in said, said
    return said


def test_places(t, r):
    host, card = Place(r), OnCard(r)
    with t.check("kubectl apply: all pods of the job run"):
        r.c.apply(example())
        hosts = wait_for("host pods run", lambda: running(r, "host"))
        xpus = wait_for("xPU pods run", lambda: running(r, "xpu"))
    with t.check("host pods are on the host"):
        for p in hosts:
            assert host.here(p), p["status"]
    with t.check("each xPU pod is on the card of its allocation, and on no "
                 "other"):
        for p in xpus:
            here = card.card_of(p)
            for c in r.rack.cards:
                found = [s for s in c.local().sandboxes()
                         if s["uid"] == p["metadata"]["uid"]]
                assert len(found) == (c is here), (c.id, found)
        assert len({card.card_of(p).id for p in xpus}) == PAIRS
    with t.check("that is the card of its host pod, behind its GPU's switch"):
        cards = {p["metadata"]["uid"]: allocation(p) for p in hosts}
        for p in xpus:
            owner, = p["metadata"]["ownerReferences"]
            mine, its = allocation(p), cards.pop(owner["uid"])
            assert mine["cards"] == its["cards"], (mine, its)
            assert mine["relation"] == "PIX", mine
        assert not cards
    return hosts


def test_end(t, r, hosts, before):
    host = Place(r)
    with t.check("its programs end: the Job is complete, its xPU pods end"):
        for p in hosts:  # which may end with the container that it ends
            r.c.kubectl("exec", p["metadata"]["name"], "--", "touch", "/done",
                        check=False)
        r.c.kubectl("wait", "--for=condition=Complete", "job/solver",
                    "--timeout=300s")
        wait_for("no xPU pod is there", lambda: not pods(r, "xpu"))
        for p in pods(r, "host"):
            assert p["status"]["phase"] == "Succeeded", p["status"]
            name = p["metadata"]["name"]
            host.said(name, "solved\n")
    with t.check("cards and allocations are free again"):
        wait_for("nothing runs on cards", lambda: not [
            s for c in r.rack.cards for s in c.local().sandboxes()
            if s["ready"] and s["namespace"] == "default"])
        wait_for("all is free", lambda: free_cards(r) == before)
    with t.check("and the Job can be run once more"):
        r.c.kubectl("delete", "job", "solver")
        r.c.apply(example())
        wait_for("xPU pods run", lambda: running(r, "xpu"))
        r.c.kubectl("delete", "job", "solver")
        wait_for("all is free", lambda: free_cards(r) == before)


def main():
    rig.require("router")
    with rig.Rig(PAIRS, "router") as r:
        t = Checks(on_failure=r.tail)
        with t.check("the node is ready"):
            r.start()
            r.start_biga()
            # as the GPUs' own device plugin says it
            r.c.api.patch("nodes", None, NODE, {"status": {
                "capacity": {"nvidia.com/gpu": "8"},
                "allocatable": {"nvidia.com/gpu": "8"}}}, sub="status")
            before = wait_for("all is free", lambda: all_free(r))
            t.note(before)
        if not t.failed:
            hosts = test_places(t, r)
            test_end(t, r, hosts, before)
        t.finish()


main()
