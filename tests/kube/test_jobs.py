#!/usr/bin/env python3
"""Jobs of pairs against the real API server and scheduler: they land whole
and aligned, whatever ends, restarts or is cut in the middle."""
import json
import os
import random
import re
import signal
import sys
import time

import fleet
import jobs
import pool
from check import Checks
from cluster import ROOT
from lab import Lab
from proc import wait_for
from proxy import Proxy
from test_cluster import Scheduler

NODES = 8  # of 8 GPUs, with a card behind the same switch each, and one more
SIZE = 16  # pairs of a job: two nodes full
NEAR = ("PIX", "PXB")


class Wired(Lab):
    """A lab whose replicas reach the API server over a wire each."""

    def __init__(self, cluster):
        super().__init__(cluster)
        self.wires = {}

    def extender(self, name=None, *args, start=True):
        found = super().extender(name, *args, start=False)
        wire = Proxy(self.c.ports["apiserver"])
        self.wires[found.name] = wire
        file = self.c.path(found.name + ".kubeconfig")
        with open(file, encoding="utf-8") as f:
            text = f.read()
        with open(file, "w", encoding="utf-8") as f:
            f.write(text.replace(self.c.server,
                                 f"https://127.0.0.1:{wire.port}"))
        if start:
            found.start()
            found.wait_up(**self.ca())
        return found


    def start_scheduler(self, *args, **more):
        # pods that an outage has refused several times are not waited for
        return super().start_scheduler(*args, podMaxBackoffSeconds=2, **more)


class Bench:
    """A lab and what tests ask of it."""

    def __init__(self, t, c, lab):
        self.t, self.c, self.api, self.lab = t, c, c.api, lab
        self.token = lab.reader()
        self.random = random.Random(1)

    def read(self):
        """The read listener of the replica that binds."""
        return self.lab.read_api(self.lab.leader(), self.token)

    def metrics(self):
        """Of all replicas that run: each may have led."""
        return "".join(
            self.lab.read_api(e, self.token).call("GET", "/metrics")
            for e in self.lab.extenders if e.running)

    def create(self, pods):
        """One after the other."""
        for p in pods:
            self.api.create("pods", p)

    def mixed(self, name, size=SIZE, **more):
        """The pods of a job, in no order."""
        pods = jobs.pairs(name, size, asks={"align": "pix"}, **more)
        self.random.shuffle(pods)
        return pods

    def some(self, pods, n):
        """Until n of these pods have a node."""
        names = {p["metadata"]["name"] for p in pods}
        wait_for(f"{n} pods are bound", lambda: len(
            names & fleet.bound(self.api).keys()) >= n, every=0.02)

    def placement(self, prefix=""):
        """{pod: (node, its cards, its GPUs)} as the pods say."""
        return {name: where(a) for (_, name), (_, a)
                in jobs.allocations(self.api, "default").items()
                if name.startswith(prefix)}

    def simulated(self, pods):
        """The same as it would be, of pods in the order of creation."""
        found = {}
        for got in self.read().call("POST", "/v1/simulate", pods)["results"]:
            assert got["state"] == "placed", got["summary"]
            found[got["pod"]["name"]] = where(got["allocation"])
        return found

    def whole(self, pods):
        """Until all pods of a job are bound, aligned, and nothing is held
        any more; what the extender and biga job say of it."""
        names = [p["metadata"]["name"] for p in pods]
        fleet.wait_bound(self.api, names)
        got = {name: a for (_, name), (_, a)
               in jobs.allocations(self.api, "default").items()}
        far = {n: got[n]["relation"] for n in names
               if got[n]["relation"] not in NEAR}
        assert not far, f"not behind one switch: {far}"
        job = pods[0]["metadata"]["labels"]["biga.dev/job"]
        size = len(names) // 2

        def complete():
            read = self.read()
            told = read.call("GET", "/v1/jobs/default/" + job)
            assert told["pairs"] == {"bound": size, "held": 0,
                                     "missing": 0}, told["pairs"]
            assert told["score"]["unaligned"] == 0, told["score"]
            assert all(len(p["members"]) == 2 for p in told["pairList"])
            held = [a for a in jobs.items(read, "/v1/allocations")
                    if a.get("held")]
            assert not held, held
            return told
        return wait_for("the job is whole", complete)

    def audit(self):
        """Nothing is wrong, when what is on its way has arrived."""
        def right():
            bad = jobs.audit(self.api, self.read())
            assert not bad, "\n".join(bad)
            return True
        wait_for("the audit finds nothing", right, every=0.3)

    def clear(self):
        self.api.delete_all("pods", "default")
        wait_for("pods go", lambda: not self.api.list("pods", "default"))
        wait_for("allocations go", lambda: not jobs.items(
            self.read(), "/v1/allocations"))


