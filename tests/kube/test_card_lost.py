#!/usr/bin/env python3
"""A card is lost: its pods say so, and are evicted after a while, by whoever
leads then.  None is started anew on a card where the old one may run."""
import json

import fleet
import pool
from check import Checks
from lab import Lab
from proc import wait_for
from test_cluster import (Beats, Leading, allocations, publish, schedule,
                          statuses, wait_status)

LOST = "biga.dev/CardLost"
NODES = 2
CARDS = 9  # of a node


class Bench:
    def __init__(self, t, c, lab, nodes):
        self.t, self.api, self.lab, self.nodes = t, c.api, lab, nodes
        for name in ("one", "two"):
            lab.extender(name, "--fresh=1m")
        lab.leader()
        self.reads = [lab.read_api(e) for e in lab.extenders]

    def service(self, name, patience, **labels):
        """A pod that runs on a card; its node and card."""
        pod = fleet.pod(name, labels={"biga.dev/role": "service", **labels},
                        annotations={"biga.dev/card-lost": patience},
                        requests={"biga.dev/card": 1},
                        terminationGracePeriodSeconds=30)
        pod["metadata"]["annotations"]["biga.dev/exclusive"] = "true"
        schedule(self.api, Leading(self.lab), pod, self.nodes)
        fleet.Kubelet(self.api).phase(self.pod(name), "Running")
        return self.place(name)

    def pod(self, name):
        return self.api.get("pods", "default", name)

    def place(self, name):
        told = json.loads(fleet.allocation(self.pod(name)))
        return told["node"], told["cards"][0]["id"]

    def condition(self, name):
        return next((c for c in self.pod(name)["status"]["conditions"]
                     if c["type"] == LOST), None)

    def wait_told(self, name, status, reason):
        def told():
            got = self.condition(name)
            assert got and (got["status"], got["reason"]) == \
                (status, reason), got
            return got
        return wait_for(f"{name} says {reason}", told)

    def is_ending(self, name):
        return "deletionTimestamp" in self.pod(name)["metadata"]

    def wait_ending(self, name):
        wait_for(f"{name} is evicted", lambda: self.is_ending(name))

    def wait_event(self, name, reason):
        """The message of the Event."""
        def said():
            found = {e["reason"]: e["message"] for e in self.api.list(
                "events", "default",
                fieldSelector="involvedObject.name=" + name)}
            assert reason in found, found
            return found[reason]
        return wait_for(f"an Event {reason} of {name}", said)

    def wait_shown(self, name, reason):
        """Until `biga ps` and `biga why` say so, whichever replica is
        asked."""
        for read in self.reads:
            def shown(read=read):
                items = read.call("GET", "/v1/pods")["items"]
                one = read.call("GET", "/v1/pods/default/" + name)
                why = read.call("GET", "/v1/why?pod=default%2F" + name)
                assert one in items, (one, items)
                assert one["reason"] == reason, one
                assert [c["id"] for c in one["cards"]] == \
                    [self.place(name)[1]], one
                assert f"; the pod is {one['state']}: {reason}: " in \
                    why["summary"], why
                return True
            wait_for(f"{name} is shown with {reason}", shown)

    def metric(self, name):
        """Summed over all replicas."""
        lines = [line.split() for read in self.reads
                 for line in read.call("GET", "/metrics").splitlines()]
        return sum(int(words[-1]) for words in lines if words[0] == name)

    def drop(self, *names):
        """As a kubelet that has ended them."""
        for name in names:
            self.api.delete("pods", "default", name, missing_ok=True,
                            gracePeriodSeconds=0)
        for read in self.reads:
            wait_for("they are forgotten", lambda read=read: not {
                "default/" + name for name in names} & set(allocations(read)))


