"""Pods of all kinds, for both of Biga's doors and for neither, that come and
go at random: what test_gate.py and test_book_storm.py do to a cluster.

Half of the hosts give their cards by claims, and have a driver of GPUs; the
other half gives them by Biga's allocations, and its GPUs are an extended
resource.  One host of each half has an advertiser of its own, and an operator
who drains its cards.
"""
import random
import subprocess
import threading
from http.client import HTTPException

import claims
import fleet
import gates
import gpus
import jobs
from api import ApiError
from proc import wait_for

# name of a ResourceClaimTemplate: what it asks
TEMPLATES = {
    "gpu": claims.requests(1, 0),
    "card": claims.requests(0, 1),
    "share": claims.requests(0, 1, 2, 1024),
    "both": claims.requests(1, 1, 4, 4096),
    "aligned": claims.requests(1, 1, 4, 4096, gpus.ROOT),
}
GATE = {"pair": 20, "host": 10, "job": 12, "service": 6, "closed": 4,
        "claimed": 16, "claimed job": 8, "host claims": 8, "xpu claims": 8}
CLAIMS_CARD = {"host claims": "host", "xpu claims": "xpu"}  # of a pair
EXTENDER = {"pair": 20, "host": 10, "job": 10, "service": 6}
SHAPE = "dell-xe9680-bf3"
OWN = {"own-host": (), "own-open": claims.CARDS_BY_CLAIMS}
PLAIN = {"gpu": 5, "card": 3, "share": 8, "both": 8, "aligned": 5}


def _add_nodes(api, wanted, extended):
    fabric = fleet.leaves(wanted)
    fleet.add_nodes(api, [fleet.node(
        name, 224, labels=fabric[name], extended=extended)
        for name in wanted])


def install(c, alloc, by_claims, stock, replicas=2, qps=1000, lease=5):
    """Biga, with so many hosts of each half, and one more of each with an
    operator; kube-scheduler as it comes, or one that asks Biga."""
    lab = gates.Lab(c).install()
    halves = {"host": alloc, "open": by_claims}
    with_gpus = fleet.names("open", by_claims) + ["own-open"]
    _add_nodes(c.api, fleet.names("host", alloc) + ["own-host"],
               {jobs.GPU: "8"})
    _add_nodes(c.api, with_gpus, None)
    for _ in range(replicas):
        lab.extender(None, "--fresh=90s", "--lease", f"{lease}s")
    for prefix, n in halves.items():
        more = claims.CARDS_BY_CLAIMS if prefix == "open" else ()
        lab.advertise(n, prefix, "--fleet-shapes=" + SHAPE,
                      "--heartbeat=20s", *more, name="fleet-" + prefix)
    for node, more in OWN.items():
        lab.advertiser(node, "--hostfile=" + SHAPE, "--heartbeat=20s",
                       "--actuate=" + c.path("actuate-" + node), *more)
    lab.wait_slices(alloc + by_claims + len(OWN))
    gpus.publish(c.api, with_gpus)
    for name, devices in TEMPLATES.items():
        c.api.create("resourceclaimtemplates",
                     claims.template(name, devices))
    if not stock:
        lab.start_service()
    lab.leader()
    if stock:
        c.start_stock_scheduler(qps)
    else:
        lab.start_scheduler(qps=qps)
    return lab


def _of_role(rng, kind, name):
    """Pods of a kind that state their cards as resources."""
    if kind == "pair":
        return jobs.pairs(name, 1, interleave=rng.random() < 0.5,
                          cores=rng.choice([0, 2, 4]))
    if kind == "closed":
        return jobs.pairs(name, 1, asks={"exclusive": "true"})
    if kind == "job":
        return jobs.pairs(name, rng.randint(2, 5), cpu=4)
    if kind == "service":
        return [fleet.pod(
            name, labels={"biga.dev/role": "service"}, requests={
                "biga.dev/card": 1, "biga.dev/card-cores": rng.randint(1, 3),
                "biga.dev/card-memory-mib": 512})]
    assert kind == "host", kind
    return [jobs.host_pod(name, cores=rng.choice([0, 4]))]


def _claimed(rng, name, size):
    """Host pods whose GPU and card come by a claim."""
    made = []
    for i in range(size):
        labels = {"biga.dev/role": "host", "biga.dev/job": name,
                  "biga.dev/pair": str(i)}
        notes = {"biga.dev/size": str(size)} if size > 1 else {}
        pod = fleet.pod(f"{name}-{i}", labels=labels, annotations=notes,
                        requests={"cpu": "2"})
        made.append(claims.with_claims(pod, rng.choice(["both", "aligned"])))
    return made


def _claimed_pair(rng, name, role):
    """A pair; its pod of this role claims the card, the host pod a GPU."""
    if role == "host":
        xpu = jobs.xpu_pod(name, cores=rng.randint(1, 4), memory_mib=1024)
        return [*_claimed(rng, name, 1), xpu]
    host = claims.with_claims(
        jobs.host_pod(name, gpus=0, cores=0, cpu=2), "gpu")
    labels = {**host["metadata"]["labels"], "biga.dev/role": "xpu"}
    return [host, claims.with_claims(
        fleet.pod(name + "-xpu", labels=labels, runtimeClassName="xpu"),
        "share")]


def group(rng, door, name):
    """Pods that belong together, of one of a door's kinds."""
    kinds = {"gate": GATE, "extender": EXTENDER, "plain": PLAIN}[door]
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    if door == "plain":
        return [claims.pod(name, kind)]
    if kind in ("claimed", "claimed job"):
        size = 1 if kind == "claimed" else rng.randint(2, 4)
        made = _claimed(rng, name, size)
    elif kind in CLAIMS_CARD:
        made = _claimed_pair(rng, name, CLAIMS_CARD[kind])
    else:
        made = _of_role(rng, kind, name)
    return [gates.by_gate(p) for p in made] if door == "gate" else made
