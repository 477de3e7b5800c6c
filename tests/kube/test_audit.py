#!/usr/bin/env python3
"""The audit that tests in a cluster rely on sees what is wrong.  Needs no
cluster."""
import copy
import json

import jobs
from check import Checks

NODE = "n0"


class Fake:
    """As much of an Api as audit() asks."""

    def __init__(self, pods):
        self.pods = pods

    def list(self, kind, *_, **__):
        if kind == "pods":
            return self.pods
        room = {"biga.dev/cores": {"value": "8"},
                "biga.dev/memory": {"value": "16Gi"}}

        def device(name):
            what = {"attributes": {"biga.dev/kind": {
                "string": name.split("-")[0]}}, "name": name}
            return {**what, "capacity": room} if "card" in name else what
        return [{"spec": {
            "driver": jobs.DRIVER, "nodeName": node,
            "pool": {"name": node, "generation": 1},
            "devices": [device(d) for d in ("card-0", "card-1", "gpu-0",
                                            "gpu-1")]}}
            for node in (NODE, "n1")]


class Reader:
    def __init__(self, allocations):
        self.allocations = allocations

    def call(self, _, where):
        """Two pages, so that pages count."""
        if "continue" in where:
            return {"items": self.allocations[1:]}
        return {"items": self.allocations[:1], "continue": "x"}


def placed(obj, cards, gpus=(), cores=None, exclusive=False, node=NODE):
    """The pod as it is once it is bound with this allocation."""
    obj = copy.deepcopy(obj)
    meta = obj["metadata"]
    meta["uid"] = "uid-" + meta["name"]
    need = {"cards": 1, "pairCards": 1, "gpus": len(gpus), "align": "SYS",
            "exclusive": exclusive}
    if cores:
        need.update(cores=cores, memoryMiB=1024)
    labels = meta["labels"]
    meta["annotations"]["biga.dev/allocation"] = json.dumps({
        "pod": {"namespace": meta["namespace"], "name": meta["name"],
                "uid": meta["uid"], "role": labels["biga.dev/role"],
                "job": labels["biga.dev/job"],
                "pair": int(labels["biga.dev/pair"]), "size": 1,
                "priority": 0},
        "node": node, "cards": [{"id": c} for c in cards],
        "gpus": [{"id": g} for g in gpus], "numa": 0, "relation": "PIX",
        "epoch": {"generation": 1}, "number": 1, "need": need})
    obj["spec"]["nodeName"] = node
    obj["status"] = {"phase": "Pending"}
    return obj


def good():
    """Two pairs, of 4 cores each, on one card."""
    return [placed(jobs.host_pod("a"), ["card-0"], ["gpu-0"], 4),
            placed(jobs.xpu_pod("a"), ["card-0"], cores=4),
            placed(jobs.host_pod("b"), ["card-0"], ["gpu-1"], 4),
            placed(jobs.xpu_pod("b"), ["card-0"], cores=4)]


def told(pods):
    return [json.loads(p["metadata"]["annotations"]["biga.dev/allocation"])
            for p in pods]


def change(pod, **more):
    """Change a pod's allocation."""
    notes = pod["metadata"]["annotations"]
    notes["biga.dev/allocation"] = json.dumps(
        {**json.loads(notes["biga.dev/allocation"]), **more})


def wrong(t, name, word, break_it):
    with t.check(name):
        pods = good()
        reader = Reader(told(pods))
        break_it(pods, reader)
        bad = jobs.audit(Fake(pods), reader)
        assert [b for b in bad if word in b], f"no {word!r} in {bad}"


def bare(pods, _):
    pods[0]["metadata"]["annotations"] = {}


def reborn(pods, _):
    pods[0]["metadata"]["uid"] = "another"


def third(pods, _):
    pods.append(placed(jobs.xpu_pod("c"), ["card-0"], cores=1))


def closed(pods, _):
    pods[1:] = [placed(jobs.xpu_pod("c"), ["card-0"])]
    change(pods[0], number=2)


def open_to(pods, _):
    """Who asks for no certain room may come to a card last."""
    closed(pods, _)
    change(pods[1], number=3)


def finish(pods, _):
    pods[0]["status"]["phase"] = "Succeeded"


def main():
    t = Checks()
    with t.check("what is right has nothing wrong"):
        assert not jobs.audit(Fake(good()), Reader(told(good()))), \
            jobs.audit(Fake(good()), Reader(told(good())))
    with t.check("an unknown need joins others"):
        pods = good()
        open_to(pods, None)
        assert not jobs.audit(Fake(pods)), jobs.audit(Fake(pods))
    wrong(t, "a bound pod without allocation", "without an allocation", bare)
    wrong(t, "an allocation of another pod of the name", "is of uid", reborn)
    wrong(t, "an allocation of another node", "is on n0, its allocation",
          lambda p, r: change(p[0], node="n1"))
    wrong(t, "a GPU that two pods have", "as has default/a",
          lambda p, r: change(p[2], gpus=[{"id": "gpu-0"}]))
    wrong(t, "a device that the node has not", "which n0 has not",
          lambda p, r: change(p[0], gpus=[{"id": "gpu-9"}]))
    wrong(t, "a card with more than it has", "3 pairs take 9 cores", third)
    wrong(t, "a closed card that is shared", "does not share it", closed)
    wrong(t, "an xPU pod off its host pod's card", "its host pod's are",
          lambda p, r: change(p[1], cards=[{"id": "card-1"}]))

    def part(pods, _):
        pods[1] = placed(jobs.xpu_pod("a"), ["card-0"], cores=4, node="n1")
    wrong(t, "a pair on two nodes", "on several nodes", part)
    wrong(t, "an allocation that the extender has lost",
          "the extender does not", lambda p, r: r.allocations.pop(0))
    wrong(t, "an allocation that the extender has kept", "no pod does",
          finish)
    wrong(t, "another card in the extender", "cards is",
          lambda p, r: r.allocations[0].update(cards=[{"id": "card-1"}]))
    t.finish()


main()
