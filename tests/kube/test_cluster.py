#!/usr/bin/env python3
"""The extender in a cluster: what it learns by list and watch, what it writes,
and who of several replicas binds.  Without scheduler and advertiser, so that
every step is the test's."""
import concurrent.futures
import json
import re
import socket
import threading
import time
from http.client import HTTPException

import fleet
import pool
import shapes
from api import ApiError, write_private
from check import Checks
from lab import Lab
from proc import wait_for

SHAPE = "dell-xe9680-bf3"  # 8 cards
NODES = 4
ABSENT = "the cluster has no such resource"


def beat(api, node, ago=0):
    """Renew a node's heartbeat, as its advertiser would."""
    now = time.time() - ago
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    spec = {"holderIdentity": "test", "leaseDurationSeconds": 40,
            "renewTime": f"{stamp}.{int(now % 1 * 1e6):06d}Z"}
    try:
        api.patch("leases", "biga-nodes", node, {"spec": spec})
    except ApiError as error:
        if error.status != 404:
            raise
        api.create("leases", {"metadata": {
            "name": node, "namespace": "biga-nodes"}, "spec": spec})


class Beats:
    """Heartbeats of nodes, in a thread."""

    def __init__(self, api, nodes):
        self.api, self.nodes = api, set(nodes)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stopped.wait(1.0):
            for node in sorted(self.nodes):
                try:
                    beat(self.api, node)
                except (ApiError, OSError, HTTPException):
                    pass  # the API server is away


def publish(api, node, boot=shapes.BOOT, generation=1, lost=(), more=()):
    """The slices of a host, over those that are there.  lost: cards of it
    that do not answer; more: arguments of the advertiser."""
    for item in shapes.slices(node, "--hostfile", SHAPE, *more):
        for device in item["spec"]["devices"]:
            if device["name"] in lost:
                device["attributes"]["biga.dev/healthy"] = {"bool": False}
                device["attributes"]["biga.dev/health"] = {"string": "lost"}
        item["metadata"]["annotations"]["biga.dev/boot-id"] = boot
        item["spec"]["pool"]["generation"] = generation
        name = item["metadata"]["name"]
        old = api.maybe("resourceslices", None, name)
        if old:
            item["metadata"]["resourceVersion"] = \
                old["metadata"]["resourceVersion"]
            api.update("resourceslices", item)
        else:
            api.create("resourceslices", item)


def host_pod(name, job=None, pair=0, size=1, cards=2):
    labels = {"biga.dev/role": "host"}
    if job:
        labels.update({"biga.dev/job": job, "biga.dev/pair": str(pair)})
    return fleet.pod(name, labels=labels, annotations={
        "biga.dev/cards": str(cards), "biga.dev/size": str(size)},
        requests={"cpu": 1})


def xpu_pod(name, job, pair=0, size=1):
    return fleet.pod(name, labels={
        "biga.dev/role": "xpu", "biga.dev/job": job,
        "biga.dev/pair": str(pair)},
        annotations={"biga.dev/size": str(size)},
        requests={"biga.dev/card": 2})


class Proxy:
    """A way to the API server whose connections can be cut."""

    def __init__(self, port):
        self.to, self.open, self.lock = port, [], threading.Lock()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            one = self.socket.accept()[0]
            try:
                other = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                one.close()
                continue
            with self.lock:
                self.open += [one, other]
            for a, b in ((one, other), (other, one)):
                threading.Thread(target=self._pump, args=(a, b),
                                 daemon=True).start()

    @staticmethod
    def _pump(a, b):
        try:
            while data := a.recv(1 << 16):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it was cut

    def cut(self):
        """All of them, without a word; how many there were."""
        with self.lock:
            for one in self.open:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it had ended
            n, self.open = len(self.open) // 2, []
        return n


TIMEOUT = re.compile("[Tt]imed out|[Tt]imeout|deadline exceeded|"
                     "lease was not renewed")


