"""What is seen of the cluster of a soak: pods and slices in the order of the
API server, who bound and who led by its audit, and what each replica says."""
import calendar
import json
import os
import threading
import time
import urllib.parse
from http.client import HTTPException

from api import Api, ApiError, path
from faults import Target
from record import Changes

WENT_WRONG = (ApiError, OSError, HTTPException, ValueError)
EVERY = 0.2  # seconds between two looks at a replica
AUDIT = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
         "omitStages": ["RequestReceived", "ResponseStarted"], "rules": [
             {"level": "RequestResponse", "namespaces": ["biga-system"],
              "verbs": ["create", "update", "patch"], "resources": [
                  {"group": "coordination.k8s.io", "resources": ["leases"]}]},
             {"level": "Metadata", "verbs": ["create"], "resources": [
                 {"group": "", "resources": ["pods/binding"]}]},
             {"level": "None"}]}


def seconds_of(stamp):
    """Of the wall clock, from 2026-01-01T00:00:00.000000Z."""
    whole, _, part = stamp.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + \
        float("0." + (part or "0"))


class Follow(threading.Thread):
    """All objects of a kind, from list and watch, in their order."""

    def __init__(self, api, kind, see, gone, **query):
        super().__init__(daemon=True)
        self.api, self.kind, self.see, self.gone = api, kind, see, gone
        self.query, self.version = query, None
        self.there = {}  # uid: name
        self.stopped = threading.Event()

    def run(self):
        while not self.stopped.is_set():
            try:
                if self.version is None:
                    self._list()
                self._watch()
            except WENT_WRONG as error:
                if getattr(error, "status", 0) == 410:
                    self.version = None
                self.stopped.wait(0.1)

    def _list(self):
        found, version = self.api.list_with_version(self.kind, **self.query)
        there = {obj["metadata"]["uid"] for obj in found}
        for uid in self.there.keys() - there:
            self._gone(uid)
        for obj in found:
            self._see(obj)
        self.version = version

    def _watch(self):
        query = urllib.parse.urlencode({
            **self.query, "watch": "true", "allowWatchBookmarks": "true",
            "resourceVersion": self.version})
        connection = self.api.connection(30)
        try:
            connection.request("GET", f"{path(self.kind)}?{query}",
                               headers=self.api.headers())
            answer = connection.getresponse()
            if answer.status != 200:
                raise ApiError(answer.status, answer.read().decode())
            while not self.stopped.is_set():
                line = answer.readline()
                if not line:
                    return
                self._event(json.loads(line))
        finally:
            connection.close()

    def _event(self, event):
        obj = event["object"]
        if event["type"] == "ERROR":
            raise ApiError(obj.get("code", 0), obj)
        self.version = obj["metadata"]["resourceVersion"]
        if event["type"] == "DELETED":
            self._gone(obj["metadata"]["uid"])
        elif event["type"] != "BOOKMARK":
            self._see(obj)

    def _see(self, obj):
        self.there[obj["metadata"]["uid"]] = obj["metadata"]["name"]
        self.see(obj)

    def _gone(self, uid):
        self.gone(uid, self.there.pop(uid, ""))


class Audit(threading.Thread):
    """Who bound what, and who took the Lease, as the API server wrote it
    down."""

    def __init__(self, history, file, replicas):
        super().__init__(daemon=True)
        self.history, self.file, self.replicas = history, file, replicas
        self.stopped = threading.Event()

    def run(self):
        while not os.path.exists(self.file):
            if self.stopped.wait(0.2):
                return
        rest = b""
        with open(self.file, "rb") as f:
            while True:
                more = f.read()
                if not more and self.stopped.wait(0.2):
                    return
                *lines, rest = (rest + more).split(b"\n")
                for line in lines:
                    self._line(line)

    def _line(self, line):
        try:
            event = json.loads(line)
        except ValueError:
            return  # it was killed while it wrote
        user = event.get("user", {})
        mark = user.get("extra", {}).get(
            "authentication.kubernetes.io/credential-id", [""])[0]
        who = self.replicas.get(mark, user.get("username"))
        ref = event.get("objectRef", {})
        more = {"code": event.get("responseStatus", {}).get("code"),
                "came": seconds_of(event["requestReceivedTimestamp"]),
                "done": seconds_of(event["stageTimestamp"])}
        if ref.get("resource") == "pods":
            self.history.write("binding", by=who, pod=ref.get("name"),
                               uid=ref.get("uid"), **more)
        elif ref.get("name") == "biga-extender" and \
                200 <= (more["code"] or 0) < 300:
            spec = event.get("responseObject", {}).get("spec", {})
            self.history.write("lease", by=who, **more,
                               holder=spec.get("holderIdentity"))


class Watcher(threading.Thread):
    """What one replica says, again and again."""

    def __init__(self, side, extender, program):
        super().__init__(daemon=True)
        self.side, self.name, self.program = side, extender.name, program
        self.api = Api(extender.url("read", True), timeout=1,
                       token=side.token, **side.lab.ca())
        self.ready = None
        self.changes = Changes(side.history, "ready", "name")
        self.nodes = Changes(side.history, "node-state", "node")
        self.stopped = threading.Event()

    def run(self):
        while not self.stopped.wait(EVERY):
            try:
                self.ready = self.api.raw("GET", "/readyz")[0] == 200
                found = self.api.call("GET", "/v1/nodes?limit=1000")["items"]
            except WENT_WRONG:
                self.ready, found = None, []
            self.changes.see(self.name, ready=self.ready)
            for n in found:
                self.nodes.see(f"{self.name}/{n['name']}",
                               status=n["status"])


class Slices(Target):
    """Somebody deletes what nodes have published."""

    def __init__(self, side):
        super().__init__(side.history, "slices")
        self.side = side

    def begin_deleted(self, fault):
        node = self.side.hosts[fault["node"]]
        # a thread, for the API server may be away
        threading.Thread(target=self._delete, args=(node,),
                         daemon=True).start()

    def _delete(self, node):
        api = self.side.quick
        try:
            names = [s["metadata"]["name"] for s in api.list(
                "resourceslices", fieldSelector="spec.nodeName=" + node)]
            for name in names:
                api.delete("resourceslices", None, name, missing_ok=True)
        except WENT_WRONG as error:
            self.history.write("slices-kept", node=node, text=str(error)[:99])
        else:
            self.history.write("slices-deleted", node=node, n=len(names))
