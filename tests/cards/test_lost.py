#!/usr/bin/env python3
"""The node's own database is lost while the extender is away: pods run on,
and are taken over.  One that was to end meanwhile is gone once it is, and not
before.  That nothing is nobody's before all is told, however long that takes,
is for tests/unit/test_act_place to judge, where the grace is shorter.
"""
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import node as biga_node  # noqa: E402
from check import Checks  # noqa: E402
from node import service  # noqa: E402
from proc import wait_for  # noqa: E402


def sandboxes(node):
    """{uid: ids of live sandboxes} of pods."""
    live = {}
    for _, s in node.sandboxes_of_pods():
        if s["ready"]:
            live.setdefault(s["labels"]["biga.dev/pod-uid"], []).append(s["id"])
    return live


def test_lost(t, node):
    with t.check("two services run"):
        node.apply([service(n) for n in ("stays", "ends")])
        node.wait_state(["stays", "ends"], "running")
    before = sandboxes(node)
    uids = {name: p["uid"] for name, p in node.pods().items()}
    node.advertiser.stop()
    node.delete("ends")
    node.extender.stop()
    shutil.rmtree(node.state)
    with t.check("nothing of them is nobody's while nobody says so"):
        node.advertiser.start()
        wait_for("the cards answer", lambda: all(
            c["health"] == "ready" and (c["runtime"] or c["name"] == "host")
            for c in node.local("GET", "/v1/cards")["items"]), every=0.1)
        assert sandboxes(node) == before, sandboxes(node)
    with t.check("who is to end is gone once nothing of it is left"):
        node.extender.start()
        node.extender.wait_up()

        wait_for("it is gone", lambda: "ends" not in node.pods())
        assert uids["ends"] not in sandboxes(node), "it runs on"
    with t.check("and who is wanted was taken over"):
        node.wait_state(["stays"], "running")
        uid = uids["stays"]
        assert sandboxes(node) == {uid: before[uid]}, sandboxes(node)
    with t.check("then all goes on"):
        node.delete("stays")
        node.wait_gone(["stays"])
        node.wait_clean()


def main():
    cards.require()
    with cards.Rack(2, host=False) as rack:
        t = Checks(on_failure=rack.tail)
        rack.start()
        node = biga_node.Node(rack).start()
        try:
            test_lost(t, node)
        finally:
            node.stop()
    t.finish()


main()
