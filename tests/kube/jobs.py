"""Jobs of pairs as pods, and an audit of what the pods say they got."""
import json
import urllib.parse
from collections import defaultdict

from api import ApiError
from fleet import allocation, pod

DRIVER = "xpu.biga.dev"
UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
GPU = "nvidia.com/gpu"


def host_pod(job, pair=0, size=1, gpus=1, cpu=8, cores=4, memory_mib=4096,
             namespace="default", asks=None, **spec):
    """The host pod of one pair; asks: annotations biga.dev/… without that.
    gpus of resource claims need an annotation instead: gpus=0."""
    name = f"{job}-{pair}" if size > 1 else job
    requests = {"biga.dev/card": 1}
    if cpu:
        requests["cpu"] = cpu
    if gpus:
        requests[GPU] = gpus
    if cores:
        requests["biga.dev/card-cores"] = cores
        requests["biga.dev/card-memory-mib"] = memory_mib
    return _pair_pod(name, "host", job, pair, size, requests, namespace,
                     asks, spec)


def xpu_pod(job, pair=0, size=1, cores=4, memory_mib=4096,
            namespace="default", asks=None, host=None, **spec):
    """The xPU pod of one pair; host: the host pod's object, its owner."""
    name = f"{job}-{pair}-xpu" if size > 1 else f"{job}-xpu"
    requests = {"biga.dev/card": 1}
    if cores:
        requests["biga.dev/card-cores"] = cores
        requests["biga.dev/card-memory-mib"] = memory_mib
    if host:
        spec["owners"] = [{"apiVersion": "v1", "kind": "Pod",
                           "name": host["metadata"]["name"],
                           "uid": host["metadata"]["uid"]}]
    return _pair_pod(name, "xpu", job, pair, size, requests, namespace,
                     asks, {"runtimeClassName": "xpu", **spec})


def _pair_pod(name, role, job, pair, size, requests, namespace, asks, spec):
    annotations = {"biga.dev/" + k: str(v) for k, v in (asks or {}).items()}
    if size > 1:
        annotations["biga.dev/size"] = str(size)
    return pod(name, namespace,
               {"biga.dev/role": role, "biga.dev/job": job,
                "biga.dev/pair": str(pair)},
               annotations, requests, **spec)


def pairs(job, size, interleave=True, asks=None, gpus=1, cores=4,
          memory_mib=4096, **more):
    """All pods of a job; host and xPU pods in turn, or first all hosts.

    Each xPU pod says with asks gpus and cpus what its host pod has, so that
    it may come first.
    """
    cpu = more.pop("cpu", 8)
    hosts = [host_pod(job, i, size, gpus, cpu, cores, memory_mib, asks=asks,
                      **more) for i in range(size)]
    tells = {"gpus": gpus, "cpus": cpu, **(asks or {})}
    cards = [xpu_pod(job, i, size, cores, memory_mib, asks=tells, **more)
             for i in range(size)]
    if not interleave:
        return hosts + cards
    # every second pair begins with its card
    return [p for i, two in enumerate(zip(hosts, cards))
            for p in (two if i % 2 == 0 else two[::-1])]


def quantity(text):
    """A whole Kubernetes quantity as bytes or a count."""
    for unit, size in UNITS.items():
        if text.endswith(unit):
            return int(text[:-2]) * size
    return int(text)


def devices(api):
    """{(node, device): {"kind", "cores", "memory_mib"}} of what is
    published, of each pool the newest generation."""
    newest, found = {}, {}
    slices = [s for s in api.list("resourceslices")
              if s["spec"]["driver"] == DRIVER]
    for s in slices:
        pool = s["spec"]["pool"]
        newest[pool["name"]] = max(newest.get(pool["name"], 0),
                                   pool["generation"])
    for s in slices:
        pool = s["spec"]["pool"]
        if pool["generation"] < newest[pool["name"]]:
            continue
        for d in s["spec"].get("devices", []):
            room = d.get("capacity", {})
            found[(s["spec"]["nodeName"], d["name"])] = {
                "kind": d["attributes"]["biga.dev/kind"]["string"],
                "cores": quantity(room["biga.dev/cores"]["value"])
                if "biga.dev/cores" in room else 0,
                "memory_mib": quantity(room["biga.dev/memory"]["value"]) >> 20
                if "biga.dev/memory" in room else 0}
    return found


def allocations(api, namespace=None):
    """{(namespace, name): (pod, allocation)} of the pods that have both a
    node and live; allocation: the annotation's object, None when absent."""
    found = {}
    for p in api.list("pods", namespace, labelSelector="biga.dev/role"):
        if not p["spec"].get("nodeName") or \
                p["status"].get("phase") in ("Succeeded", "Failed"):
            continue
        text = allocation(p)
        meta = p["metadata"]
        found[(meta["namespace"], meta["name"])] = (
            p, json.loads(text) if text else None)
    return found


def pair_of(got):
    """Whose cards an allocation shares; a service is on its own."""
    who = got["pod"]
    if who["role"] == "service":
        return who["namespace"], who["name"], "service"
    return who["namespace"], who.get("job") or who["name"], who["pair"]


