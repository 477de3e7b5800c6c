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

from api import ApiError
from proc import wait_for

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
# The API server's answers when it has no such revision: not any more, not for
# so many who ask, not yet (its cache is behind the store).
NO_SUCH_MOMENT = (410, 429, 504)


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


# --- the reader ---------------------------------------------------------------
class Book:
    def __init__(self, pods, claims, slices):
        self.devices = published(slices)
        self.pods = [Pod(p) for p in pods]
        self.claims = [Claim(c) for c in claims]
        self.faults, self.settled = [], True
        # {hardware: [(Claim, result, Device)]}, {hardware: [Pod]}
        self.in_claims = defaultdict(list)
        self.cards, self.gpus = defaultdict(list), defaultdict(list)
        self.at = {}  # {hardware: Device}, Biga's own where there are two
        for d in self.devices.values():
            if d.key not in self.at or d.driver == CARDS:
                self.at[d.key] = d
        self._enter()

    def say(self, kind, text):
        self.faults.append(Fault(kind, text))

    def _enter(self):
        pools = {name[:2] for name in self.devices}
        for claim in self.claims:
            for r in claim.results:
                name = r["driver"], r["pool"], r["device"]
                if name in self.devices:
                    d = self.devices[name]
                    self.in_claims[d.key].append((claim, r, d))
                elif name[:2] in pools:
                    self.say(UNKNOWN, f"{claim.who} has {name}, which its "
                             "pool has not")
        for pod in self.pods:
            if not pod.got:
                continue
            # an xPU pod's allocation names the GPUs of its host pod, too
            parts = [(c, self.cards) for c in pod.got["cards"]]
            if pod.got["pod"]["role"] == "host":
                parts += [(g, self.gpus) for g in pod.got["gpus"]]
            for device, where in parts:
                name = CARDS, pod.got["node"], device["id"]
                if name in self.devices:
                    where[self.devices[name].key].append(pod)
                elif name[:2] in pools:
                    self.say(UNKNOWN, f"{pod.who} has {device['id']}, which "
                             f"{pod.got['node']} has not")

    def judge(self, settled=True):
        """[Fault]; settled: nothing is on its way, so that gates that are
        partly open stay so, and who is planned has what is planned."""
        self.settled = settled
        for key in {*self.in_claims, *self.cards, *self.gpus}:
            self._device(key)
        for pod in self.pods:
            self._agrees(pod)
        if settled:
            self._gates()
        return self.faults

    def _device(self, key):
        d = self.at[key]
        claims = {id(c): c for c, *_ in self.in_claims[key]}.values()
        shared = all(dev.shared for *_, dev in self.in_claims[key])
        if len(self.in_claims[key]) > 1 and not shared:
            self.say(TWICE, f"{d} is in " + " and in ".join(
                c.who for c, *_ in self.in_claims[key]))
        for pod in self.gpus[key]:
            self._against(pod, claims, d)
        if len({p.uid for p in self.gpus[key]}) > 1:
            self.say(TWICE, f"{d} is in the allocations of " + " and ".join(
                p.who for p in self.gpus[key]))
        if self.cards[key] or d.kind == "card":
            self._card(key, d, claims)

    def _planned(self, pod):
        """It has the device only once its claim has: until kube-scheduler
        has looked at it, another's claim may, and it is planned anew."""
        return bool(pod.claims) and not pod.node and not self.settled

    def _may_lose(self, members):
        """The card is a planned claim's yet; nobody goes there before it."""
        return any(map(self._planned, members)) and not any(
            p.got["pod"]["role"] == "xpu" and not p.claims for p in members)

    def _against(self, pod, claims, d):
        if self._planned(pod):
            return
        for claim in claims:
            if not claim.is_of(pod):
                self.say(BOTH, f"{d} is in {claim.who} and in the allocation "
                         f"of {pod.who}")

    def _card(self, key, d, claims):
        pairs = defaultdict(list)
        for pod in self.cards[key]:
            pairs[pod.pair].append(pod)
        mates = {pair: {id(c) for c in claims if any(
            c.is_of(p) for p in members)} for pair, members in pairs.items()}
        for pair, members in pairs.items():
            for claim in claims:
                if not mates[pair] and not self._may_lose(members):
                    self.say(BOTH, f"{d} is in {claim.who} and in the "
                             f"allocation of {members[0].who}, which has no "
                             "claim of it")
            # kube-scheduler allocates the claims of a pod when it binds it
            comes = any(p.claims and not p.node for p in members)
            if d.by_claims and not mates[pair] and not comes:
                self.say(BOOK, f"{d} is given by claims, and {members[0].who} "
                         "has it without one")
        if d.for_pods and claims:
            self.say(BOOK, f"{d} is given by allocations, and "
                     f"{next(iter(claims)).who} has it")
        self._room(key, d, pairs, mates)
        users = len(pairs) + len([
            c for c in claims if not any(id(c) in m for m in mates.values())])
        alone = [p.who for p in self.cards[key] if p.got["need"]["exclusive"]]
        if alone and users > 1:
            self.say(CLOSED, f"{d} is exclusively {alone[0]}'s, and {users} "
                     "are on it")

    def _room(self, key, d, pairs, mates):
        """What claims and pairs without one take of a card, and what pairs
        take of their claims."""
        takes = defaultdict(Fraction)
        for _, result, _ in self.in_claims[key]:
            for name, n in consumed(result).items():
                takes[name] += n
        for pair, members in pairs.items():
            wants = self._wants(members)
            if not mates[pair]:
                for name, n in wants.items():
                    takes[name] += n
                continue
            holds, whole = defaultdict(Fraction), False
            for claim, result, device in self.in_claims[key]:
                if id(claim) in mates[pair]:
                    whole = whole or not device.shared
                    for name, n in consumed(result).items():
                        holds[name] += n
            for name, n in wants.items():
                if not whole and n > holds[name]:
                    self.say(OVER, f"{d}: pair {pair} takes {n} of {name}, "
                             f"its claims have {holds[name]}")
        for name, n in takes.items():
            if name in d.room and n > d.room[name]:
                self.say(OVER, f"{d}: {n} of {d.room[name]} of {name} are "
                         "given: " + ", ".join(
                             [c.who for c, *_ in self.in_claims[key]] +
                             [p.who for p in self.cards[key]]))

    @staticmethod
    def _wants(members):
        """What a pair takes of each of its cards: its xPU pods' shares, at
        least what its host pod keeps free for them."""
        xpus = [p for p in members if p.got["pod"]["role"] != "host"]
        hosts = [p for p in members if p.got["pod"]["role"] == "host"]
        return {name: max([sum(getattr(p, what) for p in xpus)] +
                          [getattr(p, what) for p in hosts])
                for name, what in ((CORES, "cores"), (MEMORY, "memory"))}

    def _agrees(self, pod):
        if pod.over:
            return
        mine = [(c, r, d) for key in self.in_claims.values()
                for c, r, d in key if c.is_of(pod)]
        if pod.got:
            if pod.got["pod"].get("uid") not in ("", pod.uid):
                self.say(ELSEWHERE, f"{pod.who} has the allocation of uid "
                         f"{pod.got['pod'].get('uid')}")
            if pod.node not in (None, pod.got["node"]):
                self.say(ELSEWHERE, f"{pod.who} is on {pod.node}, its "
                         f"allocation on {pod.got['node']}")
        node = pod.node or (pod.got or {}).get("node")
        planned = {key for key in {*self.cards, *self.gpus} if any(
            p is pod for p in self.cards[key] + self.gpus[key])}
        for claim, _, d in mine:
            if node and d.node and d.node != node:
                self.say(ELSEWHERE, f"{claim.who} of {pod.who} has {d}, the "
                         f"pod is on {node}")
            ours = d.key in self.at and self.at[d.key].driver == CARDS
            if pod.got and ours and d.key not in planned:
                self.say(ELSEWHERE, f"{claim.who} of {pod.who} has {d}, "
                         "which was not planned")

    def _gates(self):
        jobs = defaultdict(list)
        for pod in self.pods:
            if pod.role and pod.job and not pod.over:
                jobs[(pod.space, pod.job)].append(pod)
        for (space, job), members in jobs.items():
            shut = [p for p in members if GATE in p.gates]
            opened = [p for p in members if GATE not in p.gates and p.got]
            # who came after the others were let through is another matter
            late = min((p.opened or "9" for p in opened), default="")
            left = [p for p in shut if p.created < late]
            if opened and left:
                self.say(PARTLY, f"job {space}/{job}: {len(opened)} gates are "
                         f"open, and {len(left)} not, as {left[0].who}'s")


