#!/usr/bin/env python3
"""Somebody changes by hand what pods say they have.  The extender follows the
pods, says so, and goes on."""
import json
import subprocess

import fleet
import jobs
import pool
from check import Checks
from lab import Lab
from proc import wait_for
from test_cluster import (Beats, Scheduler, agree, allocations, host_pod,
                          publish, schedule, statuses)

NODES = 2
NAME = "biga.dev/allocation"


class Heal:
    def __init__(self, t, c, lab, nodes):
        self.t, self.api, self.nodes = t, c.api, nodes
        self.extender = lab.extender("one", "--fresh=1m")
        self.follower = lab.extender("two", "--fresh=1m")
        lab.leader()
        self.read = lab.read_api(self.extender)
        self.reads = [lab.read_api(e) for e in lab.extenders]
        self.lab = lab

    def scheduler(self):
        return Scheduler(self.lab, self.lab.leader())

    def place(self, name, **more):
        """A pod that is bound, as every replica knows, and its allocation."""
        schedule(self.api, self.scheduler(), host_pod(name, **more),
                 self.nodes)
        self.all_agree()
        return self.said(name)

    def said(self, name):
        return json.loads(fleet.allocation(
            self.api.get("pods", "default", name)))

    def say(self, name, text):
        """Change the annotation; None removes it."""
        if isinstance(text, dict):
            text = json.dumps(text)
        self.api.patch("pods", "default", name,
                       {"metadata": {"annotations": {NAME: text}}})

    def metric(self, name, read=None):
        for line in (read or self.read).call("GET", "/metrics").splitlines():
            if line.startswith(name + " "):
                return int(line.split()[-1])
        return 0

    def wait_metric(self, name, value, least=False):
        """Until every replica says so; least: or more."""
        for read in self.reads:
            def is_so(read=read):
                got = self.metric(name, read)
                assert got == value or least and got > value, \
                    f"{name} is {got}, not {value}"
                return True
            wait_for(name, is_so)

    def without(self):
        """{pod: reason} of those without an allocation."""
        return {p["pod"]: p["reason"] for p in self.read.call(
            "GET", "/v1/cluster")["unaccountedPods"]}

    def logged(self, event, name):
        """The log may come after what is read of it."""
        return wait_for(f"{event} is logged", lambda: [
            line for line in self.extender.text().splitlines()
            if f"event={event} " in line and f"pod={name} " in line])

    def cards(self, node=None):
        """All cards of a node, or of all."""
        return sorted(id for (where, id), device in
                      jobs.devices(self.api).items()
                      if device["kind"] == "card" and node in (None, where))

    def free_cards(self, node):
        taken = {card for where, ids, _ in allocations(self.read).values()
                 if where == node for card in ids}
        return [card for card in self.cards(node) if card not in taken]

    def all_agree(self):
        for read in self.reads:
            agree(read, self.api)

    def alive(self):
        for extender in (self.extender, self.follower):
            extender.alive()


def changed(h):
    with h.t.check("another card: the extender follows the pod"):
        got = h.place("moves", cards=1)
        other = h.free_cards(got["node"])[0]
        got["cards"][0]["id"] = other
        h.say("moves", got)
        h.wait_metric('biga_adoptions_total{result="healed"}', 1)
        h.all_agree()
        assert allocations(h.read)["default/moves"][1] == (other,)
        assert h.logged("allocation-healed", "moves")

    with h.t.check("and gives that card to nobody else, but the first one"):
        n = len(h.cards())
        for i in range(n - 1):
            h.place(f"fill{i}", cards=1)
        h.all_agree()
        cards = [(node, card) for node, ids, _ in
                 allocations(h.read).values() for card in ids]
        assert len(cards) == len(set(cards)) == n, sorted(cards)
        made = h.api.create("pods", host_pod("toomuch", cards=1))
        assert not h.scheduler().filter(made, h.nodes)["NodeNames"]
        h.api.delete("pods", "default", "toomuch", gracePeriodSeconds=0)


def removed(h):
    with h.t.check("a removed annotation: its cards are kept, and it is shown"):
        before = h.said("fill0")
        h.say("fill0", None)
        h.wait_metric("biga_unaccounted_pods", 1)
        assert "without biga.dev/allocation" in h.without()["fill0"]
        assert h.logged("pod-unaccounted", "fill0")
        for read in h.reads:
            where, ids, _ = allocations(read)["default/fill0"]
            assert where == before["node"], where
            assert list(ids) == [c["id"] for c in before["cards"]], ids

    with h.t.check("put back, it is not shown any more"):
        h.say("fill0", before)
        h.wait_metric("biga_unaccounted_pods", 0)
        h.all_agree()
        assert h.metric("biga_allocation_conflicts_total") == 0

    with h.t.check("nonsense changes nothing, and is shown with its reason"):
        def but(**more):
            return {**before, **more}
        who = before["pod"]
        for text, word in (
                ("", ""), ("{", ""), ("[]", ""), ("{}", ""), ("null", ""),
                ('{"pod":{}}', ""), ("[" * 100000, ""), ("7e999", ""),
                (but(node=h.nodes[before["node"] == h.nodes[0]]), "node"),
                (but(pod={**who, "uid": "another"}), "pod.uid"),
                (but(pod={**who, "name": "another"}), "pod.name"),
                (but(held=True), "held"), (but(cards="all"), "cards"),
                (but(cards=[{"id": f"c{i}"} for i in range(99)]), "cards"),
                (but(number=-1), "number")):
            h.say("fill0", text)
            try:
                wait_for("it is shown", lambda: word in
                         h.without()["fill0"])
            except TimeoutError as error:
                raise AssertionError(f"{str(text)[:80]}: {error}; "
                                     f"{h.without()}") from None
            h.alive()
            h.say("fill0", before)
            h.wait_metric("biga_unaccounted_pods", 0)
        h.all_agree()

    with h.t.check("cards that the node has not are kept as the pod says"):
        h.say("fill0", {**before, "cards": [{"id": "card-none"}]})
        wait_for("it follows", lambda: allocations(h.read)[
            "default/fill0"][1] == ("card-none",))
        h.alive()
        h.say("fill0", before)
        h.all_agree()


