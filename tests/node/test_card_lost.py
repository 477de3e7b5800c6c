#!/usr/bin/env python3
"""A card stays lost, under a real kubelet: its pod says so, is evicted, and
stays as it was known until its card says that it has ended; what comes in its
stead is on another card."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
from check import Checks  # noqa: E402
from place import OnCard  # noqa: E402
from pods import WAIT, sh, status_of  # noqa: E402
from proc import wait_for  # noqa: E402

LOST = "biga.dev/CardLost"


def service(place, what, patience):
    """A pod that is ready on a card; its name and card."""
    name = place.up(what, sh(WAIT),
                    annotations={"biga.dev/card-lost": patience})
    return name, place.card_of(place.r.pod(name))


def wait_told(r, name, status):
    def told():
        got = {c["type"]: c for c in r.pod(name)["status"]["conditions"]}
        assert got[LOST]["status"] == status, got
        return True
    wait_for(f"{name} says {LOST} {status}", told)


def here(card, uid):
    """Containers of a pod that run on a card."""
    return [c for c in card.local().containers()
            if uid in c["labels"].values() and
            c["state"] == 1]


def test_back(t, r, place):
    with t.check("a card that answers again in time keeps its pod"):
        name, card = service(place, "stays", "1h")
        before = status_of(r.pod(name))
        card.freeze()
        try:
            wait_told(r, name, "True")
            place.event(name, "CardLost", "does not answer")
        finally:
            card.thaw()
        wait_told(r, name, "False")
        after = status_of(r.pod(name))
        assert after["containerID"] == before["containerID"]
        assert after["restartCount"] == 0
        place.gone(name)


def test_evicted(t, r, place):
    with t.check("a pod whose card stays lost is evicted, and is not told as "
                 "ended"):
        old, card = service(place, "old", "2s")
        card.freeze()
        wait_for("it is evicted", lambda: "deletionTimestamp" in
                 r.pod(old)["metadata"])
        place.event(old, "CardLostEvicted")

        def shown():
            said = [line for line in r.run_biga("ps").splitlines()
                    if line.startswith("default/" + old)]
            assert any("CardLost" in line and " stopping " in line
                       for line in said), said
            return True
        wait_for("biga ps says so", shown)
        assert "CardLost: " in r.run_biga("why", old)
        assert [line.split()[-1] for line in r.run_biga(
            "cards").splitlines() if card.pci in line] == ["lost"]
    try:
        with t.check("what comes in its stead is on the other card"):
            new, other = service(place, "new", "1h")
            assert other is not card
            assert "running" in status_of(r.pod(old))["state"]
            assert r.condition()[0] == "True", r.condition()
            uid = r.pod(old)["metadata"]["uid"]
    finally:
        card.thaw()
    with t.check("the card is back: the old one ends there, the new one goes "
                 "on"):
        wait_for("it is gone", lambda: not r.c.api.maybe(
            "pods", "default", old))
        assert not here(card, uid)
        found = r.pod(new)
        assert place.card_of(found) is other
        assert status_of(found)["restartCount"] == 0
        assert here(other, found["metadata"]["uid"])
        place.gone(new)


def test_router_anew(t, r, place):
    with t.check("biga-cri begins anew while a card is lost: it is not told "
                 "as found"):
        name, card = service(place, "anew", "1h")
        card.freeze()
        try:
            wait_told(r, name, "True")
            since = r.c.api.get("pods", "default", name)
            r.way.process.kill()
            r.way.start()
            r.wait_ready()
            beside = place.up("beside", sh(WAIT))
            assert place.card_of(r.pod(beside)) is not card
            conditions = [[c for c in p["status"]["conditions"]
                           if c["type"] == LOST][0]
                          for p in (since, r.pod(name))]
            assert conditions[0] == conditions[1], conditions
        finally:
            card.thaw()
        wait_told(r, name, "False")
        place.gone(beside)
        place.gone(name)


def main():
    rig.require("router")
    with rig.Rig(2, "router") as r:
        t = Checks(on_failure=r.tail)
        with t.check("the node is ready"):
            r.start()
            r.start_biga()
        place = OnCard(r)
        for test in (test_back, test_evicted, test_router_anew):
            if not t.failed:
                test(t, r, place)
        t.finish()


main()
