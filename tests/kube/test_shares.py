#!/usr/bin/env python3
"""What kube-scheduler gives to claims of what our slices list, without Biga:
cards by claims, whole and shared, and nothing else."""
import os

import fleet
import jobs
import pool
import shapes
from check import Checks
from cluster import ROOT
from proc import wait_for

SHAPE = ["--hostfile", "dell-r7525-2bf2"]
ANY = "any-of-ours"  # a class that does not look at what it takes


def attribute(device, name, domain="biga.dev"):
    value, = device["attributes"][f"{domain}/{name}"].values()
    return value


def address(device):
    return attribute(device, "pciBusID", "resource.kubernetes.io")


class Claims:
    def __init__(self, c):
        self.api = c.api
        self.devices = {}  # of both nodes
        for node, more in (("given", []), ("claimed", ["--claims"])):
            fleet.add_node(c.api, fleet.node(node))
            for item in shapes.slices(node, *SHAPE, *more):
                c.api.create("resourceslices", item)
                self.devices.setdefault(node, []).extend(
                    item["spec"]["devices"])

    def of_kind(self, node, kind):
        return [d for d in self.devices[node] if attribute(d, "kind") == kind]

    def ask(self, name, device_class=jobs.DRIVER, cel=None, **capacity):
        """A claim, and a pod that uses it."""
        request = {"deviceClassName": device_class}
        if cel:
            request["selectors"] = [{"cel": {"expression": cel}}]
        if capacity:
            request["capacity"] = {"requests": {
                f"biga.dev/{k}": v for k, v in capacity.items()}}
        self.api.create("resourceclaims", {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"devices": {"requests": [
                {"name": "one", "exactly": request}]}}})
        made = fleet.pod(name, requests={"cpu": 1})
        made["spec"]["resourceClaims"] = [{"name": "it",
                                           "resourceClaimName": name}]
        made["spec"]["containers"][0]["resources"]["claims"] = [
            {"name": "it"}]
        self.api.create("pods", made)

    def got(self, name):
        """Where, which device and how much of it, once it is bound."""
        fleet.wait_bound(self.api, [name])
        status = self.api.get("resourceclaims", "default", name)["status"]
        result, = status["allocation"]["devices"]["results"]
        return result["pool"], result["device"], {
            k.split("/")[1]: v
            for k, v in result.get("consumedCapacity", {}).items()}

    def refused(self, name):
        def is_refused():
            said = fleet.why_pending(self.api, name)
            assert "0/2" in said and "cannot allocate all claims" in said, said
            return True
        wait_for(f"{name} is refused", is_refused)


def pin(node, device):
    """As Biga pins a claim to a card of a node; by the class it is one, where
    the class says nothing this does: others have no such attributes."""
    return (f'device.attributes["biga.dev"].kind == "card" && '
            f'device.attributes["biga.dev"].node == "{node}" && '
            f'device.attributes["resource.kubernetes.io"].pciBusID == '
            f'"{address(device)}"')


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        c.kubectl("apply", "-f", os.path.join(
            ROOT, "deploy", "kustomize", "base", "classes.yaml"))
        c.api.create("deviceclasses", {"metadata": {"name": ANY}, "spec": {
            "selectors": [{"cel": {
                "expression": f'device.driver == "{jobs.DRIVER}"'}}]}})
        c.start_scheduler(c.scheduler_config(percentage=100))
        claims = Claims(c)
        cards = claims.of_kind("claimed", "card")
        whole = {k: cards[0]["capacity"][f"biga.dev/{k}"]["value"]
                 for k in ("cores", "memory")}
        part = str(int(whole["cores"]) // 4)

        with t.check("who states nothing gets a whole card by claims"):
            claims.ask("whole", cel=pin("claimed", cards[0]))
            assert claims.got("whole") == ("claimed", cards[0]["name"],
                                           whole), claims.got("whole")
            claims.ask("none-left", cel=pin("claimed", cards[0]), cores="1")
            claims.refused("none-left")
        with t.check("shares of a card add up to it, and no further"):
            for i in range(4):
                claims.ask(f"share-{i}", cel=pin("claimed", cards[1]),
                           cores=part, memory="1Gi")
                assert claims.got(f"share-{i}") == (
                    "claimed", cards[1]["name"],
                    {"cores": part, "memory": "1Gi"}), i
            claims.ask("share-4", cel=pin("claimed", cards[1]), cores="1",
                       memory="1Gi")
            claims.refused("share-4")
        with t.check("a card that Biga gives goes to no claim"):
            for i, device in enumerate(claims.of_kind("given", "card")):
                claims.ask(f"given-{i}", cel=pin("given", device))
                claims.ask(f"given-any-{i}", ANY, pin("given", device))
                claims.refused(f"given-{i}")
                claims.refused(f"given-any-{i}")
        with t.check("what is there for the topology alone goes to no claim"):
            for kind in ("gpu", "nic", "numa"):
                claims.ask(kind, ANY, 'device.attributes["biga.dev"].kind == '
                                      f'"{kind}"')
                claims.refused(kind)
        t.finish()


main()
