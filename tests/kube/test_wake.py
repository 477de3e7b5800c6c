#!/usr/bin/env python3
"""Pods that were refused are tried again as soon as there is room, whatever
made it: kube-scheduler hears of none of these by itself, and its own look
comes after 5 minutes."""
import json

import fleet
import jobs
import pool
from check import Checks
from lab import Lab
from proc import wait_for
from test_jobs import Bench

LEASE = 12  # seconds
CARDS = 9   # of the one node


def whole(name, **more):
    """A host pod that has a card for itself."""
    return jobs.host_pod(name, gpus=0, asks={"exclusive": "true"}, **more)


def woken(b, name):
    found = b.api.get("pods", "default", name)["status"]["conditions"]
    said = [c["message"] for c in found if c["type"] == "biga.dev/Room"]
    assert all(m.startswith("there was room for it at 20") for m in said), said
    return bool(said)


def why(b, name):
    return b.read().call("GET", f"/v1/why?pod=default/{name}")


def refused(b, name, **more):
    """A pod that waits, and that kube-scheduler has no reason to look at."""
    b.api.create("pods", whole(name, **more))
    b.c.wait_tried(1)
    assert not b.api.get("pods", "default", name)["spec"].get("nodeName")


def told(b):
    """What the advertiser has told the one Node; anew when a heartbeat came
    late."""
    return b.api.list("nodes")[0]["metadata"].get("annotations", {}).get(
        "biga.dev/published")


def bound_soon(b, name, before):
    """Biga has woken it, long before kube-scheduler's own look.  False when
    that looked at once because its Node was told anew since `before`."""
    fleet.wait_bound(b.api, [name])
    by_us = woken(b, name)
    assert by_us or told(b) != before, "something else woke it"
    return by_us


def waits_for_lease(b):
    """What is said of a pod that waits for the end of a lease; None when that
    came before the pod was refused, since the machine stood still."""
    pods = jobs.pairs("slow", CARDS, gpus=0, asks={"exclusive": "true"})
    b.api.create("pods", pods[0])  # the others never come
    fleet.wait_bound(b.api, [pods[0]["metadata"]["name"]])
    b.api.create("pods", whole("later"))
    wait_for("it is tried", lambda: "later" in fleet.bound(b.api) or
             b.c.tried(1), every=0.1)
    said = why(b, "later")
    return said if said.get("leaseEndsInSeconds") else None


def woken_by_lease(t, b):
    """False when the machine stood still, and nothing is known."""
    before, said = told(b), waits_for_lease(b)
    if not said:
        return False
    t.note(said["summary"])
    assert "slow" in said["summary"] and \
        0 < said["leaseEndsInSeconds"] <= LEASE, said
    assert "reasons of its own" not in said["summary"], said
    return bound_soon(b, "later", before)


def lease(t, b):
    with t.check("the end of a lease wakes who waits for it"):
        while not woken_by_lease(t, b):
            b.clear()
        b.audit()
    b.clear()


def awaited(t, b):
    with t.check("while kube-scheduler stands still, why says that it is "
                 "awaited"):
        write(b.file, [{"namespace": "default", "cards": 0}])
        wait_for("the quota holds", lambda: "0" in json.dumps(
            b.read().call("GET", "/v1/policy")["quotas"]), every=0.1)
        refused(b, "poor")
        b.c.scheduler.pause()
        try:
            write(b.file, [])
            wait_for("it is woken", lambda: woken(b, "poor"), every=0.1)

            def told():
                said = why(b, "poor")["summary"]
                assert "was told so" in said and "awaited" in said, said
                return said
            t.note(wait_for("it is said", told))
        finally:
            b.c.scheduler.resume()
        fleet.wait_bound(b.api, ["poor"])
    b.clear()


def woken_by_policy(b, file):
    """As woken_by_lease()."""
    before = told(b)
    write(file, [{"namespace": "default", "cards": 0}])
    wait_for("the quota holds", lambda: "0" in json.dumps(
        b.read().call("GET", "/v1/policy")["quotas"]), every=0.1)
    refused(b, "poor")
    assert "quota" in why(b, "poor")["summary"]
    write(file, [])
    return bound_soon(b, "poor", before)


def policy(t, b, file):
    with t.check("and a quota that is raised"):
        while not woken_by_policy(b, file):
            b.clear()
        b.audit()
    b.clear()


def write(file, quotas):
    with open(file, "w", encoding="utf-8") as f:
        json.dump({"quotas": quotas}, f)


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        file = c.path("policy.json")
        write(file, [])
        lab = Lab(c)
        lab.up(nodes=1, replicas=1, extender=(
            f"--lease={LEASE}s", "--policy=" + file))
        b = Bench(t, c, lab)
        lease(t, b)
        policy(t, b, file)
        b.file = file
        awaited(t, b)
        t.finish()


main()