def is_late(error):
    """Does it say that time ran out, and not for another reason?  Where the
    machine stood still, nodes are silent until their next heartbeat."""
    return re.search("not the leader|in time|advertiser is silent",
                     error) and (
        "call failed" not in error or TIMEOUT.search(error))


class Scheduler:
    """What kube-scheduler would ask, of one replica."""

    def __init__(self, lab, extender):
        self.api = lab.scheduler_api(extender)

    def ask(self, verb, body):
        return self.api.call("POST", "/v1/scheduler/" + verb, body)

    def filter(self, obj, nodes):
        return self.ask("filter", {"Pod": obj, "NodeNames": nodes})

    def fit(self, obj, nodes):
        """The node that a pod gets.  Where the machine stood still, nodes
        are stale until their next heartbeat."""
        answer = self._patiently(
            "heartbeats are heard", lambda: self.filter(obj, nodes),
            lambda got: not got["NodeNames"]
            and "advertiser silent" in json.dumps(got))
        assert answer["NodeNames"], answer
        return answer["NodeNames"][0]

    def bind_once(self, obj, node):
        meta = obj["metadata"]
        return self.ask("bind", {
            "PodName": meta["name"], "PodNamespace": meta["namespace"],
            "PodUID": meta["uid"], "Node": node})["Error"]

    def bind(self, obj, node):
        """Again, as the scheduler does, where the machine was too busy: for
        the leader to renew its Lease, the API server to answer, or a node to
        beat."""
        return self._patiently(
            "the bind is answered", lambda: self.bind_once(obj, node),
            is_late)

    @staticmethod
    def _patiently(what, ask, busy):
        """The first answer that is not for being busy; raises as ask()
        does."""
        def said():
            try:
                got = ask()
            except (ApiError, OSError, HTTPException) as error:
                return error, None
            return None if busy(got) else (None, got)
        error, got = wait_for(what, said, every=0.2)
        if error:
            raise error
        return got


class Leading(Scheduler):
    """The same of whichever replica leads by then."""

    def __init__(self, lab):
        super().__init__(lab, lab.leader())
        self.lab = lab

    def ask(self, verb, body):
        self.api = self.lab.scheduler_api(self.lab.leader())
        return super().ask(verb, body)


def statuses(read):
    return {n["name"]: n["status"] for n in
            read.call("GET", "/v1/nodes")["items"]}


def allocations(read):
    """{pod: (node, cards, number)} of one replica."""
    items = read.call("GET", "/v1/allocations")["items"]
    return {a["pod"]["namespace"] + "/" + a["pod"]["name"]:
            (a["node"], tuple(d["id"] for d in a["cards"]), a["number"])
            for a in items if not a.get("held")}


def annotated(api):
    """The same as the pods' annotations say."""
    found = {}
    for obj in api.list("pods", None, labelSelector="biga.dev/role"):
        text = fleet.allocation(obj)
        if text and obj["status"].get("phase") not in ("Succeeded", "Failed"):
            a = json.loads(text)
            found[obj["metadata"]["namespace"] + "/"
                  + obj["metadata"]["name"]] = (
                a["node"], tuple(d["id"] for d in a["cards"]), a["number"])
    return found


def agree(read, api):
    def same():
        one, other = allocations(read), annotated(api)
        assert one == other, f"extender {one}, pods {other}"
        return one or True
    return wait_for("allocations are what pods say", same)


def never_but(what, done):
    """Until done(), which raises when something is as it must never be."""
    wrong = []

    def is_so():
        try:
            return done()
        except AssertionError as error:
            wrong.append(error)
            return True
    wait_for(what, is_so)
    if wrong:
        raise wrong[0]


def wait_status(read, node, status):
    def is_so():
        got = statuses(read).get(node)
        assert got == status, f"{node} is {got}"
        return True
    wait_for(f"{node} is {status}", is_so)


