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


def _is_tied(pods):
    """A pair whose xPU pod claims the card: the gate opens its host pod with
    an affinity to its node, so that no pod of it can be planned anew in place
    (deploy/README.md), and it has no controller."""
    return any(p["metadata"]["labels"].get("biga.dev/role") == "xpu" and
               p["spec"].get("resourceClaims") for p in pods)


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


class Operator:
    """Drains cards of the hosts that have an advertiser of their own, and
    undrains them."""

    def __init__(self, c, rng):
        self.rng, self.drained = rng, set()
        self.cards = [(c.path(f"actuate-{node}", "actuator.sock"), card)
                      for node in OWN
                      for card in self._listed(c, node)]

    @staticmethod
    def _listed(c, node):
        return sorted(d["name"] for d in gpus.devices_of(
            c.api.list("resourceslices"), "card")[node])

    def step(self):
        """One card more, or one less; most of them stay."""
        back = self.rng.random() < len(self.drained) / len(self.cards) * 2
        at = self.rng.choice(sorted(
            self.drained if back else set(self.cards) - self.drained))
        self._turn(at, "undrain" if back else "drain")
        self.drained ^= {at}
        return "undrained a card" if back else "drained a card"

    @staticmethod
    def _turn(at, verb):
        socket, card = at
        said = subprocess.run(
            [fleet.program("biga"), "card", verb, card, "--socket", socket],
            capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr

    def end(self):
        """All are back."""
        while self.drained:
            self._turn(self.drained.pop(), "undrain")


class Mix:
    """Groups of pods that come and go."""

    def __init__(self, c, seed, doors, live):
        """doors: {"gate": weight}; live: groups at a time, about."""
        self.api, self.rng = c.api, random.Random(seed)
        self.operator = Operator(c, self.rng)
        self.doors, self.most = doors, live
        self.live = {}   # name: its pods
        self.made = self.operations = 0
        self.count = {}  # operation: how many
        self.cordoned = None
        self.lock = threading.Lock()

    def call(self, f, *args, **more):
        """A call that is made again while nobody answers it."""
        def answered():
            try:
                return True, f(*args, **more)
            except ApiError as error:
                if error.status in (404, 409):
                    return True, None  # done already, perhaps unheard
                if error.status < 500 and error.status != 429:
                    raise
            except (OSError, HTTPException):
                pass
            return None
        return wait_for("the API server answers", answered, every=0.2)[1]

    def step(self):
        """One operation."""
        self.operations += 1
        full = len(self.live) / self.most
        rare = self.rng.random()
        if rare < 0.02:
            return self._drain()
        if rare < 0.04:
            return self._did(self.operator.step())
        if self.live and self.rng.random() < full / 2:
            return self._delete()
        return self._create()

    def _did(self, what):
        self.count[what] = self.count.get(what, 0) + 1

    def _create(self):
        door = self.rng.choices(list(self.doors), list(
            self.doors.values()))[0]
        name = f"m{self.operations}"
        pods = group(self.rng, door, name)
        self.live[name] = pods
        for obj in pods:
            self.call(self.api.create, "pods", obj)
        self.made += len(pods)
        self._did(f"made by {door}")

    def _delete(self):
        self._end(self.rng.choice(sorted(self.live)))
        self._did("deleted")

    def _end(self, name):
        """Who claims a pair's card goes last, and the claim with it
        (schema/pod.md)."""
        def claims_card(obj):
            return any(c["resourceClaimTemplateName"] != "gpu"
                       for c in obj["spec"].get("resourceClaims", []))
        for obj in sorted(self.live.pop(name), key=claims_card):
            self.call(self.api.delete, "pods", "default",
                      obj["metadata"]["name"], missing_ok=True,
                      gracePeriodSeconds=0)

    def _drain(self):
        """A node takes nobody, and all its pods go; or it is back."""
        if self.cordoned:
            self.call(self.api.patch, "nodes", None, self.cordoned,
                      {"spec": {"unschedulable": None}})
            self.cordoned = None
            self._did("uncordoned")
            return
        nodes = sorted(n["metadata"]["name"]
                       for n in self.call(self.api.list, "nodes") or ())
        if not nodes:
            return
        self.cordoned = self.rng.choice(nodes)
        self.call(self.api.patch, "nodes", None, self.cordoned,
                  {"spec": {"unschedulable": True}})
        there = {p["metadata"]["name"] for p in self.call(
            self.api.list, "pods", "default") or ()
            if p["spec"].get("nodeName") == self.cordoned}
        # jobs and pairs go whole, as their controllers would end them
        for name, pods in list(self.live.items()):
            if there & {p["metadata"]["name"] for p in pods}:
                self._end(name)
        self._did("drained")

    def names(self):
        return {p["metadata"]["name"] for pods in self.live.values()
                for p in pods}

    def _end_overtaken(self, waiting):
        """Groups among the waiting pods that can never have a node, as
        another's claim has what was planned for them."""
        for name, pods in list(self.live.items()):
            if _is_tied(pods) and any(
                    "cannot allocate all claims" in
                    fleet.why_pending(self.api, p["metadata"]["name"])
                    for p in pods if p["metadata"]["name"] in waiting):
                self._end(name)
                self._did("overtaken")

    def settle(self):
        """Until all pods that are left have a node."""
        if self.cordoned:
            self._drain()
        self.operator.end()

        def all_bound():
            there = fleet.bound(self.api)
            self._end_overtaken(self.names() - there.keys())
            waiting = sorted(self.names() - there.keys())
            assert not waiting, f"{len(waiting)} have none, as " + \
                fleet.why_pending(self.api, waiting[0])
            return True
        wait_for("pods get nodes", all_bound, every=0.2)

    def text(self):
        return f"{self.operations} operations, {self.made} pods: " + \
            ", ".join(f"{n} {what}" for what, n in sorted(
                self.count.items()))
