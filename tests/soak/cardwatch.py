"""What is seen of the embedded side of a soak, again and again: what runs on
cards and host, by the files of their shims, and what the extender says."""
import json
import os
import threading
import time
from http.client import HTTPException

import cards
from api import Api, ApiError
from proc import start_time
from record import Changes, short

EVERY = 0.1  # seconds between two looks
WENT_WRONG = (ApiError, OSError, HTTPException, ValueError, RuntimeError)


class Tasks(threading.Thread):
    """What runs on cards and host, from the files of their shims: also while
    a containerd is frozen, dead or cut off."""

    def __init__(self, history, rack):
        super().__init__(daemon=True)
        self.history, self.rack = history, rack
        self.live = {}   # (place, id): what it is
        # (place, id): start time of its process; kept after its end, for a
        # folder that stays names a process id which others get later
        self.first = {}
        self.stopped = threading.Event()

    def run(self):
        while not self.stopped.wait(EVERY):
            self.scan()

    def scan(self):
        now = {}
        for place in self.rack.places:
            top = place.path("run", "io.containerd.runtime.v2.task", "k8s.io")
            try:
                ids = os.listdir(top)
            except OSError:
                continue  # it has no power
            for name in ids:
                what = self._look(place, os.path.join(top, name), name)
                if what:
                    now[(place.name, name)] = what
        for key in self.live.keys() - now.keys():
            what = self.live.pop(key)
            self.history.write("task-end", place=key[0], id=key[1],
                               last=what["seen"], uid=what["uid"])
        for key, what in now.items():
            old = self.live.get(key)
            self.live[key] = what
            if not old:
                self.history.write("task", place=key[0], id=key[1],
                                   **{k: what[k] for k in (
                                       "uid", "pod", "kind", "container")},
                                   seen=what["seen"])

    def _look(self, place, folder, name):
        key = (place.name, name)
        try:
            with open(os.path.join(folder, "init.pid"),
                      encoding="utf-8") as f:
                pid = int(f.read())
            seen = round(time.monotonic(), 4)  # it ran then, if it runs now
            began = start_time(pid)
            if began is None or self.first.setdefault(key, began) != began:
                return None
            old = self.live.get(key)
            if old:
                return {**old, "seen": seen}
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                said = f.read()
            if not said or said.startswith(b"runc\0init"):
                return None  # it ends; it was created, and not started
            with open(os.path.join(folder, "config.json"),
                      encoding="utf-8") as f:
                notes = json.load(f).get("annotations", {})
        except (OSError, ValueError):
            return None

        def note(word):
            return notes.get("io.kubernetes.cri." + word, "")
        return {"uid": note("sandbox-uid"), "pod": note("sandbox-name"),
                "kind": note("container-type"), "seen": seen,
                "container": note("container-name")}

    def uids(self):
        return {(place, what["uid"], what["pod"]) for (place, _), what in
                list(self.live.items())
                if not what["uid"].startswith("biga-helper-")}


class Watcher(threading.Thread):
    """What the extender says, again and again."""

    def __init__(self, history, side):
        super().__init__(daemon=True)
        self.history, self.side = history, side
        self.api = Api(side.extender.url("read"), timeout=2)
        self.pods = Changes(history, "pod-state", "name")
        self.cards = Changes(history, "card-state", "card")
        self.nodes = Changes(history, "node-state", "node")
        self.answers = Changes(history, "answers", "name")
        self.allocations = {}
        self.stopped = threading.Event()

    def run(self):
        while not self.stopped.wait(EVERY):
            began = time.monotonic()
            try:
                self.look(began)
            except WENT_WRONG:
                self.answers.see("embedded", yes=False)
            else:
                self.answers.see("embedded", yes=True)

    def look(self, began):
        found = self.api.call("GET", "/v1/pods?limit=1000")["items"]
        for p in found:
            self.pods.see(
                p["name"] + "/" + p["uid"], state=p["state"], node=p["node"],
                cards=[c["id"] for c in p["cards"]], reason=p["reason"],
                attempt=p.get("attempt"), deleting=p["deleting"],
                role=p["role"])
        for key in self.pods.keep_only(
                {p["name"] + "/" + p["uid"] for p in found}):
            self.history.write("pod-gone", name=key)
        self._allocations(began)
        for n in self.api.call("GET", "/v1/nodes?limit=1000")["items"]:
            self.nodes.see("embedded/" + n["name"], status=n["status"])
        for c in self.api.call("GET", "/v1/nodes/" + cards.NODE)["cardList"]:
            self.cards.see(c["id"], healthy=c["healthy"])

    def _allocations(self, began):
        found = self.api.call("GET", "/v1/allocations?limit=1000")["items"]
        now = {f"{a['pod']['namespace']}/{a['pod']['name']}": short(a)
               for a in found if not a.get("held")}
        drop = sorted(self.allocations.keys() - now.keys())
        give = [a for key, a in sorted(now.items())
                if self.allocations.get(key) != a]
        # when it was asked, or nobody knows what it could have had
        self.history.write("allocations", asked=round(began, 4), give=give,
                           drop=drop, n=len(now)) \
            if give or drop else None
        self.allocations = now
