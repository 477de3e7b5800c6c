#!/usr/bin/env python3
"""A storm of pods: thousands, of all kinds, created and deleted at random:
while they wait, while they are being bound, by force, and made anew under the
same name.  Two replicas, of which the leader is killed in the middle.  At no
moment is anything given away twice; in the end nothing is left.

$BIGA_SEED repeats the choices (not their order among threads).
$BIGA_STORM_PODS, $BIGA_STORM_NODES: how many (800, 200).
"""
import os
import random
import threading
import time
from http.client import HTTPException

import fleet
import jobs
import pool
from api import ApiError
from check import Checks
from history import History
from lab import Lab
from proc import running_in, wait_for

SEED = int(os.environ.get("BIGA_SEED") or random.SystemRandom().randrange(
    1 << 32))
PODS = int(os.environ.get("BIGA_STORM_PODS") or 800)
NODES = int(os.environ.get("BIGA_STORM_NODES") or 200)
WAVES = 2
THREADS = 3
LIVE = 5 * NODES     # pods at a time, about
WAITING = 2 * NODES  # then none are made for a moment
RSS_SLACK_KB = 16 << 10
FD_SLACK = 32        # connections come and go
LEASE = 5            # seconds for which a job's places are held


def usage(extender):
    """Resident memory in KiB and open files."""
    with open(f"/proc/{extender.pid}/status", encoding="utf-8") as f:
        rss = [int(line.split()[1]) for line in f
               if line.startswith("VmRSS:")][0]
    return rss, len(os.listdir(f"/proc/{extender.pid}/fd"))


def make(rng, name):
    """Pods that belong together, of one of all kinds."""
    kind = rng.choices(
        ["pair", "host", "closed", "wide", "gpus", "card", "service", "job"],
        [30, 12, 8, 8, 8, 6, 8, 12])[0]
    if kind == "pair":
        return jobs.pairs(name, 1, interleave=rng.random() < 0.5,
                          cores=rng.choice([0, 2, 4]))
    if kind == "closed":
        return jobs.pairs(name, 1, asks={"exclusive": "true"})
    if kind == "wide":
        pod = jobs.host_pod(name, gpus=rng.randint(1, 2), cores=0)
        asks, cards = pod["spec"]["containers"][0]["resources"], \
            str(rng.randint(2, 4))
        for kind in ("requests", "limits"):
            asks[kind]["biga.dev/card"] = cards
        return [pod]
    if kind == "gpus":
        return [jobs.host_pod(name, gpus=rng.randint(2, 6), cpu=2)]
    if kind == "card":
        return [jobs.xpu_pod(name, cores=rng.choice([0, 4]))]
    if kind == "service":
        return [fleet.pod(
            name, labels={"biga.dev/role": "service"}, requests={
                "biga.dev/card": 1, "biga.dev/card-cores": rng.randint(1, 3),
                "biga.dev/card-memory-mib": 512})]
    if kind == "job":
        return jobs.pairs(name, rng.randint(2, 6), cpu=4)
    return [jobs.host_pod(name, cores=rng.choice([0, 4, 8]))]


