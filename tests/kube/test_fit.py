#!/usr/bin/env python3
"""What Biga judges of nodes, and what kube-scheduler with its defaults does:
the same nodes, and the same words.  And the API server lets a pod behind a gate
be pinned as Biga pins it."""
import collections
import json
import os
import random
import re
import subprocess

import fleet
import pool
from check import Checks
from proc import wait_for

PODS = int(os.environ.get("BIGA_FIT_PODS", "60"))
SEED = int(os.environ.get("BIGA_FIT_SEED", "14"))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
GATE = "example.com/wait"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

TAINTS = [{"key": "dedicated", "value": "infra", "effect": "NoSchedule"},
          {"key": "dedicated", "value": "batch", "effect": "NoExecute"},
          {"key": "old", "effect": "NoSchedule"},
          {"key": "busy", "value": "yes", "effect": "PreferNoSchedule"}]


def fleet_of(api):
    """Twelve nodes, hardly two of which say the same."""
    for i, name in enumerate(fleet.names("node", 12)):
        extended = {"ephemeral-storage": f"{20 + i}Gi"}
        if i % 3 == 0:
            extended["nvidia.com/gpu"] = str(2 + i % 4)
        if i % 4 == 1:
            extended["hugepages-2Mi"] = "64Mi"
        labels = {"zone": f"z{i % 3}", "rank": str(i), "empty": ""}
        if i % 2:
            labels["disk"] = "ssd" if i % 4 == 1 else "hdd"
        fleet.add_node(api, fleet.node(
            name, cpu=4 + i % 3 * 4, memory=f"{4 + i % 5 * 4}Gi",
            pods=12 if i % 5 else 2, labels=labels, extended=extended))
        spec = {}
        if i % 4 == 2:
            spec["taints"] = [TAINTS[i // 4 % 3], TAINTS[3]]
        if i == 7:
            spec["taints"] = TAINTS[:2]
        if i == 11:
            spec["unschedulable"] = True
        if spec:
            api.patch("nodes", None, name, {"spec": spec})


# --- pods of any kind --------------------------------------------------------
def requirement(r, key=None):
    key = key or r.choice(["zone", "disk", "rank", "empty", "none",
                           "kubernetes.io/hostname"])
    values = {"zone": ["z0", "z1", "z2"], "disk": ["ssd", "hdd"],
              "rank": [str(i) for i in range(12)], "empty": ["", "x"],
              "none": ["x"],
              "kubernetes.io/hostname": fleet.names("node", 12)}[key]
    how = r.choice(["In", "In", "NotIn", "Exists", "DoesNotExist"])
    if key == "rank" and r.random() < .6:
        return {"key": key, "operator": r.choice(["Gt", "Lt"]),
                "values": [str(r.randrange(1, 11))]}
    some = r.sample(values, r.randint(1, len(values)))
    return {"key": key, "operator": how,
            **({"values": some} if how.endswith("In") else {})}


def term(r):
    found = {"matchExpressions": [requirement(r)
                                  for _ in range(r.randint(1, 2))]}
    if r.random() < .2:
        found["matchFields"] = [{
            "key": "metadata.name", "operator": "NotIn",
            "values": [r.choice(fleet.names("node", 12))]}]
    return found


def toleration(r):
    taint = r.choice(TAINTS + [{"key": "node.kubernetes.io/unschedulable"}])
    found = {"key": taint["key"]}
    if r.random() < .5:
        found["operator"] = "Exists"
    elif taint.get("value"):
        found["value"] = taint["value"]
    if taint.get("effect") and r.random() < .5:
        found["effect"] = taint["effect"]
    return r.choice([found, found, found, {"operator": "Exists"}])


def container(r, name, much):
    asks = {}
    if r.random() < .8:
        asks["cpu"] = r.choice(["100m", "1", "0.7", "3", "9"][:3 + 2 * much])
    if r.random() < .6:
        asks["memory"] = r.choice(["100M", "1Gi", "1500Mi", "9Gi"][:3 + much])
    if r.random() < .3:
        asks["ephemeral-storage"] = r.choice(["1Gi", "15G", "25Gi"])
    if r.random() < .2:
        asks["nvidia.com/gpu"] = str(r.randint(1, 3))
    if r.random() < .05:
        asks["example.com/none"] = "1"
    if r.random() < .1 and "cpu" in asks:
        asks["hugepages-2Mi"] = r.choice(["16Mi", "64Mi"])
    hard = {k: v for k, v in asks.items() if "/" in k or "huge" in k}
    return {"name": name, "image": "registry.example/none",
            "resources": {"requests": asks, "limits": hard}}


def pod(r, name):
    spec = {"containers": [container(r, f"c{i}", True)
                           for i in range(r.randint(1, 2))]}
    if r.random() < .3:
        spec["initContainers"] = [container(r, "i0", True)]
        if r.random() < .5:
            spec["initContainers"].insert(0, {
                **container(r, "side", False), "restartPolicy": "Always"})
    if r.random() < .2:
        spec["containers"][0]["ports"] = [{
            "containerPort": 80, "hostPort": r.choice([8080, 8081]),
            **({"hostIP": "10.0.0.1"} if r.random() < .3 else {})}]
    if r.random() < .2:
        spec["nodeSelector"] = {"zone": r.choice(["z0", "z1", "z9"])}
    if r.random() < .4:
        spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [
            term(r) for _ in range(r.randint(1, 2))]}}}
        if r.random() < .3:
            spec["affinity"]["nodeAffinity"][
                "preferredDuringSchedulingIgnoredDuringExecution"] = [
                    {"weight": 1, "preference": term(r)}]
    if r.random() < .6:
        spec["tolerations"] = [toleration(r) for _ in range(r.randint(1, 3))]
    if r.random() < .1:
        spec["resources"] = {"requests": {"cpu": "10", "memory": "20Gi"}}
    return {"metadata": {"name": name, "namespace": "default"},
            "spec": {"terminationGracePeriodSeconds": 0, **spec}}


