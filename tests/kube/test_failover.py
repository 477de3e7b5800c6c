#!/usr/bin/env python3
"""The leader goes away while it binds: killed, stopped, ended, without an API
server, twice in a row.  Every pod is bound once, and what the new leader knows
is what the pods say.

    test_failover.py [killed|stopped|ended|no_server|twice…]
"""
import itertools
import re
import sys
import threading
import time

import fleet
import jobs
import pool
from api import ApiError
from check import Checks
from history import History
from lab import Lab
from proc import HANGS, wait_for
from test_cluster import TIMEOUT

NODES = 24
EARLY = 30  # pods that are bound when the leader goes away
LEASE = 8  # seconds; then it is over (lib/kube/election.h)
# of a leader that was too slow to renew it, or to give it back, or did not
# hear what has become of a bind
LATE = re.compile("event=not-leading |event=bind-settled .*result=unknown|"
                  f"the Lease was not given back.*({TIMEOUT.pattern})")


def pods_of(name):
    """200 pods: 40 hosts alone, 60 pairs, and a job of 20 pairs."""
    found = [jobs.host_pod(f"{name}-alone{i}") for i in range(40)]
    for i in range(60):
        found += jobs.pairs(f"{name}-pair{i}", 1, interleave=i % 2 == 0)
    job = jobs.pairs(f"{name}-ring", 20)
    # so that the leader goes away in the middle of the job
    return found[:20] + job[:20] + found[20:60] + job[20:] + found[60:]


class Holders:
    """Who holds the Lease, one after the other, from now on."""

    def __init__(self, api):
        self.seen = []
        self.thread = threading.Thread(
            target=self._run, args=(api,), daemon=True)
        self.thread.start()
        wait_for("the Lease is seen", lambda: self.seen)

    def _run(self, api):
        for _, obj in api.watch("leases", "biga-system", timeout=HANGS,
                                fieldSelector="metadata.name=biga-extender"):
            holder = obj.get("spec", {}).get("holderIdentity", "")
            if self.seen[-1:] != [holder]:
                self.seen.append(holder)


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
        def made(obj):
            try:
                return self.api.create("pods", obj)
            except ApiError as error:
                # it was made, unheard; or the server is just back
                return error.status == 409

        def create(obj):
            wait_for("the pod is made", lambda: made(obj), every=0.2)
        fleet.in_parallel(create, pods, 2)

    def finish(self, n, since, what):
        """All are bound, once; how long nobody was."""
        t, history = self.t, self.history
        wait_for("all pods are bound", lambda: history.n_bound() >= n or
                 self._pending(n), every=0.1)
        self.comes.join(60)
        gap, at = history.gap(since)
        t.note(f"{what}: {gap:.1f} s without a bind, from "
               f"{at - since:+.1f} s; all {n} bound after "
               f"{time.monotonic() - since:.1f} s")
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
        f.finish(n, time.monotonic(), "kill -9")
        assert f.lab.leader() is not old
        f.again(old)
        f.clear()


def stopped(f):
    with f.t.check("the leader stands still: it binds nothing late"):
        n = f.begin("stopped")
        old = f.lab.leader()
        since = time.monotonic()
        old.pause()
        wait_for("another leads",
                 lambda: f.lab.ready() not in ([], [old]), every=0.2)
        n_bound = f.history.n_bound()
        wait_for("that one binds, or has bound all", lambda:
                 f.history.n_bound() > n_bound or f.history.n_bound() >= n)
        said = len(old.text())
        old.resume()
        f.finish(n, since, "SIGSTOP")
        late = [line for line in old.text()[said:].splitlines()
                if "event=bind " in line and "result=bound" in line]
        f.t.note(f"{len(late)} binds of the old leader ended well after: "
                 "those that it had sent before")
        f.clear()


def end(f, name):
    """The leader is told to end while pods of that name come; whether it gave
    the Lease back.  It cannot, or must not, where the machine stood still
    meanwhile."""
    n = f.begin(name)
    since = time.monotonic()
    old = f.lab.leader()
    said = len(old.text())
    holders = Holders(f.api)
    assert old.stop(HANGS), "it was killed"
    assert old.exit_status() == 0, old.exit_status()
    took = time.monotonic() - since
    f.t.note(f"it ended after {took:.1f} s")
    f.finish(n, since, "SIGTERM")
    # who gives it back leaves nobody waiting for its end
    wait_for("two holders were seen", lambda: len(holders.seen) > 1)
    who, nobody = holders.seen[:2]
    given = who.startswith(old.name) and nobody == ""
    late = took >= LEASE or [line for line in old.text()[said:].splitlines()
                             if LATE.search(line)]
    assert given or late, holders.seen
    f.again(old)
    f.clear()
    return given


def ended(f):
    with f.t.check("a leader that is told to end gives the Lease back"):
        tries = itertools.count()
        while not end(f, f"ended{next(tries)}"):
            f.t.note("it had no time for that")


def no_server(f):
    with f.t.check("no API server until nobody leads"):
        n = f.begin("server")
        since = time.monotonic()
        f.c.apiserver.kill()
        wait_for("nobody leads", lambda: not f.lab.ready(), every=0.2)
        f.c.apiserver.start()
        f.c.wait_ready()
        f.t.note(f"it was away for {time.monotonic() - since:.1f} s")
        f.finish(n, since, "no API server")
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
        f.finish(n, since, "kill -9, and again")
        assert f.lab.leader() is first
        f.again(second)
        f.clear()


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
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
