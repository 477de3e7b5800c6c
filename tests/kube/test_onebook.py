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


# --- one fault each; returns what it must find --------------------------------
def gpu_in_two_claims(w):
    w.claim("one", ("host1", "gpu", 0))
    w.claim("two", ("host1", "gpu", 0))
    return [onebook.TWICE]


def card_in_two_claims(w):
    w.claim("one", ("host2", "card", 1))
    w.claim("two", ("host2", "card", 1))
    return [onebook.TWICE]


def gpu_in_two_allocations(w):
    w.pod("a", "host1", [], [1])
    w.pod("b", "host1", [], [1])
    return [onebook.TWICE]


def gpu_by_two_drivers(w):
    """The same GPU, which each of two drivers publishes under its name."""
    third = copy.deepcopy(w.slices[1])
    third["spec"]["driver"] = "other.example.com"
    w.slices.append(third)
    w.claim("one", ("host1", "gpu", 0))
    w.claim("two", ("host1", "gpu", 0))["status"]["allocation"]["devices"][
        "results"][0]["driver"] = "other.example.com"
    return [onebook.TWICE]


def gpu_of_another_pod(w):
    w.pod("a", "host1", [], [0])
    w.claim("c", ("host1", "gpu", 0), pod="else")
    return [onebook.BOTH]


def gpu_of_a_pod_that_is_opened(w):
    """Planned, not bound yet, and somebody's claim has it."""
    obj = w.pod("a", "host1", [], [0])
    del obj["spec"]["nodeName"]
    w.claim("c", ("host1", "gpu", 0), pod="else")
    return [onebook.BOTH]


def card_without_claim(w):
    w.pod("a", "host1", [0])
    w.claim("c", ("host1", "card", 0), pod="else")
    return [onebook.BOOK, onebook.BOTH]


def card_by_no_claim(w):
    w.pod("a", "host1", [0])
    return [onebook.BOOK]


def card_of_pods_in_a_claim(w):
    w.slices = World(by_claims=False).slices
    w.claim("c", ("host1", "card", 0), pod="else")
    return [onebook.BOOK]


def cores_of_claims(w):
    w.slices = World(shared=True).slices
    w.claim("one", ("host1", "card", 0), cores=10)
    w.claim("two", ("host1", "card", 0), cores=7)
    return [onebook.OVER]


def cores_of_allocations(w):
    w.slices = World(by_claims=False).slices
    w.pod("a", "host1", [0], role="xpu", cores=10)
    w.pod("b", "host1", [0], role="xpu", cores=7)
    return [onebook.OVER]


def memory_of_annotations(w):
    w.slices = World(by_claims=False).slices
    for name in "ab":
        w.pod(name, "host1", [0], role="service")["metadata"]["annotations"][
            "biga.dev/card-memory-mib"] = str(17 << 10)
    return [onebook.OVER]


def xpu_pods_over_their_claim(w):
    w.slices = World(shared=True).slices
    w.pod("a", "host1", [0], job="ring", claimed=["c"])
    for i in range(2):
        w.pod(f"a-xpu{i}", "host1", [0], job="ring", role="xpu", cores=3)
    w.claim("c", ("host1", "card", 0), pod="a", cores=4)
    return [onebook.OVER]


def exclusive_and_shared(w):
    w.slices = World(by_claims=False).slices
    w.pod("a", "host1", [0], exclusive=True)
    w.pod("b", "host1", [0], role="xpu", cores=1)
    return [onebook.CLOSED]


def gates_partly_open(w):
    w.pod("a", "host1", [0], job="ring", claimed=["c"])
    w.claim("c", ("host1", "card", 0), pod="a")
    w.pod("b", job="ring", pair=1, gate=True)
    return [onebook.PARTLY]


def claim_on_another_node(w):
    w.pod("a", "host2", claimed=["c"])
    w.claim("c", ("host1", "gpu", 0), pod="a")
    return [onebook.ELSEWHERE]