def schedule(api, scheduler, obj, nodes):
    """Create, filter and bind one pod; its node."""
    made = api.create("pods", obj)
    node = scheduler.fit(made, nodes)
    error = scheduler.bind(made, node)
    assert error == "", error
    return node


def learning(t, c, lab, nodes, beats):
    api = c.api
    one = lab.extender("one", "--fresh=4s")
    lab.leader()
    read = lab.read_api(one)
    scheduler = Scheduler(lab, one)

    with t.check("slices of a cluster make nodes"):
        assert statuses(read) == {}
        fleet.add_nodes(api, nodes)
        for node in nodes:
            publish(api, node)
        wait_for("all are ready", lambda: statuses(read) == {
            n: "ready" for n in nodes})

    with t.check("a node is stale without heartbeats, and comes back"):
        beats.nodes.discard(nodes[0])
        wait_status(read, nodes[0], "stale")
        beats.nodes.add(nodes[0])
        wait_status(read, nodes[0], "ready")

    with t.check("a node that is not ready is lost, and comes back"):
        fleet.set_ready(api, nodes[1], False)
        wait_status(read, nodes[1], "lost")
        fleet.set_ready(api, nodes[1], True)
        wait_status(read, nodes[1], "ready")

    with t.check("a node that is deleted is lost, and so is what never was"):
        api.delete("nodes", None, nodes[1])
        wait_status(read, nodes[1], "lost")
        publish(api, "nobody")
        wait_status(read, "nobody", "lost")
        fleet.add_nodes(api, [nodes[1], "nobody"])
        wait_status(read, nodes[1], "ready")

        def back():
            beat(api, "nobody")  # or it is stale by now
            return statuses(read)["nobody"] == "ready"
        wait_for("nobody is ready", back)
        api.delete("nodes", None, "nobody")

    with t.check("the newest slice holds, whatever its generation"):
        publish(api, nodes[2], generation=7)
        wait_status(read, nodes[2], "ready")
        publish(api, nodes[2], generation=3)
        for boot in ("00000000-0000-4000-8000-000000000002", shapes.BOOT):
            publish(api, nodes[2], boot, 1)

            def shows():
                got = read.call("GET", "/v1/nodes/" + nodes[2])
                assert got["status"] == "ready", got["status"]
                assert (got["bootId"], got["generation"]) == (boot, 1), got
                return True
            wait_for("the node is what was written last", shows)

    with t.check("a deleted slice takes its node with it"):
        for item in api.list("resourceslices"):
            if item["spec"]["nodeName"] == nodes[2]:
                api.delete("resourceslices", None, item["metadata"]["name"])
        wait_for("it is gone", lambda: nodes[2] not in statuses(read))
        publish(api, nodes[2])
        wait_status(read, nodes[2], "ready")

    with t.check("pods that wait are known before they are asked about"):
        api.create("pods", host_pod("waits"))

        def known():
            return read.call("GET", "/v1/why?pod=default%2Fwaits")
        wait_for("biga why knows it", known)
        api.delete("pods", "default", "waits", gracePeriodSeconds=0)

    with t.check("a bind writes the allocation on the pod"):
        node = schedule(api, scheduler, host_pod("a-host", "a", size=1), nodes)
        got = api.get("pods", "default", "a-host")
        assert got["spec"]["nodeName"] == node
        assert json.loads(fleet.allocation(got))["node"] == node
        agree(read, api)

    with t.check("its xPU pod follows, and a repeated bind is a success"):
        node = schedule(api, scheduler, xpu_pod("a-xpu", "a"), nodes)
        obj = api.get("pods", "default", "a-xpu")
        assert scheduler.bind(obj, node) == ""
        assert api.get("pods", "default", "a-host")["spec"]["nodeName"] == node
        assert len(agree(read, api)) == 2

    with t.check("pods that end give back what they had"):
        schedule(api, scheduler, host_pod("b-host"), nodes)
        schedule(api, scheduler, host_pod("c-host"), nodes)
        assert len(agree(read, api)) == 4
        api.delete("pods", "default", "b-host", gracePeriodSeconds=0)
        fleet.Kubelet(api).phase(api.get("pods", "default", "c-host"),
                                 "Succeeded")
        wait_for("two are left", lambda: len(allocations(read)) == 2)
        agree(read, api)

    with t.check("a pod that others have bound is reported"):
        made = api.create("pods", host_pod("stray"))
        api.create("pods", {"metadata": {"name": "stray",
                                         "namespace": "default"},
                            "target": {"kind": "Node", "name": nodes[0]}},
                   sub="binding")
        assert made["metadata"]["uid"]

        def reported():
            got = read.call("GET", "/v1/cluster")["unaccountedPods"]
            return [p["pod"] for p in got] == ["stray"]
        wait_for("it is reported", reported)
        api.delete("pods", "default", "stray", gracePeriodSeconds=0)
        wait_for("it is forgotten", lambda: not read.call(
            "GET", "/v1/cluster")["unaccountedPods"])
    return one


