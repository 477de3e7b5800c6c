#!/usr/bin/env python3
"""Kueue and JobSet with their own managers, by hand (make test-kueue).

First without Biga, so that what fails later is Biga's: a JobSet of hosts and
cards runs and ends, and a queue with quota for 8 cards runs 8 pairs of 16,
then the others.  Then the same by Biga's gate door under kube-scheduler as it
comes: a card counts once for each pair, and a rack that Kueue has chosen
(topology-aware scheduling) is kept.

    test_kueue.py [NAME…]      parts of it: plain, queue, rack, biga_queue,
                               biga_rack
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.dirname(HERE))

import controllers
import fleet
import gates
import onebook
from check import Checks
from cluster import Cluster
from proc import wait_for

NODES, PAIRS, QUOTA, RANKS = 8, 16, 8, 4
RACK = "fabric.topograph.run/tier-0"
CARD = "biga.dev/card"
QUEUE = "kueue.x-k8s.io/queue-name"
WITHIN = "kueue.x-k8s.io/podset-required-topology"
JOBSET = "jobset.sigs.k8s.io/jobset-name"


def pod_template(requests, **meta):
    made = fleet.pod("x", requests={"cpu": "1", **requests},
                     restartPolicy="Never")
    return {"metadata": meta, "spec": made["spec"]}


def job_spec(template, n):
    return {"parallelism": n, "completions": n, "completionMode": "Indexed",
            "backoffLimit": 0, "template": template}


def jobset(name, queue=None, n=1, biga=False):
    """A JobSet of n host pods and n xPU pods; the card of a pair is asked
    for by its host pod alone, so that a quota counts it once."""
    roles = {"host": {CARD: 1}, "xpu": {}}
    made = []
    for role, asks in roles.items():
        template = pod_template(asks)
        if biga:
            template = gates.templated(template, role, n)
        made.append({"name": role, "replicas": 1,
                     "template": {"spec": job_spec(template, n)}})
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": name, "namespace": "default",
                         "labels": {QUEUE: queue} if queue else {}},
            "spec": {"replicatedJobs": made}}


class Runs:
    """The pods of JobSets and Jobs, and the kubelets that run them."""

    def __init__(self, c):
        self.c, self.api = c, c.api
        self.kubelet = fleet.Kubelet(c.api).start()

    def pods(self, of=None):
        query = {"labelSelector": f"{JOBSET}={of}"} if of else {}
        return self.api.list("pods", "default", **query)

    def running(self):
        """{JobSet name: pods of it that run}."""
        found = {}
        for p in self.pods():
            if p["status"].get("phase") == "Running":
                name = p["metadata"]["labels"].get(JOBSET)
                found[name] = found.get(name, 0) + 1
        return found

    def finish(self, *names):
        """All pods of these JobSets end well; xPU pods first, as Biga deletes
        those whose host pod has ended."""
        def is_host(p):
            return p["metadata"]["labels"].get("biga.dev/role") == "host"
        for name in names:
            for p in sorted(self.pods(name), key=is_host):
                if p["status"].get("phase") == "Running":
                    self.kubelet.phase(p, "Succeeded")

    def completed(self):
        return {obj["metadata"]["name"]
                for obj in self.api.list("jobsets", "default")
                if controllers.conditions(obj).get("Completed") == "True"}


def queues(api, topology=None):
    """One queue with quota for so many cards."""
    if topology:
        api.create("topologies", controllers.topology("racks", RACK))
    api.create("resourceflavors", controllers.flavor(
        "hosts", {"kubernetes.io/os": "linux"},
        "racks" if topology else None))
    quota = {"cpu": 1000} if topology else {CARD: QUOTA, "cpu": 1000}
    api.create("clusterqueues",
               controllers.cluster_queue("cards", "hosts", **quota))
    api.create("localqueues", controllers.local_queue("cards", "cards"))
    wait_for("the queue is active", lambda: controllers.conditions(
        api.get("clusterqueues", None, "cards")).get("Active") == "True")


def half_and_half(t, c, runs, biga):
    """8 pairs of 16 run, the others when these have ended."""
    names = [f"pair{i:02}" for i in range(PAIRS)]
    for name in names:
        c.api.create("jobsets", jobset(name, "cards", biga=biga))

    def state(admitted, waiting):
        has = c.api.get("clusterqueues", None, "cards")["status"]
        now = has.get("admittedWorkloads", 0), has.get("pendingWorkloads", 0)
        assert now == (admitted, waiting), f"{now} are admitted and wait"
        return True

    def whole(n):
        now = runs.running()
        assert len(now) == n and set(now.values()) == {2}, now
        return now
    wait_for("half of them is admitted", lambda: state(
        QUOTA, PAIRS - QUOTA), every=0.2)
    first = set(wait_for("half of them runs", lambda: whole(QUOTA),
                         every=0.2))
    state(QUOTA, PAIRS - QUOTA)
    assert len(runs.pods()) == 2 * QUOTA, "pods of more than the quota"
    if biga:
        onebook.assert_one_book(c.api)
        gates.assert_pairs(runs.pods())
    runs.finish(*first)
    wait_for("the others are admitted", lambda: state(PAIRS - QUOTA, 0),
             every=0.2)
    second = set(wait_for("the others run", lambda: whole(PAIRS - QUOTA),
                          every=0.2))
    assert first | second == set(names) and not first & second
    if biga:
        onebook.assert_one_book(c.api)
    runs.finish(*second)
    wait_for("all are completed", lambda: runs.completed() == set(names),
             every=0.2)


def in_one_rack(c, runs, biga):
    """A job that has to be in one rack is in the one that Kueue chose."""
    template = pod_template({}, annotations={WITHIN: RACK})
    if biga:
        template = gates.templated(template, "host", RANKS, buddy=True)
    c.api.create("jobs", {
        "metadata": {"name": "ring", "namespace": "default",
                     "labels": {QUEUE: "cards"}},
        "spec": {**job_spec(template, RANKS), "suspend": True}})
    n = 2 * RANKS if biga else RANKS

    def all_run():
        found = [p for p in runs.pods()
                 if p["status"].get("phase") == "Running"]
        assert len(found) == n, f"{len(found)} of {n} run"
        return found
    pods = wait_for("the job runs", all_run, every=0.2)
    chosen = {p["spec"].get("nodeSelector", {}).get(RACK) for p in pods
              if p["metadata"]["labels"].get("biga.dev/role") != "xpu"}
    racks = {obj["metadata"]["name"]: obj["metadata"]["labels"][RACK]
             for obj in c.api.list("nodes")}
    got = {racks[p["spec"]["nodeName"]] for p in pods}
    assert len(chosen) == 1 and got == chosen, f"{got}, Kueue chose {chosen}"
    return got


def plain_nodes(c):
    c.start_stock_scheduler(qps=500)
    names = fleet.names("host", NODES)
    racks = fleet.leaves(names)
    fleet.add_nodes(c.api, [fleet.node(
        n, 64, labels=racks[n], extended={CARD: 2}) for n in names])


def plain(t, c):
    plain_nodes(c)
    controllers.JobSet(c).up()
    with t.check("a JobSet of hosts and cards runs and ends"):
        runs = Runs(c)
        c.api.create("jobsets", jobset("ring", n=4))
        wait_for("all of it runs", lambda: runs.running() == {"ring": 8},
                 every=0.1)
        runs.finish("ring")
        wait_for("it is completed", lambda: runs.completed() == {"ring"},
                 every=0.1)


def queue(t, c):
    plain_nodes(c)
    controllers.JobSet(c).up()
    controllers.Kueue(c).up(["jobset.x-k8s.io/jobset"])
    with t.check("without Biga: 8 pairs of 16 run, then the others"):
        runs = Runs(c)
        queues(c.api)
        half_and_half(t, c, runs, biga=False)


def rack(t, c):
    plain_nodes(c)
    controllers.Kueue(c).up(["batch/job"])
    with t.check("without Biga: a job is in the rack that Kueue chose"):
        runs = Runs(c)
        queues(c.api, topology=True)
        in_one_rack(c, runs, biga=False)


def biga_queue(t, c):
    gates.Lab(c, policy=True).up(nodes=NODES)
    controllers.JobSet(c).up()
    controllers.Kueue(c).up(["jobset.x-k8s.io/jobset"])
    with t.check("by gates: 8 pairs of 16 run, then the others"):
        runs = Runs(c)
        queues(c.api)
        half_and_half(t, c, runs, biga=True)


def biga_rack(t, c):
    gates.Lab(c, policy=True).up(nodes=NODES)
    controllers.Kueue(c).up(["batch/job"])
    with t.check("by gates: Kueue's choice of a rack is obeyed"):
        runs = Runs(c)
        queues(c.api, topology=True)
        gates.add_buddy(c.api)
        in_one_rack(c, runs, biga=True)
        onebook.assert_one_book(c.api)


PARTS = (plain, queue, rack, biga_queue, biga_rack)


def main():
    t = Checks()
    wanted = sys.argv[1:] or [part.__name__ for part in PARTS]
    strange = set(wanted) - {part.__name__ for part in PARTS}
    assert not strange, f"there is no {sorted(strange)}"
    for part in PARTS:
        if part.__name__ in wanted:
            with Cluster() as c:
                t.on_failure = c.log_ends
                part(t, c.start())
    t.finish()


if __name__ == "__main__":
    main()