def not_what_was_planned(w):
    w.pod("a", "host1", [0], [0], claimed=["c"])
    w.claim("c", ("host1", "card", 0), ("host1", "gpu", 1), pod="a")
    return [onebook.ELSEWHERE]


def bound_elsewhere(w):
    w.pod("a", "host1", [], [0])["spec"]["nodeName"] = "host2"
    return [onebook.ELSEWHERE]


def no_such_device(w):
    w.claim("c", ("host1", "gpu", 7))
    return [onebook.UNKNOWN]


FAULTS = (gpu_in_two_claims, card_in_two_claims, gpu_in_two_allocations,
          gpu_by_two_drivers, gpu_of_another_pod, gpu_of_a_pod_that_is_opened,
          card_without_claim, card_by_no_claim, card_of_pods_in_a_claim,
          cores_of_claims, cores_of_allocations, memory_of_annotations,
          xpu_pods_over_their_claim, exclusive_and_shared, gates_partly_open,
          claim_on_another_node, not_what_was_planned, bound_elsewhere,
          no_such_device)


def pure(t):
    for number, w in enumerate(sound()):
        t.ok(not w.kinds(), f"nothing is wrong with what is right, {number}",
             str(onebook.judge(w.pods, w.claims, w.slices)))
    for fault in FAULTS:
        w = World()
        wanted = sorted(fault(w))
        t.ok(w.kinds() == wanted, fault.__name__.replace("_", " "),
             f"found {w.kinds()}, not {wanted}")
    w = World()
    gates_partly_open(w)
    t.ok(not w.kinds(settled=False), "gates may be on their way")
    w.pods[1]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:09Z"
    t.ok(not w.kinds(), "who came after the gates opened is no fault")
    w = World()
    w.pod("a", "host1", [0], [0], claimed=["a-c"])["spec"].pop("nodeName")
    w.claim("c", ("host1", "gpu", 0), ("host1", "card", 0), pod="else")
    t.ok(not w.kinds(settled=False) and
         w.kinds() == [onebook.BOTH, onebook.BOTH],
         "what is only planned may go to another's claim first", w.kinds())
    w.pod("a-xpu", "host1", [0], job="a", role="xpu", cores=4)
    w.pods[0]["metadata"]["labels"]["biga.dev/job"] = "a"
    t.ok(onebook.BOTH in w.kinds(settled=False),
         "but no xPU pod goes there before its host pod's claim", w.kinds())
    t.ok(onebook.amount("1.5Gi") == 3 << 29 and onebook.amount("250m") * 4 == 1
         and onebook.amount("1e3") == 1000, "quantities are read")


def allocated(api, name, device):
    """A claim with an allocation that no scheduler has made."""
    api.create("resourceclaims", claims.claim(name, claims.requests(1, 0)))
    api.patch("resourceclaims", "default", name, {"status": {"allocation": {
        "devices": {"results": [{
            "request": "gpu", "driver": gpus.DRIVER, "pool": "host1",
            "device": device}]}}}}, sub="status")


def real(t, api):
    with t.check("it reads a real API server, all of one moment"):
        fleet.add_nodes(api, ["host1"])
        api.create("deviceclasses", gpus.device_class())
        api.create("resourceslices", gpus.slice_of("host1", [
            {"attributes": {gpus.BUS: {"string": f"0000:2{i}:00.0"}}}
            for i in range(2)]))
        allocated(api, "one", "gpu-0")
        onebook.assert_one_book(api)
        allocated(api, "two", "gpu-1")
        onebook.assert_one_book(api)
        allocated(api, "three", "gpu-1")
        assert [f.kind for f in onebook.faults(api)] == [onebook.TWICE], \
            onebook.faults(api)
        try:
            onebook.assert_one_book(api)
        except AssertionError:
            return
        raise RuntimeError("it is not told")


def main():
    t = Checks()
    pure(t)
    with pool.cluster() as c:
        t.on_failure = c.log_ends
        real(t, c.api)
        t.finish()


if __name__ == "__main__":
    main()
