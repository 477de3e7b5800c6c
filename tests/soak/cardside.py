"""The embedded side of a soak: an extender with its database, the advertiser
of a host whose cards are real containerds, simulated hosts beside it, pods
that are applied, and a scheduler's binds for those hosts."""
import os
import shutil
import threading
import time
import urllib.parse
from collections import Counter

import cards
import fleet
import jobs
import node as biga_node
import plan
from api import Api, ApiError
from cardwatch import WENT_WRONG, Tasks, Watcher
from faults import CardTarget, Program
from record import Wall, short
from units import Unit, make

STATE_MIB, ACTUATOR_MIB = 24, 32
LOST = "SandboxLost"
NO_PLACE = {"NoPlace", "JobNotPlaced", "PairNotPlaced"}
CORES = 8  # of each card


class CardSide:
    name = "cards"
    worlds = ("cards", "sim")

    def __init__(self, history, library, _):
        self.history, self.library = history, library
        self.rack = cards.Rack(plan.CARDS)
        self.rack.cards[plan.SMALL_DISK].disk_mib = 160
        self.units = {}
        self.ending = threading.Event()
        self.targets = {}
        self.threads = []
        self.restarts = 0

    # --- coming and going --------------------------------------------------
    def start(self):
        rack = self.rack
        rack.start()
        node = self.node = biga_node.Node(rack)
        self.extender = node.extender
        inside = rack.host.enter()
        state = os.path.join(rack.folder, "state")
        for folder, size in ((state, STATE_MIB), (node.state, ACTUATOR_MIB)):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            cards.run(*inside, "mount", "-t", "tmpfs", "-o",
                      f"size={size}m,mode=700", "none", folder)
        root = f"/proc/{rack.host.init.pid}/root"
        self.disk = root + state
        walls = {}
        for process in (node.extender, node.advertiser):
            walls[process.name] = wall = Wall(self.library, os.path.join(
                rack.folder, "wall-" + process.name))
            process.env = wall.env()
        node.extender.argv = [*inside, *node.extender.argv]
        # from here its socket is seen by the root of who sees the mount
        actuator, node.state = node.state, root + node.state
        node.extender.start()
        node.extender.wait_up()
        node.advertiser.start()
        self.simulated = fleet.Advertiser(
            rack.folder, "simulated", "--server",
            node.extender.url("publish"), f"--fleet={plan.SIMULATED}",
            "--fleet-prefix=sim", "--fleet-shapes=dell-xe9680-bf3").start()
        node.wait_capacity(plan.CARDS)
        self._targets(inside, walls, root + actuator)
        self.read = Api(node.extender.url("read"), timeout=10)
        self.schedule = Api(node.extender.url("scheduler"), timeout=10)
        self.hosts = fleet.names("sim", plan.SIMULATED)
        for c in self.read.call("GET", "/v1/cards?limit=1000")["items"]:
            self.history.write("card", world="cards", node=c["node"],
                               card=c["id"], cores=c.get("cores", 0),
                               memory_mib=c.get("memoryMiB", 0))
        for card in rack.cards:
            self.history.write("place", place=card.name, card=card.id)
        self.tasks = Tasks(self.history, rack)
        self.watcher = Watcher(self.history, self)
        self.threads = [self.tasks, self.watcher]
        for thread in self.threads:
            thread.start()

    def _targets(self, inside, walls, actuator):
        node, history = self.node, self.history
        embedded = Program(history, node.extender, walls["extender"],
                           disk=self.disk, prefix=inside)
        embedded.name = "embedded"
        self.programs = [
            embedded, Program(history, node.advertiser, walls["advertiser"],
                              disk=actuator, prefix=inside),
            Program(history, self.simulated)]
        self.places = [CardTarget(history, place, node)
                       for place in self.rack.places]
        self.targets = {t.name: t for t in self.programs + self.places}

    def stop(self):
        self.ending.set()
        for thread in self.threads:
            thread.stopped.set()
        self.rack.stop()

    def target(self, name):
        return self.targets[name]

    def look(self):
        for target in self.targets.values():
            target.look()
        for place in self.places:
            place.flap()

    def heal(self):
        for target in self.targets.values():
            target.heal()
        for place in self.places:
            place.undrain()

    # --- work, in threads of others -----------------------------------------
    def add(self, what):
        unit = Unit(what, [] if what["kind"] == "bind" else make(what))
        self.units[unit.id] = unit
        return unit

    def create(self, unit):
        with unit.lock:
            if unit.kind == "bind":
                self._bind(unit)
            else:
                self._try(unit, "apply", lambda: self.read.call(
                    "POST", "/v1/pods", {
                        "apiVersion": "v1", "kind": "List",
                        "items": unit.pods}), unit.over)
            unit.acked = True

    def _try(self, unit, what, call, until=None):
        """A call until it is answered; what it answered, None when it is too
        late for it."""
        n = 0
        while not self.ending.is_set() and not (until and until.is_set()):
            n += 1
            try:
                said = call()
            except ApiError as error:
                self.history.write(what, unit=unit.id, ok=False, n=n,
                                   status=error.status,
                                   text=str(error)[:200])
                if error.status == 404 and what in ("delete", "release"):
                    return 404
            except WENT_WRONG as error:
                self.history.write(what, unit=unit.id, ok=False, n=n,
                                   status=0, text=str(error)[:100])
            else:
                self.history.write(what, unit=unit.id, ok=True, n=n,
                                   names=unit.names())
                return said
            self.ending.wait(0.3)
        return None

    def remove(self, unit):
        """It ends; what is on the way there comes to nothing."""
        unit.over.set()
        with unit.lock:
            if unit.kind == "bind":
                self._release(unit)
            else:
                grace = unit.what["grace"]
                query = "" if grace is None else f"?grace={grace}"
                for name in unit.names():
                    self.history.write("deleting", name=name)
                    self._try(unit, "delete", lambda name=name: self.read.call(
                        "DELETE", f"/v1/pods/default/{name}{query}"))
            unit.deleted = True

    def _pod(self, unit):
        unit.uid = unit.uid or "uid-" + unit.id
        made = biga_node.service(unit.id, cores=unit.what["cores"])
        made["metadata"]["uid"] = unit.uid
        return made

    def _bind(self, unit):
        """As kube-scheduler does it."""
        pod = self._pod(unit)
        while not unit.over.is_set() and not self.ending.is_set():
            if not unit.node:
                said = self._try(unit, "filter", lambda: self.schedule.call(
                    "POST", "/v1/scheduler/filter",
                    {"Pod": pod, "NodeNames": self.hosts}), unit.over)
                found = (said or {}).get("NodeNames") or []
                if not found:
                    self.ending.wait(0.3)
                    continue
                unit.node = found[unit.what["node"] % len(found)]
            began = time.monotonic()
            # whatever became of a bind that nobody answered: ask again
            said = self._try(unit, "bind", lambda: self.schedule.call(
                "POST", "/v1/scheduler/bind",
                {"PodName": unit.id, "PodNamespace": "default",
                 "PodUID": unit.uid, "Node": unit.node}))
            if said is None:
                return
            self.history.write("bound", world="sim", unit=unit.id,
                               uid=unit.uid, node=unit.node,
                               error=said["Error"][:200],
                               asked=round(began, 4))
            if not said["Error"]:
                return
            if "no space" not in said["Error"]:
                unit.node = None
            self.ending.wait(0.3)

    def _release(self, unit):
        if not unit.node:
            return
        name = urllib.parse.quote(unit.id)
        self.history.write("releasing", unit=unit.id)
        self._try(unit, "release", lambda: self.read.call(
            "DELETE", f"/v1/allocations/default/{name}"))

    # --- quiet ---------------------------------------------------------------
    def wrong(self):
        """What is not yet as it has to be in the end: a list of texts."""
        try:
            return self._programs() or self._pods() or self._left()
        except AssertionError as error:
            return [str(error)]
        except WENT_WRONG as error:
            return [f"{type(error).__name__}: {error}"]

    def live_units(self):
        return [u for u in list(self.units.values()) if not u.deleted]

    def _programs(self):
        bad = [f"{p.name} does not run" for p in self.programs
               if not p.process.running]
        status = self.read.raw("GET", "/readyz")
        if status[0] != 200:
            bad.append(f"embedded is not ready: {status[2][:200]}")
        nodes = {n["name"]: n["status"] for n in self.read.call(
            "GET", "/v1/nodes?limit=1000")["items"]}
        for name in [cards.NODE, *self.hosts]:
            if nodes.get(name) != "ready":
                bad.append(f"{name} is {nodes.get(name)}")
        lost = {c.id for c in self.rack.cards} - self.node.capacity()
        return bad + [f"{card} cannot be chosen" for card in sorted(lost)]

    def _has_no_room(self, unit):
        """Whether no cards together have the cores that it asks for."""
        used = {c.id: Counter() for c in self.rack.cards}
        for a in self.read.call("GET", "/v1/allocations?limit=1000")["items"]:
            for card in a["cards"]:
                if card["id"] in used:  # a pair's pods take the same
                    used[card["id"]][jobs.pair_of(a)] = \
                        a["need"].get("cores", CORES)
        # of a pair, the xPU pod is the second
        cores = int(unit.pods[-1]["spec"]["containers"][0]["resources"][
            "limits"]["biga.dev/card-cores"])
        room = sum((CORES - sum(by.values())) // cores
                   for by in used.values())
        return room < (len(unit.pods) + 1) // 2

    def _pods(self):
        there = self.node.pods()
        bad, names, self.waits = [], set(), set()
        for unit in self.live_units():
            why = {there.get(n, {}).get("reason") for n in unit.names()}
            if why and why <= NO_PLACE and self._has_no_room(unit):
                names |= set(unit.names())
                self.waits |= set(unit.names())
                continue
            for name in unit.names():
                names.add(name)
                pod = there.get(name, {"state": "absent"})
                # of a card without power it is lost, as rules.py will see
                if unit.kind == "short" and pod.get("reason") == LOST:
                    continue
                want = "gone" if unit.kind == "short" else "running"
                if pod["state"] != want:
                    bad.append(f"{name} ({unit.kind}) is {pod['state']}: "
                               f"{pod.get('reason')}: "
                               f"{pod.get('message', '')[:200]}")
        return bad + [f"{name} is there, and was deleted: {p['state']}: "
                      f"{p.get('reason')}"
                      for name, p in there.items() if name not in names]

    def _left(self):
        self.node.check_cards()
        there = {p["uid"]: p for p in self.node.pods().values()}
        bad = [f"{place}: {pod} ({uid}) runs, and is nobody's"
               for place, uid, pod in self.tasks.uids() if uid not in there]
        bad += self._files(there)
        found = {a["pod"]["name"]: a for a in self.read.call(
            "GET", "/v1/allocations?limit=1000")["items"]
            if not a.get("held")}
        wanted = {u.id: u for u in self.live_units()
                  if u.kind == "bind" and u.node}
        applied = {p["name"] for p in there.values()
                   if p["state"] == "running"}
        for name in found.keys() - wanted.keys() - applied:
            bad.append(f"{name} has an allocation, and is not there")
        for name in (wanted.keys() | applied) - found.keys():
            bad.append(f"{name} has no allocation")
        return bad

    def _files(self, there):
        """Folders of pods that are gone."""
        bad = []
        for place in self.rack.places:
            top = os.path.join(self.node.state if place is self.rack.host
                               else place.store(), "pods")
            try:
                left = [uid for uid in os.listdir(top) if uid not in there
                        and not uid.startswith("biga-helper-")]
            except FileNotFoundError:
                continue
            bad += [f"{place.name}: the folder of {uid} is left"
                    for uid in left]
        return bad

    def answers(self):
        """What must be the same after a restart."""
        # of one that is over only how it ended is kept (schema/store.md)
        pods = {p["name"]: {k: p.get(k) for k in (
            "uid", "state", "node", "deleting", "ended", "reason",
            *(() if p["ended"] else ("attempt",)))}
            for p in self.node.pods().values()}
        held = self.read.call("GET", "/v1/allocations?limit=1000")["items"]
        nodes = {n["name"]: {k: n[k] for k in ("status", "cards", "gpus")}
                 for n in self.read.call("GET", "/v1/nodes?limit=1000")[
                     "items"]}
        pod = biga_node.service("probe", cores=4)
        pod["metadata"]["uid"] = "uid-probe"
        asked = {"Pod": pod, "NodeNames": [cards.NODE, *self.hosts]}
        return {"pods": pods, "nodes": nodes,
                "allocations": sorted((short(a) for a in held
                                       if not a.get("held")),
                                      key=lambda a: a["pod"]["name"]),
                "filter": self.schedule.call(
                    "POST", "/v1/scheduler/filter", asked),
                "prioritize": self.schedule.call(
                    "POST", "/v1/scheduler/prioritize", asked)}

    def restart(self, how):
        """The extender, while all is quiet."""
        target = self.targets["embedded"]
        self.history.write("restart", name="embedded", how=how)
        target.kill() if how == "kill" else target.finish()
        target.start()
        self.extender.wait_up()

    def snapshot(self):
        """What is there while it is quiet."""
        there = self.node.pods()
        return {"pods": {p["uid"]: {
                    "name": name, "state": p["state"],
                    "cards": [c["id"] for c in p["cards"]],
                    "role": p["role"]} for name, p in there.items()},
                "sandboxes": [
                    {"place": place.name, "ready": s["ready"],
                     "uid": s["labels"]["biga.dev/pod-uid"]}
                    for place, s in self.node.sandboxes_of_pods()],
                "wanted": sorted(n for u in self.live_units()
                                 for n in u.names() if u.kind != "short"
                                 and n not in self.waits)}

    def sample(self, calm):
        for program in self.programs:
            program.sample(calm)

    def finish(self):
        """Each program ends by itself, and well."""
        for program in reversed(self.programs):
            program.finish()

    def save_logs(self, folder):
        shutil.copytree(os.path.join(self.rack.folder, "log"), folder,
                        dirs_exist_ok=True)

    def clear(self):
        """All units end, in this thread."""
        for unit in self.live_units():
            self.remove(unit)