# --- what Biga says ----------------------------------------------------------
class Judge:
    """tests/kube/fit.c, told all that is in the cluster."""

    def __init__(self, api):
        target = os.path.join(os.environ.get("BIGA_BUILD", "build"),
                              "judges", "fit")
        subprocess.run(["make", "-s", target], cwd=ROOT, check=True)
        self.api = api
        self.child = subprocess.Popen(
            [os.path.join(ROOT, target)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)

    def tell(self, *words):
        self.child.stdin.write(" ".join(words) + "\n")
        self.child.stdin.flush()

    def line(self):
        got = self.child.stdout.readline()
        assert got, f"it ended with {self.child.wait()}"
        return got.rstrip("\n")

    def look(self):
        for kind, namespace in (("nodes", None), ("pods", "default")):
            for obj in self.api.list(kind, namespace):
                self.tell(kind[:-1], json.dumps(obj))

    def nodes(self, obj):
        """{node: "ok", or what it lacks}, and Biga's line about all."""
        self.look()
        self.tell("judge", json.dumps(obj))
        found = {}
        while "\t" in (line := self.line()):
            node, text = line.split("\t")
            found[node] = text
        assert self.line() == ""
        return found, line

    def pin(self, obj, node):
        self.tell("pin", node, json.dumps(obj))
        return json.loads(self.line())

    def end(self):
        self.child.stdin.close()
        assert self.child.wait() == 0


def counts(text):
    """{reason: nodes} of a line of kube-scheduler's, or of Biga's."""
    text = re.split(r"\. |\.$", text.split("nodes are available: ")[1])[0]
    found = collections.Counter()
    for part in text.split(", "):
        n, reason = part.split(" ", 1)
        found[re.sub(r" \{.*\}", "", reason)] += int(n)
    return found


# --- what kube-scheduler does -------------------------------------------------
def outcome(api, name):
    """(node, None), or (None, why not), once it has looked."""
    def looked():
        obj = api.get("pods", "default", name)
        if obj["spec"].get("nodeName"):
            return obj["spec"]["nodeName"], None
        for c in obj["status"].get("conditions", []):
            if c["type"] == "PodScheduled" and \
                    c["reason"] == "Unschedulable":
                return None, c["message"]
        raise AssertionError(f"{name}: kube-scheduler has not looked yet")
    return wait_for("kube-scheduler looks", looked, every=0.05)


def drop(api, name):
    api.delete("pods", "default", name, gracePeriodSeconds=0)


def agree(judge, made, said):
    """One free pod; True when it was bound."""
    fits, line = said
    node, why = outcome(judge.api, made["metadata"]["name"])
    if node:
        assert fits[node] == "ok", f"bound to {node}: {fits[node]}"
        return True
    assert "ok" not in fits.values(), f"{fits}: refused: {why}"
    if "matchFields" not in json.dumps(made["spec"].get("affinity", {})):
        assert counts(why) == counts(line), f"{line}\n{why}"
    return False


def pinned(judge, wanted, node, fits):
    """The same pod behind a gate, pinned to a node and let go."""
    api, name = judge.api, wanted["metadata"]["name"] + "-" + node
    made = api.create("pods", {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**wanted["spec"], "schedulingGates": [{"name": GATE}]}})
    api.patch("pods", "default", name, {"spec": {
        "affinity": judge.pin(made, node), "schedulingGates": None}})
    got, why = outcome(api, name)
    if got:
        assert got == node, f"{name}: bound to {got}"
        assert fits[node] == "ok", f"{name}: bound: {fits[node]}"
    else:
        assert fits[node] != "ok", f"{name}: refused: {why}"
        drop(api, name)
    return bool(got)


