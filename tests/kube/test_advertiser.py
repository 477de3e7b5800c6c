#!/usr/bin/env python3
"""biga-advertiser publishes to a real API server, with the rights and under
the admission policy of deploy/."""
import signal
import threading
import time

import pool
import shapes
from api import ApiError
from check import Checks
from fleet import PATIENT, Advertiser, add_node, add_nodes, names, node
from lab import Lab
from proc import HANGS, wait_for

BEAT = 1  # seconds
NODES = 200


def annotations(obj):
    return obj["metadata"].get("annotations", {})


class Host:
    """One node, and its advertiser with the credentials of that node."""

    def __init__(self, c, name, how, suffix=""):
        self.c, self.name = c, name
        self.program = Advertiser(
            c.folder, "advertiser-" + name + suffix,
            "--server", "kubernetes", "--kubeconfig", c.node_kubeconfig(name),
            "--node", name, "--boot-id", shapes.BOOT,
            "--heartbeat", f"{BEAT}s", PATIENT, *how)

    def start(self):
        self.program.start()
        return self

    def slices(self):
        return self.c.api.list("resourceslices",
                               fieldSelector="spec.nodeName=" + self.name)

    def lease(self):
        return self.c.api.maybe("leases", "biga-nodes", self.name)

    def holder(self):
        lease = self.lease()
        return lease["spec"]["holderIdentity"] if lease else None

    def node(self):
        return self.c.api.get("nodes", None, self.name)

    def told(self):
        """What the Node's annotations say: (content hash, when and what)."""
        found = annotations(self.node())
        return (found.get("biga.dev/topology"), found.get("biga.dev/published"))

    def pool(self):
        """(generation, content hash) of the complete pool, or None."""
        return whole(self.slices())

    def wait_published(self, but=None):
        """Until the pool is complete, another than `but`, and told."""
        def published():
            self.program.alive()
            pool = self.pool()
            assert pool and pool != but, f"pool is {pool}"
            assert self.told()[0] == pool[1], f"told {self.told()}, is {pool}"
            return pool
        return wait_for(f"{self.name} is published", published)

    def renewed(self):
        return self.lease()["spec"]["renewTime"]

    def withdraw(self):
        """Stop it; until it had the time to withdraw all."""
        while not self.program.end():
            was = self.holder()
            self.start()
            wait_for("it holds its Lease", lambda was=was: self.holder()
                     not in (None, "", was))
            first = self.renewed()
            wait_for("it beats", lambda first=first: self.renewed() != first)


def whole(slices):
    """(generation, content hash) by the rule of DRA: the slices of the
    highest generation, when they are as many as each of them says."""
    if not slices:
        return None
    pools = [s["spec"]["pool"] for s in slices]
    highest = max(p["generation"] for p in pools)
    newest = [s for s in slices if s["spec"]["pool"]["generation"] == highest]
    counts = {s["spec"]["pool"]["resourceSliceCount"] for s in newest}
    hashes = {annotations(s)["biga.dev/content-hash"] for s in newest}
    assert len(counts) == 1 and len(hashes) == 1, f"mixed: {pools}, {hashes}"
    count = counts.pop()
    assert len(newest) <= count, f"{len(newest)} of {count}: {pools}"
    return (highest, hashes.pop()) if len(newest) == count else None


class Reader(threading.Thread):
    """Sees every change of one node's slices, and joins what is complete."""

    def __init__(self, c, name):
        super().__init__(daemon=True)
        self.c, self.name = c, name
        self.seen, self.wrong, self.ended = [], None, False
        self.start()

    def run(self):
        there = {}
        try:
            for event, obj in self.c.api.watch(
                    "resourceslices", timeout=HANGS,
                    fieldSelector="spec.nodeName=" + self.name):
                if self.ended:
                    return
                if obj.get("kind") == "Status":
                    continue
                if event == "DELETED":
                    there.pop(obj["metadata"]["name"], None)
                else:
                    there[obj["metadata"]["name"]] = obj
                self.seen.append(whole(list(there.values())))
        except AssertionError as error:
            self.wrong = error
        except (ApiError, OSError, ValueError):
            pass  # the end of the watch

    def check(self):
        assert self.wrong is None, self.wrong
        return self.seen


def host_file(c, n_nics):
    return shapes.crowded(c.path("crowded.host"), n_nics)


def withdrawn(c, program, nodes):
    """It has ended, and nothing of these nodes is left."""
    assert program.exit_status() == 0, program.exit_status()
    left = [s["metadata"]["name"] for s in c.api.list("resourceslices")
            if s["spec"]["nodeName"] in nodes]
    assert not left, left
    assert not [x for x in c.api.list("leases", "biga-nodes")
                if x["metadata"]["name"] in nodes]


