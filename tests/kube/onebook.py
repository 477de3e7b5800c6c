#!/usr/bin/env python3
"""Who has which device, read from the API server alone: pods with their
annotation biga.dev/allocation, ResourceClaims' status, ResourceSlices.

    onebook.assert_one_book(api)
    tests/kube/onebook.py FOLDER     # of a cluster that tests/kube/up started

It shares no code with Biga and none with the tests that make pods: it goes
by schema/allocation.schema.json, schema/pod.md, schema/slice.md and the API
of resource.k8s.io alone, so that a mistake of theirs is not made here again.

All lists are of one revision of the store, so what it finds was so at one
moment, also while pods come and go.
"""
import json
import sys
from collections import defaultdict, namedtuple
from fractions import Fraction

# what can be wrong; a Fault's kind is one of these
TWICE = "twice"            # one GPU, or a card that is not shared, has two
BOTH = "both"              # in a claim and in the allocation of another
OVER = "over"              # a card's cores or memory
CLOSED = "closed"          # somebody shares an exclusive card
BOOK = "book"              # a card was given through the other book
PARTLY = "partly"          # some gates of a job are open
ELSEWHERE = "elsewhere"    # pod, allocation and claims disagree
UNKNOWN = "unknown"        # a device that nobody publishes
Fault = namedtuple("Fault", "kind text")

CARDS = "xpu.biga.dev"
GATE, ALLOCATION = "biga.dev/place", "biga.dev/allocation"
ROLE, JOB, PAIR = "biga.dev/role", "biga.dev/job", "biga.dev/pair"
CORES, MEMORY = "biga.dev/cores", "biga.dev/memory"
POD_CORES, POD_MEMORY = "biga.dev/card-cores", "biga.dev/card-memory-mib"
SUFFIX = {"": 1, "n": Fraction(1, 10**9), "u": Fraction(1, 10**6),
          "m": Fraction(1, 1000), "k": 10**3, "M": 10**6, "G": 10**9,
          "T": 10**12, "P": 10**15, "E": 10**18, "Ki": 2**10, "Mi": 2**20,
          "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}


def amount(text):
    """A Kubernetes quantity as a number."""
    text = str(text)
    digits = text.rstrip("numkMGTPEi")
    suffix = text[len(digits):]
    return Fraction(digits) * SUFFIX[suffix]


# --- what is published ------------------------------------------------------
class Device:
    """One device of one driver, and which piece of hardware it is."""

    def __init__(self, driver, pool, node, obj):
        self.name = (driver, pool, obj["name"])
        self.driver, self.node = driver, node
        has = obj.get("attributes", {})

        def value(key):
            return next(iter(has[key].values())) if key in has else None
        self.kind = value("biga.dev/kind") if driver == CARDS else None
        pci = value("resource.kubernetes.io/pciBusID") or \
            (value("biga.dev/pciAddress") if driver == CARDS else None)
        # by its address where that is known, the same for all drivers
        self.key = (node, pci.lower()) if pci else self.name
        self.shared = obj.get("allowMultipleAllocations", False)
        self.room = {name: amount(c["value"])
                     for name, c in obj.get("capacity", {}).items()}
        self.by_claims = value("biga.dev/claims") is True
        self.for_pods = any(
            t.get("key") == "biga.dev/allocated" and t.get("value") == "pods"
            for t in obj.get("taints", []))

    def __str__(self):
        return f"{self.node}: {self.name[2]}" + (
            "" if self.driver == CARDS else f" of {self.driver}")


def published(slices):
    """{(driver, pool, device): Device}, of each pool the newest."""
    newest, found = {}, {}
    for s in slices:
        spec = s["spec"]
        at = spec["driver"], spec["pool"]["name"]
        newest[at] = max(newest.get(at, 0), spec["pool"]["generation"])
    for s in slices:
        spec = s["spec"]
        at = spec["driver"], spec["pool"]["name"]
        if spec["pool"]["generation"] == newest[at]:
            for d in spec.get("devices", []):
                made = Device(*at, spec.get("nodeName", ""), d)
                found[made.name] = made
    return found


# --- who has something ------------------------------------------------------
class Pod:
    def __init__(self, obj):
        meta, spec = obj["metadata"], obj.get("spec", {})
        status = obj.get("status", {})
        self.space, self.uid = meta["namespace"], meta["uid"]
        self.who = f"{meta['namespace']}/{meta['name']}"
        self.node = spec.get("nodeName")
        self.created = meta.get("creationTimestamp", "")
        self.over = status.get("phase") in ("Succeeded", "Failed")
        self.gates = {g["name"] for g in spec.get("schedulingGates", [])}
        labels = meta.get("labels", {})
        self.notes = meta.get("annotations", {})
        self.role = labels.get(ROLE)
        text = self.notes.get(ALLOCATION)
        self.got = json.loads(text) if text and not self.over else None
        # what it says of itself; the allocation's word for it is checked
        self.job = labels.get(JOB) or labels.get("batch.kubernetes.io/job-name")
        self.claims = {
            s["resourceClaimName"]
            for s in status.get("resourceClaimStatuses", [])
            if s.get("resourceClaimName")} | {
            c["resourceClaimName"] for c in spec.get("resourceClaims", [])
            if c.get("resourceClaimName")}
        self.opened = min((
            c.get("lastTransitionTime", "")
            for c in status.get("conditions", [])
            if c["type"] == "PodScheduled" and
            c.get("reason") != "SchedulingGated"), default="")
        self.cores = self._stated(spec, POD_CORES)
        self.memory = self._stated(spec, POD_MEMORY) * 2**20

    def _stated(self, spec, name):
        if name in self.notes:
            return amount(self.notes[name])

        def of(container):
            asks = container.get("resources", {})
            return amount(asks.get("requests", {}).get(
                name, asks.get("limits", {}).get(name, 0)))
        beside, most = Fraction(0), Fraction(0)
        for c in spec.get("initContainers", []):
            if c.get("restartPolicy") == "Always":
                beside += of(c)
            else:
                most = max(most, beside + of(c))
        return max(most, beside + sum(map(of, spec.get("containers", []))))

    @property
    def pair(self):
        """Whose card it shares."""
        who = self.got["pod"]
        if who["role"] == "service":
            return self.space, self.who, "service"
        return self.space, who.get("job") or who["name"], who["pair"]


class Claim:
    def __init__(self, obj):
        meta, status = obj["metadata"], obj.get("status", {})
        self.space, self.name = meta["namespace"], meta["name"]
        self.who = f"claim {meta['namespace']}/{meta['name']}"
        self.pods = {o["uid"] for o in meta.get("ownerReferences", [])
                     if o.get("kind") == "Pod"}
        self.pods |= {r["uid"] for r in status.get("reservedFor", [])
                      if r.get("resource") == "pods"}
        given = status.get("allocation") or {}
        self.results = [r for r in given.get("devices", {}).get("results", [])
                        if not r.get("adminAccess")]

    def is_of(self, pod):
        return pod.uid in self.pods or (
            pod.space == self.space and self.name in pod.claims)


def consumed(result):
    """{qualified name: amount} that a result takes of a device."""
    return {name if "/" in name else f"{result['driver']}/{name}": amount(v)
            for name, v in result.get("consumedCapacity", {}).items()}
