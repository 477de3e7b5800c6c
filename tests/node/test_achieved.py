#!/usr/bin/env python3
"""What biga-advertiser tells of what pods really have, under a real kubelet: a
device plugin that always gives the lowest index, CPU manager static and
topology manager none.  What the containers say themselves is the truth: their
environment has what the plugin gave, their /proc/self/status which CPUs they
may use.  Every version of the report is recorded: none says of a pod what it
has never had."""
import contextlib
import http.client
import json
import os
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
import cards  # noqa: E402
import gates  # noqa: E402
from check import Checks  # noqa: E402
from pods import WAIT, pod, sh  # noqa: E402
from proc import wait_for  # noqa: E402

PLUGIN = os.path.join(cards.BUILD, "judges", "deviceplugin")
ADVERTISER = os.path.join(cards.BUILD, "biga-advertiser")
COMPONENT = os.path.join(cards.ROOT, "deploy/kustomize/components/claims")
KUBELET = "/var/lib/kubelet"
RESOURCE = "example.org/gpu"
GPUS = [f"0000:{bus:02x}:00.0" for bus in range(0x1b, 0x23)]
CARDS = {"card-0000-17-00": "0000:17:00.0", "card-0000-18-00": "0000:18:00.0"}
MANY = 60 if os.environ.get("NODE_FULL") else 16  # pods that come and go
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
    "metadata": {"name": "card", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [{
        "name": "whole", "exactly": {"deviceClassName": "xpu.biga.dev"}}]}}}}


def cpus_of(text):
    """"0-2,5" as a set."""
    found = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def host_file(n_cpus):
    """A host with this machine's CPUs, each half a NUMA node of its own, and
    GPUs and cards that it does not have."""
    lines, half = [], n_cpus // 2
    for node, (first, end) in enumerate(((0, half), (half, n_cpus))):
        lines += [f"package {node}",
                  f"  numa {node} cpus={end - first} "
                  f"cpu-list={first}-{end - 1} memory=16GiB"
                  if end - first > 1 else
                  f"  numa {node} cpus=1 cpu-list={first} memory=16GiB",
                  f"    root 000{node}:00"]
        for i, addr in enumerate(GPUS):
            if i % 2 == node:
                lines += [f"      bridge 000{node}:00:{i + 1:02x}.0",
                          f"        gpu {addr} id=10de:2330"]
        lines += [f"      bridge 000{node}:00:1f.0",
                  f"        card {list(CARDS.values())[node]} id=15b3:a2dc "
                  "arch=arm64"]
    return "\n".join(lines) + "\n"


class Told:
    """Every version of the ConfigMap, as a watch of its own sees it."""

    def __init__(self, api):
        self.api, self.versions, self.over = api, [], False
        self.lock = threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            for kind, obj in self.api.watch(
                    "configmaps", "biga-nodes", timeout=3600,
                    labelSelector="biga.dev/report=achieved"):
                with self.lock:
                    self.versions.append((kind, obj))
        self.over = True

    def all(self):
        """The reports, in order, None for one that is gone."""
        assert not self.over, "nobody watches any more"
        with self.lock:
            return [None if kind == "DELETED" else
                    json.loads(obj["data"]["report"])
                    for kind, obj in self.versions]

    def has(self, name):
        """Whether the last one that it has seen tells of that pod."""
        last = (self.all() or [None])[-1]
        return bool(last) and name in {p["name"] for p in last["pods"]}


