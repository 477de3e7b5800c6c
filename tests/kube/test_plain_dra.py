#!/usr/bin/env python3
"""What plain Dynamic Resource Allocation does with pods of one GPU and one
card, on hosts of four NUMA nodes: with matchAttribute of the PCIe root, and
with no constraint; and what Biga does with the same pods at its gate.  Printed
as a table, for each way of asking the pods that were placed before the first
was refused, how many in the end, and the share whose two devices are below one
PCIe root.  What is judged is only what holds by definition: the reader of
test_onebook.py finds nothing given twice, and matchAttribute and Biga do what
they say.

$BIGA_SEED repeats the order of pods and of GPUs; $BIGA_DRA_PODS: how many
pods of one GPU and one card (200).
"""
import os
import random

import claims
import fleet
import gates
import gpus
import onebook
import pool
import shapes
from api import ApiError
from check import Checks
from proc import wait_for

SEED = int(os.environ.get("BIGA_SEED") or 14)
PAIRS = int(os.environ.get("BIGA_DRA_PODS") or 200)
PER_HOST = shapes.FOUR_NUMA_GPUS
NODES = -(-PAIRS * 11 // (10 * PER_HOST))
# Others ask for a GPU or a card alone, so that what is left of a host is not
# always a GPU beside its card; with them the hosts are full.
SINGLES = NODES * PER_HOST - PAIRS
PAIR, GPU, CARD = "pair", "gpu", "card"


def order(seed=SEED, pairs=PAIRS, singles=SINGLES):
    """What the pods ask for, one after the other."""
    wanted = [PAIR] * pairs + [GPU] * singles + [CARD] * singles
    random.Random(seed).shuffle(wanted)
    return wanted


class Plain:
    """Pods that only Kubernetes places."""

    def __init__(self, name, match=None):
        self.name, self.match, self.aligns = name, match, False

    def template(self, kind):
        """The name of its ResourceClaimTemplate.  What has another content
        has another name: who makes claims may know the one that was there
        before for a while."""
        return "aligned-pair" if kind == PAIR and self.match else kind

    def prepare(self, api):
        """What the pods need, before the first is made."""
        for kind, (n_gpus, n_cards) in {PAIR: (1, 1), GPU: (1, 0),
                                        CARD: (0, 1)}.items():
            match = self.match if kind == PAIR else None
            api.create("resourceclaimtemplates", claims.template(
                self.template(kind),
                claims.requests(n_gpus, n_cards, match=match)))

    def make(self, number, kind):
        """The pods of one request, its host pod first."""
        return [claims.pod(f"p{number:03}", self.template(kind))]

    def refused(self, api, obj):
        """Why this pod has no node yet, or None when nobody has said."""
        for c in obj["status"].get("conditions", []):
            if c["type"] == "PodScheduled" and c["status"] == "False" and \
                    c.get("reason") == "Unschedulable":
                return c.get("message", "it is not said")
        return None


class Gate(Plain):
    """The pods of one GPU and one card come to Biga's gate, with no constraint
    in their claims; those of one device are Kubernetes' own."""

    def __init__(self, name, read):
        super().__init__(name)
        self.read, self.aligns = read, True

    def make(self, number, kind):
        made = super().make(number, kind)
        if kind == PAIR:
            meta = made[0]["metadata"]
            meta["labels"] = {"biga.dev/role": "host"}
            meta["annotations"] = {"biga.dev/align": "phb"}
            claims.gated(made[0])
        return made

    def refused(self, api, obj):
        if not obj["metadata"].get("labels"):
            return super().refused(api, obj)
        try:
            said = self.read.call("GET", "/v1/why?pod=default/" +
                                  obj["metadata"]["name"])
        except ApiError:
            return None  # it has not heard of the pod yet
        return said["note"] if said["state"] == "pending" else None


def answer(api, door, name):
    """Until a pod is bound, or was refused: ("bound", node) or ("refused",
    why)."""
    def said():
        obj = api.get("pods", "default", name)
        if obj["spec"].get("nodeName"):
            return "bound", obj["spec"]["nodeName"]
        why = door.refused(api, obj)
        return ("refused", why) if why else None
    return wait_for(f"{name} is bound or refused", said, every=0.01)


def aligned(api, slices, obj):
    """Whether all devices of a pod's claims are below one PCIe root; None
    when it has fewer than two."""
    roots, n = set(), 0
    for got in claims.of_pod(api, obj):
        for driver, pool_name, device, _ in claims.results(got):
            n += 1
            found = gpus.by_name(slices, driver)[(pool_name, device)]
            roots.add(gpus.attribute(found, gpus.ROOT))
    return None if n < 2 else len(roots) == 1 and None not in roots


def measure(api, door, wanted):
    """One row: pods are made one after the other, each when the one before
    has its answer."""
    door.prepare(api)
    first, placed, why_not = None, [], ""
    for number, kind in enumerate(wanted):
        made = [api.create("pods", p) for p in door.make(number, kind)]
        name = made[0]["metadata"]["name"]
        what, why = answer(api, door, name)
        if what == "bound":
            placed.append(name)
        elif first is None:
            first, why_not = len(placed), why
    # what was refused may have a place since then: the end is what counts
    slices = api.list("resourceslices")
    looked = [aligned(api, slices, obj) for obj in api.list("pods", "default")
              if obj["spec"].get("nodeName")]
    looked = [is_so for is_so in looked if is_so is not None]
    return {"name": door.name, "first": first, "placed": len(placed),
            "of": len(wanted), "pairs": len(looked),
            "aligned": sum(looked), "why": why_not}


def clear(api):
    """Pods, claims and templates of a row are gone."""
    api.delete_all("pods", "default")
    wait_for("pods go", lambda: not api.list("pods", "default"), every=0.1)

    def no_claims():
        left = api.list("resourceclaims", "default")
        for obj in left:
            if not obj["metadata"].get("ownerReferences"):
                api.delete("resourceclaims", "default",
                           obj["metadata"]["name"], missing_ok=True)
        return not left
    wait_for("claims go", no_claims, every=0.1)
    for obj in api.list("resourceclaimtemplates", "default"):
        try:
            api.delete("resourceclaimtemplates", "default",
                       obj["metadata"]["name"])
        except ApiError as error:
            if error.status != 404:
                raise


def table(rows):
    head = f"{'':34}{'before the first':>18}{'in the end':>13}{'aligned':>13}"
    lines = [head]
    for r in rows:
        first = "none refused" if r["first"] is None else str(r["first"])
        share = f"{r['aligned'] / r['pairs']:.1%}" if r["pairs"] else "-"
        lines.append(f"{r['name']:34}{first:>18}"
                     f"{r['placed']:>7} of {r['of']:<3}{share:>12}")
    return "\n".join(lines)


def hosts(c, lab, n=NODES):
    """Hosts of four NUMA nodes with cards and GPUs, published."""
    file = shapes.four_numa(c.path("four-numa.host"))
    names = fleet.names("host", n)
    fleet.add_nodes(c.api, names, cpu=256)
    for name in names:
        lab.advertiser(name, "--hostfile=" + file, *claims.CARDS_BY_CLAIMS)
    lab.wait_slices(n)
    gpus.publish(c.api, names, rng=random.Random(SEED))
    return names


def rows(t, c, doors):
    """The table of these doors, each tried with the same pods on the same
    hosts, which are empty again after it."""
    found, wanted = [], order()
    for door in doors:
        with t.check(f"{door.name}: {len(wanted)} pods, nothing given twice"):
            found.append(measure(c.api, door, wanted))
            onebook.assert_one_book(c.api)
            if door.match or door.aligns:
                assert found[-1]["aligned"] == found[-1]["pairs"], \
                    table(found[-1:])
        clear(c.api)
    t.note(f"{NODES} hosts with {PER_HOST} GPUs and as many cards; {PAIRS} "
           f"pods of one of each, {SINGLES} of one GPU and {SINGLES} of one "
           f"card; seed {SEED}")
    t.note(table(found))
    for row in found:
        if row["why"]:
            t.note(f"{row['name']}: {row['why'][:200]}")
    return found


def plain():
    return [Plain("plain DRA, no constraint"),
            Plain("plain DRA, matchAttribute pcieRoot", gpus.ROOT)]


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        lab = gates.Lab(c).install()
        hosts(c, lab)
        one = lab.extender("one")
        lab.leader()
        c.start_stock_scheduler(qps=1000)
        read = lab.read_api(one, lab.reader())
        rows(t, c, [*plain(), Gate("Biga's gate, align: phb", read)])
        t.finish()


if __name__ == "__main__":
    main()
