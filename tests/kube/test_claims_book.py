#!/usr/bin/env python3
"""What ResourceClaims have is not planned with: a GPU, a card and a share of
one that kube-scheduler, as it comes, gives to plain pods are seen by the
extender,
also by one that starts later and when the driver's slices come after the
claim; and they are free again when the claim is."""
import claims
import fleet
import gpus
import pool
import shapes
from check import Checks
from lab import Lab
from proc import wait_for
from test_cluster import SHAPE, Beats

NODE = "node1"
CARD_CLASS = "any-card"


def publish(api):
    """A host whose cards DRA gives."""
    for item in shapes.slices(NODE, "--hostfile", SHAPE, "--claims"):
        api.create("resourceslices", item)
    api.create("deviceclasses", {
        "metadata": {"name": CARD_CLASS}, "spec": {"selectors": [{"cel": {
            "expression": f'device.driver == "{gpus.BIGA}" && '
                          'device.attributes["biga.dev"].kind == "card"'}}]}})


def templates(api):
    for name, *how in (("gpu", gpus.CLASS), ("card", CARD_CLASS),
                       ("share", CARD_CLASS, 1, None, 4, 1024)):
        api.create("resourceclaimtemplates", claims.template(
            name, {"requests": [claims.request(name, *how)]}))


def node(read):
    return read.call("GET", "/v1/nodes/" + NODE)


def owner(api, name):
    """The pod that owns a claim."""
    refs = api.get("resourceclaims", "default", name)["metadata"][
        "ownerReferences"]
    return refs[0]["name"]


def held(api, read):
    """{pod: (cards, GPUs)} of the claims that the extender counts."""
    return {owner(api, c["name"]): (tuple(c["cards"]), tuple(c["gpus"]))
            for c in node(read).get("claimList", [])}


def bus(api, name):
    """The PCI address of the GPU that a pod's claim has."""
    claim, = claims.of_pod(api, api.get("pods", "default", name))
    (driver, at, device, _), = claims.results(claim)
    said = gpus.by_name(api.list("resourceslices"), driver)[(at, device)]
    return gpus.attribute(said, gpus.BUS)


def has_gpu(api, read, name):
    """Its id says the address: gpu-0000-1b-00-0."""
    want = "gpu-" + bus(api, name).replace(":", "-").replace(".", "-")
    return held(api, read).get(name) == ((), (want,))


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        lab = Lab(c)
        lab.install()
        fleet.add_nodes(c.api, [NODE])
        beats = Beats(c.api, [NODE])
        publish(c.api)
        n_gpus = gpus.publish(c.api)[NODE]
        templates(c.api)
        c.start_stock_scheduler()
        with t.check("an extender that follows claims"):
            first = lab.extender("first", "--fresh=1m")
            lab.leader()
            read = lab.read_api(first, lab.reader())
            cluster = read.call("GET", "/v1/cluster")
            names = {k["name"] for k in cluster["collections"]}
            assert {"resourceclaims", "deviceclasses", "other-slices",
                    "resourceclaimtemplates"} <= names, names
            assert node(read)["gpus"] == {"total": n_gpus, "free": n_gpus}
        with t.check("a GPU that a plain pod claims is used, and it is that"):
            fleet.add_pods(c.api, [claims.pod("g", "gpu")])
            fleet.wait_bound(c.api, ["g"])
            wait_for("the extender counts it",
                     lambda: has_gpu(c.api, read, "g"))
            assert node(read)["gpus"]["free"] == n_gpus - 1
        with t.check("a card that a plain pod claims is held"):
            fleet.add_pods(c.api, [claims.pod("x", "card")])
            fleet.wait_bound(c.api, ["x"])
            wait_for("the extender counts it",
                     lambda: "x" in held(c.api, read))
            (card,), _ = held(c.api, read)["x"]
            seen = read.call("GET", f"/v1/cards/{NODE}/{card}")
            assert seen["freeCores"] == seen["freeMemoryMiB"] == 0 and \
                len(seen["claims"]) == 1, seen
        with t.check("of a card that is shared the claims' part is taken"):
            fleet.add_pods(c.api, [claims.pod(f"s{i}", "share")
                                   for i in range(2)])
            fleet.wait_bound(c.api, ["s0", "s1"])
            wait_for("the extender counts them",
                     lambda: {"s0", "s1"} <= held(c.api, read).keys())
            used = {held(c.api, read)[name][0] for name in ("s0", "s1")}
            for (card,) in used:
                seen = read.call("GET", f"/v1/cards/{NODE}/{card}")
                taken = 4 * len(seen["claims"])
                assert seen["state"] == "used" and \
                    seen["freeCores"] == seen["cores"] - taken and \
                    seen["freeMemoryMiB"] == \
                    seen["memoryMiB"] - 256 * taken, seen
        with t.check("an extender that starts later sees the same"):
            second = lab.extender("second", "--fresh=1m")
            late = lab.read_api(second, lab.reader())
            wait_for("it counts both", lambda: held(c.api, late) ==
                     held(c.api, read))
        with t.check("a driver that starts anew frees nothing"):
            gpus.withdraw(c.api)
            third = lab.extender("third", "--fresh=1m")
            blind = lab.read_api(third, lab.reader())
            wait_for("one that never saw its slices counts the card",
                     lambda: set(held(c.api, blind)) == {"x", "s0", "s1"})
            assert set(held(c.api, read)) == {"g", "x", "s0", "s1"}
            gpus.publish(c.api)
            wait_for("and the GPU when they come",
                     lambda: has_gpu(c.api, blind, "g"))
        with t.check("what is given back is free"):
            for name in ("g", "x", "s0", "s1"):
                c.api.delete("pods", "default", name)
            wait_for("nothing is held", lambda: not node(read).get(
                "claimList") and node(read)["gpus"]["free"] == n_gpus)
        with t.check("without --claims nothing of it is followed"):
            plain = lab.extender("plain", "--fresh=1m", "--claims=false")
            cluster = lab.read_api(plain, lab.reader()).call(
                "GET", "/v1/cluster")
            names = {k["name"] for k in cluster["collections"]}
            assert "resourceclaims" not in names, names
        beats.stopped.set()
        t.finish()


if __name__ == "__main__":
    main()
