#!/usr/bin/env python3
"""Cards by ResourceClaims under a real kubelet: biga-advertiser is its plugin.
A pod gets the devices of its card; kill -9 of biga-advertiser at every named
point of preparing and unpreparing, and a kubelet that starts anew: each time
the pod runs, or is gone, nothing was prepared twice and nothing is left.

    test_dra.py [1.6] [kubelet-1.36]    1.6: with the machine's containerd in
                                        any case

Devices come into containers by CDI, which the containerd of Debian 12 (1.6)
does not have: where tests/kube/binaries has built containerd 2 that one runs
the pods (make test-versions builds it), elsewhere the test looks at what the
kubelet was told, and says so.  Needs a biga-advertiser built with -DFAILPOINTS,
in $BIGA_FAILPOINTS_BUILD (default build-fp); `make test-node` builds it."""
import glob
import json
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
import cards  # noqa: E402
import lab  # noqa: E402
from api import ApiError  # noqa: E402
from check import Checks, Skip  # noqa: E402
from pods import WAIT, pod, sh  # noqa: E402
from proc import wait_for  # noqa: E402

PROGRAM = os.path.join(cards.ROOT, os.environ.get(
    "BIGA_FAILPOINTS_BUILD", "build-fp"), "biga-advertiser")
COMPONENT = os.path.join(cards.ROOT, "deploy/kustomize/components/claims")
# stand-ins for a card's device: character devices that no container has
DEVICES = ("/dev/fuse", "/dev/net/tun", "/dev/loop-control")
KUBELET = "/var/lib/kubelet"
FULL = bool(os.environ.get("NODE_FULL"))
HOST = """package 0
  numa 0 cpus=8 memory=16GiB
    root 0000:00
      bridge 0000:00:01.0
        card 0000:17:00.0 id=15b3:a2dc arch=arm64
      bridge 0000:00:02.0
        card 0000:18:00.0 id=15b3:a2dc arch=arm64
"""
ADVERTISER = "system:serviceaccount:biga-system:biga-advertiser"
READS = {"resourceAttributes": {
    "verb": "get", "group": "resource.k8s.io", "resource": "resourceclaims",
    "namespace": "default", "name": "any"}}
CARDS = ("card-0000-17-00", "card-0000-18-00")
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
    "metadata": {"name": "card", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [{
        "name": "whole", "exactly": {"deviceClassName": "xpu.biga.dev"}}]}}}}


def points(prefix="claim-"):
    """Those of the plugin, in the order of the table."""
    with open(os.path.join(cards.ROOT, "lib", "io", "failpoint.c"),
              encoding="utf-8") as f:
        table = f.read().partition("names[] = {")[2].partition("NULL,")[0]
    return [name for name in re.findall(r'"([\w-]+)"', table)
            if name.startswith(prefix)]


def wanted():
    """The versions of the rig: containerd 2 on the host where it has been
    built."""
    found = {"kubelet": w for w in sys.argv[1:] if w.startswith("kubelet-")}
    if "1.6" in sys.argv[1:]:
        return found
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    built = [path for path in glob.glob(f"{cache}/biga/kube/containerd-v*")
             if not path.endswith(".partial")]
    return {**found, **({"host": "containerd-2"} if built else {})}