class Node:
    """A rig with the plugin and the advertiser on its host."""

    def __init__(self, r):
        self.r, self.n, self.truth, self.processes = r, 0, {}, 0
        self.biga = gates.Lab(r.c).install()
        r.c.kubectl("apply", "-f", os.path.join(COMPONENT, "rbac.yaml"))
        with open(r.rack.host.path("host"), "w", encoding="utf-8") as f:
            f.write(host_file(os.cpu_count()))
        self.config = r.c.account_kubeconfig(
            "biga-system", "biga-advertiser", cards.NODE, name="advertiser")
        self.plugin = r.on_host("plugin", [PLUGIN, KUBELET, RESOURCE, *GPUS])
        self.process = None
        self.told = Told(r.c.api)

    def advertise(self, *more):
        """From now on, and nobody else does."""
        if self.process:
            self.process.stop()
        self.processes += 1
        self.process = self.r.on_host(f"advertiser{self.processes}", [
            ADVERTISER, "--server=kubernetes", "--kubeconfig=" + self.config,
            "--timeout=60s", "--node=" + cards.NODE,
            "--hostfile=" + self.r.rack.host.path("host"), "--withdraw=false",
            *more])
        self.process.start()

    def start(self, *more):
        self.plugin.start()
        self.advertise(*more)
        wait_for("the kubelet has the plugin's devices",
                 lambda: self.status()[1])
        self.r.c.apply([TEMPLATE])

    def status(self):
        """When the kubelet told of its node last, and whether that has all
        of the plugin's devices."""
        found = self.r.c.api.get("nodes", None, cards.NODE)["status"]
        when, = [c["lastHeartbeatTime"] for c in found["conditions"]
                 if c["type"] == "Ready"]
        return when, found["allocatable"].get(RESOURCE) == str(len(GPUS))

    def restart_kubelet(self):
        """It has the plugin's devices again: a pod that comes before that
        and wants some fails."""
        self.r.kubelet.kill()
        before, _ = self.status()
        self.r.start_kubelet()

        def again():
            when, has = self.status()
            return when != before and has
        wait_for("the new kubelet has the plugin's devices", again)
        self.r.wait_ready()

    def claims(self):
        """What makes an advertiser give its cards by claims."""
        return ("--claims", "--kubelet-dir=" + KUBELET,
                "--cdi-dir=" + self.r.rack.host.path("cdi"))

    # --- pods ----------------------------------------------------------------
    def apply(self, gpus=0, cpus=None, claim=False, **more):
        """One that asks for so many GPUs, CPUs of its own, a card."""
        self.n += 1
        name, limits = f"has-{self.n}", {}
        if gpus:
            limits[RESOURCE] = str(gpus)
        if cpus:
            limits |= {"cpu": str(cpus), "memory": "32Mi"}
        resources = {"limits": limits} if limits else {}
        if claim:
            resources["claims"] = [{"name": "card"}]
            more["resourceClaims"] = [{
                "name": "card", "resourceClaimTemplateName": "card"}]
        self.r.c.apply([pod(name, sh(WAIT, resources=resources), **more)])
        return name

    def ready(self, name):
        """Wait for it, and keep what it says that it has."""
        found = wait_for(f"{name} is ready", lambda: self.r.ready_pod(name))
        given = self.sh(name, "echo $GIVEN").strip()
        self.truth[name] = {
            "uid": found["metadata"]["uid"],
            "gpus": sorted(filter(None, given.split(",")))}
        return name

    def up(self, **asks):
        return self.ready(self.apply(**asks))

    def sh(self, name, script):
        return self.r.c.kubectl("exec", name, "--", "sh", "-c", script)

    def allowed(self, name):
        """The CPUs that it may use, as it sees them itself."""
        return self.sh(name, "grep Cpus_allowed_list /proc/self/status"
                       ).split()[1]

    def gone(self, *names):
        self.r.c.kubectl("delete", "pod", *names)

    # --- what is told --------------------------------------------------------
    def report(self):
        """{pod's name: what is told of it} now, from the API server."""
        found = self.r.c.api.get("configmaps", "biga-nodes", cards.NODE)
        assert found["metadata"]["labels"] == {"biga.dev/report": "achieved"}
        node = self.r.c.api.get("nodes", None, cards.NODE)
        assert [(o["kind"], o["uid"]) for o in
                found["metadata"]["ownerReferences"]] == [
                    ("Node", node["metadata"]["uid"])]
        said = json.loads(found["data"]["report"])
        assert said["node"] == cards.NODE, said
        return {p["name"]: p for p in said["pods"]}

    def wait_told(self, name, **wanted):
        """Until what is told of a pod has these; it."""
        def told():
            found = self.report().get(name)
            assert found and {k: found.get(k) for k in wanted} == wanted, (
                found, wanted)
            return found
        return wait_for(f"{name} is told with {wanted}", told)

    def wait_true(self, *names):
        for name in names:
            self.wait_told(name, **self.truth[name])

    def check_never_wrong(self):
        """No version has ever said of a pod what it has not had."""
        reports = [r for r in self.told.all() if r]
        assert reports
        for said in reports:
            for p in said["pods"]:
                true = self.truth.get(p["name"])
                if p["namespace"] != "default" or not true:
                    continue
                assert p.get("gpus", true["gpus"]) == true["gpus"], (p, true)
                assert p.get("uid", true["uid"]) == true["uid"], (p, true)
        return len(reports)


# --- checks ------------------------------------------------------------------
def test_gpus(t, n):
    with t.check("of each pod the GPUs are told that its container has, the "
                 "lowest that are free"):
        first = n.up(gpus=1)
        second = n.up(gpus=2)
        none = n.up()
        assert n.truth[first]["gpus"] == GPUS[:1], n.truth
        assert n.truth[second]["gpus"] == GPUS[1:3], n.truth
        n.wait_true(first, second, none)
    with t.check("of one that is gone nothing is told"):
        n.gone(first)
        wait_for("it is not told", lambda: first not in n.report())
        n.wait_true(second, none)
        n.gone(second, none)