# --- the checks -------------------------------------------------------------
def shipped(t, c):
    every = sorted(shapes.shipped())
    prefix = "shape"
    hosts = dict(zip(names(prefix, len(every)), every))
    add_nodes(c.api, list(hosts))
    fleet = Advertiser(
        c.folder, "shapes", "--server", "kubernetes", "--kubeconfig",
        c.path("fleet.kubeconfig"), "--fleet", len(every), "--fleet-prefix",
        prefix, "--fleet-shapes", ",".join(every), "--boot-id", shapes.BOOT,
        PATIENT)
    fleet.start()
    try:
        wait_for("all are published", lambda: fleet.alive() and
                 "fleet ready" in fleet.text())
        for name, shape in hosts.items():
            want = shapes.slices(name, "--hostfile", shape)
            got = c.api.list("resourceslices",
                             fieldSelector="spec.nodeName=" + name)
            assert [shapes.timeless(s["spec"]) for s in got] == \
                [s["spec"] for s in want], name
            owner = got[0]["metadata"]["ownerReferences"]
            uid = c.api.get("nodes", None, name)["metadata"]["uid"]
            assert [o["uid"] for o in owner] == [uid], owner
        t.note(f"{len(hosts)} shapes")
    finally:
        in_time = fleet.end()
    if in_time:
        withdrawn(c, fleet, hosts)