def by_hand(h):
    with h.t.check("a pod that is made with a node and a role is shown"):
        pod = host_pod("byhand")
        pod["spec"]["nodeName"] = h.nodes[0]
        h.api.create("pods", pod)
        h.wait_metric("biga_unaccounted_pods", 1)
        assert "byhand" in h.without()
        assert "default/byhand" not in allocations(h.read)
        h.api.delete("pods", "default", "byhand", gracePeriodSeconds=0)
        h.wait_metric("biga_unaccounted_pods", 0)

    with h.t.check("made with an allocation of its own, it has no other's"):
        pod["metadata"]["annotations"][NAME] = json.dumps(h.said("fill1"))
        h.api.create("pods", pod)
        wait_for("it is shown", lambda: "pod.name" in h.without().get(
            "byhand", ""))
        h.api.delete("pods", "default", "byhand", gracePeriodSeconds=0)
        h.wait_metric("biga_unaccounted_pods", 0)
        h.all_agree()


def conflict(h):
    with h.t.check("two pods with one card: counted, told, and survived"):
        one, other = h.said("fill2"), None
        for i in range(3, len(h.cards()) - 1):
            other = h.said(f"fill{i}")
            if other["node"] == one["node"]:
                break
        name = other["pod"]["name"]
        lost = other["cards"]
        h.say(name, {**other, "cards": one["cards"]})
        h.wait_metric("biga_allocation_conflicts_total", 1)
        h.all_agree()
        assert h.logged("allocation-conflict", name)
        for read in h.reads:
            read.call("GET", "/v1/nodes/" + one["node"])
            read.call("GET", "/v1/allocations")

    with h.t.check("the card that nobody has now is given, the other is not"):
        got = h.place("next", cards=1)
        assert got["cards"][0]["id"] == lost[0]["id"], (got["cards"], lost)
        made = h.api.create("pods", host_pod("nomore", cards=1))
        assert not h.scheduler().filter(made, h.nodes)["NodeNames"]

    with h.t.check("a restart finds the same, and tells the conflict anew"):
        before = agree(h.read, h.api)
        h.extender.stop()
        h.extender.start()
        h.extender.wait_up()
        assert agree(h.read, h.api) == before
        h.wait_metric("biga_allocation_conflicts_total", 1, least=True)

    with h.t.check("one of the two goes: all is well, and then all is free"):
        h.api.delete("pods", "default", name, gracePeriodSeconds=0)
        h.all_agree()
        h.api.delete_all("pods", "default")
        for read in h.reads:
            wait_for("nothing is promised",
                     lambda read=read: not allocations(read))
        h.alive()


def tell_of(h, node, generation, without=None):
    """The node's slices, without one card, under another generation."""
    for item in h.api.list("resourceslices",
                           fieldSelector="spec.nodeName=" + node):
        item["spec"]["devices"] = [d for d in item["spec"]["devices"]
                                   if d["name"] != without]
        item["spec"]["pool"]["generation"] = generation
        h.api.update("resourceslices", item)


def shrunk(h):
    with h.t.check("a node that tells of less: its pods are told"):
        got = h.place("large", cards=1)
        node, card = got["node"], got["cards"][0]["id"]
        before = h.metric("biga_allocation_conflicts_total")
        tell_of(h, node, 2, without=card)
        h.wait_metric("biga_allocation_conflicts_total", before + 1, True)
        text = f"{card} is not on node {node}"
        assert text in h.logged("allocation-conflict", "large")[-1]
        wait_for("it has an Event", lambda: [
            e for e in h.api.list("events", "default")
            if e["reason"] == "Overfull" and text in (e.get("note") or
                                                      e.get("message"))])
        for read in h.reads:
            def told(read=read):
                why = read.call("GET", "/v1/why?pod=default%2Flarge")[
                    "summary"]
                assert f"overfull: {text}" in why, why
                said = read.call("GET", "/v1/nodes/" + node)["overfull"]
                assert said == [{"namespace": "default", "name": "large",
                                 "text": text}], said
                return True
            wait_for("it is shown", told)
        shown = subprocess.run(
            [fleet.program("biga"), "--server", h.extender.url("read"),
             "node", node], capture_output=True, text=True, check=True).stdout
        assert f"\noverfull    default/large: {text}\n\n" in shown, shown

    with h.t.check("when it tells of all again nothing is said any more"):
        publish(h.api, node, generation=3)
        for read in h.reads:
            wait_for("all is there", lambda read=read: not read.call(
                "GET", "/v1/nodes/" + node)["overfull"])
        h.all_agree()
        h.api.delete_all("pods", "default")


def main():
    with pool.cluster() as c:
        t = Checks()
        lab = Lab(c, tls=False)
        lab.install()
        lab.allow_changes()
        nodes = fleet.names("host", NODES)
        beats = Beats(c.api, nodes)
        fleet.add_nodes(c.api, nodes)
        for node in nodes:
            publish(c.api, node)
        h = Heal(t, c, lab, nodes)
        wait_for("all hosts are ready", lambda: statuses(h.read) == {
            n: "ready" for n in nodes})
        assert beats.nodes
        for test in (changed, removed, by_hand, conflict, shrunk):
            test(h)
            if t.failed:
                break  # what it left would be in the way
        t.finish()


if __name__ == "__main__":
    main()
