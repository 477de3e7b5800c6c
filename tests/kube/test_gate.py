#!/usr/bin/env python3
"""The gate door: pods wait at Biga's scheduling gate, and a kube-scheduler that
knows nothing of Biga binds them where it has planned them.

    test_gate.py [same_places|claimed|refused|overtaken|storm…]

$BIGA_SEED repeats the storm's choices; $BIGA_GATE_PODS: its pods (500).
"""
import json
import os
import random
import sys
import threading

import claims
import fleet
import gates
import gpus
import jobs
import mixed
import onebook
import pool
from check import Checks
from lab import Lab
from proc import wait_for

SEED = int(os.environ.get("BIGA_SEED") or random.SystemRandom().randrange(
    1 << 32))
PODS = int(os.environ.get("BIGA_GATE_PODS") or 500)
PAIRS, NODES = 16, 4
HOSTS = 12         # of each half, in the storm
LIVE = 5 * HOSTS


def ring():
    return jobs.pairs("ring", PAIRS)


def placed(c, pods):
    """{pod: (role, node, cards, GPUs)} once all of them have a node."""
    fleet.add_pods(c.api, pods)
    nodes = fleet.wait_bound(c.api, [p["metadata"]["name"] for p in pods])
    onebook.assert_one_book(c.api)
    there = c.api.list("pods", "default")
    gates.assert_pairs(there)
    got = gates.allocations(there)
    assert {name: place[1] for name, place in got.items()} == nodes
    return got


def differ(one, other):
    return "\n".join(f"{name}: {one.get(name)}, by the gate "
                     f"{other.get(name)}" for name in sorted(one)
                     if one.get(name) != other.get(name))


def same_places(t):
    """A cluster of its own for each door, as they are equal when new."""
    with pool.cluster() as c:
        t.on_failure = c.log_ends
        with t.check(f"{PAIRS} pairs are bound by the extender"):
            Lab(c).up(nodes=NODES)
            extended = placed(c, ring())
    if t.failed:
        return
    with pool.cluster() as c:
        t.on_failure = c.log_ends
        with t.check(f"{PAIRS} pairs by gates: the same cards, GPUs, nodes"):
            gates.Lab(c).up(nodes=NODES)
            gated = placed(c, [gates.by_gate(p) for p in ring()])
            assert gated == extended, differ(extended, gated)


def claimed_pod(i, size):
    labels = {"biga.dev/role": "host", "biga.dev/job": "ring",
              "biga.dev/pair": str(i)}
    pod = fleet.pod(f"ring-{i}", labels=labels, requests={"cpu": "8"},
                    annotations={"biga.dev/size": str(size),
                                 "biga.dev/align": "pix"})
    return claims.gated(claims.with_claims(pod, "both"))


def claimed(t):
    """GPU and card by claims: kube-scheduler gives what Biga has planned."""
    with pool.cluster() as c:
        t.on_failure = c.log_ends
        with t.check("a job's claims are pinned to GPUs beside their cards"):
            mixed.install(c, 0, NODES, stock=True)
            pods = [claimed_pod(i, PAIRS) for i in range(PAIRS)]
            fleet.add_pods(c.api, pods)
            fleet.wait_bound(c.api, [p["metadata"]["name"] for p in pods])
            onebook.assert_one_book(c.api)
            slices = c.api.list("resourceslices")
            for obj in c.api.list("pods", "default"):
                roots = [gpus.attribute(gpus.by_name(slices, driver)[
                    (where, device)], gpus.ROOT)
                    for one in claims.of_pod(c.api, obj)
                    for driver, where, device, _ in claims.results(one)]
                assert len(roots) == 2 and len(set(roots)) == 1, \
                    f"{obj['metadata']['name']}: {roots}"


def refuse(c, wait_open):
    """While kube-scheduler is away the pod's gate is opened for a node, which
    then takes nobody; the node.  wait_open(): the pod, once it is open."""
    node = json.loads(wait_open()["metadata"]["annotations"][
        "biga.dev/allocation"])["node"]
    c.api.patch("nodes", None, node, {"spec": {"unschedulable": True}})
    c.start_stock_scheduler(1000)
    return node


