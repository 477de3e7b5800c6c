#!/usr/bin/env python3
"""A card whose DPU is not ready, as DPF or the OpenShift DPU operator says in
its own object, gets no new pod; one that is ready again does.  What is there
stays.  That this takes less than 5 s is shown by what brings it: a watch that
is open, and no list."""
import subprocess

import dpus
import fleet
import pool
from check import Checks
from lab import Lab
from proc import wait_for
from test_cluster import Beats, Scheduler, publish, statuses

NODES = ["one", "two"]
LONE = "lone"  # a node of one card


class Bench:
    def __init__(self, c, lab):
        self.api, self.lab = c.api, lab
        self.extender = lab.extender("one", "--fresh=1m")
        self.scheduler = Scheduler(lab, lab.leader())
        self.read = lab.read_api(self.extender)

    # --- what is seen ------------------------------------------------------
    def cards(self, node):
        return {card["id"]: card for card in
                self.read.call("GET", "/v1/cards")["items"]
                if card["node"] == node}

    def barred(self, node):
        return {name: card["barred"] for name, card in
                self.cards(node).items() if "barred" in card}

    def wait_barred(self, node, wanted):
        wait_for(f"of {node} is barred: {wanted}",
                 lambda: self.barred(node) == wanted or None)
        for name, card in self.cards(node).items():
            assert card["healthy"] == (name not in wanted), card

    def collection(self, name):
        found = self.read.call("GET", "/v1/cluster")["collections"]
        return next(item for item in found if item["name"] == name)

    def said(self, *words):
        """Lines of the log with all of these."""
        return [line for line in self.extender.text().splitlines()
                if all(word in line for word in words)]

    def wait_said(self, *words):
        wait_for(f"the log says {words}", lambda: self.said(*words))

    def biga(self, *args):
        return subprocess.run(
            [fleet.program("biga"), "--server", self.extender.url("read"),
             *args], capture_output=True, text=True, check=True).stdout

    # --- what is asked -----------------------------------------------------
    def pod(self, name):
        return self.api.create("pods", fleet.pod(
            name, labels={"biga.dev/role": "service"},
            annotations={"biga.dev/exclusive": "true"},
            requests={"biga.dev/card": 1}))

    def refused(self, pod, node):
        """Why the node is not chosen."""
        got = self.scheduler.filter(pod, [node])
        assert not got["NodeNames"], got
        return {**got["FailedNodes"],
                **(got.get("FailedAndUnresolvableNodes") or {})}[node]

    def place(self, pod, nodes):
        """It is bound; its node and card."""
        node = self.scheduler.fit(pod, nodes)
        error = self.scheduler.bind(pod, node)
        assert not error, error
        name = pod["metadata"]["name"]
        made = next(a for a in self.read.call(
            "GET", "/v1/allocations")["items"] if a["pod"]["name"] == name)
        return made["node"], made["cards"][0]["id"]

    def drop(self, *names):
        for name in names:
            self.api.delete("pods", "default", name, gracePeriodSeconds=0)


def absent(t, b):
    with t.check("without the operators' kinds nothing happens, and that is "
                 "said once"):
        for kind in ("dpus", "dataprocessingunits"):
            wait_for("it is asked for again", lambda kind=kind:
                     b.collection(kind)["lists"] >= 2)
            seen = b.collection(kind)
            assert seen["synced"] and seen["failures"] == 0, seen
            assert len(b.said("reflector-absent", "kind=" + kind)) == 1
        assert b.lab.leader() is b.extender
        for node in [*NODES, LONE]:
            assert not b.barred(node)


