#!/usr/bin/env python3
"""Binds that go wrong: refused, overtaken, unanswered.  What the extender
promises in the end is what the pods have."""
import concurrent.futures
import re
import time

import fleet
import pool
from api import ApiError
from check import Checks
from lab import Lab
from proc import wait_for
from test_cluster import (Beats, Scheduler, agree, allocations, host_pod,
                          publish, statuses)

NODES = 4
MANY = 30
EXTENDER = "system:serviceaccount:biga-system:biga-extender"
RIGHT = {"resourceAttributes": {"verb": "create", "resource": "pods",
                                "subresource": "binding",
                                "namespace": "default"}}


class Bench:
    """One extender, and pods to be bound with it."""

    def __init__(self, c, lab, nodes):
        self.c, self.api, self.lab, self.nodes = c, c.api, lab, nodes
        self.extender = lab.extender("one", "--fresh=1m")
        lab.leader()
        self.read = lab.read_api(self.extender)
        self.scheduler = Scheduler(lab, self.extender)

    def filtered(self, name, **more):
        """A new pod that filter has seen, and the node that it got."""
        made = self.api.create("pods", host_pod(name, **more))
        return made, self.scheduler.fit(made, self.nodes)

    def promised(self, name):
        return "default/" + name in allocations(self.read)

    def no_promise(self, name):
        wait_for("it is given back", lambda: not self.promised(name))

    def settle(self, name):
        """What nobody has answered becomes known, and what is promised is
        what the pod has."""
        def known():
            state = self.read.call("GET", "/v1/cluster")
            assert state["bindsInFlight"] == 0, state
            return True
        wait_for("it is known", known, every=0.1)
        wait_for("both say the same", lambda: self.promised(name) == bool(
            self.bound(name)))

    def bound(self, name):
        return self.api.get("pods", "default", name)["spec"].get("nodeName")

    def bind(self, made, node):
        return self.scheduler.bind(made, node)

    def delete(self, name):
        self.api.delete("pods", "default", name, gracePeriodSeconds=0)

    def clear(self):
        self.api.delete_all("pods", "default", gracePeriodSeconds=0)
        wait_for("nothing is promised", lambda: not allocations(self.read))


def refused(t, b):
    api = b.api
    with t.check("a repeated bind changes nothing"):
        made, node = b.filtered("again")
        assert b.bind(made, node) == ""
        before = api.get("pods", "default", "again")
        assert b.bind(made, node) == ""
        after = api.get("pods", "default", "again")
        assert before["metadata"] == after["metadata"]
        agree(b.read, api)

    with t.check("a pod that somebody else has bound is refused"):
        made, node = b.filtered("taken")
        other = [n for n in b.nodes if n != node][0]
        api.create("pods", {"metadata": {"name": "taken",
                                         "namespace": "default"},
                            "target": {"kind": "Node", "name": other}},
                   sub="binding")
        error = b.bind(made, node)
        assert other in error and "already" in error, error
        b.no_promise("taken")
        error = b.bind(made, other)
        assert error, "it has no allocation there"
        b.no_promise("taken")
        b.delete("taken")

    with t.check("a pod that is gone is refused"):
        made, node = b.filtered("gone")
        b.delete("gone")
        error = b.bind(made, node)
        assert error, "it is gone"
        b.no_promise("gone")

    with t.check("a pod of another life is refused, the new one is bound"):
        old, node = b.filtered("twice")
        b.delete("twice")
        new, there = b.filtered("twice")
        error = b.bind(old, node)
        assert error, "that one is gone"
        assert b.bound("twice") is None
        assert b.bind(new, there) == ""
        agree(b.read, api)

    with t.check("a pod that is being deleted is refused"):
        obj = host_pod("leaving")
        obj["metadata"]["finalizers"] = ["test.example/stay"]
        made = api.create("pods", obj)
        node = b.scheduler.fit(made, b.nodes)
        b.delete("leaving")
        error = b.bind(made, node)
        assert "deleted" in error, error
        b.no_promise("leaving")
        api.patch("pods", "default", "leaving",
                  {"metadata": {"finalizers": None}})

    with t.check("a pod without a role is bound, without an annotation"):
        made = api.create("pods", fleet.pod("plain"))
        wait_for("all nodes fit", lambda: b.scheduler.filter(
            made, b.nodes)["NodeNames"] == b.nodes)
        assert b.bind(made, b.nodes[1]) == ""
        got = api.get("pods", "default", "plain")
        assert got["spec"]["nodeName"] == b.nodes[1]
        assert fleet.allocation(got) is None
        assert b.bind(made, b.nodes[1]) == ""

    with t.check("what it may not, it gives back"):
        role = api.get("clusterroles", None, "biga-extender")
        rules = [r for r in role["rules"]
                 if "pods/binding" not in r["resources"]]
        api.patch("clusterroles", None, "biga-extender", {"rules": rules})
        wait_for("the authorizer has heard of it", lambda: not b.lab.may(
            EXTENDER, RIGHT))
        made, node = b.filtered("forbidden")
        error = b.bind(made, node)
        assert "forbidden" in error, error
        b.no_promise("forbidden")
        assert b.bound("forbidden") is None
        api.patch("clusterroles", None, "biga-extender",
                  {"rules": role["rules"]})
        wait_for("it may again", lambda: b.bind(made, node) == "")
        agree(b.read, api)


