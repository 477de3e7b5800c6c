#!/usr/bin/env python3
"""The control plane comes up, and takes every ResourceSlice that we write."""
import copy
import json
import os
import re

import shapes
from api import ApiError
from check import Checks, Skip
from cluster import Cluster
from fleet import Extender, add_node, node, pod, program, wait_bound


def node_name(shape):
    return "n-" + re.sub("[^a-z0-9]+", "-", shape.lower()).strip("-")


def stored(api, items):
    """Create them, read them back, compare; the slices that came back."""
    back = []
    for item in items:
        name = item["metadata"]["name"]
        api.create("resourceslices", item)
        got = api.get("resourceslices", None, name)
        want = item["spec"]
        spec = shapes.timeless(got["spec"])
        assert spec == want, (f"{name} came back changed: "
                              + json.dumps(differences(want, spec))[:600])
        for key, value in item["metadata"]["annotations"].items():
            assert got["metadata"]["annotations"][key] == value, key
        back.append(got)
    return back


def differences(a, b, where="spec"):
    if isinstance(a, dict) and isinstance(b, dict):
        return [d for k in sorted(a.keys() | b.keys())
                for d in differences(a.get(k), b.get(k), f"{where}.{k}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [d for i, (x, y) in enumerate(zip(a, b))
                for d in differences(x, y, f"{where}[{i}]")]
    return [] if a == b else [f"{where}: {a!r} became {b!r}"]


def all_stored(api, hosts, prefix="", more=()):
    """Try every host of {name: arguments}; how many slices there were."""
    bad, n = [], 0
    for shape, how in hosts.items():
        try:
            items = shapes.slices(node_name(prefix + shape), *how, *more)
            stored(api, items)
            n += len(items)
        except (ApiError, AssertionError, RuntimeError) as error:
            bad.append(f"{shape}: {error}")
    assert not bad, f"{len(bad)} of {len(hosts)} hosts:\n" + "\n".join(bad)
    return n


def refused(api, what, change, want):
    """A slice that was fine is refused after change(slice)."""
    item = copy.deepcopy(what)
    item["metadata"]["name"] += "-bad"
    change(item)
    try:
        api.create("resourceslices", item)
    except ApiError as error:
        assert error.status == 422 and want in str(error), error
    else:
        raise AssertionError(f"it was accepted; wanted {want!r}")


def double_device(item):
    item["spec"]["devices"].append(item["spec"]["devices"][0])


def long_text(item):
    item["spec"]["devices"][0]["attributes"]["biga.dev/model"] = {
        "string": "x" * 65}


def no_room(item):
    one = item["spec"]["devices"][0]
    item["spec"]["devices"] = [{**one, "name": f"d{i}"} for i in range(65)]


def published(c, items):
    """Our own reader takes what the API server made of a pool."""
    extender = Extender(c.folder, "extender").start()
    try:
        extender.wait_up()
        to = extender.api("publish")
        for item in items:
            to.update("resourceslices", item)
        listed = to.list("resourceslices")
        assert len(listed) == len(items), [
            s["metadata"]["name"] for s in listed]
        assert {s["metadata"]["name"]: s["spec"]["devices"] for s in listed} \
            == {s["metadata"]["name"]: s["spec"]["devices"] for s in items}
    finally:
        extender.stop()


def main():
    with Cluster() as c:
        t = Checks(c.log_ends)
        t.note(f"biga-advertiser: {program('biga-advertiser')}")
        with t.check("the control plane comes up"):
            c.start()
            c.start_scheduler()
        if t.failed:
            t.finish()

        with t.check("every shape that we ship is accepted and comes back"):
            t.note(f"{all_stored(c.api, shapes.shipped())} slices")
        with t.check("and so it is where claims get the cards"):
            n = all_stored(c.api, shapes.shipped(), "by-", ["--claims"])
            t.note(f"{n} slices")

        big = shapes.crowded(c.path("crowded.host"), 300)
        back = []
        with t.check("a host of 301 devices is accepted as five slices"):
            back = stored(c.api, shapes.slices("crowded", *big))
            assert len(back) == 5, len(back)
            assert {s["spec"]["pool"]["resourceSliceCount"]
                    for s in back} == {5}
        with t.check("biga-extender reads what the API server gives back"):
            published(c, back)

        with t.check("real machines' topologies are accepted and come back"):
            if not shapes.data_dir():
                raise Skip("neither BIGA_DATA nor ../shared/data is there")
            os.mkdir(c.path("trees"))
            n = all_stored(c.api, shapes.measured(c.path("trees")))
            t.note(f"{n} slices")

        good = shapes.slices("refused", "--hostfile", "nvidia-dgx-h100")[0]
        for name, change, want in (
                ("two devices of one name", double_device, "Duplicate"),
                ("a text of 65 characters", long_text, "64"),
                ("65 devices in a slice", no_room, "64")):
            with t.check(f"{name}: refused by the API server"):
                refused(c.api, good, change, want)

        with t.check("a pod without a card is bound by the scheduler"):
            bind_one(c)
        t.finish()


def bind_one(c):
    add_node(c.api, node("plain"))
    c.api.create("pods", pod("plain", requests={"cpu": 1}))
    wait_bound(c.api, ["plain"])


main()
