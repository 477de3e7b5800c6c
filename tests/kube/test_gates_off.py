#!/usr/bin/env python3
"""A cluster whose feature gates for taints and shares of devices are off, as
they are before 1.36: the API server leaves these out of what the advertiser
writes, which is no reason to write again."""
import shapes
from check import Checks
from cluster import Cluster
from fleet import Advertiser, add_node, node
from proc import wait_for

OFF = ("DRADeviceTaints", "DRADeviceTaintRules", "DRAConsumableCapacity",
       "DRAFractionalCapacityRange")
NODE = "early"


class Early:
    def __init__(self, c):
        self.api = c.api
        c.api.create("namespaces", {"metadata": {"name": "biga-nodes"}})
        add_node(c.api, node(NODE))
        self.program = Advertiser(
            c.folder, "advertiser", "--server", "kubernetes", "--kubeconfig",
            c.path("admin.kubeconfig"), "--node", NODE, "--boot-id",
            shapes.BOOT, "--hostfile", "dell-r7525-2bf2", "--claims").start()

    def slice(self):
        """The only one, once its Node is told of it."""
        def told():
            self.program.alive()
            found, = [s for s in self.api.list("resourceslices")
                      if not s["metadata"]["name"].endswith("-surplus")]
            said = self.api.get("nodes", None, NODE)["metadata"].get(
                "annotations", {}).get("biga.dev/topology")
            assert said == found["metadata"]["annotations"][
                "biga.dev/content-hash"], said
            return found
        return wait_for("it is published", told)

    def see_it_look(self):
        """A slice that does not belong there is gone: so it has looked at
        all of them since."""
        surplus = self.slice()
        surplus["metadata"] = {"name": NODE + "-surplus"}
        self.api.create("resourceslices", surplus)
        wait_for("the surplus is gone", lambda: not self.api.maybe(
            "resourceslices", None, NODE + "-surplus"))


def main():
    with Cluster() as c:
        t = Checks(c.log_ends)
        c.start(feature_gates={name: False for name in OFF}, controllers=[])
        early = Early(c)
        with t.check("what it can keep is published"):
            found = early.slice()
            for device in found["spec"]["devices"]:
                assert "taints" not in device, device
                assert "allowMultipleAllocations" not in device, device
                for amount in device.get("capacity", {}).values():
                    assert list(amount) == ["value"], amount
            wait_for("the log says so", lambda:
                     "event=slices-cut" in early.program.text())
        with t.check("an edit is seen, and what is left out is no edit"):
            name = found["metadata"]["name"]
            touched = c.api.patch("resourceslices", None, name, {
                "metadata": {"labels": {"example.org/touched": "yes"}}})
            early.see_it_look()
            assert early.slice()["metadata"]["resourceVersion"] == \
                touched["metadata"]["resourceVersion"]
            devices = touched["spec"]["devices"]
            devices[0]["name"] = "foreign"
            c.api.patch("resourceslices", None, name,
                        {"spec": {"devices": devices}})
            wait_for("it is put right", lambda: early.slice()["spec"][
                "devices"][0]["name"] != "foreign")
        with t.check("a new start writes once, and settles"):
            early.program.kill()
            early.program.start()
            wait_for("it says so", lambda: early.program.text().count(
                "event=slices-cut") == 2)
            written = early.slice()["metadata"]["resourceVersion"]
            early.see_it_look()
            assert early.slice()["metadata"]["resourceVersion"] == written
        early.program.stop()
        t.finish()


main()
