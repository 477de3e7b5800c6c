"""Records what runs at all places of a rig and what is told of it, for
checker.py:

    with Watch(r) as w:
        ...
        w.rest()     # now all is at rest
    found, made = w.check()
"""
import http.client
import os
import sys
import threading
import time

import checker
import rig
from api import ApiError
from cri import Cri
from proc import HANGS, wait_for

sys.path.append(os.path.join(os.path.dirname(rig.HERE), "soak"))
from cardwatch import Tasks  # noqa: E402
from record import Changes, History  # noqa: E402

EVERY = 0.2  # seconds between two lists
PLEG = "pleg was last seen active"  # of one that is not healthy any more
# what the other end does when it is killed in between
WENT = (ApiError, OSError, http.client.HTTPException, RuntimeError, KeyError,
        ValueError, IndexError)


class Watch:
    """node: whether the node is looked at, too."""

    def __init__(self, r, node=True):
        self.r, self.path = r, os.path.join(r.rack.folder, "history.jsonl")
        self.log = r.way.process.log
        self.h = History(self.path)
        self.tasks = Tasks(self.h, r.rack)
        self.stopped = threading.Event()
        self.lock, self.pods_lock = threading.Lock(), threading.Lock()
        self.known = {}  # what was told of it, by id
        self.pods = Changes(self.h, "pod", "uid")
        self.skipped = len(r.kubelet.text())
        watchers = [self._list, self._pods]
        if node:
            watchers += [self._node, self._healthz]
        self.threads = [threading.Thread(target=self._again, args=[f],
                                         daemon=True) for f in watchers]

    def __enter__(self):
        self.h.write("begin", wall=time.time())
        for thread in (self.tasks, *self.threads):
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.tasks.stopped.set()
        for thread in (self.tasks, *self.threads):
            thread.join(HANGS)
        self.tasks.scan()  # what runs now ran until now
        if PLEG in self.r.kubelet.text()[self.skipped:]:
            self.h.write("healthz", ok="False", why=PLEG)
        self.h.write("end")
        self.h.close()

    def rest(self):
        """All that happened is told by now."""
        self._list()
        with self.pods_lock:
            # the watch may be behind; what it tells of before after this
            # was so as well, and is put right at the next rest
            wait_for("pods are listed", self._list_pods)
            self.h.write("rest")

    def lies(self, place):
        """What that place says of itself is nobody's promise."""
        self.h.write("lies", place=place)

    def check(self):
        return checker.check(self.path, self.log)

    def _again(self, look):
        while not self.stopped.wait(EVERY):
            try:
                look()
            except WENT:
                pass  # the next look tells

    # --- what is told -------------------------------------------------------
    def _list(self):
        with self.lock:
            found = {c["id"]: c["state"] for c in
                     Cri(unix=self.r.way.socket).containers()}
            for ident, state in found.items():
                if self.known.get(ident) != state:
                    self.h.write("told", id=ident, state=state)
            for ident in self.known.keys() - found.keys():
                self.h.write("told-gone", id=ident)
            self.known = found

    def _pods(self):
        """A list and a watch, until there is no news for a while."""
        with self.pods_lock:
            version = self._list_pods()
        for kind, found in self.r.c.api.watch(
                "pods", "default", timeout=2, resourceVersion=version):
            with self.pods_lock:
                self._see_pod(kind, found)
            if self.stopped.is_set():
                return

    def _list_pods(self):
        """What all are like now; the version of the list."""
        there, version = self.r.c.api.list_with_version("pods", "default")
        for found in there:
            self.pods.see(uid_of(found), **said_of(found))
        for uid in self.pods.keep_only({uid_of(found) for found in there}):
            self.h.write("pod-gone", uid=uid)
        return version

    def _see_pod(self, kind, found):
        if kind == "DELETED":
            self.pods.last.pop(uid_of(found), None)
            self.h.write("pod-gone", uid=uid_of(found))
        elif kind in ("ADDED", "MODIFIED"):
            self.pods.see(uid_of(found), **said_of(found))

    # --- the node ------------------------------------------------------------
    def _node(self):
        to = Changes(self.h, "node", "name")
        for _, found in self.r.c.api.watch(
                "nodes", timeout=5,
                fieldSelector="metadata.name=" + rig.NODE):
            for c in found.get("status", {}).get("conditions", ()):
                if c["type"] == "Ready":
                    to.see(rig.NODE, ok=c["status"], why=c["message"])
            if self.stopped.is_set():
                return

    def _healthz(self):
        kubelet = self.r.kubelet.pid
        if not kubelet:
            return
        asked = http.client.HTTPConnection(rig.ADDRESS, 10248, timeout=HANGS)
        asked.request("GET", "/healthz")
        said = asked.getresponse()
        text = said.read().decode("utf-8", "replace")
        asked.close()
        if self.r.kubelet.pid == kubelet:
            self.h.write("healthz", ok=str(said.status == 200), why=text)


def uid_of(found):
    return found["metadata"]["uid"]


def said_of(found):
    """Of a Pod: what is told of its containers."""
    return {
        "name": found["metadata"]["name"],
        "once": found["spec"]["restartPolicy"] == "Never",
        "containers": [
            {"name": c["name"], "id": c["containerID"].split("//")[-1],
             "state": next(iter(c["state"]), "")}
            for c in found["status"].get("containerStatuses", ())
            if c.get("containerID")]}