def where(a):
    return (a["node"], tuple(d["id"] for d in a["cards"]),
            tuple(d["id"] for d in a["gpus"]))


def interleaved(t, b):
    with t.check(f"{SIZE} pairs in random order land aligned, as simulated"):
        pods = b.mixed("mixed")
        planned = b.simulated(pods)
        began = time.monotonic()
        b.create(pods)
        b.whole(pods)
        t.note(f"{len(pods)} pods bound {time.monotonic() - began:.1f} s "
               "after the first was created")
        got = b.placement()
        nodes = {node for node, _, _ in got.values()}
        assert len(nodes) == SIZE // 8, sorted(nodes)
        assert got == planned, {n: (got[n], planned[n]) for n in got
                                if got[n] != planned[n]}
        b.audit()
    with t.check("asked again, bind says so, and no to another node"):
        repeated(b, pods[:4])
    b.clear()


def repeated(b, pods):
    scheduler = Scheduler(b.lab, b.lab.leader())
    for p in pods:
        name = p["metadata"]["name"]
        before = b.api.get("pods", "default", name)
        node = before["spec"]["nodeName"]
        other = [n for n in fleet.names("host", NODES) if n != node][0]
        for to, good in ((node, True), (other, False), (node, True)):
            error = scheduler.bind(before, to)
            assert (error == "") == good, (to, error)
        after = b.api.get("pods", "default", name)
        for of in (before, after):
            of["metadata"].pop("managedFields")
        assert fleet.allocation(before) == fleet.allocation(after)
        assert before["spec"] == after["spec"]
    b.audit()


def indexed(t, b):
    api = b.api
    with t.check("deploy/examples/job.yaml: buddies are made, all aligned"):
        began = time.monotonic()
        b.c.kubectl("apply", "-f", os.path.join(
            ROOT, "deploy", "examples", "job.yaml"))

        def both():
            pods = [p for p in api.list("pods", "default")
                    if p["spec"].get("nodeName")]
            assert len(pods) == 2 * SIZE, f"{len(pods)} are bound"
            return pods
        pods = wait_for("all are bound", both, every=0.2)
        t.note(f"all bound after {time.monotonic() - began:.1f} s")
        hosts = {p["metadata"]["uid"]: p for p in pods
                 if p["metadata"]["labels"]["biga.dev/role"] == "host"}
        assert len(hosts) == SIZE, len(hosts)
        for p in pods:
            a = json.loads(fleet.allocation(p))
            assert a["relation"] in NEAR, a
            if p["metadata"]["uid"] in hosts:
                continue
            owner, = p["metadata"]["ownerReferences"]
            host = hosts.pop(owner["uid"])
            there = json.loads(fleet.allocation(host))
            assert a["node"] == there["node"] and \
                a["cards"] == there["cards"], (a, there)
            assert a["pod"]["pair"] == there["pod"]["pair"], (a, there)
        assert not hosts, f"without an xPU pod: {hosts.keys()}"
        b.audit()
    with t.check("the Job is deleted: its pods and their buddies go"):
        b.c.kubectl("delete", "job", "solver")
        wait_for("pods go", lambda: not api.list("pods", "default"))
        b.audit()
    api.delete("services", "default", "solver")
    b.clear()


