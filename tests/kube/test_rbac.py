#!/usr/bin/env python3
"""Nothing is granted that is not needed: each verb of each role of deploy/ is
taken away alone, and the check that is named for it fails, because of that
verb; given back, it passes."""
import contextlib
import copy
import itertools
import json
import os
import time

import claims
import dpus
import fleet
import gates
import pool
from api import Api, ApiError
from check import Checks
from lab import ROOT, Lab
from proc import Process, wait_for
from test_cluster import (SHAPE, Beats, Scheduler, allocations, beat,
                          host_pod, publish, statuses, xpu_pod)

ACCOUNT = "system:serviceaccount:biga-system:"
EXTENDER, ADVERTISER = ACCOUNT + "biga-extender", ACCOUNT + "biga-advertiser"
READER = "system:serviceaccount:default:reader"
OPERATOR = "system:serviceaccount:default:operator"
# the roles of deploy/kustomize/base and its component gate, and who has them
# here
ROLES = {("biga-system", "biga-extender-election"): EXTENDER,
         ("biga-nodes", "biga-extender-heartbeats"): EXTENDER,
         ("biga-nodes", "biga-advertiser-heartbeats"): ADVERTISER,
         (None, "biga-extender"): EXTENDER,
         (None, "biga-extender-gate"): EXTENDER,
         (None, "biga-advertiser"): ADVERTISER,
         (None, "biga-reader"): READER,
         (None, "biga-operator"): OPERATOR}
NODES = ["node1", "node2"]
CLAIMS = "node3"  # its cards are given by claims
LONE = "lone"  # it has one card
GATE = os.path.join(ROOT, "deploy", "kustomize", "components", "gate",
                    "rbac.yaml")
# seconds between two writes of one Event (extender/leader/events.h)
PAUSE = 60
APART = 10  # seconds; a right is taken and given back in less


class Denied(Exception):
    """A program was refused what it needs."""


class Right:
    """One verb of one rule."""

    def __init__(self, role, what, verb, rule, name=""):
        self.namespace, self.role = role
        self.what, self.verb, self.rule, self.name = what, verb, rule, name

    def __str__(self):
        where = f" in {self.namespace}" if self.namespace else ""
        name = f" {self.name}" if self.name else ""
        return f"{self.role}: {self.verb} {self.what}{name}{where}"

    @property
    def key(self):
        return self.role, self.what, self.verb

    @property
    def user(self):
        return ROLES[(self.namespace, self.role)]

    def kind(self):
        return "roles" if self.namespace else "clusterroles"

    def path(self):
        """A path that a rule about paths covers."""
        return self.what.replace("*", "default/nothing")

    def refused(self, text):
        """Does a text say that just this was refused?"""
        if self.what.startswith("/"):
            return f"may not {self.verb} {self.what.split('*')[0]}" in text
        plain = text.replace("\\", "")
        return f'cannot {self.verb} resource "{self.what}"' in plain

    def attributes(self):
        """As a SubjectAccessReview has them."""
        if self.what.startswith("/"):
            return {"nonResourceAttributes": {
                "path": self.path(), "verb": self.verb}}
        what, _, sub = self.what.partition("/")
        return {"resourceAttributes": {
            "namespace": self.namespace or "", "verb": self.verb,
            "group": self.rule["apiGroups"][0], "resource": what,
            "subresource": sub, "name": self.name}}


def things(rule):
    """What a rule is about, and the key under which it says so."""
    key = "nonResourceURLs" if "nonResourceURLs" in rule else "resources"
    return key, rule[key]


def rights(api):
    """All that the roles grant, verb by verb; the roles, to be restored."""
    found, roles = [], {}
    for role in ROLES:
        namespace, name = role
        obj = api.get("roles" if namespace else "clusterroles", namespace,
                      name)
        roles[role] = obj["rules"]
        for rule in obj["rules"]:
            found += [Right(role, what, verb, rule, name)
                      for what in things(rule)[1] for verb in rule["verbs"]
                      for name in rule.get("resourceNames", [""])]
    return found, roles


def without(rules, right):
    """The rules of a role less one right."""
    left = []
    for rule in rules:
        if rule != right.rule:
            left.append(rule)
            continue
        key, whats = things(rule)
        others = [w for w in whats if w != right.what]
        verbs = [v for v in rule["verbs"] if v != right.verb]
        names = [n for n in rule.get("resourceNames", []) if n != right.name]
        if others:
            left.append({**rule, key: others})
        if verbs:
            left.append({**rule, key: [right.what], "verbs": verbs})
        if names:
            left.append({**rule, key: [right.what], "verbs": [right.verb],
                         "resourceNames": names})
    return left