def evicted(b):
    with b.t.check("a pod whose card is lost says so, and is evicted"):
        node, card = b.service("goes", "2s")
        publish(b.api, node, lost=[card])
        told = b.wait_told("goes", "True", "CardLost")
        assert f"{card} on {node} does not answer" in told["message"], told
        assert "does not answer" in b.wait_event("goes", "CardLost")
        b.wait_shown("goes", "CardLost")
        b.wait_ending("goes")
        assert "tolerates 2 s" in b.wait_event("goes", "CardLostEvicted")
        # it is counted when the answer has come
        wait_for("the metric says so", lambda: b.metric(
            "biga_card_lost_evictions_total") == 1)
    with b.t.check("its successors get every card but that one, while it is "
                   "not gone"):
        publish(b.api, node)  # the card is there again, and so may the pod be
        scheduler = Leading(b.lab)
        names = [f"next{i}" for i in range(NODES * CARDS - 1)]
        places = [b.service(name, "never") for name in names]
        assert len(set(places)) == len(names)
        assert (node, card) not in places, places
        more = b.api.create("pods", fleet.pod(
            "more", labels={"biga.dev/role": "service"},
            annotations={"biga.dev/exclusive": "true"},
            requests={"biga.dev/card": 1}))
        assert not scheduler.filter(more, b.nodes)["NodeNames"]
    with b.t.check("and that one when it is"):
        b.drop("goes")
        assert scheduler.fit(more, b.nodes) == node
        b.drop("more", *names)


def back(b):
    with b.t.check("a card that answers again keeps its pod"):
        node, card = b.service("stays", "1h")
        publish(b.api, node, lost=[card])
        b.wait_told("stays", "True", "CardLost")
        wait_for("the metric says so", lambda: b.metric(
            "biga_card_lost_pods") == len(b.reads))
        publish(b.api, node)
        b.wait_told("stays", "False", "CardAnswers")
        b.wait_event("stays", "CardAnswers")
        assert not b.is_ending("stays")
        b.drop("stays")


def led(b):
    with b.t.check("the next leader goes on where the last one was"):
        node, card = b.service("led", "6s")
        publish(b.api, node, lost=[card])
        since = b.wait_told("led", "True", "CardLost")["lastTransitionTime"]
        leader = b.lab.leader()
        leader.kill()
        b.wait_ending("led")
        assert b.condition("led")["lastTransitionTime"] == since
        assert b.lab.leader() is not leader
        publish(b.api, node)
        leader.start()
        leader.wait_up()
        b.drop("led")


def budget(b):
    with b.t.check("a PodDisruptionBudget keeps its pod, which is told; then "
                   "it goes"):
        b.api.create("poddisruptionbudgets", {
            "metadata": {"name": "one", "namespace": "default"},
            "spec": {"minAvailable": 1,
                     "selector": {"matchLabels": {"app": "kept"}}}})
        node, card = b.service("kept", "0", app="kept")
        publish(b.api, node, lost=[card])
        assert "disruption budget" in b.wait_event(
            "kept", "CardLostNotEvicted")
        assert not b.is_ending("kept")
        b.api.delete("poddisruptionbudgets", "default", "one")
        b.wait_ending("kept")
        publish(b.api, node)
        b.drop("kept")


def silent(b):
    with b.t.check("of a node that is not ready nothing is done for its cards"):
        node, card = b.service("silent", "0")
        other, beside = b.service("beside", "0")
        while other == node:
            b.drop("beside")
            b.nodes = [n for n in b.nodes if n != node]
            other, beside = b.service("beside", "0")
        fleet.set_ready(b.api, node, False)
        for read in b.reads:
            wait_status(read, node, "lost")
        publish(b.api, node, lost=[card])
        publish(b.api, other, lost=[beside])
        b.wait_ending("beside")  # slices are heard in their order
        assert not b.condition("silent") and not b.is_ending("silent")
        fleet.set_ready(b.api, node, True)
        b.wait_ending("silent")
        for name in (node, other):
            publish(b.api, name)
        b.drop("silent", "beside")


def main():
    with pool.cluster() as c:
        t = Checks()
        lab = Lab(c, tls=False)
        lab.install()
        nodes = fleet.names("host", NODES)
        beats = Beats(c.api, nodes)
        fleet.add_nodes(c.api, nodes)
        for node in nodes:
            publish(c.api, node)
        b = Bench(t, c, lab, nodes)
        for read in b.reads:
            wait_for("all hosts are ready", lambda read=read: statuses(
                read) == {n: "ready" for n in nodes})
        assert beats.nodes
        for test in (evicted, back, led, budget, silent):
            test(b)
            if t.failed:
                break  # what it left would be in the way
        t.finish()


if __name__ == "__main__":
    main()
