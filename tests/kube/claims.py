"""ResourceClaims as DRA's users write them, and pods that have some.

    template = claims.template("pair", claims.requests(gpus=1, card=True))
    pod = claims.pod("a", "pair")
"""
import fleet
import gpus

CARD_CLASS = "xpu.biga.dev"
GATE = "biga.dev/place"
CORES, MEMORY = "biga.dev/cores", "biga.dev/memory"
# arguments of an advertiser whose cards are given by claims
CARDS_BY_CLAIMS = ("--claims",)


def request(name, device_class, count=1, selector=None, cores=None,
            memory_mib=None):
    """One request; cores and memory_mib: a share of a card."""
    exactly = {"deviceClassName": device_class}
    if count != 1:
        exactly.update(allocationMode="ExactCount", count=count)
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    share = {}
    if cores is not None:
        share[CORES] = str(cores)
    if memory_mib is not None:
        share[MEMORY] = f"{memory_mib}Mi"
    if share:
        exactly["capacity"] = {"requests": share}
    return {"name": name, "exactly": exactly}


def requests(n_gpus=1, n_cards=1, cores=None, memory_mib=None, match=None):
    """spec.devices of a claim for GPUs and cards; match: the attribute that
    is to be the same of all, as gpus.ROOT."""
    wanted = []
    if n_gpus:
        wanted.append(request("gpu", gpus.CLASS, n_gpus))
    if n_cards:
        wanted.append(request("card", CARD_CLASS, n_cards, None, cores,
                              memory_mib))
    devices = {"requests": wanted}
    if match:
        devices["constraints"] = [{"requests": [r["name"] for r in wanted],
                                   "matchAttribute": match}]
    return devices


def claim(name, devices, namespace="default"):
    return {"metadata": {"name": name, "namespace": namespace},
            "spec": {"devices": devices}}


def template(name, devices, namespace="default"):
    return {"metadata": {"name": name, "namespace": namespace},
            "spec": {"spec": {"devices": devices}}}


def with_claims(pod, *templates, names=()):
    """The pod with a claim of each of these templates, and these claims that
    exist already; changed in place."""
    spec = pod["spec"]
    given = [{"name": t, "resourceClaimTemplateName": t} for t in templates]
    given += [{"name": n, "resourceClaimName": n} for n in names]
    spec.setdefault("resourceClaims", []).extend(given)
    for container in spec["containers"]:
        container.setdefault("resources", {}).setdefault(
            "claims", []).extend({"name": g["name"]} for g in given)
    return pod


def pod(name, *templates, names=(), namespace="default", requests=None,
        **more):
    """A pod without a role: Kubernetes' own affair."""
    return with_claims(
        fleet.pod(name, namespace, requests=requests or {"cpu": "100m"},
                  **more), *templates, names=names)


def gated(pod, *gates):
    """The pod as the gate door's user writes it; changed in place.  gates:
    others that hold it, too."""
    pod["spec"]["schedulingGates"] = [{"name": g} for g in (GATE, *gates)]
    return pod


def results(obj):
    """[(driver, pool, device, consumed capacity)] of an allocated claim."""
    given = obj.get("status", {}).get("allocation")
    if not given:
        return []
    return [(r["driver"], r["pool"], r["device"],
             r.get("consumedCapacity", {}))
            for r in given.get("devices", {}).get("results", [])]


def of_pod(api, obj):
    """The claims that a pod's status names: [ResourceClaim]."""
    space = obj["metadata"]["namespace"]
    found = []
    for status in obj["status"].get("resourceClaimStatuses", []):
        if status.get("resourceClaimName"):
            got = api.maybe("resourceclaims", space,
                            status["resourceClaimName"])
            if got:
                found.append(got)
    for entry in obj["spec"].get("resourceClaims", []):
        if entry.get("resourceClaimName"):
            got = api.maybe("resourceclaims", space,
                            entry["resourceClaimName"])
            if got:
                found.append(got)
    return found
