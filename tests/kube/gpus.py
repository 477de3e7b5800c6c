"""A DRA driver of GPUs that has no machine: it publishes those that
biga-advertiser's slices list, as the driver of their vendor would.

    gpus.publish(c.api, nodes=fleet.names("host", 4))

Each device has the standard attributes by which Biga knows where it is,
resource.kubernetes.io/pciBusID and pcieRoot; some drivers say the root alone.
"""
import api as kube
import fleet
from proc import wait_for

DRIVER = CLASS = "gpu.example.com"
BIGA = "xpu.biga.dev"
STANDARD = "resource.kubernetes.io/"
BUS, ROOT = STANDARD + "pciBusID", STANDARD + "pcieRoot"
# what a driver says of where a device is
ALL, ROOT_ALONE, NOTHING = (BUS, ROOT), (ROOT,), ()
MOST = 128  # devices in a ResourceSlice


def newest(slices, driver):
    """Of each pool of a driver the slices of its newest generation."""
    best = {}
    for s in slices:
        if s["spec"]["driver"] != driver:
            continue
        pool = s["spec"]["pool"]
        best.setdefault(pool["name"], {}).setdefault(
            pool["generation"], []).append(s)
    return {name: of[max(of)] for name, of in best.items()}


def devices_of(slices, kind, driver=BIGA):
    """{node: [device]} of a biga.dev/kind in the advertisers' slices."""
    found = {}
    for parts in newest(slices, driver).values():
        node = parts[0]["spec"]["nodeName"]
        found[node] = [
            d for part in sorted(parts, key=lambda s: s["metadata"]["name"])
            for d in part["spec"].get("devices", [])
            if d["attributes"]["biga.dev/kind"]["string"] == kind]
    return found


def device_class(name=CLASS, driver=DRIVER):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {
                "expression": f'device.driver == "{driver}"'}}]}}


def slice_of(node, gpus, said=ALL, rng=None):
    """The ResourceSlice of a node's GPUs, devices gpu-0 and so on.

    gpus: devices of the advertiser's slice; said: attributes of theirs that
    the driver says, beside the model; rng: shuffles them, as a driver does
    that lists them by their UUIDs.
    """
    assert len(gpus) <= MOST, f"{node} has {len(gpus)} GPUs"
    order = list(gpus)
    if rng:
        rng.shuffle(order)
    devices = []
    for number, gpu in enumerate(order):
        has = {"index": {"int": number}}
        if "biga.dev/model" in gpu["attributes"]:
            has["model"] = gpu["attributes"]["biga.dev/model"]
        has.update({name: gpu["attributes"][name] for name in said
                    if name in gpu["attributes"]})
        devices.append({"name": f"gpu-{number}", "attributes": has})
    return {"metadata": {"name": f"{node}-{DRIVER}"},
            "spec": {"driver": DRIVER, "nodeName": node,
                     "pool": {"name": node, "generation": 1,
                              "resourceSliceCount": 1},
                     "devices": devices}}


def add_class(api, obj):
    try:
        return api.create("deviceclasses", obj)
    except kube.ApiError as error:
        if error.status != 409:
            raise
        return None


def publish(api, nodes=None, said=ALL, rng=None):
    """The class, and a slice for each of these nodes; of all that Biga knows
    when not named.  Returns {node: number of GPUs}."""
    add_class(api, device_class())
    known = devices_of(api.list("resourceslices"), "gpu")
    lacks = set(nodes or ()) - known.keys()
    assert not lacks, f"the advertiser has not published {sorted(lacks)[:5]}"
    chosen = {n: known[n] for n in (nodes or sorted(known)) if known[n]}
    fleet.in_parallel(
        lambda obj: api.create("resourceslices", obj),
        [slice_of(node, gpus, said, rng) for node, gpus in chosen.items()])
    return {node: len(gpus) for node, gpus in chosen.items()}


def withdraw(api):
    """As a driver that is uninstalled."""
    mine = [s["metadata"]["name"] for s in api.list("resourceslices")
            if s["spec"]["driver"] == DRIVER]
    fleet.in_parallel(lambda name: api.delete(
        "resourceslices", None, name, missing_ok=True), mine)
    wait_for("the GPU driver's slices are gone", lambda: not any(
        s["spec"]["driver"] == DRIVER for s in api.list("resourceslices")))


def attribute(device, name):
    """The value of one attribute, of whichever type; None when absent."""
    value = device.get("attributes", {}).get(name)
    return next(iter(value.values())) if value else None


def by_name(slices, driver):
    """{(pool, device name): device} of a driver."""
    return {(pool, d["name"]): d
            for pool, parts in newest(slices, driver).items()
            for part in parts for d in part["spec"].get("devices", [])}