def coming_back(t, c, lab, nodes, one):
    api = c.api
    read = lab.read_api(one)
    before = agree(read, api)

    with t.check("a restart finds the same allocations"):
        one.stop()
        one.start()
        began = time.monotonic()
        one.wait_ready()
        t.note(f"ready {time.monotonic() - began:.2f} s after the start")
        assert allocations(read) == before
        assert agree(read, api) == before

    with t.check("what happens while it is away counts"):
        schedule(api, Scheduler(lab, one), host_pod("d-host"), nodes)
        one.stop()
        api.delete("pods", "default", "d-host", gracePeriodSeconds=0)
        beat(api, "nobody", ago=60)
        fleet.add_nodes(api, ["nobody"])
        one.start()
        one.wait_ready()
        assert agree(read, api) == before
        got = statuses(read)["nobody"]
        assert got == "stale", "silent for long, but " + got
        wait_status(read, nodes[0], "ready")
        api.delete("nodes", None, "nobody")

    with t.check("the API server restarts: nothing is lost"):
        schedule(api, Scheduler(lab, one), host_pod("e-host"), nodes)
        held = agree(read, api)
        c.apiserver.stop()
        c.apiserver.start()
        c.wait_ready()
        api.delete("pods", "default", "e-host", gracePeriodSeconds=0)
        wait_for("the watch goes on", lambda: allocations(read) == before)
        assert held != before
        one.wait_ready()
        for node in nodes:
            wait_status(read, node, "ready")
        schedule(api, Scheduler(lab, one), host_pod("f-host"), nodes)
        agree(read, api)


def cutting(t, c, lab, nodes, one):
    """A replica whose connections to the API server are cut."""
    api = c.api
    proxy = Proxy(c.ports["apiserver"])
    text = open(c.path("one.kubeconfig"), encoding="utf-8").read()
    config = write_private(c.path("cut.kubeconfig"), text.replace(
        c.server, f"https://127.0.0.1:{proxy.port}"))
    cut = fleet.Extender(c.folder, "cut", "--store=kubernetes", "--fresh=4s",
                         "--kubeconfig=" + config, "--identity=cut").start()
    read = lab.read_api(cut)

    with t.check("a cut watch goes on where it was"):
        def listed():
            """What the cluster has, once all was listed."""
            seen = read.call("GET", "/v1/cluster")
            assert seen["synced"], seen
            # a resource that it lacks is asked for again and again
            return {k["name"] for k in seen["collections"]
                    if k.get("error") != ABSENT}
        there = wait_for("it has listed", lambda: cut.alive() and listed())
        assert "pods" in there, there
        scheduler = Scheduler(lab, one)
        for i in range(4):
            schedule(api, scheduler, host_pod(f"cut{i}"), nodes)
            assert proxy.cut() > 0
            schedule(api, scheduler, host_pod(f"more{i}"), nodes)
            agree(read, api)
            for name in (f"cut{i}", f"more{i}"):
                api.delete("pods", "default", name, gracePeriodSeconds=0)
        agree(read, api)
        for kind in read.call("GET", "/v1/cluster")["collections"]:
            if kind["name"] in there:
                assert kind["lists"] == 1, kind
    cut.stop()