def test_cpus(t, n):
    every = set(range(os.cpu_count()))
    with t.check("a pod without CPUs of its own has those that are shared"):
        shared = n.up()
        n.wait_told(shared, cpus=n.allowed(shared))
        assert cpus_of(n.allowed(shared)) == every, n.allowed(shared)
        n.wait_told(shared, numa=[0, 1])
    with t.check("one with CPUs of its own has these, on their NUMA node"):
        own = n.up(gpus=1, cpus=1)
        cpu = n.allowed(own)
        assert len(cpus_of(cpu)) == 1, cpu
        node = 0 if int(cpu) < os.cpu_count() // 2 else 1
        n.wait_told(own, cpus=cpu, numa=[node], **n.truth[own])
    with t.check("and the others have what is left, once they have it"):
        wait_for("the kubelet has taken it from the other", lambda: cpus_of(
            n.allowed(shared)) == every - cpus_of(cpu))
        left = n.allowed(shared)
        n.wait_told(shared, cpus=left)
    with t.check("until it is given back"):
        n.gone(own)
        wait_for("the kubelet has given it back", lambda: cpus_of(
            n.allowed(shared)) == every)
        n.wait_told(shared, cpus=n.allowed(shared))
        n.gone(shared)


def test_claims(t, n):
    with t.check("of a pod with a claim its card is told"):
        names = [n.up(claim=True), n.up(claim=True, gpus=1)]
        for name in names:
            status = n.r.pod(name)["status"]["resourceClaimStatuses"][0]
            claim = n.r.c.api.get("resourceclaims", "default",
                                  status["resourceClaimName"])
            device = claim["status"]["allocation"]["devices"]["results"][0][
                "device"]
            n.wait_told(name, cards=[CARDS[device]], **n.truth[name])
        n.gone(*names)


def test_heals(t, n):
    def stays(name, before):
        for said in n.told.all()[before:]:
            assert name in {p["name"] for p in said["pods"]}, said

    with t.check("what is told of a pod stands while its kubelet starts anew"):
        name = n.up(gpus=3)
        n.wait_true(name)
        wait_for("the watch has seen it", lambda: n.told.has(name))
        before = len(n.told.all())
        n.restart_kubelet()
        second = n.up(gpus=1)
        n.wait_true(name, second)
        stays(name, before)
    with t.check("and while the advertiser does"):
        n.process.kill()
        n.process.start()
        third = n.up(gpus=1)
        n.wait_true(name, second, third)
        stays(name, before)
    with t.check("a ConfigMap that was deleted is there again with the next "
                 "change"):
        n.r.c.api.delete("configmaps", "biga-nodes", cards.NODE)
        n.gone(third)
        wait_for("it is there", lambda: third not in n.report())
        n.wait_true(name, second)
        n.gone(name, second)


def test_many(t, n):
    with t.check(f"of {MANY} pods that come and go none is told wrong"):
        names = []
        for i in range(MANY):
            names.append(n.apply(gpus=i % 4))
            if len(names) == 4:
                for name in names:
                    n.ready(name)
                n.wait_true(*names)
                n.gone(*names[:3], "--wait=false")
                names = names[3:]
        if names:
            n.gone(*names)
        t.note(f"{n.check_never_wrong()} reports")


def test_right(t, n):
    with t.check("it may not write another node's"):
        token = n.r.c.api.token_request("biga-system", "biga-advertiser",
                                        node=cards.NODE)
        api = n.r.c.api.as_token(token, n.r.c.ca)
        for name, namespace in (("other", "biga-nodes"),
                                (cards.NODE, "biga-system")):
            status, _, body = api.raw(
                "POST", f"/api/v1/namespaces/{namespace}/configmaps",
                {"metadata": {"name": name}})
            assert status == 403, (status, body)


def static_rig():
    """A kubelet that pins CPUs; ends the test where there can be none."""
    if not os.access(PLUGIN, os.X_OK):
        print(f"there is no {os.path.relpath(PLUGIN, cards.ROOT)}")
        sys.exit(77)
    rig.require()
    return rig.Rig(kubelet={
        "cpuManagerPolicy": "static", "reservedSystemCPUs": "0",
        "topologyManagerPolicy": "none", "cpuManagerReconcilePeriod": "1s"})


def main():
    with static_rig() as r:
        t = Checks(on_failure=r.tail)
        with t.check("the node is ready"):
            r.start()
            n = Node(r)
            n.start(*n.claims())
        for test in (test_gpus, test_cpus, test_claims, test_heals, test_many,
                     test_right):
            if not t.failed:
                test(t, n)
        t.finish()


if __name__ == "__main__":
    main()
