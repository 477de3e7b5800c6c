#!/usr/bin/env python3
"""What pods and cards use of cores and memory, as their containerds tell it:
told to the extender when it changes noticeably, and not else.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
from check import Checks  # noqa: E402
from node import Node, pair, service  # noqa: E402
from streams import Front  # noqa: E402

BURNS = ("busybox", "sh", "-c", "while :; do :; done")


def usage_of(status, uid):
    for pod in status["pods"]:
        if pod["uid"] == uid:
            return pod.get("usage", {})
    return {}


def place_of(status, name):
    return next((p.get("usage", {}) for p in status["places"]
                 if p["name"] == name), {})


def test_usage(t, node, front):
    node.apply([service("burns", cores=2, args=BURNS), *pair("p")])
    node.wait_state(["burns", "p-0", "p-0-xpu"], "running")
    uids = {name: p["uid"] for name, p in node.pods().items()}
    with t.check("a pod on a card that computes uses cores, and so its card"):
        status = front.wait_status(lambda s: usage_of(s, uids["burns"]).get(
            "cpuMillicores", 0) > 50)
        used = usage_of(status, uids["burns"])
        assert used["cpuMillicores"] < 2500, used
        assert 0 <= used["memoryMib"] < 64, used
        assert used["at"].endswith("Z"), used
        # a look may come between what is told of places and of pods
        front.wait_status(lambda s: place_of(s, node.rack.cards[0].id).get(
            "cpuMillicores", 0) > 50)
    with t.check("pods that sleep use none, on the card and on the host"):
        for name in ("p-0", "p-0-xpu"):
            status = front.wait_status(lambda s, n=name: usage_of(s, uids[n]))
            used = usage_of(status, uids[name])
            assert used["cpuMillicores"] < 50, used
    with t.check("which is told once"):
        # another change of that pod's card has come by then
        before = len(front.statuses)
        node.delete("burns")
        front.wait_status(lambda s: place_of(s, node.rack.cards[0].id).get(
            "cpuMillicores", 99) < 50, before)
        told = [usage_of(s, uids["p-0-xpu"]) for s in front.statuses]
        assert len({u["at"] for u in told if u}) == 1, told


def main():
    cards.require()
    with cards.Rack(1) as rack:
        t = Checks(on_failure=rack.tail)
        rack.start()
        node = Node(rack)
        node.extender.start()
        node.extender.wait_up()
        front = Front(node.extender.url("publish"))
        argv = node.advertiser.argv
        argv[argv.index("--server") + 1] = front.url
        node.advertiser.start()
        node.wait_capacity(1)
        try:
            test_usage(t, node, front)
        finally:
            node.stop()
    t.finish()


main()
