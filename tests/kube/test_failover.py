#!/usr/bin/env python3
"""The leader goes away while it binds: killed, stopped, ended, without an API
server, twice in a row.  Every pod is bound once, and what the new leader knows
is what the pods say.

    test_failover.py [killed|stopped|ended|no_server|twice…]
"""
import sys
import threading
import time
from http.client import HTTPException

import fleet
import jobs
from api import ApiError
from check import Checks
from cluster import Cluster
from history import History
from lab import Lab
from proc import wait_for

NODES = 24
EARLY = 30  # pods that are bound when the leader goes away


def pods_of(name):
    """200 pods: 40 hosts alone, 60 pairs, and a job of 20 pairs."""
    found = [jobs.host_pod(f"{name}-alone{i}") for i in range(40)]
    for i in range(60):
        found += jobs.pairs(f"{name}-pair{i}", 1, interleave=i % 2 == 0)
    job = jobs.pairs(f"{name}-ring", 20)
    # so that the leader goes away in the middle of the job
    return found[:20] + job[:20] + found[20:60] + job[20:] + found[60:]


class Failover:
    def __init__(self, t, c, lab):
        self.t, self.c, self.lab, self.api = t, c, lab, c.api
        self.token = lab.reader()
        self.history = None

    def reader(self, extender):
        return self.lab.read_api(extender, self.token)

    def begin(self, name):
        """Pods come while the scheduler works; returns once some are
        bound."""
        self.history = History(self.api).start()
        pods = pods_of(name)
        comes = threading.Thread(target=self._create, args=(pods,),
                                 daemon=True)
        comes.start()
        wait_for("some pods are bound",
                 lambda: self.history.n_bound() >= EARLY, every=0.005)
        self.comes = comes
        return len(pods)

    def _create(self, pods):
        def create(obj):
            while True:
                try:
                    return self.api.create("pods", obj)
                except (ApiError, OSError, HTTPException) as error:
                    if getattr(error, "status", 0) == 409:
                        return None  # it was made, unheard
                time.sleep(0.2)  # the API server is away, or just back
        fleet.in_parallel(create, pods, 2)

    def finish(self, n, since, limit, what):
        """All are bound, once; how long nobody was."""
        t, history = self.t, self.history
        wait_for("all pods are bound", lambda: history.n_bound() >= n or
                 self._pending(n), every=0.1)
        self.comes.join(60)
        gap, at = history.gap(since)
        t.note(f"{what}: {gap:.1f} s without a bind, from "
               f"{at - since:+.1f} s; all {n} bound after "
               f"{time.monotonic() - since:.1f} s")
        t.within(limit, at, at + gap)
        leader = self.lab.leader()
        self.agree(leader)
        history.wait_caught_up()
        history.check()
        assert history.n_bound() == n, f"{history.n_bound()} binds of {n}"

    def _pending(self, n):
        waits = [p["metadata"]["name"] for p in self.api.list(
            "pods", "default", fieldSelector="spec.nodeName=")]
        raise AssertionError(
            f"{self.history.n_bound()} of {n} are, " + (
                fleet.why_pending(self.api, waits[0]) if waits
                else "none waits"))

    def agree(self, leader):
        """The allocations of every replica are those of the pods."""
        for extender in self.lab.extenders:
            if not extender.running:
                continue

            def same(extender=extender):
                bad = jobs.audit(self.api, self.reader(extender))
                assert not bad, f"{extender.name}: " + "\n".join(bad[:20])
                return True
            wait_for("pods and extender say the same", same, every=0.2)
        assert leader.running

    def clear(self):
        """All pods go, and with them all that was promised."""
        self.history.stop()
        self.api.delete_all("pods", "default")
        leader = self.lab.leader()
        wait_for("nothing is promised", lambda: not jobs.items(
            self.reader(leader), "/v1/allocations"), every=0.2)

    def again(self, extender):
        """Bring back a replica."""
        extender.start()
        extender.wait_up(**self.lab.ca())


def killed(f):
    with f.t.check("kill -9 of the leader: every pod is bound once"):
        n = f.begin("killed")
        old = f.lab.leader()
        old.kill()
        f.finish(n, time.monotonic(), 15, "kill -9")
        assert f.lab.leader() is not old
        f.again(old)
        f.clear()


def stopped(f):
    with f.t.check("the leader stands still for 20 s: it binds nothing late"):
        n = f.begin("stopped")
        old = f.lab.leader()
        since = time.monotonic()
        old.pause()
        wait_for("another leads",
                 lambda: f.lab.ready() not in ([], [old]), every=0.2)
        time.sleep(max(0.0, since + 20 - time.monotonic()))
        said = len(old.text())
        old.resume()
        f.finish(n, since, 15, "SIGSTOP")
        assert f.lab.leader() is not old
        late = [line for line in old.text()[said:].splitlines()
                if "event=bind " in line and "result=bound" in line]
        f.t.note(f"{len(late)} binds of the old leader ended well after: "
                 "those that it had sent before")
        f.clear()


def ended(f):
    with f.t.check("a leader that is told to end: a gap of 3 s at most"):
        n = f.begin("ended")
        old = f.lab.leader()
        since = time.monotonic()
        assert old.stop(), "it was killed"
        assert old.exit_status() == 0, old.exit_status()
        f.t.note(f"it ended after {time.monotonic() - since:.1f} s")
        f.finish(n, since, 3, "SIGTERM")
        f.again(old)
        f.clear()


def no_server(f):
    with f.t.check("no API server for 12 s"):
        n = f.begin("server")
        since = time.monotonic()
        f.c.apiserver.kill()
        time.sleep(12)
        f.c.apiserver.start()
        f.c.wait_ready()
        f.t.note(f"it was away for {time.monotonic() - since:.1f} s")
        f.finish(n, since, 40, "no API server")
        f.clear()


def twice(f):
    with f.t.check("two leaders die in a row"):
        n = f.begin("twice")
        first = f.lab.leader()
        since = time.monotonic()
        first.kill()
        second = f.lab.leader()
        assert second is not first
        f.again(first)
        second.kill()
        f.finish(n, since, 30, "kill -9, and again")
        assert f.lab.leader() is first
        f.again(second)
        f.clear()


def main():
    with Cluster() as c:
        t = Checks(c.log_ends)
        c.start()
        lab = Lab(c).up(nodes=NODES)
        f = Failover(t, c, lab)
        for test in (killed, stopped, ended, no_server, twice):
            if not sys.argv[1:] or test.__name__ in sys.argv[1:]:
                test(f)
            if t.failed:
                break  # what it left would be in the way
        t.finish()


if __name__ == "__main__":
    main()
