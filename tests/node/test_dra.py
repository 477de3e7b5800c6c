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


# --- checks ------------------------------------------------------------------
def test_runs(t, p, has_cdi):
    with t.check("the kubelet finds the plugin"):
        p.begin()
        wait_for("it is registered", lambda: p.said("plugin-registered"))
        wait_for("cards are there to be claimed", p.slices)
    with t.check("a pod runs with the card of its claim"):
        p.r.c.apply([TEMPLATE])
        name = p.pod()
        p.once(name)
    with t.check("and has what the card's CDI file says in its container"):
        if not has_cdi:
            raise Skip("the host's containerd has no CDI: what the kubelet "
                       "was told was looked at")
        card = p.prepared()[p.claim_of(name)["metadata"]["uid"]][
            "devices"][0]["device"]
        env = p.sh(name, "env")
        pci = card[5:].replace("-", ":", 1)[:7] + ":00.0"
        assert f"BIGA_CARD_PCI={pci}\n" in env, env
        assert f"BIGA_CARD_CLAIM_{card[5:].replace('-', '_')}=" \
            "card/whole\n" in env, env
        real = os.stat(p.device).st_rdev
        assert p.sh(name, f"stat -c %t:%T {p.device}").strip() == \
            f"{os.major(real):x}:{os.minor(real):x}"
        p.sh(name, f"exec 3<{p.device}")
    test_health(t, p, name)
    with t.check("when it is deleted nothing is left"):
        p.r.c.kubectl("delete", "pod", name)
        p.wait_nothing()
        assert not p.told(), p.told()


def test_health(t, p, name):
    with t.check("the pod's status says how its card fares"):
        def is_so(word):
            status = p.r.pod(name)["status"]["containerStatuses"][0]
            found = [r["health"] for one in
                     status.get("allocatedResourcesStatus", ())
                     for r in one["resources"]]
            assert found == [word], found
            return True

        for word, health in (("Healthy", "ready"), ("Unhealthy", "lost"),
                             ("Healthy", "ready")):
            p.write("cards.health", json.dumps({"cards": [
                {"name": card, "health": health} for card in CARDS]}))
            wait_for(f"it is {word}", lambda w=word: is_so(w))


def test_right(t, p):
    with t.check("without the right to read claims the pod says so, and runs "
                 "once it is given"):
        p.r.c.kubectl("delete", "clusterrolebinding", "biga-advertiser-claims")
        wait_for("it is taken", lambda: not p.biga.may(ADVERTISER, READS))
        name = p.pod()

        def told():
            found = [e["message"] for e in p.r.c.api.list(
                "events", "default",
                fieldSelector=f"involvedObject.name={name}")]
            assert any("resourceclaims" in m and "403" in m and
                       "NodePrepareResources failed for ResourceClaim" in m
                       for m in found), found
            return True
        wait_for("an Event of the pod says so", told)
        assert not p.prepared()
        p.grant()
        p.once(name)
        p.r.c.kubectl("delete", "pod", name)
        p.wait_nothing()


def test_points(t, p):
    begins = [n for n in points() if n not in points("claim-before-un")
              + points("claim-after-un") + ["claim-before-sweep"]]
    ends = points("claim-before-un") + points("claim-after-un")
    with t.check("there are points of both ways"):
        assert len(begins) >= 5 and len(ends) >= 4, (begins, ends)
    for point, hit in [*((b, 1) for b in begins), ("claim-half-file", 2)]:
        if t.failed:
            return
        with t.check(f"it dies at {point}, hit {hit}, and the pod runs after "
                     "all, prepared once"):
            p.begin(f"{point}=kill:{hit}")
            name = p.pod()
            p.wait_dead()
            p.again(name)
            p.once(name)
            p.r.c.kubectl("delete", "pod", name)
            p.wait_nothing()
    for point in ends:
        if t.failed:
            return
        with t.check(f"it dies at {point}, and nothing is left of the pod"):
            p.begin()
            name = p.pod()
            p.once(name)
            p.begin(f"{point}=kill")
            p.r.c.kubectl("delete", "pod", name, "--wait=false")
            p.wait_dead()
            p.again(name)
            p.gone(name)
            p.wait_nothing()