class Bench:
    """A cluster, the programs in it, and the checks of what they do."""

    def __init__(self, c, lab):
        self.c, self.api, self.lab = c, c.api, lab
        self.numbers = itertools.count(1)
        self.right, self.since, self.marks = None, 0, {}
        self.armed = []

    # --- the cluster ---------------------------------------------------------
    def up(self):
        self.lab.install()
        for account, role in (("reader", "biga-reader"),
                              ("operator", "biga-operator")):
            self.api.create("serviceaccounts", {"metadata": {
                "name": account, "namespace": "default"}})
            self.lab.bind(f"system:serviceaccount:default:{account}", role,
                          cluster=True)
        self.c.kubectl("apply", "--server-side", "-f", GATE)
        fleet.add_nodes(self.api, NODES + [CLAIMS, LONE, "adv"])
        self.beats = Beats(self.api, NODES + [CLAIMS, LONE])
        for node in NODES:
            publish(self.api, node)
        publish(self.api, CLAIMS, more=["--claims"])
        self.api.create("resourceclaimtemplates", claims.template(
            "card", claims.requests(n_gpus=0)))
        dpus.define(self.c)
        publish(self.api, LONE, more=["--hostfile", dpus.lone_host(self.c)])
        self.leader = self.lab.extender("leader", "--fresh=1m")
        self.lab.leader()
        self.watcher = self.lab.extender("watcher", "--fresh=1m", start=False)
        socket = self.c.path("pods.sock")
        self.kubelet = Process(self.c.folder, "podresources", [
            fleet.program("judges/podresources"), socket,
            "default/what"]).start()
        wait_for("it answers", lambda: self.kubelet.alive() and
                 "serving" in self.kubelet.text())
        self.advertiser = self.lab.advertiser(
            "adv", "--hostfile=" + SHAPE, "--heartbeat=500ms",
            "--achieved=100ms", "--pod-resources=" + socket)
        self.advertiser.stop()
        self.scheduler = Scheduler(self.lab, self.leader)

    def name(self, stem):
        return f"{stem}{next(self.numbers)}"

    # --- what a program says, and waiting ------------------------------------
    def logs(self):
        return [self.leader, self.watcher, self.advertiser]

    @contextlib.contextmanager
    def lacking(self, right, roles):
        """Until the end the right is not granted; the API server knows."""
        role = (right.namespace, right.role)
        self.set_rules(right, without(roles[role], right), False)
        self.right = right
        self.marks = {p: len(p.text()) for p in self.logs()}
        try:
            yield
        finally:
            self.right = None
            self.set_rules(right, roles[role], True)

    def set_rules(self, right, rules, allowed):
        self.api.patch(right.kind(), right.namespace, right.role,
                       {"rules": copy.deepcopy(rules)})
        review = {"spec": {"user": right.user, "groups": [
            "system:serviceaccounts", "system:authenticated"],
            **right.attributes()}}

        def known():
            said = self.api.create("subjectaccessreviews", review)["status"]
            assert said.get("allowed", False) == allowed, said
            return True
        wait_for(f"the API server {'allows' if allowed else 'refuses'} it",
                 known, every=0.02)

    def denied(self):
        """Has a program said that it was refused the right that lacks?"""
        return self.right and any(
            self.right.refused(p.text()[self.marks[p]:])
            for p in self.logs())

    def wait(self, what, true, every=0.02):
        """As wait_for; but no longer than half a second after a program has
        been refused what it is lacking, as it says before long."""
        end = None

        def seen():
            nonlocal end
            try:
                value = true()
            except (ApiError, AssertionError, OSError) as error:
                value, said = None, str(error)
                if self.right and self.right.refused(said):
                    end = 0.0
            if value:
                return value
            if end is None and self.denied():
                end = time.monotonic() + 0.5
            return Denied if end is not None and time.monotonic() > end \
                else None
        found = wait_for(what, seen, every=every)
        if found is Denied:
            raise Denied(what)
        return found

    def need(self, error):
        """What a program has answered must be no error."""
        if error:
            raise Denied(error)

    # --- what the extender does ----------------------------------------------
    def watch_anew(self):
        """A replica that begins to list and watch; it does not lead."""
        self.watcher.kill()
        self.watcher.start()
        self.watcher.wait_up(**self.lab.ca())
        return self.lab.read_api(self.watcher, self.lab.reader())

    def slices_are_followed(self):
        read = self.watch_anew()
        self.wait("nodes are known", lambda: set(NODES) <= set(
            statuses(read)))
        name = self.name("new")
        publish(self.api, name)
        try:
            self.wait("a new one becomes known",
                      lambda: name in statuses(read))
        finally:
            self.api.delete_all("resourceslices", None,
                                fieldSelector="spec.nodeName=" + name)

    def claims_are_followed(self):
        """Claims, templates and classes: nothing is asked before each is
        listed."""
        read = self.watch_anew()
        self.wait("all is listed", lambda: read.call(
            "GET", "/v1/cluster")["synced"])

    def barred_by(self, put):
        """What bars a card is known from the list, and then by the watch."""
        put(False)
        read = self.watch_anew()

        def is_barred():
            (card,) = [item for item in read.call(
                "GET", "/v1/cards")["items"] if item["node"] == LONE]
            return "barred" in card
        try:
            self.wait("a card is barred", is_barred)
        finally:
            put(True)
        self.wait("it is not any more", lambda: not is_barred())

    def dpus_are_followed(self):
        self.barred_by(lambda ready: dpus.dpu(
            self.api, "dpu", LONE, "Ready" if ready else "Error"))

    def units_are_followed(self):
        self.barred_by(lambda ready: dpus.unit(
            self.api, "unit", LONE, ready))

    def nodes_are_followed(self):
        read = self.watch_anew()
        # else one that is lost could be so in the list already
        self.wait("all is listed", lambda: read.call(
            "GET", "/v1/cluster")["synced"])
        self.wait("they are ready", lambda: statuses(read)["node1"] ==
                  "ready")
        fleet.set_ready(self.api, "node2", False)
        try:
            self.wait("one is lost", lambda: statuses(read)["node2"] ==
                      "lost")
        finally:
            fleet.set_ready(self.api, "node2", True)

    def heartbeats_are_followed(self):
        name = self.name("silent")
        fleet.add_nodes(self.api, [name])
        publish(self.api, name)
        beat(self.api, name, ago=300)
        try:
            read = self.watch_anew()
            self.wait("they are ready", lambda: statuses(read)["node1"] ==
                      "ready")
            self.wait("it is stale", lambda: statuses(read)[name] == "stale")
            beat(self.api, name)
            self.wait("it is heard of", lambda: statuses(read)[name] ==
                      "ready")
        finally:
            self.api.delete("nodes", None, name)
            self.api.delete_all("resourceslices", None,
                                fieldSelector="spec.nodeName=" + name)
            self.api.delete("leases", "biga-nodes", name, missing_ok=True)

    def reports_are_followed(self):
        read = self.watch_anew()

        def collection():
            found, = [x for x in read.call("GET", "/v1/cluster")["collections"]
                      if x["name"] == "configmaps"]
            return found
        self.wait("reports are listed", lambda: collection()["synced"])
        before, name = collection()["events"], self.name("told")
        self.api.create("configmaps", {"metadata": {
            "name": name, "namespace": "biga-nodes",
            "labels": {"biga.dev/report": "achieved"}},
            "data": {"report": json.dumps({"node": name, "pods": []})}})
        try:
            self.wait("a report is known",
                      lambda: collection()["events"] > before)
        finally:
            self.api.delete("configmaps", "biga-nodes", name)

    def drains_are_followed(self):
        read, node = self.watch_anew(), NODES[0]

        def told():
            return "drain" in read.call("GET", "/v1/nodes/" + node)
        self.wait("its node is known", lambda: not told())
        try:
            self.entry(node, json.dumps({"reason": "by hand"}))
            self.wait("a drain is known", told)
        finally:
            self.entry(node, None)
        self.wait("it is over", lambda: not told())

    def entry(self, node, text):
        self.api.patch("configmaps", "biga-system", "biga-drains",
                       {"data": {node: text}})

    def drains_are_written(self):
        where = f"/v1/nodes/{NODES[0]}/drain"
        try:
            status = self.ask("operator", "POST", where, {"reason": "a test"})
            assert status == 200, status
            found = self.api.get("configmaps", "biga-system", "biga-drains")
            assert NODES[0] in found["data"], found
        finally:
            self.entry(NODES[0], None)

    def undrains_are_asked_for(self, what="nodes", rest=""):
        """Allowed; but nothing is drained."""
        where = f"/v1/{what}/{NODES[0]}{rest}/drain"
        status = self.ask("operator", "DELETE", where)
        assert status == 404, status

    def cards_are_drained(self):
        where = f"/v1/cards/{NODES[0]}/none/drain"
        status = self.ask("operator", "POST", where, {"reason": "a test"})
        assert status == 404, status

    def cards_are_undrained(self):
        self.undrains_are_asked_for("cards", "/none")

    def pods_are_followed(self):
        there, later = self.name("there"), self.name("later")
        self.api.create("pods", host_pod(there))
        read = self.watch_anew()

        def known(name):
            return read.call("GET", "/v1/why?pod=default%2F" + name)
        try:
            self.wait("a pod is known", lambda: known(there))
            self.api.create("pods", host_pod(later))
            self.wait("a new one becomes known", lambda: known(later))
        finally:
            self.drop(there, later)

    def drop(self, *names):
        for name in names:
            self.api.delete("pods", "default", name, missing_ok=True,
                            gracePeriodSeconds=0)

    def made(self, obj):
        """A pod, and the node that it would get."""
        pod = self.api.create("pods", obj)
        return pod, self.scheduler.fit(pod, NODES)

    def pods_are_bound(self):
        pod, node = self.made(host_pod(self.name("bound"), cards=1))
        name = pod["metadata"]["name"]
        try:
            self.need(self.scheduler.bind(pod, node))
            assert fleet.allocation(self.api.get("pods", "default", name))
        finally:
            self.drop(name)

    def gate_is_opened(self, pod):
        """Whether the extender has planned a new pod."""
        name = pod["metadata"]["name"]
        self.api.create("pods", pod)
        try:
            self.wait("its gate is open", lambda: fleet.allocation(
                self.api.get("pods", "default", name)))
        finally:
            self.drop(name)

    def gates_are_opened(self):
        self.gate_is_opened(gates.by_gate(host_pod(self.name("gated"))))

    def claims_are_pinned(self):
        """The claim that Kubernetes' controller has made goes."""
        pod = claims.gated(claims.pod(self.name("claims"), "card"))
        pod["metadata"]["labels"] = {"biga.dev/role": "host"}
        self.gate_is_opened(pod)

    def claims_without_pins_go(self):
        pod = claims.gated(claims.pod(self.name("claims"), "card"),
                           "test.example/later")
        pod["metadata"]["labels"] = {"biga.dev/role": "host"}
        name = pod["metadata"]["name"]
        self.api.create("pods", pod)
        try:
            first = self.wait("it has its claim", lambda: self.api.get(
                "pods", "default", name)["status"]["resourceClaimStatuses"][0][
                    "resourceClaimName"])
            self.api.patch("pods", "default", name, {"spec": {
                "schedulingGates": [{"name": claims.GATE}]}})
            self.wait("it is gone", lambda: not self.api.maybe(
                "resourceclaims", "default", first))
        finally:
            self.drop(name)

    def binds_of_others_are_looked_up(self):
        """Who has bound it is only known from the pod."""
        pod, node = self.made(host_pod(self.name("taken"), cards=1))
        name = pod["metadata"]["name"]
        other = [n for n in NODES if n != node][0]
        self.api.create("pods", {
            "metadata": {"name": name, "namespace": "default"},
            "target": {"kind": "Node", "name": other}}, sub="binding")
        try:
            error = self.scheduler.bind(pod, node)
            if other not in error or "already" not in error:
                raise Denied(error)
        finally:
            self.drop(name)

    def xpu_pods_end_with_their_host_pod(self):
        job = self.name("pair")
        host, node = self.made(host_pod(job, job))
        self.need(self.scheduler.bind(host, node))
        xpu, node = self.made(xpu_pod(job + "-xpu", job))
        self.need(self.scheduler.bind(xpu, node))
        try:
            self.wait("they are a pair", lambda: "default/" + job + "-xpu" in
                      allocations(self.read()))
            self.drop(job)
            self.wait("the xPU pod is deleted", lambda: self.ending(
                job + "-xpu"))
        finally:
            self.drop(job, job + "-xpu")

    def ending(self, name):
        pod = self.api.maybe("pods", "default", name)
        return not pod or pod["metadata"].get("deletionTimestamp")

    def pairs_tell_of_their_xpu_pods(self):
        job = self.name("tell")
        host, node = self.made(host_pod(job, job))
        self.need(self.scheduler.bind(host, node))
        xpu, node = self.made(xpu_pod(job + "-xpu", job))
        self.need(self.scheduler.bind(xpu, node))
        try:
            fleet.Kubelet(self.api).phase(
                self.api.get("pods", "default", job + "-xpu"), "Running")
            self.wait("the host pod says so", lambda: any(
                c["type"] == "biga.dev/XpuReady" and c["status"] == "True"
                for c in self.api.get("pods", "default", job)["status"][
                    "conditions"]))
        finally:
            self.drop(job, job + "-xpu")

    def pods_of_lost_cards_are_evicted(self):
        name = self.name("evicted")
        pod, node = self.made(fleet.pod(
            name, labels={"biga.dev/role": "service"},
            annotations={"biga.dev/card-lost": "0"},
            requests={"biga.dev/card": 1}))
        self.need(self.scheduler.bind(pod, node))
        card = json.loads(fleet.allocation(self.api.get(
            "pods", "default", name)))["cards"][0]["id"]
        try:
            publish(self.api, node, lost=[card])
            self.wait("it is evicted", lambda: self.ending(name))
        finally:
            publish(self.api, node)
            self.drop(name)

    def buddies_are_made(self):
        name = self.name("buddy")
        self.api.create("podtemplates", {
            "metadata": {"name": name, "namespace": "default"},
            "template": {"metadata": {}, "spec": xpu_pod("x", "x")["spec"]}})
        pod = host_pod(name, name)
        pod["metadata"]["annotations"]["biga.dev/buddy"] = name
        self.api.create("pods", pod)
        try:
            self.wait("its xPU pod is there", lambda: self.api.maybe(
                "pods", "default", name + "-xpu"))
        finally:
            self.drop(name, name + "-xpu")

    # --- Events --------------------------------------------------------------
    def events(self, name):
        return [e for e in self.api.list(
            "events", "default",
            fieldSelector="involvedObject.name=" + name)
            if e["source"]["component"] == "biga-extender"]

    def events_are_written(self):
        pod, node = self.made(host_pod(self.name("told"), cards=1))
        name = pod["metadata"]["name"]
        try:
            self.need(self.scheduler.bind(pod, node))
            self.wait("there is an Event", lambda: self.events(name))
        finally:
            self.drop(name)

    def refuse(self, name):
        pod = self.api.get("pods", "default", name)
        assert not self.scheduler.filter(pod, NODES)["NodeNames"]

    def arm_event(self):
        """A pod with an Event that is due to be counted up in a minute."""
        name, began = self.name("refused"), time.monotonic()
        self.api.create("pods", host_pod(name, cards=64))
        self.refuse(name)
        wait_for("it is told of", lambda: self.events(name))
        self.refuse(name)
        self.armed.append((name, began + PAUSE))

    def left(self):
        """Seconds until the first that was armed is due; before, none."""
        return self.armed[0][1] - time.monotonic() if self.armed else 0

    def events_are_counted_up(self):
        """Of one armed pod, the oldest that has not been written since."""
        while self.armed and self.left() <= 0:
            self.drop(self.armed.pop(0)[0])
        if not self.armed:
            self.arm_event()
        name, _ = self.armed.pop(0)
        try:
            self.wait("it is counted up", lambda: any(
                e["count"] > 1 for e in self.events(name)), every=0.5)
        finally:
            self.drop(name)

    # --- who reads -----------------------------------------------------------
    def read(self):
        return self.lab.read_api(self.leader, self.lab.reader())

    def ask(self, account, method, where, body=None):
        """As somebody whom the extender has not seen before."""
        token = self.lab.c.api.token_request("default", account)

        def said():
            got = Api(self.leader.url("read", True), token=token,
                      **self.lab.ca()).raw(method, where, body)
            if got[0] != 503 or self.denied() or self.right and \
                    self.right.refused(got[2].decode()):
                return got
            return None  # the API server is slow
        got = wait_for("the token is reviewed", said)
        status, text = got[0], got[2].decode()
        if status in (401, 403, 503):
            if self.right and self.right.what.startswith("/"):
                assert status == 403 and "may not" in text, text
            raise Denied(text)
        return status

    def readers_are_known(self):
        assert self.ask("reader", "GET", "/v1/nodes") == 200

    def page_is_read(self):
        assert self.ask("reader", "GET", "/") == 200

    def metrics_are_read(self):
        assert self.ask("reader", "GET", "/metrics") == 200

    def simulations_are_asked_for(self):
        pod = host_pod("what-if", cards=1)
        assert self.ask("reader", "POST", "/v1/simulate", pod) == 200

    def allocations_are_released(self):
        pod, node = self.made(host_pod(self.name("given"), cards=1))
        name = pod["metadata"]["name"]
        self.need(self.scheduler.bind(pod, node))
        try:
            status = self.ask("operator", "DELETE",
                              "/v1/allocations/default/" + name)
            # allowed; but a pod that is there keeps what it has
            assert status == 409, status
            assert "default/" + name in allocations(self.read())
        finally:
            self.drop(name)

    def jobs_are_released(self):
        """Allowed; but nothing is allocated to it."""
        where = "/v1/jobs/default/none/allocations"
        status = self.ask("operator", "DELETE", where)
        assert status == 404, status

    # --- the election --------------------------------------------------------
    def lead_anew(self, exists):
        """The leader is gone; one that starts takes the Lease, which is
        there, given back by the one before, or is not."""
        self.watcher.kill()
        self.leader.kill()
        if exists:
            lease = self.api.maybe("leases", "biga-system", "biga-extender")
            if not lease:
                self.api.create("leases", {"metadata": {
                    "name": "biga-extender", "namespace": "biga-system"}})
            self.api.patch("leases", "biga-system", "biga-extender", {
                "spec": {"holderIdentity": "", "leaseDurationSeconds": 1}})
        else:
            self.api.delete("leases", "biga-system", "biga-extender",
                            missing_ok=True)
        self.leader.start()
        self.leader.wait_up(**self.lab.ca())

    def lease_is_taken(self):
        self.lead_anew(exists=True)
        self.wait("it leads", self.lab.ready)

    def lease_is_made(self):
        self.lead_anew(exists=False)
        self.wait("there is a Lease", lambda: self.api.maybe(
            "leases", "biga-system", "biga-extender"))

    # --- what an advertiser does ----------------------------------------------
    def slices(self):
        return self.api.list("resourceslices",
                             fieldSelector="spec.nodeName=adv")

    def achieved(self):
        """What is told of what its pods have, "" when nothing is; None when
        there is no ConfigMap."""
        found = self.api.maybe("configmaps", "biga-nodes", "adv")
        return found and found.get("data", {}).get("report", "")

    def advertise(self, anew, meanwhile=lambda: None):
        """Start it; wait until all is as it says; end it, and all is gone.

        anew: nothing is there before; else what another boot has left, and a
        slice too many."""
        self.advertiser.kill()
        boot = f"00000000-0000-4000-8000-{next(self.numbers):012}"
        self.api.patch("nodes", None, "adv", {"metadata": {"annotations": {
            "biga.dev/topology": None}}})
        self.api.delete_all("resourceslices", None,
                            fieldSelector="spec.nodeName=adv")
        self.api.delete("leases", "biga-nodes", "adv", missing_ok=True)
        self.api.delete("configmaps", "biga-nodes", "adv", missing_ok=True)
        if not anew:
            self.api.create("configmaps", {"metadata": {
                "name": "adv", "namespace": "biga-nodes"}})
            publish(self.api, "adv")
            surplus = self.slices()[0]
            surplus["metadata"] = {"name": "adv-surplus"}
            self.api.create("resourceslices", surplus)
            beat(self.api, "adv")
        self.advertiser.argv = [a for a in self.advertiser.argv
                                if not a.startswith("--boot-id")]
        self.advertiser.start("--boot-id=" + boot)
        self.wait("its slices are there", lambda: self.slices() and all(
            s["metadata"].get("annotations", {}).get("biga.dev/boot-id")
            == boot for s in self.slices()))
        self.wait("its Node says so", lambda: "biga.dev/topology" in
                  self.api.get("nodes", None, "adv")["metadata"].get(
                      "annotations", {}))
        self.wait("its Lease is held", lambda: self.api.get(
            "leases", "biga-nodes", "adv")["spec"][
                "holderIdentity"].startswith(boot))
        self.wait("it tells what its pods have", lambda: '"name":"what"' in
                  (self.achieved() or ""))
        meanwhile()
        if not self.advertiser.end():
            self.advertise(anew, meanwhile)
            return
        self.wait("it has withdrawn", lambda: not self.slices() and
                  not self.api.maybe("leases", "biga-nodes", "adv") and
                  self.achieved() is None)

    def hosts_are_published(self):
        self.advertise(anew=True)

    def hosts_are_published_again(self):
        self.advertise(anew=False)

    def wipe(self):
        """As a kubelet that starts: it is not the next check that helps."""
        gone = {s["metadata"]["uid"] for s in self.slices()}
        self.api.delete_all("resourceslices", None,
                            fieldSelector="spec.nodeName=adv")
        self.wait("other slices are there", lambda: self.slices() and
                  not gone & {s["metadata"]["uid"] for s in self.slices()})

    def slices_of_hosts_are_watched(self):
        self.advertise(anew=True, meanwhile=self.wipe)