def failing_over(t, c, lab, nodes):
    api = c.api
    two = lab.extender("two", "--fresh=4s")
    replicas = lab.extenders

    with t.check("of two replicas one is ready, and both see the same"):
        terms = set()

        def renewed():
            ready = lab.ready()
            assert len(ready) < 2, [e.name for e in ready]
            terms.add(api.get("leases", "biga-system", "biga-extender")[
                "spec"]["renewTime"])
            return len(terms) > 2
        never_but("the leader goes on", renewed)
        for replica in replicas:
            agree(lab.read_api(replica), api)

    with t.check("the other filters, and refuses to bind"):
        leader = lab.leader()
        other = [e for e in replicas if e is not leader][0]
        made = api.create("pods", host_pod("g-host"))
        asked = Scheduler(lab, other)
        asked.fit(made, nodes)
        error = asked.bind_once(made, nodes[0])
        assert leader.name in error, error

        def bound():
            # its watch may show the pod a moment later
            said = Scheduler(lab, leader).bind(made, nodes[0])
            assert said == "", said
            return True
        wait_for("the leader binds", bound)
        agree(lab.read_api(other), api)

    with t.check("a leader that ends gives the Lease back"):
        leader.stop()
        began = time.monotonic()
        now = lab.leader()
        assert now is other, now.name
        t.note(f"{now.name} was ready {time.monotonic() - began:.1f} s after")
        leader.start()
        leader.wait_up()

    with t.check("kill -9 of the leader: the other binds"):
        assert two in replicas
        made = [api.create("pods", host_pod(f"k{i}", cards=1))
                for i in range(12)]
        scheduler = Scheduler(lab, now)
        errors = []

        def bind(obj):
            try:
                errors.append(scheduler.bind_once(
                    obj, scheduler.filter(obj, nodes)["NodeNames"][0]))
            except (OSError, HTTPException, ApiError, TypeError,
                    IndexError) as error:
                errors.append(str(error))
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            waits = [threads.submit(bind, obj) for obj in made]
            wait_for("some are bound", lambda: len(errors) >= 4,
                     every=0.001)
            now.kill()
            began = time.monotonic()
            concurrent.futures.wait(waits)
        other = lab.leader()
        t.note(f"{other.name} was ready {time.monotonic() - began:.1f} s "
               f"after; {sum(1 for e in errors if e == '')} binds were "
               "answered")
        assert other is not now, other.name
        scheduler = Scheduler(lab, other)
        for obj in made:
            if not api.get("pods", "default", obj["metadata"]["name"])[
                    "spec"].get("nodeName"):
                error = scheduler.bind(obj, scheduler.fit(obj, nodes))
                assert error == "", error
        cards = [(node, card) for name, (node, ids, _) in agree(
            lab.read_api(other), api).items() for card in ids
            if not name.endswith("-xpu")]  # it has those of its host pod
        assert len(cards) == len(set(cards)) >= 12, sorted(cards)


def main():
    with pool.cluster() as c:
        t = Checks()
        lab = Lab(c, tls=False)
        lab.install()
        nodes = fleet.names("host", NODES)
        beats = Beats(c.api, nodes)
        one = learning(t, c, lab, nodes, beats)
        coming_back(t, c, lab, nodes, one)
        cutting(t, c, lab, nodes, one)
        failing_over(t, c, lab, nodes)
        t.finish()


if __name__ == "__main__":
    main()
