"""Biga by its gate door: pods wait at the scheduling gate biga.dev/place, the
leading replica plans them and opens it, and kube-scheduler, as it comes, binds
them.

    lab = gates.Lab(c).up(nodes=16)
    c.api.create("pods", gates.by_gate(jobs.host_pod("a")))
"""
import json

import fleet
import lab
from claims import GATE, gated
from proc import wait_for

# of deploy/kustomize
RIGHTS, POLICY = (f"components/gate/{name}.yaml" for name in ("rbac", "place"))

# what a pod says by annotations where no node has the resource
CARD = ("biga.dev/card", "biga.dev/card-cores", "biga.dev/card-memory-mib")
XPU = "xpu-of-pair"  # the PodTemplate of add_buddy()


class Lab(lab.Lab):
    """Two replicas that may open gates."""

    def __init__(self, cluster, tls=True, policy=False):
        """policy: the API server gates all pods with a role, and moves what
        they request of cards to annotations."""
        super().__init__(cluster, tls)
        self.policy = policy

    def install(self, *more):
        super().install(RIGHTS, *([POLICY] if self.policy else []), *more)
        if self.policy:
            wait_for("the policy is in force", self._gates, every=0.1)
        return self

    def _gates(self):
        probe = fleet.pod("probe", labels={"biga.dev/role": "host"},
                          requests={CARD[0]: 1})
        made = self.c.api.create("pods", probe, dryRun="All")
        return is_shut(made) and CARD[0] in made["metadata"]["annotations"]

    def up(self, nodes=16, **more):
        """With a kube-scheduler that does not know of them."""
        return super().up(nodes=nodes, stock=True, **more)


def as_annotations(spec, annotations):
    """Move what containers ask of cards into annotations, as the admission
    policy of deploy/ does; both are changed in place."""
    for container in spec["containers"]:
        asks = container.get("resources", {})
        for part in ("requests", "limits"):
            for name in CARD:
                value = asks.get(part, {}).pop(name, None)
                if value is not None:
                    annotations[name] = str(value)


def by_gate(pod):
    """A pod of the extender's door as one of the gate's; changed in place.
    Of one container: amounts are not summed."""
    as_annotations(pod["spec"],
                   pod["metadata"].setdefault("annotations", {}))
    return gated(pod)


def templated(template, role, size, buddy=False):
    """The pod template of a Job whose pods come to the gate; changed in
    place.  Their resources stay for who counts them there: the API server's
    policy moves them when pods are made."""
    meta = template["metadata"]
    meta.setdefault("labels", {})["biga.dev/role"] = role
    notes = meta.setdefault("annotations", {})
    if size > 1:
        notes["biga.dev/size"] = str(size)
    if buddy:
        notes["biga.dev/buddy"] = XPU
    if role == "xpu":
        notes[CARD[0]] = "1"
        template["spec"]["runtimeClassName"] = "xpu"
    template["spec"]["schedulingGates"] = [{"name": GATE}]
    return template


def add_buddy(api, cores=4):
    """The PodTemplate of the xPU pods that Biga makes for host pods."""
    made = fleet.pod(XPU, requests={"cpu": "100m"}, runtimeClassName="xpu")
    api.create("podtemplates", {
        "metadata": {"name": XPU, "namespace": "default"},
        "template": {"metadata": {
            "labels": {"biga.dev/role": "xpu"},
            "annotations": {CARD[0]: "1", CARD[1]: str(cores),
                            CARD[2]: "1024"}}, "spec": made["spec"]}})


def is_shut(pod):
    return any(g["name"] == GATE
               for g in pod["spec"].get("schedulingGates", []))


def allocations(pods):
    """{pod name: (role, node, card ids, GPU ids)} of those that have one."""
    found = {}
    for p in pods:
        text = fleet.allocation(p)
        if text:
            got = json.loads(text)
            found[p["metadata"]["name"]] = (
                got["pod"]["role"], got["node"],
                tuple(sorted(c["id"] for c in got["cards"])),
                tuple(sorted(g["id"] for g in got["gpus"])))
    return found


def assert_pairs(pods):
    """Host and xPU pod of each pair are on one node and share their cards;
    these are pods with an allocation each."""
    pairs = {}
    for p in pods:
        got = json.loads(fleet.allocation(p))
        who = got["pod"]
        pairs.setdefault((who["job"], who["pair"]), []).append(
            (p["spec"].get("nodeName"), frozenset(
                c["id"] for c in got["cards"])))
    for pair, members in pairs.items():
        assert len(set(members)) == 1 and len(members) > 1, \
            f"{pair}: {members}"