# (role, what, verb): the check that needs it.  In this order; what ends the
# leader, which has to be the same from the first refusal of a pod to its last,
# comes first.
NEEDED_BY = {
    ("biga-extender-election", "leases", "create"): Bench.lease_is_made,
    ("biga-extender-election", "leases", "get"): Bench.lease_is_taken,
    ("biga-extender-election", "leases", "update"): Bench.lease_is_taken,
    ("biga-extender", "pods/binding", "create"): Bench.pods_are_bound,
    ("biga-extender", "pods", "get"): Bench.binds_of_others_are_looked_up,
    ("biga-extender", "pods", "create"): Bench.buddies_are_made,
    ("biga-extender", "podtemplates", "get"): Bench.buddies_are_made,
    ("biga-extender", "pods", "delete"):
        Bench.xpu_pods_end_with_their_host_pod,
    ("biga-extender", "pods/status", "patch"):
        Bench.pairs_tell_of_their_xpu_pods,
    ("biga-extender", "pods/eviction", "create"):
        Bench.pods_of_lost_cards_are_evicted,
    ("biga-extender-gate", "pods", "patch"): Bench.gates_are_opened,
    ("biga-extender-gate", "resourceclaims", "create"):
        Bench.claims_are_pinned,
    ("biga-extender-gate", "resourceclaims", "delete"):
        Bench.claims_without_pins_go,
    ("biga-extender", "events", "create"): Bench.events_are_written,
    ("biga-extender", "tokenreviews", "create"): Bench.readers_are_known,
    ("biga-extender", "subjectaccessreviews", "create"):
        Bench.readers_are_known,
    ("biga-reader", "/", "get"): Bench.page_is_read,
    ("biga-reader", "/v1/*", "get"): Bench.readers_are_known,
    ("biga-reader", "/metrics", "get"): Bench.metrics_are_read,
    ("biga-reader", "/v1/simulate", "post"): Bench.simulations_are_asked_for,
    ("biga-operator", "/v1/allocations/*", "delete"):
        Bench.allocations_are_released,
    ("biga-operator", "/v1/jobs/*", "delete"): Bench.jobs_are_released,
    ("biga-operator", "/v1/nodes/*", "post"): Bench.drains_are_written,
    ("biga-operator", "/v1/nodes/*", "delete"): Bench.undrains_are_asked_for,
    ("biga-operator", "/v1/cards/*", "post"): Bench.cards_are_drained,
    ("biga-operator", "/v1/cards/*", "delete"): Bench.cards_are_undrained,
    ("biga-extender-election", "configmaps", "patch"):
        Bench.drains_are_written,
    ("biga-extender-election", "configmaps", "list"):
        Bench.drains_are_followed,
    ("biga-extender-election", "configmaps", "watch"):
        Bench.drains_are_followed,
    ("biga-advertiser", "nodes", "get"): Bench.hosts_are_published,
    ("biga-advertiser", "nodes", "patch"): Bench.hosts_are_published,
    ("biga-advertiser", "resourceslices", "list"): Bench.hosts_are_published,
    ("biga-advertiser", "resourceslices", "watch"):
        Bench.slices_of_hosts_are_watched,
    ("biga-advertiser", "resourceslices", "create"):
        Bench.hosts_are_published,
    ("biga-advertiser", "resourceslices", "update"):
        Bench.hosts_are_published_again,
    ("biga-advertiser", "resourceslices", "delete"):
        Bench.hosts_are_published_again,
    ("biga-advertiser-heartbeats", "leases", "get"):
        Bench.hosts_are_published,
    ("biga-advertiser-heartbeats", "leases", "create"):
        Bench.hosts_are_published,
    ("biga-advertiser-heartbeats", "leases", "update"):
        Bench.hosts_are_published_again,
    ("biga-advertiser-heartbeats", "leases", "delete"):
        Bench.hosts_are_published,
    ("biga-advertiser-heartbeats", "configmaps", "create"):
        Bench.hosts_are_published,
    ("biga-advertiser-heartbeats", "configmaps", "patch"):
        Bench.hosts_are_published_again,
    ("biga-advertiser-heartbeats", "configmaps", "delete"):
        Bench.hosts_are_published,
    ("biga-extender", "resourceslices", "list"): Bench.slices_are_followed,
    ("biga-extender", "resourceslices", "watch"): Bench.slices_are_followed,
    ("biga-extender", "resourceclaims", "list"): Bench.claims_are_followed,
    ("biga-extender", "resourceclaims", "watch"): Bench.claims_are_followed,
    ("biga-extender", "resourceclaimtemplates", "list"):
        Bench.claims_are_followed,
    ("biga-extender", "resourceclaimtemplates", "watch"):
        Bench.claims_are_followed,
    ("biga-extender", "deviceclasses", "list"): Bench.claims_are_followed,
    ("biga-extender", "deviceclasses", "watch"): Bench.claims_are_followed,
    ("biga-extender", "dpus", "list"): Bench.dpus_are_followed,
    ("biga-extender", "dpus", "watch"): Bench.dpus_are_followed,
    ("biga-extender", "dataprocessingunits", "list"):
        Bench.units_are_followed,
    ("biga-extender", "dataprocessingunits", "watch"):
        Bench.units_are_followed,
    ("biga-extender", "nodes", "list"): Bench.nodes_are_followed,
    ("biga-extender", "nodes", "watch"): Bench.nodes_are_followed,
    ("biga-extender", "pods", "list"): Bench.pods_are_followed,
    ("biga-extender", "pods", "watch"): Bench.pods_are_followed,
    ("biga-extender-heartbeats", "leases", "list"):
        Bench.heartbeats_are_followed,
    ("biga-extender-heartbeats", "leases", "watch"):
        Bench.heartbeats_are_followed,
    ("biga-extender-heartbeats", "configmaps", "list"):
        Bench.reports_are_followed,
    ("biga-extender-heartbeats", "configmaps", "watch"):
        Bench.reports_are_followed,
    ("biga-extender", "events", "patch"): Bench.events_are_counted_up,
}