def audit(api, reader=None, churn=False):
    """What is wrong with what the pods say they have: a list of texts.

    Every bound pod of ours has an allocation, of its node and uid; no GPU has
    two pods; no card holds more than it has; the pods of a pair are on one
    node and on the pair's cards.  With reader, the Api of an extender's read
    listener: its allocations are those of the pods, too.

    churn: pods are deleted out of their pairs, so that who came first to a
    card cannot be told any more.
    """
    bad, there = [], devices(api)
    gpus, cards, whole = {}, defaultdict(lambda: defaultdict(list)), {}
    found = allocations(api)
    for (namespace, name), (p, got) in found.items():
        who = f"{namespace}/{name}"
        if got is None:
            bad.append(f"{who}: bound to {p['spec']['nodeName']} without an "
                       "allocation")
            continue
        node = p["spec"]["nodeName"]
        if got["node"] != node:
            bad.append(f"{who}: is on {node}, its allocation on "
                       f"{got['node']}")
        if got["pod"].get("uid") != p["metadata"]["uid"]:
            bad.append(f"{who}: its allocation is of uid "
                       f"{got['pod'].get('uid')}")
        pair = pair_of(got)
        if got["pod"]["role"] == "host":
            for gpu in got["gpus"]:
                key = (node, gpu["id"])
                if key in gpus:
                    bad.append(f"{who}: has {key}, as has {gpus[key]}")
                gpus[key] = who
        for device in got["cards"] + got["gpus"]:
            if (node, device["id"]) not in there:
                bad.append(f"{who}: has {device['id']}, which {node} has not")
        for card in got["cards"]:
            cards[(node, card["id"])][pair].append(got)
        whole.setdefault(pair, []).append((who, got))
    bad += _pairs(whole) + overfull(cards, there, churn)
    if reader:
        bad += _against(found, reader)
    return bad


def _pairs(whole):
    bad = []
    for pair, members in whole.items():
        if len({got["node"] for _, got in members}) > 1:
            bad.append(f"pair {pair}: on several nodes: " + ", ".join(
                f"{who} on {got['node']}" for who, got in members))
        hosts = [got for _, got in members if got["pod"]["role"] == "host"]
        if hosts:
            owned = {c["id"] for c in hosts[0]["cards"]}
            for who, got in members:
                strange = {c["id"] for c in got["cards"]} - owned
                if strange:
                    bad.append(f"{who}: is on {strange}, its host pod's are "
                               f"{owned}")
    return bad


def overfull(cards, there, churn=False):
    """What the pairs on each card take is no more than it has, and nobody
    came to a card that was closed.

    cards: {(node, card): {pair: [allocation]}}; there: devices().
    """
    bad = []
    for key, users in cards.items():
        cores = memory = 0
        closed = []
        came = {pair: min(got["number"] for got in members)
                for pair, members in users.items()}
        for pair, members in users.items():
            needs = [got["need"] for got in members]
            stated = [n for n in needs if "cores" in n]
            alone = any(n["exclusive"] for n in needs)
            # an unknown need may join others, but not they it
            if alone or not stated and not churn and \
                    came[pair] < max(came.values()):
                closed.append(pair)
            takes = [n for got, n in zip(members, needs)
                     if got["pod"]["role"] != "host" and "cores" in n]
            # what the host pod states is kept free for its xPU pods
            cores += max([sum(n["cores"] for n in takes),
                          *[n["cores"] for n in stated]])
            memory += max([sum(n["memoryMiB"] for n in takes),
                           *[n["memoryMiB"] for n in stated]])
        has = there.get(key)
        if has and (cores > has["cores"] or memory > has["memory_mib"]):
            bad.append(f"card {key}: {len(users)} pairs take {cores} cores, "
                       f"{memory} MiB of {has}: " + told(users))
        if closed and len(users) > 1:
            bad.append(f"card {key}: {closed[0]} does not share it, and "
                       f"{len(users)} are on it: " + told(users))
    return bad


def told(users):
    """Who is on a card, in the order in which it was given."""
    return ", ".join(
        f"{got['number']} {got['pod']['role']} {got['pod']['name']} "
        f"{json.dumps(got['need'])}" for got in sorted(
            (got for members in users.values() for got in members),
            key=lambda got: got["number"]))


def items(reader, where, limit=1000):
    """All items of a list of the read listener, page by page."""
    found, more = [], ""
    while True:
        page = reader.call("GET", f"{where}?limit={limit}{more}")
        found += page["items"]
        if not page.get("continue"):
            return found
        more = "&continue=" + urllib.parse.quote(page["continue"])


def _against(found, reader):
    """The extender's allocations and the pods' annotations are the same."""
    try:
        ours = {(a["pod"]["namespace"], a["pod"]["name"]): a
                for a in items(reader, "/v1/allocations")
                if not a.get("held")}
    except ApiError as error:
        return [f"/v1/allocations: {error}"]
    bad = [f"{key}: the extender has it, no pod does"
           for key in ours.keys() - found.keys()]
    for key, (_, got) in found.items():
        if key not in ours:
            bad.append(f"{key}: the pod has it, the extender does not")
        elif got is not None:
            for field in ("node", "cards", "gpus", "relation"):
                if ours[key][field] != got[field]:
                    bad.append(f"{key}: {field} is {got[field]} on the pod, "
                               f"{ours[key][field]} in the extender")
    return bad
