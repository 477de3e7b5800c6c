#!/usr/bin/env python3
"""The gate door: pods wait at Biga's scheduling gate, and a kube-scheduler that
knows nothing of Biga binds them where it has planned them.

    test_gate.py [same_places|claimed]
"""
import json
import os
import sys

import claims
import fleet
import gates
import gpus
import jobs
import onebook
import pool
from check import Checks
from lab import Lab
from proc import wait_for

PAIRS, NODES = 16, 4


def ring():
    return jobs.pairs("ring", PAIRS)


def placed(c, pods):
    """{pod: (role, node, cards, GPUs)} once all of them have a node."""
    fleet.add_pods(c.api, pods)
    nodes = fleet.wait_bound(c.api, [p["metadata"]["name"] for p in pods])
    onebook.assert_one_book(c.api)
    there = c.api.list("pods", "default")
    gates.assert_pairs(there)
    got = gates.allocations(there)
    assert {name: place[1] for name, place in got.items()} == nodes
    return got


def differ(one, other):
    return "\n".join(f"{name}: {one.get(name)}, by the gate "
                     f"{other.get(name)}" for name in sorted(one)
                     if one.get(name) != other.get(name))


def same_places(t):
    """A cluster of its own for each door, as they are equal when new."""
    with pool.cluster() as c:
        t.on_failure = c.log_ends
        with t.check(f"{PAIRS} pairs are bound by the extender"):
            Lab(c).up(nodes=NODES)
            extended = placed(c, ring())
    if t.failed:
        return
    with pool.cluster() as c:
        t.on_failure = c.log_ends
        with t.check(f"{PAIRS} pairs by gates: the same cards, GPUs, nodes"):
            gates.Lab(c).up(nodes=NODES)
            gated = placed(c, [gates.by_gate(p) for p in ring()])
            assert gated == extended, differ(extended, gated)


def claimed_pod(i, size):
    labels = {"biga.dev/role": "host", "biga.dev/job": "ring",
              "biga.dev/pair": str(i)}
    pod = fleet.pod(f"ring-{i}", labels=labels, requests={"cpu": "8"},
                    annotations={"biga.dev/size": str(size),
                                 "biga.dev/align": "pix"})
    return claims.gated(claims.with_claims(pod, "both"))


def claimed(t):
    """GPU and card by claims: kube-scheduler gives what Biga has planned."""
    with pool.cluster() as c:
        t.on_failure = c.log_ends
        with t.check("a job's claims are pinned to GPUs beside their cards"):
            mixed.install(c, 0, NODES, stock=True)
            pods = [claimed_pod(i, PAIRS) for i in range(PAIRS)]
            fleet.add_pods(c.api, pods)
            fleet.wait_bound(c.api, [p["metadata"]["name"] for p in pods])
            onebook.assert_one_book(c.api)
            slices = c.api.list("resourceslices")
            for obj in c.api.list("pods", "default"):
                roots = [gpus.attribute(gpus.by_name(slices, driver)[
                    (where, device)], gpus.ROOT)
                    for one in claims.of_pod(c.api, obj)
                    for driver, where, device, _ in claims.results(one)]
                assert len(roots) == 2 and len(set(roots)) == 1, \
                    f"{obj['metadata']['name']}: {roots}"

TESTS = (same_places, claimed)


def main():
    t = Checks()
    for test in TESTS:
        if not sys.argv[1:] or test.__name__ in sys.argv[1:]:
            test(t)
    t.finish()


if __name__ == "__main__":
    main()
