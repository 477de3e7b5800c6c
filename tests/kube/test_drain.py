#!/usr/bin/env python3
"""A card or a node is drained: by whichever replica, over a fail-over, and its
pods leave as far as their disruption budgets let them."""
import json

import fleet
import pool
from check import Checks
from lab import Lab
from proc import wait_for
from test_card_lost import Bench as LostBench
from test_cluster import Beats, Scheduler, publish, statuses

NODES = 2


class Bench(LostBench):
    def drain(self, replica, where, **body):
        return self.reads[replica].call("POST", f"/v1/{where}/drain", body)

    def undrain(self, replica, where):
        return self.reads[replica].call("DELETE", f"/v1/{where}/drain")

    def wait_state(self, node, card, state):
        """Whichever replica is asked; one that does not run says nothing."""
        for extender, read in zip(self.lab.extenders, self.reads):
            if not extender.running:
                continue

            def told(read=read):
                got = read.call("GET", f"/v1/cards/{node}/{card}")
                assert got["state"] == state, got
                return got
            last = wait_for(f"{card} is {state}", told)
        return last

    def refused(self, nodes):
        """What kube-scheduler is told of a pod that wants a card there."""
        pod = fleet.pod("asks", labels={"biga.dev/role": "service"},
                        requests={"biga.dev/card": 1})
        return json.dumps(Scheduler(self.lab, self.lab.leader()).filter(
            pod, nodes))


def stays(b):
    with b.t.check("a drained card keeps its pods, and says so on all "
                   "replicas"):
        node, card = b.service("stays", "never")
        b.wait_state(node, card, "held")  # all replicas have heard of it
        got = b.drain(1, f"cards/{node}/{card}", reason="new firmware",
                      by="ann")
        assert got["pods"] == [{"namespace": "default", "name": "stays"}], got
        told = b.wait_state(node, card, "drained")["drain"]
        assert (told["reason"], told["by"], told["evict"]) == \
            ("new firmware", "ann", False), told
        kept = b.api.get("configmaps", "biga-system", "biga-drains")["data"]
        assert "new firmware" in kept[f"{node}_{card}"], kept
        assert not b.is_ending("stays")
    with b.t.check("a drained node gets nothing, also after a fail-over"):
        b.drain(0, f"nodes/{node}", reason="a new rack")
        wait_for("kube-scheduler is told why", lambda:
                 "its node is drained since " in b.refused([node]))
        leader = b.lab.leader()
        leader.kill()
        assert b.lab.leader() is not leader
        wait_for("the new leader tells it", lambda:
                 "a new rack" in b.refused([node]))
        b.wait_state(node, card, "drained")
        leader.start()
        leader.wait_up()
        b.wait_state(node, card, "drained")
    with b.t.check("undrained, all is as before; twice is once too much"):
        b.undrain(0, f"nodes/{node}")
        b.undrain(1, f"cards/{node}/{card}")
        b.wait_state(node, card, "held")
        status, _, text = b.reads[0].raw("DELETE",
                                         f"/v1/cards/{node}/{card}/drain")
        assert status == 404 and b"is not drained" in text, text
        status, _, text = b.reads[0].raw("DELETE", "/v1/nodes/nobody/drain")
        assert status == 404 and b"nobody is not drained" in text, text
        b.drop("stays")


def leaves(b):
    with b.t.check("with evict its pods leave; those whose budget refuses, "
                   "once it lets them"):
        b.api.create("poddisruptionbudgets", {
            "metadata": {"name": "one", "namespace": "default"},
            "spec": {"minAvailable": 1,
                     "selector": {"matchLabels": {"app": "kept"}}}})
        node, card = b.service("kept", "never", app="kept")
        other, place = b.service("goes", "never")
        b.drain(0, f"cards/{node}/{card}", reason="out", evict=True)
        b.drain(1, f"cards/{other}/{place}", reason="out", evict=True)
        b.wait_ending("goes")
        assert "drained since " in b.wait_event("goes", "CardDrainedEvicted")
        assert "disruption budget" in b.wait_event(
            "kept", "CardDrainedNotEvicted")
        assert not b.is_ending("kept")
        b.api.delete("poddisruptionbudgets", "default", "one")
        b.wait_ending("kept")
        b.wait_state(node, card, "drained")
        b.wait_state(other, place, "drained")
        b.undrain(0, f"cards/{node}/{card}")
        b.undrain(0, f"cards/{other}/{place}")
        b.drop("kept", "goes")


def leaves_with_its_node(b):
    with b.t.check("a node that is drained with evict has pods leave whose "
                   "card was drained before, without"):
        node, card = b.service("left", "never")
        b.drain(0, f"cards/{node}/{card}", reason="new firmware")
        b.wait_state(node, card, "drained")
        assert not b.is_ending("left")
        b.drain(1, f"nodes/{node}", reason="a new rack", evict=True)
        b.wait_ending("left")
        for read in b.reads:
            wait_for("all know it", lambda read=read: "drain" in read.call(
                "GET", "/v1/nodes/" + node))
        b.undrain(0, f"nodes/{node}")
        b.undrain(1, f"cards/{node}/{card}")
        b.drop("left")


def without(b):
    with b.t.check("without the ConfigMap nothing is drained, and it says "
                   "what is missing"):
        b.drain(0, "nodes/" + b.nodes[0], reason="for a moment")
        wait_for("it is told", lambda: "drain" in b.reads[1].call(
            "GET", "/v1/nodes/" + b.nodes[0]))
        b.api.delete("configmaps", "biga-system", "biga-drains")
        for read in b.reads:
            wait_for("it is over", lambda read=read: "drain" not in read.call(
                "GET", "/v1/nodes/" + b.nodes[0]))
        status, _, text = b.reads[0].raw(
            "POST", f"/v1/nodes/{b.nodes[0]}/drain", {"reason": "x"})
        assert status == 503 and b"biga-drains is not there" in text, text


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
        for test in (stays, leaves, leaves_with_its_node, without):
            test(b)
            if t.failed:
                break  # what it left would be in the way
        t.finish()


if __name__ == "__main__":
    main()