def needed(b, right, roles):
    """The check fails without the right, for lack of it, and passes with
    it.  Who may not watch lists again and again, and may be in time; that
    it was refused to watch is told after what it has listed is known."""
    check = NEEDED_BY[right.key]
    with b.lacking(right, roles):
        try:
            check(b)
        except (Denied, ApiError, AssertionError, TimeoutError) as error:
            assert right.refused(str(error)) or b.denied(), \
                f"it failed, but of that nobody says: {error}"
        else:
            assert right.verb == "watch", \
                "it is not needed: all went well without"
            wait_for("a program says that it was refused", b.denied)
    check(b)


def in_time(b, wanted):
    """In their order, but Events are counted up when it is time."""
    slow = [r for r in wanted if NEEDED_BY[r.key] ==
            Bench.events_are_counted_up]
    for right in [r for r in wanted if r not in slow]:
        calm = right.role != "biga-extender-election"
        if slow and calm and len(b.armed) < 2 and b.left() < PAUSE - APART:
            b.arm_event()
        if slow and len(b.armed) == 2 and b.left() < APART:
            yield slow.pop()
        yield right
    yield from slow


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        b = Bench(c, Lab(c))
        with t.check("a leader, a replica that watches, an advertiser"):
            b.up()
        if t.failed:
            t.finish()
        granted, roles = rights(c.api)
        order = {key: i for i, key in enumerate(NEEDED_BY)}
        with t.check("each right that is granted has its check"):
            keys = {r.key for r in granted}
            assert keys == order.keys(), (
                f"without a check: {sorted(keys - order.keys())}; "
                f"not granted: {sorted(order.keys() - keys)}")
        known = [r for r in granted if r.key in order]
        for right in in_time(b, sorted(known, key=lambda r: order[r.key])):
            check = NEEDED_BY[right.key].__name__.replace("_", " ")
            with t.check(f"{right}: {check}"):
                needed(b, right, roles)
        t.finish()


if __name__ == "__main__":
    main()