def open_pod(c, find):
    def is_open():
        pods = [p for p in c.api.list("pods", "default") if find(p)]
        return pods[0] if pods and not gates.is_shut(pods[0]) and \
            "biga.dev/allocation" in pods[0]["metadata"].get(
                "annotations", {}) else None
    return wait_for("its gate is open", is_open, every=0.1)


def refused(t):
    """What kube-scheduler refuses is planned anew: in place while its claims
    are not allocated, else by its controller."""
    with pool.cluster() as c:
        t.on_failure = c.log_ends
        mixed.install(c, NODES, NODES, stock=True)
        with t.check("a pod with claims is planned anew in place"):
            c.scheduler.kill()
            made = c.api.create("pods", claimed_pod(0, 1))
            name = made["metadata"]["name"]
            node = refuse(c, lambda: open_pod(
                c, lambda p: p["metadata"]["name"] == name))
            there = fleet.wait_bound(c.api, [name])[name]
            assert there != node, node
            got = c.api.get("pods", "default", name)
            assert got["metadata"]["uid"] == made["metadata"]["uid"]
            onebook.assert_one_book(c.api)
        with t.check("a pod without is made anew by its controller"):
            c.scheduler.kill()
            c.api.create("replicasets", replicas())

            def ours(pod):
                return pod["metadata"]["labels"].get("app") == "alone"
            node = refuse(c, lambda: open_pod(c, ours))

            def elsewhere():
                return [p for p in c.api.list("pods", "default") if ours(p)
                        and p["spec"].get("nodeName") not in (None, node)]
            pod, = wait_for("another is bound elsewhere", elsewhere)
            assert gates.allocations([pod])[pod["metadata"]["name"]][1] == \
                pod["spec"]["nodeName"]
            onebook.assert_one_book(c.api)


def wait_pinned(c, name):
    """Until its claims are those that Biga has made, and there are no others:
    what they replace may go after the gate is open."""
    def pinned():
        pod = c.api.get("pods", "default", name)
        there = c.api.list("resourceclaims", "default")
        assert all("biga.dev/pinned" in x["metadata"].get("annotations", {})
                   for x in there), there
        named = {s["resourceClaimName"]
                 for s in pod["status"]["resourceClaimStatuses"]}
        assert {x["metadata"]["name"] for x in there} == named, named
        return True
    wait_for("all its claims are pinned", pinned, every=0.1)


def foreign(node, device):
    """A pod without a role that comes first, and claims this card whole."""
    wanted = {"requests": [claims.request(
        "card", claims.CARD_CLASS, selector=
        f'device.attributes["resource.kubernetes.io"].pciBusID == "{device}"')]}
    other = claims.pod("other", "that-card", priorityClassName="first",
                       nodeSelector={"kubernetes.io/hostname": node})
    return claims.template("that-card", wanted), other


def overtaken(t):
    """Somebody else's claim has the card before kube-scheduler comes to the
    host pod: no xPU pod was let through to that card."""
    with pool.cluster() as c:
        t.on_failure = c.log_ends
        mixed.install(c, 0, NODES, stock=True)
        c.api.create("priorityclasses", {
            "metadata": {"name": "first"}, "value": 1000})
        host = claimed_pod(0, 1)
        name = host["metadata"]["name"]
        xpu = gates.by_gate(jobs.xpu_pod("ring", cores=2, memory_mib=1024))
        with t.check("an xPU pod waits for the claim of its host pod"):
            c.scheduler.kill()
            for obj in (host, xpu):
                c.api.create("pods", obj)
            opened = open_pod(c, lambda p: p["metadata"]["name"] == name)
            got = json.loads(fleet.allocation(opened))
            assert gates.is_shut(c.api.get("pods", "default", "ring-xpu"))
            wait_pinned(c, name)
        if t.failed:
            return
        with t.check("which another's overtakes: both are planned anew"):
            wanted, other = foreign(got["node"], got["cards"][0]["pci"])
            c.api.create("resourceclaimtemplates", wanted)
            c.api.create("pods", other)
            # else kube-scheduler cannot take it before the host pod
            wait_for("its claim is made", lambda: c.api.get(
                "pods", "default", "other")["status"].get(
                    "resourceClaimStatuses"), every=0.1)
            c.start_stock_scheduler(1000)
            on = fleet.wait_bound(c.api, ["other", name, "ring-xpu"])
            assert on["other"] == got["node"], on
            there = c.api.list("pods", "default")
            gates.assert_pairs([p for p in there if fleet.allocation(p)])
            cards = gates.allocations(there)["ring-xpu"][1:3]
            assert cards != (got["node"], (got["cards"][0]["id"],)), cards
            onebook.assert_one_book(c.api)