class Wave:
    """Some threads that make and delete so many pods."""

    def __init__(self, api, history, number, n):
        self.api, self.history, self.number = api, history, number
        self.lock = threading.Lock()
        self.left, self.made, self.names = n, 0, 0
        self.live = []       # pods that are there
        self.deleted = {"waiting": 0, "bound": 0, "at once": 0, "slow": 0,
                        "anew": 0}
        self.failed = []
        self.threads = [threading.Thread(target=self._run, args=(i,),
                                         daemon=True) for i in range(THREADS)]

    def start(self):
        for thread in self.threads:
            thread.start()
        return self

    def join(self, timeout):
        end = time.monotonic() + timeout
        for thread in self.threads:
            thread.join(max(0.0, end - time.monotonic()))
            assert not thread.is_alive(), \
                f"{self.made} pods after {timeout:.0f} s"
        assert not self.failed, self.failed[0]

    def _run(self, number):
        rng = random.Random(f"{SEED}/{self.number}/{number}")
        try:
            while self.left > 0:
                self._step(rng)
        except Exception as error:
            self.failed.append(error)
            raise

    def _step(self, rng):
        if self.history.n_waiting() > WAITING and len(self.live) < LIVE:
            time.sleep(0.05)  # let the scheduler come after
            return
        with self.lock:
            full = len(self.live) / LIVE
        if rng.random() < full / 2:
            self._delete(rng)
        else:
            self._create(rng)

    def _call(self, f, *args, **more):
        """A call; an answer that says no, or none, is an answer, too."""
        try:
            return f(*args, **more)
        except ApiError as error:
            if error.status not in (404, 409):
                raise
        except (OSError, HTTPException):
            pass
        return None

    def _add(self, pods):
        for obj in pods:
            made = self._call(self.api.create, "pods", obj)
            if made:
                with self.lock:
                    self.left -= 1
                    self.made += 1
                    self.live.append((made["metadata"]["name"],
                                      made["metadata"]["uid"], obj))

    def _create(self, rng):
        with self.lock:
            self.names += 1
            name = f"w{self.number}-{self.names}"
        pods = make(rng, name)
        self._add(pods)
        if rng.random() < 0.06:  # nobody can have bound it, or just now
            time.sleep(rng.random() * 0.1)
            self._end(rng, pods[-1]["metadata"]["name"], "at once")

    def _delete(self, rng):
        with self.lock:
            if not self.live:
                return
            # often one of the last, which are being bound
            n = len(self.live)
            at = rng.randrange(n) if rng.random() < 0.5 else \
                max(0, n - 1 - int(rng.expovariate(1 / 20)))
            name, uid, obj = self.live.pop(at)
        seen = self.history.pods.get(uid)
        how = "bound" if seen and seen.node else "waiting"
        if rng.random() < 0.1:
            # it is told to end, and does so later
            self._call(self.api.delete, "pods", "default", name,
                       gracePeriodSeconds=30)
            time.sleep(rng.random() * 0.2)
            how = "slow"
        self._end(rng, name, how)
        if rng.random() < 0.2:
            self._add([obj])
            with self.lock:
                self.deleted["anew"] += 1

    def _end(self, rng, name, how):
        with self.lock:
            self.deleted[how] += 1
            self.live = [p for p in self.live if p[0] != name]
        self._call(self.api.delete, "pods", "default", name, missing_ok=True,
                   gracePeriodSeconds=0)