def compare(t, judge, r):
    api, n = judge.api, collections.Counter()
    for i in range(PODS):
        wanted = pod(r, f"p{i}")
        fits, line = judge.nodes(wanted)
        for node in r.sample(sorted(fits), 2):
            n["bound to the pin" if pinned(judge, wanted, node, fits)
              else "refused at the pin"] += 1
            fits, line = judge.nodes(wanted)
        made = api.create("pods", wanted)
        if agree(judge, made, (fits, line)):
            n["bound"] += 1
        else:
            n["refused"] += 1
            for reason in counts(line):
                n[reason] += 1
            drop(api, made["metadata"]["name"])
    t.note(", ".join(f"{count} {what}" for what, count in n.most_common()))
    for what in ("bound", "refused", "bound to the pin",
                 "refused at the pin"):
        assert n[what] >= PODS / 20, f"too few were {what}"


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        fleet_of(c.api)
        c.start_scheduler({"apiVersion": "kubescheduler.config.k8s.io/v1",
                           "kind": "KubeSchedulerConfiguration",
                           "clientConnection": {
                               "kubeconfig": c.path("scheduler.kubeconfig")}})
        judge = Judge(c.api)
        with t.check(f"{PODS} pods are judged as kube-scheduler does, and "
                     "pinned"):
            compare(t, judge, random.Random(SEED))
        with t.check("a pod that is pinned already stays so"):
            free = [n for n, text in judge.nodes(fleet.pod("last"))[0].items()
                    if text == "ok"]
            assert len(free) > 1, free
            last = fleet.pod("last", schedulingGates=[{"name": GATE}])
            made = c.api.create("pods", last)
            for node in free[:2]:
                made = c.api.patch("pods", "default", "last", {"spec": {
                    "affinity": judge.pin(made, node)}})
                fits, _ = judge.nodes(made)
                assert [n for n in fits if fits[n] == "ok"] == (
                    free[:1] if node == free[0] else []), fits
            again = judge.pin(made, free[0])
            assert again == made["spec"]["affinity"], again
        judge.end()
        t.finish()


if __name__ == "__main__":
    main()