def changing(c, host):
    """Grows, shrinks, stays as large; nobody sees a mixture."""
    reader = Reader(c, host.name)
    pool = host.wait_published()
    for n in (300, 310, 20, 200, 5):
        host_file(c, n)
        host.program.send(signal.SIGHUP)
        before, pool = pool, host.wait_published(but=pool)
        assert pool[0] > before[0], (before, pool)
        wait_for("old slices are gone", lambda: len(host.slices()) ==
                 (n + 2) // 64 + 1)
    wait_for("the reader has seen the last", lambda: reader.check() and
             reader.seen[-1] == pool)
    reader.ended = True


def at_once(host, what, done):
    """Wait for it; the host's heartbeats tell that it was not a check, of
    which there is one a minute, that has brought it: then there were 60."""
    beats = set()

    def seen():
        beats.add(host.renewed())
        return done()
    wait_for(what, seen)
    assert len(beats) <= 30, f"{what}: after {len(beats) - 1} heartbeats"


def healing(c, wiped, edited):
    """All slices of a node go, as when a kubelet starts; one is made to lie;
    one is added: each is put right at once, and told."""
    pool = wiped.wait_published()
    for _ in range(3):
        told = wiped.told()
        c.api.delete_all("resourceslices", None,
                         fieldSelector="spec.nodeName=" + wiped.name)
        at_once(wiped, "the slices are back",
                lambda: (wiped.pool() or [0, 0])[1] == pool[1])
        wait_for("its Node is told", lambda told=told: wiped.told() != told)
    assert wiped.program.text().count("event=slices-changed") == 1

    edited.wait_published()
    obj = edited.slices()[0]
    name, devices = obj["metadata"]["name"], obj["spec"]["devices"]
    devices[0]["name"] = "foreign"
    c.api.patch("resourceslices", None, name, {"spec": {"devices": devices}},
                fieldManager="kubectl-edit")
    at_once(edited, "the edit is gone", lambda:
            edited.slices()[0]["spec"]["devices"][0]["name"] != "foreign")
    wait_for("the log says who", lambda: "edited=1 added=0 by=kubectl-edit" in
             edited.program.text())
    obj = edited.slices()[0]
    devices = obj["spec"]["devices"]
    assert all(d.pop("taints") for d in devices), devices
    c.api.patch("resourceslices", None, name, {"spec": {"devices": devices}})
    at_once(edited, "the taints are back", lambda: all(
        d.get("taints") for d in edited.slices()[0]["spec"]["devices"]))
    edited.wait_published()
    surplus = edited.slices()[0]
    surplus["metadata"] = {"name": edited.name + "-surplus"}
    c.api.create("resourceslices", surplus)
    at_once(edited, "the surplus is gone", lambda: len(edited.slices()) == 1)
    edited.wait_published()


def superseding(old, new):
    pool, first = old.wait_published(), old.holder()
    new.start()
    wait_for("the newer one holds the Lease", lambda: old.holder() != first)
    wait_for("the older one says so",
             lambda: "event=superseded" in old.program.text())
    second, beats = old.holder(), set()

    def renewed():
        beats.add(old.renewed())
        return len(beats) > 4
    wait_for("the newer one goes on", renewed)
    assert old.holder() == second, "they do not fight over it"
    assert old.pool() == pool, "equal content is not written again"
    new.program.stop()
    wait_for("the older one is back", lambda: old.holder() == first)
    old.wait_published()


def outage(c, host):
    host.wait_published()
    told, pool, renewed = host.told(), host.pool(), host.renewed()
    c.apiserver.kill()
    wait_for("a heartbeat has failed", lambda: "event=publish-failed" in
             host.program.text())
    c.apiserver.start()
    c.wait_ready()
    wait_for("it beats again", lambda: host.renewed() != renewed)
    wait_for("its Node is told", lambda: host.told() != told)
    assert host.pool() == pool, "nothing else has changed"


def new_node(c, host):
    host.wait_published()
    c.api.delete("nodes", None, host.name)
    wait_for("its objects are collected",
             lambda: not host.slices() and not host.lease())
    wait_for("it says what is missing", lambda: "no such Node" in
             host.program.text())
    made = add_node(c.api, node(host.name))
    host.wait_published()
    for obj in host.slices() + [host.lease()]:
        owners = [o["uid"] for o in obj["metadata"]["ownerReferences"]]
        assert owners == [made["metadata"]["uid"]], owners


def refused(c, name, config, *wanted):
    """Credentials that do not suffice: it says what is missing, goes on."""
    program = Advertiser(
        c.folder, "refused-" + name, "--server", "kubernetes", "--kubeconfig",
        config, "--node", "foreign", "--hostfile", "nvidia-dgx-h100")
    program.start()
    try:
        wait_for("it says why", lambda: program.alive() and
                 all(want in program.text() for want in wanted))
        program.alive()
    finally:
        program.stop()
    assert not c.api.list("resourceslices",
                          fieldSelector="spec.nodeName=foreign")
    assert not c.api.maybe("leases", "biga-nodes", "foreign")


def many(t, c):
    hosts = names("many", NODES)
    add_nodes(c.api, hosts)
    fleet = Advertiser(
        c.folder, "many", "--server", "kubernetes", "--kubeconfig",
        c.path("fleet.kubeconfig"), "--fleet", NODES, "--fleet-prefix",
        "many", "--heartbeat", "3s", PATIENT)
    began = time.monotonic()
    fleet.start()
    wait_for("all are published", lambda: fleet.alive() and
             "fleet ready" in fleet.text())
    t.note(f"{NODES} nodes published in {time.monotonic() - began:.1f} s")
    beats = {}  # node: when its Lease was renewed

    def renewed():
        fleet.alive()
        for lease in c.api.list("leases", "biga-nodes"):
            name = lease["metadata"]["name"]
            if name.startswith("many"):
                beats.setdefault(name, set()).add(lease["spec"]["renewTime"])
        return len(beats) == NODES and min(map(len, beats.values())) > 2
    wait_for("each is renewed twice", renewed, every=0.5)
    if fleet.end():
        withdrawn(c, fleet, hosts)


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        Lab(c).install()
        c.kubeconfig("fleet", "fleet")
        add_nodes(c.api, ["one", "two", "three", "foreign"])

        with t.check("every shape is published as it is printed"):
            shipped(t, c)

        one = Host(c, "one", host_file(c, 20)).start()
        two = Host(c, "two", ["--hostfile", "nvidia-dgx-h100"]).start()
        three = Host(c, "three", ["--hostfile", "nvidia-dgx-h100"]).start()
        with t.check("with its node's credentials, under admission"):
            for host in (one, two, three):
                host.wait_published()
            assert one.holder().startswith(shapes.BOOT + "/"), one.holder()
            first = one.renewed()
            wait_for("the Lease is renewed",
                     lambda: one.renewed() != first)
        with t.check("a change is a generation, told at once, never mixed"):
            changing(c, one)
        with t.check("the newest start wins, and gives way when it ends"):
            superseding(two, Host(
                c, "two", ["--hostfile", "nvidia-dgx-h100"], "-newer"))
        with t.check("the API server's restart is survived and told"):
            outage(c, one)
        with t.check("another Node of that name becomes the owner"):
            new_node(c, three)
        with t.check("what others do to slices is put right at once"):
            healing(c, one, two)

        with t.check("without rights it says what to allow"):
            refused(c, "rights", c.kubeconfig("nobody", "nobody"),
                    "allow us to get nodes")
        with t.check("another node's credentials write nothing here"):
            refused(c, "node", c.node_kubeconfig("two"),
                    "may only write the Lease biga-nodes/two",
                    "use credentials of node foreign")
            refused(c, "pod", c.account_kubeconfig(
                "biga-system", "biga-advertiser", "two"),
                "may only write the Lease biga-nodes/two",
                "use credentials of node foreign")
            refused(c, "anybody", c.account_kubeconfig(
                "biga-system", "biga-advertiser"), "name no node",
                "use credentials of node foreign")
        with t.check("a token that nobody gave is refused"):
            refused(c, "token", c.kubeconfig_token("made-up", "made.up.token"),
                    "does not accept our credentials")

        with t.check("a clean stop withdraws, --withdraw=false does not"):
            for host in (one, two):
                host.withdraw()
                withdrawn(c, host.program, [host.name])
            three.program.stop()
            Host(c, "three", ["--hostfile", "nvidia-dgx-h100",
                              "--withdraw=false"], "-kept").start()
            kept = Host(c, "three", [], "-kept")
            wait_for("it is published", lambda: kept.pool() and kept.told()[0]
                     == kept.pool()[1])
            assert kept.program.stop()
            assert kept.pool() and kept.lease()

        with t.check(f"{NODES} nodes are published, and beat"):
            many(t, c)
        t.finish()


if __name__ == "__main__":
    main()
