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