class Storm:
    def __init__(self, t, c, lab):
        self.t, self.c, self.lab, self.api = t, c, lab, c.api
        self.token = lab.reader()
        self.history = History(c.api).start()

    def reader(self, extender):
        return self.lab.read_api(extender, self.token)

    def blow(self, number, n, kill):
        """One wave; the leader may die in its middle."""
        began, bound = time.monotonic(), self.history.n_bound()
        wave = Wave(self.api, self.history, number, n).start()
        looks, due = 0, 0.0
        while any(thread.is_alive() for thread in wave.threads):
            self.history.check()
            if time.monotonic() >= due:  # it is a burden for all
                bad = jobs.audit(self.api, churn=True)
                assert not bad, "\n".join(bad[:20])
                due = time.monotonic() + 5
                looks += 1
            if kill and wave.made >= n / 2:
                self._kill()
                kill = False
            time.sleep(0.2)
        wave.join(10)
        took = time.monotonic() - began
        self.t.note(
            f"wave {number}: {wave.made} pods made and "
            f"{sum(wave.deleted.values())} deleted "
            f"({', '.join(f'{v} {k}' for k, v in wave.deleted.items())}), "
            f"{self.history.n_bound() - bound} bound in {took:.0f} s, "
            f"{looks} audits; processors so far: {self.cpu()}")

    def cpu(self):
        """Seconds of processors that each program has had."""
        found = {p.name: p.pid for p in running_in(self.c.folder)}
        found["this"] = os.getpid()
        took = {}
        for name, pid in found.items():
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                ticks = f.read().rpartition(")")[2].split()[11:13]
            took[name] = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        return ", ".join(f"{name} {s:.0f} s" for name, s in sorted(
            took.items(), key=lambda item: -item[1])[:6])

    def _kill(self):
        old = self.lab.leader()
        old.kill()
        began = time.monotonic()
        now = self.lab.leader()
        assert now is not old
        self.t.note(f"{old.name} was killed, {now.name} led after "
                    f"{time.monotonic() - began:.1f} s")
        old.start()
        old.wait_up(**self.lab.ca())

    def calm(self):
        """Nothing is on its way any more: both replicas have what the pods
        have, and no more."""
        last = [-1]

        def still():
            n = self.history.n_bound()
            quiet, last[0] = n == last[0], n
            return quiet
        wait_for("nothing is bound any more", still, every=3.0)
        self.history.wait_caught_up()
        for extender in self.lab.extenders:
            def same(extender=extender):
                bad = jobs.audit(self.api, self.reader(extender), churn=True)
                assert not bad, f"{extender.name}: " + "\n".join(bad[:20])
                return True
            wait_for("pods and extender say the same", same, every=0.5)
        self.history.check()

    def no_more(self):
        """All pods go; what was held for the rest of jobs ends with it."""
        self.api.delete_all("pods", "default")
        began = time.monotonic()
        for extender in self.lab.extenders:
            def nothing(extender=extender):
                left = jobs.items(self.reader(extender), "/v1/allocations")
                assert not left, f"{extender.name}: {len(left)}, as {left[0]}"
                return True
            wait_for("nothing is promised or held", nothing,
                     every=0.2)
        self.t.note(f"all was given back after {time.monotonic() - began:.1f}"
                    " s")

    def sizes(self, when):
        found = {e.name: usage(e) for e in self.lab.extenders}
        self.t.note(f"{when}: " + ", ".join(
            f"{name} {rss >> 10} MiB, {fds} files"
            for name, (rss, fds) in found.items()))
        return found

    def orphans(self):
        """The metrics that count what should not happen."""
        for extender in self.lab.extenders:
            for line in self.reader(extender).call(
                    "GET", "/metrics").splitlines():
                if line.startswith("biga_allocation_conflicts_total"):
                    assert line.split()[-1] == "0", f"{extender.name}: {line}"


def run(t, s):
    sizes = [s.sizes("before")]
    for number in range(1, WAVES + 1):
        with t.check(f"wave {number}: nothing is given away twice"):
            s.blow(number, PODS // WAVES, kill=number == 1)
        if t.failed:
            return
        with t.check(f"wave {number}: extenders have what the pods have"):
            s.calm()
        with t.check(f"wave {number}: no place stays behind"):
            s.no_more()
        sizes.append(s.sizes(f"after wave {number}"))
    with t.check("no pod was bound twice, no conflict was seen"):
        s.history.wait_caught_up()
        s.history.check()
        s.orphans()
        t.note(f"{s.history.n_bound()} binds, {s.history.gone} pods deleted")
    with t.check("the extenders do not grow"):
        for name, (rss, fds) in sizes[-1].items():
            was_rss, was_fds = sizes[-2][name]
            assert rss <= was_rss * 1.1 + RSS_SLACK_KB, \
                f"{name}: {was_rss} KiB, then {rss} KiB"
            assert fds <= was_fds + FD_SLACK, \
                f"{name}: {was_fds} files, then {fds}"


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        t.note(f"seed {SEED}")
        # heartbeats are not what is tried here
        lab = Lab(c).up(nodes=NODES, qps=1000, advertiser=["--heartbeat=20s"],
                        extender=["--fresh=90s", "--lease", f"{LEASE}s"])
        run(t, Storm(t, c, lab))
        t.finish()


if __name__ == "__main__":
    main()