def hang(c, b):
    """A bind that an API server which stands still does not answer: the pod
    and its node; None when the machine stood still before it was sent, until
    the Lease was over."""
    made, node = b.filtered("hangs")
    b.lab.wait_renewed()
    c.apiserver.pause()
    try:
        error = b.scheduler.bind_once(made, node)
        sent = not re.search("not the leader|lease was not renewed", error)
        if sent:
            assert "try again" in error, error
            assert b.promised("hangs")
    finally:
        c.apiserver.resume()
    c.wait_ready()
    b.lab.leader()
    return (made, node) if sent else None


def unanswered(t, c, b):
    api = b.api
    with t.check("an API server that hangs: the cards stay promised"):
        while not (found := hang(c, b)):
            b.delete("hangs")
            b.no_promise("hangs")
        made, node = found
        b.settle("hangs")
        t.note("in the end it was " + (b.bound("hangs") or "not bound"))
        assert b.bind(made, node) == ""
        agree(b.read, api)

    with t.check("an API server that dies: known when it is back"):
        made, node = b.filtered("away")
        c.apiserver.kill()
        error = b.scheduler.bind_once(made, node)
        assert error, "nobody can have bound it"
        c.apiserver.start()
        c.wait_ready()
        b.lab.leader()
        b.settle("away")
        wait_for("it is bound after all",
                 lambda: b.bind(made, node) == "", every=0.5)
        agree(b.read, api)

    with t.check("kill -9 while binds are under way, and all over again"):
        b.clear()
        pods = [b.filtered(f"k{i}", cards=1) for i in range(12)]
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            waits = [threads.submit(b.scheduler.bind_once, made, node)
                     for made, node in pods]
            wait_for("one is answered", lambda: any(
                w.done() for w in waits), every=0.001)
            b.extender.kill()
            concurrent.futures.wait(waits)
        answered = [w.result() for w in waits if not w.exception()]
        b.extender.start()
        b.lab.leader()
        had = agree(b.read, api)
        t.note(f"{answered.count('')} were answered, {len(had)} bound"
               if had is not True else "none was bound")
        for made, _ in pods:
            name = made["metadata"]["name"]
            node = b.bound(name) or b.scheduler.fit(made, b.nodes)
            assert b.bind(made, node) == ""
        cards = [(node, card) for node, ids, _ in
                 agree(b.read, api).values() for card in ids]
        assert len(cards) == len(set(cards)) == 12, sorted(cards)


def crowd(t, b):
    """Many callers, each of whom asks twice."""
    b.clear()
    pods = [b.filtered(f"m{i}", cards=1) for i in range(MANY)]
    nodes = {}

    def bind(item):
        made, node = item
        for _ in range(8):
            try:
                if b.bind(made, node) == "":
                    return node
            except (OSError, ApiError):
                pass
            answer = b.scheduler.filter(made, b.nodes)
            node = (answer["NodeNames"] or [node])[0]
        return None
    with t.check(f"{MANY} pods at once, each asked for twice"):
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            for (made, _), node in zip(pods + pods,
                                       threads.map(bind, pods + pods)):
                nodes.setdefault(made["metadata"]["name"], set()).add(node)
        t.note(f"{2 * MANY} binds in {time.monotonic() - began:.2f} s")
        assert all(len(n) == 1 and None not in n for n in nodes.values()), nodes
        for name, where in nodes.items():
            assert {b.bound(name)} == where, name
        cards = [(node, card) for node, ids, _ in
                 agree(b.read, b.api).values() for card in ids]
        assert len(cards) == len(set(cards)) == MANY, len(cards)


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
        b = Bench(c, lab, nodes)
        wait_for("all hosts are ready", lambda: statuses(b.read) == {
            n: "ready" for n in nodes})
        assert beats.nodes
        refused(t, b)
        crowd(t, b)  # from here on every caller has a connection
        unanswered(t, c, b)
        t.finish()


if __name__ == "__main__":
    main()
