#!/usr/bin/env python3
"""The reader of onebook.py finds what it is there to find: for each kind of
fault a cluster that has it, and one beside it that is right.  No Biga runs
here; the last check reads faults from a real API server."""
import copy
import json

import claims
import fleet
import gpus
import onebook
import pool
from check import Checks

TAINT = {"key": "biga.dev/allocated", "value": "pods", "effect": "NoSchedule"}


class World:
    """Lists as the API server has them: nodes with two cards and two GPUs
    each, of which the first ones are below one root."""

    def __init__(self, nodes=2, shared=False, by_claims=True):
        self.pods, self.claims, self.slices = [], [], []
        for n in range(1, nodes + 1):
            self._publish(f"host{n}", shared, by_claims)

    def _publish(self, node, shared, by_claims):
        cards, seen, sold = [], [], []
        for i in range(2):
            pci, other = f"0000:1{i}:00.0", f"0000:2{i}:00.0"
            card = {"name": f"card-0000-1{i}-00", "attributes": {
                        "biga.dev/kind": {"string": "card"},
                        gpus.BUS: {"string": pci}},
                    "capacity": {"biga.dev/cores": {"value": "16"},
                                 "biga.dev/memory": {"value": "32Gi"}}}
            if shared:
                card["allowMultipleAllocations"] = True
            if by_claims:
                card["attributes"]["biga.dev/claims"] = {"bool": True}
            else:
                card["taints"] = [TAINT]
            cards.append(card)
            seen.append({"name": f"gpu-0000-2{i}-00-0", "attributes": {
                "biga.dev/kind": {"string": "gpu"},
                gpus.BUS: {"string": other}}})
            sold.append({"name": f"gpu-{i}", "attributes": {
                gpus.BUS: {"string": other}}})
        for driver, devices in ((onebook.CARDS, cards + seen),
                                (gpus.DRIVER, sold)):
            self.slices.append({"spec": {
                "driver": driver, "nodeName": node, "devices": devices,
                "pool": {"name": node, "generation": 3,
                         "resourceSliceCount": 1}}})

    def pod(self, name, node=None, cards=(), with_gpus=(), job="", pair=0,
            role="host", cores=0, gate=False, claimed=(), created="01",
            opened="05", exclusive=False):
        """A pod; with a node, and cards or GPUs, it has an allocation."""
        labels = {"biga.dev/role": role}
        if job:
            labels.update({"biga.dev/job": job, "biga.dev/pair": str(pair)})
        obj = {"metadata": {
                   "name": name, "namespace": "default", "uid": "u-" + name,
                   "creationTimestamp": f"2026-01-01T00:00:{created}Z",
                   "labels": labels, "annotations": {}},
               "spec": {"containers": [{"name": "c", "resources": {
                   "requests": {"biga.dev/card-cores": str(cores)}
                   if cores else {}}}]},
               "status": {"resourceClaimStatuses": [
                   {"name": c, "resourceClaimName": c} for c in claimed]}}
        if gate:
            obj["spec"]["schedulingGates"] = [{"name": onebook.GATE}]
        elif node:
            obj["spec"]["nodeName"] = node
            obj["status"]["conditions"] = [{
                "type": "PodScheduled", "status": "True",
                "lastTransitionTime": f"2026-01-01T00:00:{opened}Z"}]
        if cards or with_gpus:
            obj["metadata"]["annotations"][onebook.ALLOCATION] = json.dumps({
                "pod": {"namespace": "default", "name": name,
                        "uid": "u-" + name, "role": role, "job": job,
                        "pair": pair, "size": 1, "priority": 0},
                "node": node, "need": {"exclusive": exclusive},
                "cards": [{"id": f"card-0000-1{i}-00"} for i in cards],
                "gpus": [{"id": f"gpu-0000-2{i}-00-0"} for i in with_gpus]})
        self.pods.append(obj)
        return obj

    def claim(self, name, *results, pod=None, admin=False, cores=None):
        """results: (node, "card" or "gpu", number)"""
        found = []
        for node, kind, i in results:
            found.append({
                "request": kind, "pool": node,
                "driver": onebook.CARDS if kind == "card" else gpus.DRIVER,
                "device": f"card-0000-1{i}-00" if kind == "card"
                else f"gpu-{i}"})
            if admin:
                found[-1]["adminAccess"] = True
            if cores is not None and kind == "card":
                found[-1]["consumedCapacity"] = {"biga.dev/cores": str(cores)}
        obj = {"metadata": {"name": name, "namespace": "default"},
               "spec": {}, "status": {"allocation": {
                   "devices": {"results": found}}}}
        if pod:
            obj["status"]["reservedFor"] = [{
                "resource": "pods", "name": pod, "uid": "u-" + pod}]
        self.claims.append(obj)
        return obj

    def kinds(self, settled=True):
        return sorted(f.kind for f in onebook.judge(
            self.pods, self.claims, self.slices, settled))


def sound():
    """A bit of everything, and nothing wrong with it."""
    w = World(shared=True)
    w.pod("a", "host1", [0], [0], job="ring", claimed=["a-c"], cores=4)
    w.pod("a-xpu", "host1", [0], [0], job="ring", role="xpu", cores=4)
    w.claim("a-c", ("host1", "gpu", 0), ("host1", "card", 0), pod="a",
            cores=4)
    w.pod("plain", "host1", claimed=["plain-c"])
    w.claim("plain-c", ("host1", "gpu", 1), ("host1", "card", 0), pod="plain",
            cores=12)
    w.pod("soon", "host2", [1], claimed=["soon-c"])["spec"].pop("nodeName")
    w.claim("soon-c")["status"] = {}
    w.claim("watches", ("host1", "gpu", 0), admin=True)
    w.claim("waits")
    w.pod("done", "host1", [0], [0])["status"]["phase"] = "Succeeded"
    other = World(by_claims=False)
    other.pod("b", "host2", [1], [1], cores=16)
    return w, other