LONELY = """package 0
  numa 0 cpus=32 memory=128GiB
    root 0000:10
      bridge 0000:10:01.0
        bridge 0000:11:00.0
          bridge 0000:12:00.0
            gpu 0000:13:00.0 id=10de:2330
{near}package 1
  numa 1 cpus=32 memory=128GiB
{far}distance 0 1 21
"""
CARD = "id=15b3:a2dc cores=8 memory=16GiB serial=x{0}"
NEAR_CARD = ("          bridge 0000:12:01.0\n"
             "            card 0000:14:00.0 " + CARD.format("near") + "\n")


def lonely(near, n_far):
    """A host with a GPU, and cards at its side or on the other socket."""
    far = "".join(f"    root 0000:{0x40 + i:02x}\n"
                  f"      card 0000:{0x40 + i:02x}:00.0 {CARD.format(i)}\n"
                  for i in range(n_far))
    return LONELY.format(near=NEAR_CARD if near else "", far=far)


def retried(t, b):
    """What no node has is bound soon after a node reports it."""
    api, file = b.api, b.c.path("lonely.host")

    def describe(text):
        with open(file + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(file + ".new", file)
    describe(lonely(False, 1))
    fleet.add_nodes(api, ["lonely"], extended={jobs.GPU: "1"})
    advertiser = b.lab.advertiser("lonely", "--hostfile=" + file,
                                  "--interval=0s")
    wait_for("it is ready", lambda: b.read().call(
        "GET", "/v1/nodes/lonely")["status"] == "ready")
    on_it = {"nodeSelector": {"kubernetes.io/hostname": "lonely"}}
    asks = (
        ("a pod that wants its card nearer", lonely(True, 1),
         jobs.host_pod("nearer", asks={"align": "pix"}, **on_it)),
        ("a pod that wants more cards than any node has", lonely(True, 11),
         jobs.host_pod("more", gpus=0, cores=0, asks={"cards": 12})))
    asks[1][2]["spec"]["containers"][0]["resources"] = {
        "limits": {"biga.dev/card": "12"},
        "requests": {"biga.dev/card": "12"}}
    for name, text, pod in asks:
        with t.check(name + " is bound once a node reports it"):
            pod_name = pod["metadata"]["name"]
            api.create("pods", pod)
            wait_for("it is refused", lambda: "0/9 nodes" in
                     fleet.why_pending(api, pod_name))
            b.c.wait_tried(1)
            assert not fleet.bound(api), "there is room already"
            t.note(fleet.why_pending(api, pod_name)[:150])
            began = time.monotonic()
            describe(text)
            advertiser.send(signal.SIGHUP)
            fleet.wait_bound(api, [pod_name])
            t.note(f"bound {time.monotonic() - began:.2f} s after SIGHUP")
            a = jobs.allocations(api)[("default", pod_name)][1]
            assert a["node"] == "lonely", a
            b.audit()
        b.clear()
    advertiser.stop()
    api.delete("nodes", None, "lonely")
    wait_for("it is gone", lambda: not [n for n in b.read().call(
        "GET", "/v1/nodes")["items"] if n["name"] == "lonely" and
        n["status"] == "ready"])


def in_the_middle(t, b, name, job, fault):
    """One half of a job arrives, something happens, the other half comes."""
    with t.check(name):
        pods = b.mixed(job)
        b.create(pods[:SIZE])
        b.some(pods, 3)
        began = time.monotonic()
        after = fault()
        b.create(pods[SIZE:])
        b.whole(pods)
        t.note(f"whole {time.monotonic() - began:.1f} s after it happened")
        if after:
            after()
        b.audit()
    b.clear()


def faults(t, c, b):
    lab = b.lab

    def kill_leader():
        leader = lab.leader()
        began = time.monotonic()
        leader.kill()

        def after():
            assert lab.leader() is not leader
            leader.start()
            leader.wait_up(**lab.ca())
        other = [e for e in lab.extenders if e is not leader][0]
        wait_for("the other leads", lambda: other in lab.ready())
        t.note(f"{other.name} was ready {time.monotonic() - began:.1f} s "
               "after kill -9")
        return after

    def restart_all():
        for e in lab.extenders:
            assert e.stop(), f"{e.name} was killed"
        for e in lab.extenders:
            e.start()

    def restart_leader():
        lab.leader().restart()

    def restart_apiserver():
        c.apiserver.kill()
        c.apiserver.start()
        c.wait_ready()

    def cut_wires():
        before = {k: n for k, n in watches(b).items() if n}  # not the absent
        assert {(e.name, "pods") for e in lab.extenders} <= set(before), before
        n = sum(w.cut() for w in lab.wires.values())
        t.note(f"{n} connections were cut")
        assert n >= 2 * len(lab.wires), n
        wait_for("all have tried to connect again", lambda: all(
            w.refused for w in lab.wires.values()))
        for w in lab.wires.values():
            w.restore()
        b.lab.leader()

        def again():
            new = watches(b)
            late = [k for k in before if new[k] <= before[k]]
            assert not late, late
            return True
        return lambda: wait_for("all watch again", again, every=0.2)

    in_the_middle(t, b, "kill -9 of the leader in the middle of a job",
                  "killed", kill_leader)
    in_the_middle(t, b, "the leader restarts in the middle of a job",
                  "again", restart_leader)
    in_the_middle(t, b, "all extenders restart in the middle of a job",
                  "anew", restart_all)
    in_the_middle(t, b, "the API server dies in the middle of a job",
                  "outage", restart_apiserver)
    in_the_middle(t, b, "all watches are cut in the middle of a job",
                  "cut", cut_wires)


def watches(b):
    """{(replica, collection): how many watches of it were begun}"""
    found = {}
    for e in b.lab.extenders:
        told = b.lab.read_api(e, b.token).call("GET", "/v1/cluster")
        for k in told["collections"]:
            found[(e.name, k["name"])] = k["watches"]
    return found


def unanswered(t, c, b):
    """The API server stops in the middle of binds, for longer than both the
    extender and the scheduler wait."""
    with t.check("binds that time out are made once"):
        late = i = 0
        while not late:  # until the server stops before the last is bound
            late, i = hang(c, b, f"hangs-{i}"), i + 1
        t.note(f"{late} lines of the scheduler about late answers")


def lates(c):
    return len(re.findall(r"timed out|deadline|try again",
                          c.scheduler.text(), re.I))


def hang(c, b, name):
    """One job; how many lines of the scheduler tell of late answers, none
    where the Lease was over before there was one."""
    pods, before, late = b.mixed(name), lates(c), False
    c.scheduler.pause()  # so that all are to be bound at once
    try:
        b.create(pods)
    finally:
        c.scheduler.resume()
    b.some(pods, 1)
    c.scheduler.pause()
    try:
        wait_for("what it has asked for is answered", lambda: b.read().call(
            "GET", "/v1/cluster")["bindsInFlight"] == 0)
        left = len(pods) - len(fleet.bound(b.api))
        b.lab.wait_renewed()
        c.apiserver.pause()
    finally:
        c.scheduler.resume()
    try:
        if left:
            wait_for("a bind is late", lambda: lates(c) > before or
                     not b.lab.ready(), every=0.1)
            late = lates(c) > before
    finally:
        c.apiserver.resume()
    b.whole(pods)
    b.audit()
    b.clear()
    return lates(c) - before if late else 0


PARTS = {"interleaved": lambda t, _, b: interleaved(t, b),
         "indexed": lambda t, _, b: indexed(t, b),
         "retried": lambda t, _, b: retried(t, b),
         "unanswered": unanswered, "faults": faults}


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        lab = Wired(c)
        lab.up(nodes=NODES)
        lab.start_kubelet()
        b = Bench(t, c, lab)
        for part in sys.argv[1:] or PARTS:
            PARTS[part](t, c, b)
        t.finish()


if __name__ == "__main__":
    main()