def test_gone_meanwhile(t, p):
    with t.check("a pod that is deleted while the plugin prepares it leaves "
                 "nothing"):
        p.begin("claim-after-record=kill")
        name = p.pod()
        p.wait_dead()
        p.r.c.kubectl("delete", "pod", name, "--wait=false")
        p.begin()
        p.gone(name)
        p.wait_nothing()


def test_kubelet(t, p):
    with t.check("a kubelet that starts anew finds plugin, pods and what is "
                 "prepared, and slices are there again"):
        p.begin()
        name = p.pod()
        before = p.once(name)["status"]["containerStatuses"][0]["containerID"]
        registered = p.said("plugin-registered")
        slices = p.slices()
        p.r.kubelet.kill()
        p.r.start_kubelet()
        wait_for("it is registered again",
                 lambda: p.said("plugin-registered") > registered)
        p.wait_others(slices)
        p.r.wait_ready()
        after = p.once(name)["status"]["containerStatuses"][0]["containerID"]
        assert before == after
        second = p.pod()
        p.once(second)
    with t.check("a pod that is deleted while neither runs is unprepared by "
                 "those that come"):
        p.process.kill()
        p.r.kubelet.kill()
        p.r.c.kubectl("delete", "pod", name, "--wait=false")
        p.r.start_kubelet()
        p.begin()
        p.gone(name)
        wait_for("one is left", lambda: len(p.prepared()) == 1)
        p.once(second)
    with t.check("CDI files that a boot has taken are there again"):
        p.process.kill()
        for name in p.names(p.cdi):
            os.unlink(os.path.join(p.cdi, name))
        p.begin()
        wait_for("it is prepared", p.prepared)
        p.once(second)
        p.r.c.kubectl("delete", "pod", second)
        p.wait_nothing()


def test_forgotten(t, p):
    """The kubelet has lost its record, too, and the pod is gone by force."""
    with t.check("what nobody remembers goes once its claim is gone"):
        p.begin()
        name = p.pod()
        uid = p.claim_of(p.once(name)["metadata"]["name"])["metadata"]["uid"]
        p.r.kubelet.kill()
        state = p.r.rack.host.path("lib", "kubelet", "dra_manager_state")
        os.unlink(state)
        p.begin("claim-before-sweep=kill")
        p.r.c.kubectl("delete", "pod", name, "--force", "--grace-period=0")
        wait_for("its claim is gone", lambda: uid not in {
            c["metadata"]["uid"]
            for c in p.r.c.api.list("resourceclaims", "default")})
        p.wait_dead()
        p.begin()
        p.wait_nothing()
        before = p.slices()
        p.r.start_kubelet()
        p.wait_others(before)
        p.r.wait_ready()


def test_away(t, p):
    with t.check("slices of a plugin that is away go, and come with it"):
        if not FULL:
            raise Skip("the kubelet waits half a minute: NODE_FULL=1")
        p.begin()
        p.process.stop()
        wait_for("the kubelet has deleted them", lambda: not p.slices())
        p.begin()
        wait_for("they are there again", p.slices)
        name = p.pod()
        p.once(name)
        p.r.c.kubectl("delete", "pod", name)
        p.wait_nothing()


def main():
    device = next((d for d in DEVICES if os.path.exists(d)), None)
    if not device:
        print(f"there is none of {', '.join(DEVICES)}")
        sys.exit(77)
    if not os.access(PROGRAM, os.X_OK):
        print(f"there is no {os.path.relpath(PROGRAM, cards.ROOT)}")
        sys.exit(77)
    rig.require()
    versions = wanted()
    with rig.Rig(versions=versions) as r:
        t = Checks(on_failure=r.tail)
        with t.check("the node is ready"):
            r.start()
            p = Plugin(r, device)
        if not t.failed:
            test_runs(t, p, "host" in versions)
        for test in (test_right, test_points, test_gone_meanwhile,
                     test_kubelet, test_forgotten, test_away):
            if not t.failed:
                test(t, p)
        t.finish()


main()