def judge(pods, claims, slices, settled=True):
    """What is wrong with these lists: [Fault]."""
    return Book(pods, claims, slices).judge(settled)


def read(api):
    """(pods, claims, slices), all of one moment."""
    def lists():
        try:
            pods, revision = api.list_with_version("pods")
            same = {"resourceVersion": revision,
                    "resourceVersionMatch": "Exact"}
            return (pods, api.list("resourceclaims", **same),
                    api.list("resourceslices", **same))
        except ApiError as error:
            if error.status in NO_SUCH_MOMENT:
                raise  # and ask again
            return error
    got = wait_for("lists of one moment", lists, every=0.2)
    if isinstance(got, ApiError):
        raise got
    return got


def faults(api, settled=True):
    return judge(*read(api), settled=settled)


def assert_one_book(api, settled=True, ignore=()):
    """Raise with what is wrong; ignore: kinds of faults."""
    bad = [f for f in faults(api, settled) if f.kind not in ignore]
    assert not bad, f"{len(bad)} wrong:\n" + "\n".join(
        f"{f.kind}: {f.text}" for f in bad[:20])


def main():
    from cluster import Cluster
    if len(sys.argv) != 2:
        sys.exit("usage: tests/kube/onebook.py FOLDER")
    found = faults(Cluster.attach(sys.argv[1]).api)
    for fault in found:
        print(f"{fault.kind}: {fault.text}")
    print(f"{len(found)} wrong")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