class Plugin:
    """biga-advertiser in a pod's place on the host, and what it keeps."""

    def __init__(self, r, device):
        self.r, self.n, self.device = r, 0, device
        self.biga = lab.Lab(r.c).install()
        self.grant()
        host = r.rack.host
        self.cdi = host.path("cdi")
        self.kept = host.path("lib", "kubelet", "plugins", "xpu.biga.dev",
                              "claims")
        self.health = host.path("cards.health")
        config = r.c.account_kubeconfig(
            "biga-system", "biga-advertiser", cards.NODE, name="advertiser")
        self.process = r.on_host("advertiser", [
            PROGRAM, "--server=kubernetes", "--kubeconfig=" + config,
            "--timeout=60s", "--node=" + cards.NODE,
            "--hostfile=" + self.write("host", HOST),
            "--card-file=" + self.write("cards", json.dumps({"cards": [{
                "match": {"id": "15b3:a2dc"}, "cores": 16,
                "memory-mib": 32768, "device-nodes": [device]}]})),
            "--card-health=" + self.health, "--claims", "--withdraw=false",
            "--kubelet-dir=" + KUBELET, "--cdi-dir=" + self.cdi,
            "--claim-grace=1s"])

    def grant(self):
        """What the component grants."""
        self.r.c.kubectl("apply", "-f", os.path.join(COMPONENT, "rbac.yaml"))
        wait_for("it may read claims",
                 lambda: self.biga.may(ADVERTISER, READS))

    def write(self, name, text):
        path = self.r.rack.host.path(name)
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(path + ".new", path)
        return path

    def begin(self, armed=""):
        """The next one; the one before is surely dead."""
        self.process.kill()
        self.process.env = {"BIGA_FAILPOINTS": armed}
        self.process.start()

    def said(self, text):
        """How often it has logged that, all its lives together."""
        return self.process.text().count(text)

    def again(self, name):
        """The next one; the kubelet tries a pod again at once, which it does
        ever less often by itself."""
        registered = self.said("plugin-registered")
        self.begin()
        wait_for("it is registered",
                 lambda: self.said("plugin-registered") > registered)
        try:
            self.r.c.api.patch("pods", "default", name, {"metadata": {
                "annotations": {"biga.dev/test": str(registered)}}})
        except ApiError as error:
            assert error.status == 404, error

    def wait_dead(self):
        wait_for("it dies", lambda: not self.process.running)
        assert self.process.exit_status() == -9, self.process.exit_status()

    # --- what is prepared ----------------------------------------------------
    @staticmethod
    def names(folder):
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []

    def prepared(self):
        """{claim's uid: its record}; nothing is there but records and the
        CDI files of these."""
        found = {}
        for name in self.names(self.kept):
            with open(os.path.join(self.kept, name), encoding="utf-8") as f:
                found[name.removesuffix(".json")] = json.load(f)
        assert self.names(self.cdi) == [
            f"xpu.biga.dev-claim_{uid}.json" for uid in sorted(found)], (
                self.names(self.cdi), list(found))
        return found

    def slices(self):
        """The UIDs of what is published."""
        return {s["metadata"]["uid"]
                for s in self.r.c.api.list("resourceslices")}

    def wait_others(self, slices):
        """A kubelet that starts deletes all of its node."""
        wait_for("slices are others", lambda: self.slices()
                 and not self.slices() & slices)

    def wait_nothing(self):
        wait_for("nothing is prepared", lambda: not self.prepared()
                 and not self.names(self.kept))

    def told(self):
        """[CDI ids] that the kubelet has written down."""
        path = self.r.rack.host.path("lib", "kubelet", "dra_manager_state")
        with open(path, encoding="utf-8") as f:
            return sorted(re.findall(r"xpu\.biga\.dev/card=([\w-]+)",
                                     f.read()))

    # --- pods ----------------------------------------------------------------
    def pod(self, **more):
        """One that asks for a card by a claim; its name."""
        self.n += 1
        name = f"dra-{self.n}"
        self.r.c.apply([pod(name, sh(WAIT, resources={"claims": [
            {"name": "card"}]}), resourceClaims=[{
                "name": "card", "resourceClaimTemplateName": "card"}],
            **more)])
        return name

    def ready(self, name):
        return wait_for(f"{name} is ready", lambda: self.r.ready_pod(name))

    def claim_of(self, name):
        """The claim of a pod."""
        status = self.r.pod(name)["status"]["resourceClaimStatuses"][0]
        return self.r.c.api.get("resourceclaims", "default",
                                status["resourceClaimName"])

    def gone(self, name):
        def gone():
            try:
                found = self.r.pod(name)
            except ApiError as error:
                return error.status == 404
            raise AssertionError(found["status"])
        wait_for(f"{name} is gone", gone)

    def once(self, name):
        """The pod runs in one container, with what its claim has."""
        found = self.ready(name)
        assert found["status"]["containerStatuses"][0]["restartCount"] == 0
        claim = self.claim_of(name)
        uid = claim["metadata"]["uid"]
        given = [d["device"] for d in
                 claim["status"]["allocation"]["devices"]["results"]]
        record = self.prepared()[uid]
        assert [d["device"] for d in record["devices"]] == given, record
        ids = [f"{uid}-{d}" for d in given]
        assert [i for i in self.told() if i.startswith(uid)] == ids
        return found

    def sh(self, name, script):
        return self.r.c.kubectl("exec", name, "--", "sh", "-c", script)