def dpf(t, c, b):
    cards = b.cards("one")
    pod, first = b.pod("wants"), b.pod("first")
    with t.check("a definition that comes later is found; a DPU that is not "
                 "ready is not chosen, and the reason is its phase"):
        there = b.place(first, ["one"])
        dpus.define(c, dpus.DPF)
        for name, card in cards.items():
            dpus.dpu(b.api, "dpu-" + name, "one", "OS Installing",
                     card["pci"])
        b.wait_barred("one", {
            name: f'DPU default/dpu-{name} of DPF: phase "OS Installing"'
            for name in cards})
        why = b.refused(pod, "one")
        for name in sorted(cards)[:2]:
            assert f'{name}: DPU default/dpu-{name} of DPF: phase ' \
                '"OS Installing"' in why, why
        assert why.endswith(f"; and so {len(cards) - 2} more"), why
        assert b.scheduler.filter(pod, ["one", "two"])["NodeNames"] == ["two"]
    with t.check("the pod that was there before stays"):
        assert there[0] == "one"
        seen = b.api.get("pods", "default", "first")
        assert "deletionTimestamp" not in seen["metadata"], seen
    with t.check("one that is ready again is chosen, and by a watch"):
        name = next(n for n in cards if n != there[1])
        lists = b.collection("dpus")["lists"]
        dpus.dpu(b.api, "dpu-" + name, "one", "Ready", cards[name]["pci"])
        wait_for("it is not barred", lambda: name not in b.barred("one"))
        assert b.place(pod, ["one"]) == ("one", name)
        dpus.dpu(b.api, "dpu-" + name, "one", "Rebooting",
                 cards[name]["pci"])
        wait_for("it is barred again", lambda: name in b.barred("one"))
        assert b.collection("dpus")["lists"] == lists
    with t.check("what is malformed is said, with field and value, and its "
                 "card stays as it was"):
        before = b.barred("one")
        dpus.dpu(b.api, "dpu-" + name, "one", 7, cards[name]["pci"])
        b.wait_said("dpu-refused", "status.phase: is 7")
        assert b.barred("one") == before
    with t.check("an object that is deleted bars nothing"):
        b.api.delete("dpus", "default", "dpu-" + name)
        wait_for("it is not barred", lambda: name not in b.barred("one"))
    with t.check("nor does any, when the definition is deleted"):
        dpus.undefine(c, dpus.DPF)
        b.wait_barred("one", {})
    b.drop("wants", "first")


def openshift(t, c, b):
    pod, who = b.pod("lonely"), "DataProcessingUnit default/bf3 of the " \
        "OpenShift DPU operator: "
    (card,) = b.cards(LONE)
    with t.check("a DataProcessingUnit of a node's only card bars it until "
                 "it is ready"):
        dpus.define(c, dpus.OPENSHIFT)
        dpus.unit(b.api, "bf3", LONE, None)
        b.wait_barred(LONE, {card: who + "it has no condition Ready yet"})
        dpus.unit(b.api, "bf3", LONE, False)
        b.wait_barred(LONE, {
            card: who + 'condition Ready is "False" (NotInitialized)'})
        assert who in b.refused(pod, LONE)
        assert who in b.biga("cards"), b.biga("cards")
        assert who in b.biga("why", "lonely"), b.biga("why", "lonely")
        dpus.unit(b.api, "bf3", LONE, True)
        b.wait_barred(LONE, {})
        assert b.place(pod, [LONE]) == (LONE, card)
    with t.check("where it may be any of several, that is said, and none is "
                 "barred"):
        dpus.unit(b.api, "any", "two", False)
        b.wait_said("dpu-not-matched", "node=two", "several cards")
        assert not b.barred("two")
    with t.check("a DPU's own side is no card of a host"):
        dpus.unit(b.api, "inside", LONE, False, side=True)
        dpus.unit(b.api, "after", "two", False)
        b.wait_said("dpu-not-matched", "default/after")  # it came later
        assert not b.barred(LONE)
    b.drop("lonely")


def off(t, b):
    with t.check("nothing is followed where it is turned off"):
        dpus.unit(b.api, "bf3", LONE, False)
        wait_for("it is barred", lambda: b.barred(LONE))
        b.extender.stop()
        b.extender = b.lab.extender("off", "--fresh=1m", "--dpus=false")
        b.lab.leader()
        b.read = b.lab.read_api(b.extender)
        wait_for("it knows all", lambda: statuses(b.read).get(LONE) ==
                 "ready")
        assert not b.barred(LONE)
        assert not any(item["name"] == "dpus" for item in b.read.call(
            "GET", "/v1/cluster")["collections"])


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        lab = Lab(c, tls=False)
        lab.install()
        all_nodes = [*NODES, LONE]
        beats = Beats(c.api, all_nodes)
        fleet.add_nodes(c.api, all_nodes)
        for node in NODES:
            publish(c.api, node)
        publish(c.api, LONE, more=["--hostfile", dpus.lone_host(c)])
        b = Bench(c, lab)
        wait_for("all hosts are ready", lambda: statuses(b.read) == {
            n: "ready" for n in all_nodes} or None)
        assert beats.nodes
        absent(t, b)
        dpf(t, c, b)
        openshift(t, c, b)
        off(t, b)
        t.finish()


main()
