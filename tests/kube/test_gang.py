#!/usr/bin/env python3
"""Jobs as PodGroups, with the gang scheduling of the release.

In 1.37 one feature gate switches it on, GenericWorkload (beta, off), for
kube-apiserver, kube-scheduler and kube-controller-manager; the gate
GangScheduling of 1.35 and 1.36 is gone.  The API server also has to serve
scheduling.k8s.io/v1beta1.  The placements of a group by topology have a gate
of their own, TopologyAwareWorkloadScheduling (alpha, off), for kube-apiserver
and kube-scheduler.  kube-scheduler then tries a group as a whole, and asks the
extender about each of its pods: with topology once for each placement, and
nothing in the request tells that from what will be bound."""
import re

import fleet
import jobs
from check import Checks
from cluster import Cluster
from lab import Lab
from proc import wait_for
from test_cluster import is_late
from test_jobs import Bench, where

GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
RUNTIME = {"scheduling.k8s.io/v1beta1": True}
NODES = 8
PAIRS = 32
RACK = "test.example/rack"


def group(api, name, count, rack=False):
    spec = {"schedulingPolicy": {"gang": {"minCount": count}}}
    if rack:
        spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
    api.create("podgroups", {
        "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec})


def members(pods, name):
    """Pods of a group, whose name is the job's then."""
    for p in pods:
        p["metadata"]["labels"].pop("biga.dev/job", None)
        p["spec"]["schedulingGroup"] = {"podGroupName": name}
    return pods


def condition(api, name):
    found = api.get("podgroups", "default", name).get("status", {})
    return {c["type"]: c for c in found.get("conditions", [])}.get(
        "PodGroupInitiallyScheduled", {"status": "none"})


def wait_told(b, name, status):
    """Until the group is told so; kube-scheduler, which has decided by then,
    does not tell it again when its call has failed."""
    failed = re.compile('"Failed to update PodGroup status" .*'
                        f'podGroup="default/{name}"')
    wait_for(f"the group is told {status}", lambda: b.c.scheduler.alive() and (
        condition(b.api, name)["status"] == status or failed.search(
            b.c.scheduler.text())))


def placement(api, pods):
    names = {p["metadata"]["name"] for p in pods}
    return {name: (where(a), a["relation"])
            for (_, name), (_, a) in jobs.allocations(api).items()
            if name in names}


def leadership(b):
    """Who binds; another value after each change, also where the same
    replica leads again, after each bind that was late, and where the machine
    stood still so long that a host was taken for silent."""
    spec = b.api.get("leases", "biga-system", "biga-extender")["spec"]
    seen = [sum(e.text().count(f"event={event} ") for e in b.lab.extenders)
            for event in ("not-leading", "node-status")]
    return spec["holderIdentity"], spec.get("leaseTransitions"), *seen, \
        len(late(b))


def remove(b, name):
    b.clear()
    b.api.delete("podgroups", "default", name, missing_ok=True)


def same(t, b):
    api, led = b.api, leadership(b)
    with t.check(f"{2 * PAIRS} pods of a job, one by one"):
        pods = jobs.pairs("ring", PAIRS, asks={"align": "pix"})
        fleet.add_pods(api, pods, 1)
        b.whole(pods)
        alone = placement(api, pods)
        b.audit()
    b.clear()
    with t.check("as a PodGroup they get the same places"):
        pods = jobs.pairs("ring", PAIRS, asks={"align": "pix"})
        group(api, "ring", len(pods))
        members(pods, "ring")
        before = refused(b)
        fleet.add_pods(api, pods[:-1], 1)
        b.c.wait_tried(len(pods) - 1)
        assert not fleet.bound(api), "bound before all are there"
        fleet.add_pods(api, pods[-1:], 1)
        fleet.wait_bound(api, [p["metadata"]["name"] for p in pods])
        got = placement(api, pods)
        differ = {n: (got.get(n), alone[n]) for n in alone
                  if got.get(n) != alone[n]}
        # a leader that follows in between plans anew for those that are not
        # bound yet, and the place of one that is late is another's meanwhile:
        # they may have each other's
        assert sorted(got.values()) == sorted(alone.values()), differ
        assert not differ or leadership(b) != led, differ
        wait_told(b, "ring", "True")

        def none():
            # a late one is logged before it is counted
            n = refused(b) - before
            assert n == 0 or leadership(b) != led, \
                f"{n} binds of the group were refused"
            return True
        wait_for("no bind is refused", none)

        def whole():
            job = b.read().call("GET", "/v1/jobs/default/ring")
            assert job["pairs"] == {"bound": PAIRS, "held": 0,
                                    "missing": 0}, job["pairs"]
            return True
        wait_for("the extender has heard of all", whole)
        b.audit()
    remove(b, "ring")
    with t.check("held to one rack, they get one rack"):
        pods = members(jobs.pairs("rack", PAIRS, asks={"align": "pix"}),
                       "rack")
        group(api, "rack", len(pods), rack=True)
        before = filtered(b)
        fleet.add_pods(api, pods, 1)
        fleet.wait_bound(api, [p["metadata"]["name"] for p in pods])
        t.note(f"{filtered(b) - before} filter calls for {len(pods)} pods")
        racks = {rack_of(node) for (node, _, _), _ in
                 placement(api, pods).values()}
        assert len(racks) == 1, racks
        b.audit()
    remove(b, "rack")


def rack_of(node):
    return "abc"[fleet.names("host", NODES).index(node) // 4]


def filtered(b):
    """Filter calls that were answered."""
    return sum(int(n) for n in re.findall(
        r'^biga_http_requests_total\{[^}]*filter[^}]*\} (\d+)', b.metrics(),
        re.M))


def refused(b):
    """How many binds were not made, though a leader was asked and had the
    time for it.  Not each refusal is logged; one for time is."""
    n = sum(int(n) for k, n in re.findall(
        r'^biga_binds_total\{result="(\w+)"\} (\d+)', b.metrics(), re.M)
        if k not in ("bound", "repeated", "follower"))
    return n - len(late(b))


def late(b):
    """What the logs say of binds that were not made for want of time."""
    return [line for e in b.lab.extenders for line in re.findall(
        "event=bind .*result=(?!bound|repeated).*", e.text())
        if is_late(line)]


def state(b):
    """All that could change, but for what other programs write: heartbeats
    and the status of the group's own pods."""
    read = b.read()
    told = read.call("GET", "/v1/cluster")
    metrics = dict(re.findall(
        r"^(biga_(?:snapshot|allocations|bind|writer|store)\S*) (\S+)$",
        read.call("GET", "/metrics"), re.M))
    metrics = {k: v for k, v in metrics.items() if "seconds" not in k}
    objects = {}
    for o in b.api.list("resourceslices"):
        objects[("resourceslices", o["metadata"]["name"])] = \
            o["metadata"]["resourceVersion"]
    for o in b.api.list("nodes"):
        # an advertiser whose heartbeat was late tells its Node anew
        meta = o["metadata"]
        del meta["resourceVersion"], meta["managedFields"]
        meta["annotations"].pop("biga.dev/published", None)
        objects[("nodes", meta["name"])] = o
    for p in b.api.list("pods", None, labelSelector="test.example/stays"):
        objects[("pods", p["metadata"]["name"])] = \
            p["metadata"]["resourceVersion"]
    return {"allocations": jobs.items(read, "/v1/allocations"),
            "binds": told["bindsInFlight"], "bound": told["pods"]["bound"],
            "unaccounted": told["unaccountedPods"], "metrics": metrics,
            # those that wait, or are over, have nothing
            "jobs": [j for j in jobs.items(read, "/v1/jobs")
                     if j["pairs"]["bound"] or j["pairs"]["held"]],
            "objects": objects}


def at_rest(b):
    """The state, when pods are marked and nothing else is on its way."""
    last = [None]

    def still():
        was, last[0] = last[0], state(b)
        return was if was == last[0] else None
    b.c.wait_tried(0)
    return wait_for("nothing changes", still, every=0.3)


def unfitting(t, b):
    """Groups that cannot be placed, for one pod's sake or altogether."""
    api = b.api
    stay = jobs.pairs("stays", 4, asks={"align": "pix"})
    for p in stay:
        p["metadata"]["labels"]["test.example/stays"] = "yes"
    fleet.add_pods(api, stay)
    b.whole(stay)
    giant = fleet.pod("giant", requests={"cpu": 5000})
    cases = (("the last pod of which fits nowhere", "part", 30, [giant],
              False),
             ("of a job with more pairs than there are places", "many",
              8 * NODES + 1, [], False),
             ("that no rack can hold", "wide", 40, [], True))
    for name, job, n, more, rack in cases:
        with t.check("a group " + name + " changes nothing"):
            before, asked, led = at_rest(b), filtered(b), leadership(b)
            assert len(before["allocations"]) == 8, before["allocations"]
            pods = members(jobs.pairs(job, n, asks={"align": "pix"})[:80]
                           + more, job)  # of a job that may have more
            group(api, job, len(pods), rack)
            fleet.add_pods(api, pods)
            wait_told(b, job, "False")
            calls = filtered(b) - asked
            t.note(f"{calls} filter calls; "
                   f"{condition(api, job).get('message')}"[:150])
            assert calls > 0, "the extender was not asked"
            after = state(b)
            for key, was in before.items():
                # each replica counts for itself, and a host may be silent
                assert after[key] == was or (
                    key == "metrics" and leadership(b) != led), \
                    (key, was, after[key])
            assert fleet.bound(api).keys() == {
                p["metadata"]["name"] for p in stay}
            b.audit()
        names = [p["metadata"]["name"] for p in pods]
        fleet.in_parallel(lambda n: api.delete(
            "pods", "default", n, missing_ok=True), names)
        api.delete("podgroups", "default", job)
        wait_for("they go", lambda: len(api.list("pods", "default")) == 8)
    b.clear()


def main():
    with Cluster() as c:
        t = Checks(c.log_ends)
        c.start(GATES, RUNTIME)
        lab = Lab(c)
        lab.up(nodes=NODES)
        for name in fleet.names("host", NODES):
            c.api.patch("nodes", None, name, {"metadata": {
                "labels": {RACK: rack_of(name)}}})
        b = Bench(t, c, lab)
        same(t, b)
        unfitting(t, b)
        t.finish()


main()
