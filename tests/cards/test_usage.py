#!/usr/bin/env python3
"""What pods and cards use of cores and memory, as their containerds tell it:
told to the extender when it changes noticeably, and not else.  And what the
advertiser counts of them for Prometheus.
"""
import os
import shutil
import subprocess
import sys
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
from check import Checks, Skip  # noqa: E402
from node import Node, pair, service  # noqa: E402
from proc import HANGS, free_port, wait_for  # noqa: E402
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


def changes_of(statuses, uid):
    """How often it was told to be different; not after a while in which the
    card did not answer, which is told, too."""
    told = [p.get("usage", {}).get("at") for s in statuses for p in s["pods"]
            if p["uid"] == uid]
    return sum(a != b for a, b in zip(told, told[1:]) if a and b)


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
        assert any(told) and \
            not changes_of(front.statuses, uids["p-0-xpu"]), told


class Metrics:
    """The advertiser's, by their text without the number."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/metrics"

    def text(self):
        with urllib.request.urlopen(self.url, timeout=HANGS) as answer:
            return answer.read().decode()

    def read(self):
        lines = [line.rsplit(" ", 1) for line in self.text().splitlines()
                 if not line.startswith("#")]
        return {name: float(value) for name, value in lines}

    def wait(self, what, true):
        """The first reading for which that is true."""
        def read():
            now = self.read()
            return now if true(now) else None
        return wait_for(what, read)


def calls(card, outcome):
    return (f'biga_advertiser_card_calls_total{{card="{card}",'
            f'outcome="{outcome}"}}')


def failed(now, card):
    return now[calls(card, "timeout")] + now[calls(card, "unreachable")]


def cards_that_are(health):
    return f'biga_advertiser_cards{{health="{health}"}}'


def test_metrics(t, node, metrics):
    card = node.rack.cards[0]
    with t.check("the advertiser counts pods by state, and cards by health"):
        node.wait_state(["p-0", "p-0-xpu"], "running")
        now = metrics.wait("the card is ready",
                           lambda m: m[cards_that_are("ready")])
        assert now['biga_advertiser_pods{state="running"}'] == 2, now
        assert now['biga_advertiser_pods{state="failed"}'] == 0, now
        assert now[cards_that_are("lost")] == 0, now
    with t.check("calls to the card and to the host are counted as they end"):
        assert now[calls(card.pci, "ok")] > 0, now
        assert now[calls("host", "ok")] > 0, now
    with t.check("and so are those to a card that is frozen"):
        before = failed(now, card.pci)
        card.freeze()
        metrics.wait("the card is lost", lambda m: m[cards_that_are("lost")])
        assert failed(metrics.read(), card.pci) > before
        card.thaw()
        metrics.wait("it is back", lambda m: m[cards_that_are("ready")])
    with t.check("promtool finds nothing to say"):
        if not shutil.which("promtool"):
            raise Skip("there is no promtool")
        said = subprocess.run(["promtool", "check", "metrics"],
                              input=metrics.text(), text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert said.returncode == 0, said.stdout


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
        metrics = Metrics(free_port())
        argv += ["--metrics-listen", metrics.url.split("/")[2]]
        node.advertiser.start()
        node.wait_capacity(1)
        try:
            test_usage(t, node, front)
            test_metrics(t, node, metrics)
        finally:
            node.stop()
    t.finish()


main()
