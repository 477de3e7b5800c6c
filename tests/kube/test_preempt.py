#!/usr/bin/env python3
"""A pair, or a job of several, of high priority comes to nodes that are full
of pods of low priority: exactly those go that have to, all members of a pair
end on one node, and nobody is evicted for nothing."""
import json
import sys
import threading

import fleet
import jobs
import pool
from check import Checks
from lab import Lab
from proc import wait_for
from test_jobs import Bench

NODES = 3
GPUS = 8  # of one node, which has a card more: an xPU pod fits everywhere


class SlowKubelet(fleet.Kubelet):
    """While it is slow, pods that are deleted do not end."""

    def __init__(self, api):
        super().__init__(api)
        self.lock, self.slow, self.ending = threading.Lock(), False, []

    def _see(self, obj):
        with self.lock:
            if self.slow and obj.get("metadata", {}).get("deletionTimestamp"):
                self.ending.append(obj)
                return
        super()._see(obj)

    def let_go(self):
        with self.lock:
            self.slow, ending, self.ending = False, self.ending, []
        for obj in ending:
            super()._see(obj)


class Crowd:
    """Pods of low priority, each with a GPU and a card for itself, on all
    nodes."""

    def __init__(self, b):
        self.b, self.api = b, b.api
        self.pods = [jobs.host_pod(
            f"low{i:02}", cores=0, asks={"exclusive": "true"},
            priorityClassName="low") for i in range(NODES * GPUS)]
        for p in self.pods:
            p["spec"]["terminationGracePeriodSeconds"] = 30
        fleet.add_pods(self.api, self.pods, 4)
        self.names = {p["metadata"]["name"] for p in self.pods}
        self.nodes = fleet.wait_bound(self.api, self.names)
        b.kubelet.slow = True

    def evicted(self):
        """{node: how many of them are gone, or about to be}."""
        there = {p["metadata"]["name"] for p in self.api.list(
            "pods", "default") if not p["metadata"].get("deletionTimestamp")}
        gone = {}
        for name in self.names - there:
            gone[self.nodes[name]] = gone.get(self.nodes[name], 0) + 1
        return gone


def high(job, size=1, pair=0, xpu=False, **more):
    """One of its pods; of a job an xPU pod says what its host pod asks, since
    the job could else be planned without."""
    make = jobs.xpu_pod if xpu else jobs.host_pod
    asks = {"exclusive": "true"}
    if xpu and size > 1:
        asks["gpus"] = 1
    return make(job, pair, size, cores=0, asks=asks,
                priorityClassName="high", **more)


def nominated(b, name):
    def has():
        pod = b.api.get("pods", "default", name)
        return pod["status"].get("nominatedNodeName") or \
            pod["spec"].get("nodeName")
    return wait_for(name + " is nominated", has, every=0.01)


def considered(b, name):
    """It has a node, is to get one, or has been told why not."""
    def has():
        pod = b.api.get("pods", "default", name)
        return pod["spec"].get("nodeName") or any(
            c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable"
            for c in pod["status"].get("conditions", []))
    wait_for(name + " is considered", has)


def expect(t, b, crowd, pods, pairs):
    """They are bound, each pair on one node, and one victim went for each."""
    names = [p["metadata"]["name"] for p in pods]
    b.kubelet.let_go()
    got = fleet.wait_bound(b.api, names)
    for name in names:
        if not name.endswith("-xpu") and name + "-xpu" in got:
            assert got[name] == got[name + "-xpu"], got
    b.c.wait_tried(0)  # nobody is left for whom another could be evicted
    gone = crowd.evicted()
    t.note(f"evicted {gone}; placed {got}")
    assert sum(gone.values()) == pairs, (gone, got)
    for node, n in gone.items():
        assert sum(got[m] == node for m in names
                   if not m.endswith("-xpu")) == n, (gone, got)
    b.audit()


def one_pair(t, b, first, second, late):
    who = "xPU" if first else "host"
    with t.check(f"a pair, the {who} pod first, victims go "
                 + ("late" if late else "at once")):
        crowd = Crowd(b)
        b.kubelet.slow = late
        pods = [high("vip", xpu=first), high("vip", xpu=second)]
        b.api.create("pods", pods[0])
        node = nominated(b, pods[0]["metadata"]["name"])
        b.api.create("pods", pods[1])
        if late:
            considered(b, pods[1]["metadata"]["name"])
        t.note("nominated to " + node)
        expect(t, b, crowd, pods, 1)
    b.clear()


def only_on(node):
    """A pod that kube-scheduler has on that node alone."""
    return {"affinity": {"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [{
                "key": "metadata.name", "operator": "In",
                "values": [node]}]}]}}}}


def elsewhere(t, b, node):
    """The xPU pod would fit everywhere, and its host pod only there."""
    with t.check("while a host pod is nominated to " + node +
                 ", its xPU pod is bound nowhere else"):
        crowd = Crowd(b)
        host, xpu = high("vip", **only_on(node)), high("vip", xpu=True)
        b.api.create("pods", host)
        assert nominated(b, "vip") == node
        b.api.create("pods", xpu)

        def told():
            said = b.read().call("GET", "/v1/why?pod=default/vip-xpu")
            bound = fleet.bound(b.api)
            assert bound.get("vip-xpu", node) == node, bound
            assert "vip-xpu" in bound or "makes room" in json.dumps(said), said
            return said["summary"]
        t.note(wait_for("it is told so", told, every=0.05))
        expect(t, b, crowd, [host, xpu], 1)
        assert fleet.bound(b.api)["vip"] == node
    b.clear()


def whole_job(t, b, interleave):
    with t.check("a job of three pairs, " + (
            "pairs in turn" if interleave else "all hosts first")):
        crowd = Crowd(b)
        pods = [high("team", 3, i, x) for i in range(3) for x in (False, True)]
        if not interleave:
            pods.sort(key=lambda p: p["metadata"]["name"].endswith("xpu"))
        for p in pods:
            b.api.create("pods", p)
        for p in pods:
            considered(b, p["metadata"]["name"])
        expect(t, b, crowd, pods, 3)
    b.clear()


def main():
    wanted = sys.argv[1:]
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        for name, value in (("low", 0), ("high", 1000)):
            c.api.create("priorityclasses", {
                "metadata": {"name": name}, "value": value})
        lab = Lab(c)
        lab.up(nodes=NODES, replicas=1)
        b = Bench(t, c, lab)
        b.kubelet = SlowKubelet(c.api).start()
        if not wanted or "pair" in wanted:
            for late in (False, True):
                one_pair(t, b, False, True, late)
                one_pair(t, b, True, False, late)
        if not wanted or "elsewhere" in wanted:
            for node in fleet.names("host", NODES):
                elsewhere(t, b, node)
        if not wanted or "job" in wanted:
            whole_job(t, b, True)
            whole_job(t, b, False)
        t.finish()


main()
