"""All that happens to pods of ours, in the order of the API server, and what
is wrong with it at any moment, not only in the end.

    history = History(c.api).start()
    ...
    history.check()

A pod is bound once and keeps its node and its allocation; no GPU has two pods
that live at a time, and no card more than it can hold.
"""
import http.client
import json
import threading
import time
import urllib.parse
from collections import defaultdict

import jobs
from api import ApiError
from fleet import allocation
from proc import wait_for

QUERY = {"labelSelector": "biga.dev/role"}
SHOWN = 20


class Seen:
    """One life of a pod."""

    def __init__(self, obj):
        meta = obj["metadata"]
        self.who = f"{meta['namespace']}/{meta['name']}"
        self.uid = meta["uid"]
        self.node = self.text = None
        self.got = None  # its allocation, while it has it


class History:
    def __init__(self, api, edited=False):
        """edited: somebody changes annotations by hand, which is not
        wrong then."""
        self.api, self.edited = api, edited
        self.lock = threading.Lock()
        self.pods = {}       # uid: Seen, of those that are there
        self.binds = []      # (time, uid, who)
        self.waiting = 0     # pods without a node
        self.gone = 0        # pods that were deleted
        self.bad = []
        self.gpus = {}       # (node, id): uid
        self.cards = defaultdict(lambda: defaultdict(list))
        self.devices = jobs.devices(api)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.version = None

    def start(self):
        self._list()
        self.binds.clear()
        self.thread.start()
        return self

    def _list(self):
        """Begin anew; what happened meanwhile is seen by what it left."""
        found, version = self.api.list_with_version("pods", **QUERY)
        there = {obj["metadata"]["uid"] for obj in found}
        with self.lock:
            for uid in self.pods.keys() - there:
                self._forget(self.pods[uid])
        for obj in found:
            self._see("ADDED", obj)
        self.version = version

    def stop(self):
        self.stopped.set()

    def wait_caught_up(self):
        """Until it has seen all that is there."""
        def same():
            # again each time: pods go, also after this was called
            want = {p["metadata"]["uid"]: p["spec"].get("nodeName")
                    for p in self.api.list("pods", **QUERY)}
            with self.lock:
                lacks = [uid for uid, node in want.items()
                         if uid not in self.pods
                         or node and not self.pods[uid].node]
                more = self.pods.keys() - want.keys()
            assert not lacks and not more, \
                f"it lacks {len(lacks)} pods and has {len(more)} more"
            return True
        wait_for("the watch has caught up", same)

    def check(self):
        with self.lock:
            assert not self.bad, f"{len(self.bad)} wrong:\n" + \
                "\n".join(self.bad[:SHOWN])

    def n_bound(self):
        with self.lock:
            return len(self.binds)

    def n_waiting(self):
        """Pods that are there without a node."""
        with self.lock:
            return self.waiting

    def gap(self, since, until=None):
        """The longest time between two binds, of which the second came after
        `since`; and when that was."""
        with self.lock:
            times = [when for when, *_ in self.binds]
        longest, at = 0.0, since
        for one, other in zip(times, times[1:]):
            if other > since and (until is None or one < until) \
                    and other - one > longest:
                longest, at = other - one, one
        return longest, at

    # --- the thread ---------------------------------------------------------
    def _run(self):
        while not self.stopped.is_set():
            try:
                self._watch()
            except (ApiError, OSError, ValueError,
                    http.client.HTTPException) as error:
                if getattr(error, "status", 0) == 410:
                    self.version = None
                self.stopped.wait(0.1)  # the API server is away

    def _watch(self):
        if self.version is None:
            self._list()
        query = urllib.parse.urlencode(
            {**QUERY, "watch": "true", "allowWatchBookmarks": "true",
             "resourceVersion": self.version})
        connection = self.api.connection(30)
        try:
            connection.request("GET", "/api/v1/pods?" + query,
                               headers=self.api.headers())
            answer = connection.getresponse()
            if answer.status != 200:
                raise ApiError(answer.status, answer.read().decode())
            while not self.stopped.is_set():
                line = answer.readline()
                if not line:
                    return
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(event["object"].get("code", 0),
                                   event["object"])
                self.version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._see(event["type"], event["object"])
        finally:
            connection.close()

    def _see(self, kind, obj):
        uid = obj["metadata"]["uid"]
        with self.lock:
            pod = self.pods.get(uid)
            if not pod:
                pod = self.pods[uid] = Seen(obj)
                self.waiting += 1
            over = obj["status"].get("phase") in ("Succeeded", "Failed")
            if kind == "DELETED":
                self._forget(pod)
            elif over:
                self._leave(pod)
            else:
                self._look(pod, obj["spec"].get("nodeName"), allocation(obj))

    def _forget(self, pod):
        self._leave(pod)
        del self.pods[pod.uid]
        self.waiting -= not pod.node
        self.gone += 1

    def _look(self, pod, node, text):
        if pod.node and node != pod.node:
            self.bad.append(f"{pod.who} was on {pod.node}, is on {node}")
        if not node or (pod.node and pod.text == text):
            return
        if not pod.node:
            self.waiting -= 1
            self.binds.append((time.monotonic(), pod.uid, pod.who))
            if text is None and not self.edited:
                self.bad.append(f"{pod.who} is bound without an allocation")
        elif not self.edited:
            self.bad.append(f"{pod.who}: its allocation was {pod.text}, is "
                            f"{text}")
        self._leave(pod)
        pod.node, pod.text = node, text
        if text is not None and not self.edited:
            self._take(pod, json.loads(text))

    def _take(self, pod, got):
        pod.got = got
        if got["node"] != pod.node or got["pod"]["uid"] != pod.uid:
            self.bad.append(f"{pod.who} on {pod.node} has what {got['pod']} "
                            f"has on {got['node']}")
        if got["pod"]["role"] == "host":
            for gpu in got["gpus"]:
                key = (pod.node, gpu["id"])
                other = self.pods.get(self.gpus.get(key))
                if other:
                    self.bad.append(f"{pod.who} got {key}, which {other.who} "
                                    "has")
                self.gpus[key] = pod.uid
        for card in got["cards"]:
            key = (pod.node, card["id"])
            self.cards[key][jobs.pair_of(got)].append(got)
            self.bad += [f"when {pod.who} got it: {text}" for text in
                         jobs.overfull({key: self.cards[key]}, self.devices,
                                       churn=True)]

    def _leave(self, pod):
        got, pod.got = pod.got, None
        if not got:
            return
        for gpu in got["gpus"]:
            if self.gpus.get((pod.node, gpu["id"])) == pod.uid:
                del self.gpus[(pod.node, gpu["id"])]
        for card in got["cards"]:
            pairs = self.cards[(pod.node, card["id"])]
            members = pairs[jobs.pair_of(got)]
            members.remove(got)
            if not members:
                del pairs[jobs.pair_of(got)]
