"""The side of a soak in a real cluster: three replicas of the extender, each
with a wire of its own to the API server, two fleets of simulated hosts, and
kube-scheduler; pods and whole jobs that come and go."""
import base64
import json
import os
import shutil
import threading
from http.client import HTTPException

import fleet
import jobs
import plan
from api import Api, ApiError, kubeconfig, write_private
from cluster import Cluster
from clusterwatch import (AUDIT, WENT_WRONG, Audit, Follow, Slices,
                          Watcher)
from faults import Program
from fleet import allocation
from lab import MONTH, Lab
from proc import wait_for
from proxy import Proxy
from record import Changes, Wall, short
from units import Unit

REPLICAS = 3
GPUS = 8          # of each node
CARDS = 8
HELD = 10         # seconds that a job's places are held


class ClusterSide:
    name = "cluster"
    worlds = ("cluster",)
    roles = ("leader",)

    def __init__(self, history, library, folder):
        self.history, self.library = history, library
        self.folder = folder
        self.c = Cluster()
        self.lab = Lab(self.c)
        self.units, self.targets, self.threads = {}, {}, []
        self.ending = threading.Event()
        self.marks = {}  # credential: replica

    # --- coming and going --------------------------------------------------
    def start(self):
        c, lab = self.c, self.lab
        os.makedirs(self.folder, exist_ok=True)
        policy = os.path.join(self.folder, "audit-policy.json")
        audit = os.path.join(self.folder, "audit.jsonl")
        write_private(policy, json.dumps(AUDIT))
        c.start(apiserver_args=["--audit-policy-file=" + policy,
                                "--audit-log-path=" + audit,
                                "--audit-log-maxsize=10000"])
        lab.install()
        self.token = lab.reader()
        self.hosts = [name for prefix in plan.FLEETS
                      for name in fleet.names(prefix, plan.NODES)]
        fleet.add_nodes(c.api, [
            fleet.node(name, 224, labels=labels,
                       extended={"nvidia.com/gpu": str(GPUS)})
            for name, labels in fleet.leaves(self.hosts).items()])
        extenders = [self._extender(f"extender{i}") for i in range(REPLICAS)]
        fleets = [self._fleet(prefix) for prefix in plan.FLEETS]
        lab.wait_slices(len(self.hosts), by=fleets[0].process)
        lab.start_service()
        lab.leader()
        lab.start_scheduler(qps=200)
        lab.start_kubelet()
        self.quick = self._api(2)
        self.api = self._api(10)
        self._targets(extenders + fleets)
        self._watch(audit)

    def _api(self, timeout):
        crt, key = self.c.client_cert("admin", "admin", ["system:masters"])
        return Api(self.c.server, self.c.ca, crt, key, timeout=timeout)

    def _program(self, process, proxy):
        wall = Wall(self.library, os.path.join(
            self.folder, "wall-" + process.name))
        process.env = {**process.env, **wall.env()}
        process.start()
        return Program(self.history, process, wall, proxy)

    def _extender(self, name):
        c, proxy = self.c, Proxy(self.c.ports["apiserver"])
        extender = self.lab.extender(name, f"--lease={HELD}s", start=False)
        token = c.api.token_request("biga-system", "biga-extender",
                                    seconds=MONTH)
        write_private(c.path(name + ".kubeconfig"), kubeconfig(
            f"https://127.0.0.1:{proxy.port}", c.ca, name, token=token))
        body = token.split(".")[1]
        said = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body)
                                                                 % 4)))
        self.marks["JTI=" + said["jti"]] = name
        program = self._program(extender, proxy)
        extender.wait_up(**self.lab.ca())
        return program

    def _fleet(self, prefix):
        c, proxy = self.c, Proxy(self.c.ports["apiserver"])
        crt, key = c.client_cert("fleet", "fleet")
        config = write_private(c.path(prefix + ".kubeconfig"), kubeconfig(
            f"https://127.0.0.1:{proxy.port}", c.ca, "fleet", cert=crt,
            key=key))
        return self._program(fleet.Advertiser(
            c.folder, prefix, "--server=kubernetes", "--kubeconfig=" + config,
            f"--fleet={plan.NODES}", "--fleet-prefix=" + prefix,
            "--fleet-shapes=dell-xe9680-bf3"), proxy)

    def _targets(self, ours):
        c, history = self.c, self.history
        self.programs = ours
        self.kubernetes = [
            Program(history, c.apiserver, others=[c.etcd]),
            Program(history, c.scheduler), Program(
                history, c.controller_manager),
            Program(history, self.lab.kubelet),
            Program(history, self.lab.service)]
        for program in self.kubernetes:
            program.ours = False
        self.targets = {t.name: t for t in ours + self.kubernetes
                        + [Slices(self)]}

    def _watch(self, audit):
        history = self.history
        self.pods = Changes(history, "pod", "uid")
        self.devices = Changes(history, "slice", "name")
        self.watchers = {
            e.name: Watcher(self, e, self.targets[e.name])
            for e in self.lab.extenders}
        self.threads = [
            Follow(self._api(30), "pods", self._see_pod, self._pod_gone,
                   labelSelector="biga.dev/role"),
            Follow(self._api(30), "resourceslices", self._see_slice,
                   lambda uid, name: self._slice_gone(name)),
            Audit(history, audit, self.marks), *self.watchers.values()]
        for thread in self.threads:
            thread.start()

    def _see_pod(self, obj):
        meta, text = obj["metadata"], allocation(obj)
        self.pods.see(meta["uid"], name=meta["name"],
                      node=obj["spec"].get("nodeName"),
                      phase=obj["status"].get("phase"),
                      deleting="deletionTimestamp" in meta,
                      allocation=short(json.loads(text)) if text else None)

    def _pod_gone(self, uid, name):
        self.pods.last.pop(uid, None)
        self.history.write("pod-deleted", uid=uid, name=name)

    def _see_slice(self, obj):
        spec = obj["spec"]
        found = {}
        for d in spec.get("devices", []):
            room = d.get("capacity", {})
            if "biga.dev/cores" in room and \
                    d["attributes"]["biga.dev/kind"]["string"] == "card":
                found[d["name"]] = [
                    jobs.quantity(room["biga.dev/cores"]["value"]),
                    jobs.quantity(room["biga.dev/memory"]["value"]) >> 20]
        self.devices.see(obj["metadata"]["name"], node=spec.get("nodeName"),
                         generation=spec["pool"]["generation"], cards=found)

    def _slice_gone(self, name):
        last = self.devices.last.pop(name, {})
        self.history.write("slice-gone", name=name, node=last.get("node"))

    def stop(self):
        self.ending.set()
        for thread in self.threads:
            thread.stopped.set()
        if self.c.apiserver:  # without etcd it would not end by itself
            self.c.apiserver.kill()
        self.c.stop()
        shutil.rmtree(self.c.folder, ignore_errors=True)

    def finish(self):
        for program in reversed(self.programs):
            program.finish()

    def save_logs(self, folder):
        if os.path.isdir(self.c.path("log")):
            shutil.copytree(self.c.path("log"), folder, dirs_exist_ok=True)

    # --- faults --------------------------------------------------------------
    def leader(self):
        """The name of the replica that says that it binds."""
        return next((name for name, w in self.watchers.items() if w.ready),
                    None)

    def target(self, name):
        return self.targets.get(self.leader() if name == "leader" else name)

    def look(self):
        for target in self.targets.values():
            target.look()

    def heal(self):
        for target in self.targets.values():
            target.heal()

    def sample(self, calm):
        for program in self.programs:
            program.sample(calm)

    # --- work, in threads of others -----------------------------------------
    def add(self, what):
        unit = Unit(what, self._make(what))
        self.units[unit.id] = unit
        return unit

    def _make(self, what):
        name, kind, cores = what["id"], what["kind"], what["cores"]
        if kind == "service":
            return [fleet.pod(name, labels={"biga.dev/role": "service"},
                              requests={"biga.dev/card": 1,
                                        "biga.dev/card-cores": cores or 1,
                                        "biga.dev/card-memory-mib": 512})]
        if kind == "host":
            return [jobs.host_pod(name, cores=cores)]
        more = {}
        if kind == "pinned":
            more["nodeSelector"] = {
                "kubernetes.io/hostname": self.hosts[what["node"]]}
        return jobs.pairs(name, what.get("size", 1), what["interleave"],
                          cores=cores, **more)

    def _try(self, call, fine, until=None):
        """A call until it is answered, or it is too late for it."""
        while not self.ending.is_set() and not (until and until.is_set()):
            try:
                return call()
            except ApiError as error:
                if error.status in fine:
                    return None
            except (OSError, HTTPException):
                pass
            self.ending.wait(0.3)
        return None

    def create(self, unit):
        with unit.lock:
            for pod in unit.pods:
                self._try(lambda pod=pod: self.api.create("pods", pod),
                          (409,), unit.over)
            unit.acked = True

    def remove(self, unit):
        unit.over.set()
        how = unit.what["end"]
        with unit.lock:
            for name in unit.names():
                self.history.write("deleting", name=name, how=how)
            if how == "succeed":
                self._succeed(unit)
            grace = 30 if how == "slow" else 0
            for name in unit.names():
                self._try(lambda name=name: self.api.delete(
                    "pods", "default", name, gracePeriodSeconds=grace),
                    (404,))
            unit.deleted = True

    def _succeed(self, unit):
        hand = fleet.Kubelet(self.api)
        for name in unit.names():
            obj = self._try(lambda name=name: self.api.maybe(
                "pods", "default", name), ())
            if obj and obj["spec"].get("nodeName"):
                self._try(lambda obj=obj: hand.phase(obj, "Succeeded"),
                          (404, 409))
        self.ending.wait(0.5)

    # --- quiet ---------------------------------------------------------------
    def live_units(self):
        return [u for u in list(self.units.values()) if not u.deleted]

    def reader(self, extender):
        return self.lab.read_api(extender, self.token)

    def wrong(self):
        try:
            return self._programs() or self._pods() or self._extenders()
        except WENT_WRONG as error:
            return [f"{type(error).__name__}: {error}"]

    def _programs(self):
        bad = [f"{p.name} does not run"
               for p in self.programs + self.kubernetes
               if not p.process.running]
        if bad:
            return bad
        self.api.call("GET", "/readyz")
        leads = [name for name, w in self.watchers.items() if w.ready]
        if len(leads) != 1:
            bad.append(f"{leads} lead")
        for extender in self.lab.extenders:
            nodes = {n["name"]: n["status"] for n in self.reader(
                extender).call("GET", "/v1/nodes?limit=1000")["items"]}
            bad += [f"{extender.name}: {name} is {nodes.get(name)}"
                    for name in self.hosts if nodes.get(name) != "ready"]
        return bad

    def _list(self):
        return self.api.list("pods", "default", labelSelector="biga.dev/role")

    def _pods(self):
        found = {p["metadata"]["name"]: p for p in self._list()}
        bad, names, self.waits = [], set(), set()
        for unit in self.live_units():
            for name in unit.names():
                names.add(name)
                phase = found.get(name, {}).get("status", {}).get("phase")
                if phase == "Running":
                    continue
                if self._has_no_room(unit, name, found):
                    self.waits.add(name)
                else:
                    bad.append(f"{name} ({unit.kind}) is {phase}: "
                               + fleet.why_pending(self.api, name)[:300])
        return bad + [f"{name} is there, and was deleted"
                      for name in found.keys() - names]

    def _has_no_room(self, unit, name, found):
        """Whether the only node that it may go to is full: where it is
        pinned to, or of a host pod where its xPU pod is, which came when
        there was room for both.  An xPU pod has room where its host pod
        is."""
        other = name[:-4] if name.endswith("-xpu") else name + "-xpu"
        node = found.get(other, {}).get("spec", {}).get("nodeName")
        if node and name.endswith("-xpu"):
            return False
        if not node and unit.kind == "pinned":
            node = self.hosts[unit.what["node"]]
        if not node:
            return False
        gpus, taken = 0, set()
        for p in found.values():
            got = allocation(p)
            if got and p["spec"].get("nodeName") == node:
                got = json.loads(got)
                taken |= {c["id"] for c in got["cards"]}
                if got["pod"]["role"] == "host":
                    gpus += len(got["gpus"])
        return gpus >= GPUS or len(taken) >= CARDS

    def _extenders(self):
        bad = []
        for extender in self.lab.extenders:
            reader = self.reader(extender)
            bad += [f"{extender.name}: {text}" for text in
                    jobs.audit(self.api, reader, churn=True)]
            held = [a for a in jobs.items(reader, "/v1/allocations")
                    if a.get("held")]
            if held:
                bad.append(f"{extender.name}: {len(held)} places are held")
            state = reader.call("GET", "/v1/cluster")
            if state["bindsInFlight"]:
                bad.append(f"{extender.name}: {state['bindsInFlight']} binds "
                           "are in flight")
        return bad

    def answers(self):
        """What the replica that leads answers."""
        extender = self.lab.leader()
        reader = self.reader(extender)
        nodes = {n["name"]: {k: n[k] for k in ("status", "cards", "gpus")}
                 for n in jobs.items(reader, "/v1/nodes")}
        pod = jobs.host_pod("probe", cores=4)
        pod["metadata"]["uid"] = "uid-probe"
        asked = {"Pod": pod, "NodeNames": self.hosts}
        scheduler = self.lab.scheduler_api(extender)
        return {"nodes": nodes, "allocations": sorted(
                    (short(a) for a in jobs.items(reader, "/v1/allocations")
                     if not a.get("held")), key=lambda a: a["pod"]["name"]),
                **{verb: scheduler.call("POST", "/v1/scheduler/" + verb,
                                        asked)
                   for verb in ("filter", "prioritize")}}

    def restart(self, how):
        """The replica that leads, while all is quiet; another leads then."""
        old = self.lab.leader()
        target = self.targets[old.name]
        self.history.write("restart", name=old.name, how=how)
        target.kill() if how == "kill" else target.finish()
        wait_for("another leads", lambda: self.lab.ready() not in ([], [old]))
        target.start()
        old.wait_up(**self.lab.ca())

    def snapshot(self):
        found = self._list()
        return {"pods": {p["metadata"]["uid"]: {
                    "name": p["metadata"]["name"],
                    "node": p["spec"].get("nodeName"),
                    "phase": p["status"].get("phase"),
                    "allocation": short(json.loads(allocation(p)))
                    if allocation(p) else None} for p in found},
                "wanted": sorted({n for u in self.live_units()
                                  for n in u.names()} - self.waits)}

    def clear(self):
        for unit in self.live_units():
            self.remove(unit)