def replicas():
    pod = gates.by_gate(jobs.host_pod("none"))
    pod["metadata"].pop("name"), pod["metadata"].pop("namespace", None)
    pod["metadata"]["labels"] = {"app": "alone", "biga.dev/role": "host"}
    pod["spec"]["restartPolicy"] = "Always"
    return {"metadata": {"name": "alone", "namespace": "default"},
            "spec": {"replicas": 1,
                     "selector": {"matchLabels": {"app": "alone"}},
                     "template": pod}}


class Storm:
    """Pods come and go, and what they need is killed in turn."""

    def __init__(self, t, c, lab):
        self.t, self.c, self.lab = t, c, lab
        self.mix = mixed.Mix(c, SEED, {"gate": 8, "plain": 2}, LIVE)
        self.failed, self.done = [], threading.Event()

    def kill_leader(self):
        old = self.lab.leader()
        old.kill()
        now = self.lab.leader()
        assert now is not old
        old.start()
        old.wait_up(**self.lab.ca())

    def kill_apiserver(self):
        self.c.apiserver.kill()
        self.c.apiserver.start()
        self.c.wait_ready()

    def kill_scheduler(self):
        self.c.scheduler.kill()
        self.c.start_stock_scheduler(1000)

    def blow(self):
        """Make the pods in a thread; kill and look in this one."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        kills = [self.kill_leader, self.kill_apiserver, self.kill_scheduler]
        at = [PODS * (i + 1) // 4 for i in range(len(kills))]
        looks = 0
        while not self.done.wait(0.5):
            if kills and self.mix.made >= at[-len(kills)]:
                kills.pop(0)()
            onebook.assert_one_book(self.c.api, settled=False)
            looks += 1
        assert not self.failed, self.failed[0]
        for kill in kills:  # the pods were made in no time
            kill()
        self.t.note(f"{self.mix.text()}; {looks} looks")

    def _run(self):
        try:
            while self.mix.made < PODS:
                self.mix.step()
                self._not_too_many()
        except Exception as error:
            self.failed.append(error)
        finally:
            self.done.set()

    def _not_too_many(self):
        """Pods are not made faster than the scheduler comes after."""
        def few():
            waiting = self.mix.call(self.c.api.list, "pods", "default",
                                    fieldSelector="spec.nodeName=")
            return waiting is not None and len(waiting) < LIVE
        wait_for("pods get nodes", few, every=0.1)

    def no_more(self):
        self.c.api.delete_all("pods", "default")
        token = self.lab.reader()
        for extender in self.lab.extenders:
            def nothing(extender=extender):
                left = jobs.items(self.lab.read_api(extender, token),
                                  "/v1/allocations")
                assert not left, f"{extender.name}: {len(left)}, as {left[0]}"
                return True
            wait_for("nothing is promised or held", nothing, every=0.2)
        wait_for("no claim is left", lambda: not self.c.api.list(
            "resourceclaims", "default"), every=0.2)


def storm(t):
    t.note(f"seed {SEED}")
    with pool.cluster() as c:
        t.on_failure = c.log_ends
        s = Storm(t, c, mixed.install(c, HOSTS, HOSTS, stock=True))
        with t.check(f"{PODS} pods while leader, API server and scheduler "
                     "die: nothing is given twice"):
            s.blow()
        if t.failed:
            return
        with t.check("nothing is stuck, and jobs' gates are open"):
            s.mix.settle()
            onebook.assert_one_book(c.api)
            shut = [p["metadata"]["name"] for p in c.api.list(
                "pods", "default") if gates.is_shut(p)]
            assert not shut, shut
        with t.check("all is given back"):
            s.no_more()


TESTS = (same_places, claimed, refused, overtaken, storm)


def main():
    t = Checks()
    for test in TESTS:
        if not sys.argv[1:] or test.__name__ in sys.argv[1:]:
            test(t)
    t.finish()


if __name__ == "__main__":
    main()
