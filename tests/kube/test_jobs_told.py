#!/usr/bin/env python3
"""What is told of jobs of a cluster: pending at either door with what is in
the way, planned, running, ended, and for a while when they are gone; and what
metrics tell of those that wait.
"""
import re
import sys

sys.dont_write_bytecode = True
import fleet  # noqa: E402
import gates  # noqa: E402
import jobs  # noqa: E402
import pool  # noqa: E402
from check import Checks  # noqa: E402
from lab import Lab  # noqa: E402
from proc import wait_for  # noqa: E402

NODES = 2
LARGE = 64 * NODES  # pairs that no two nodes hold


class Told:
    """The read listener of the replica that leads."""

    def __init__(self, lab):
        self.api = lab.c.api
        self.read = lab.read_api(lab.leader(), lab.reader())

    def job(self, name, **want):
        """Until the job is told so; the job, which the list tells, too."""
        def so():
            job = self.read.call("GET", f"/v1/jobs/default/{name}")
            got = {key: job.get(key) for key in want}
            assert got == want, job
            listed = self.read.call(
                "GET", "/v1/jobs?state=" + want["state"])["items"]
            assert name in [x["name"] for x in listed], listed
            return job
        return wait_for(f"{name} is {want}", so)

    def set_status(self, pods, phase, **more):
        """As its kubelet does."""
        for p in pods:
            self.api.patch(
                "pods", "default", p["metadata"]["name"],
                {"status": {"phase": phase, **more}}, sub="status")

    def bound(self, pods):
        """Until all are, and each was counted."""
        fleet.wait_bound(self.api, [p["metadata"]["name"] for p in pods])
        for role in ("host", "xpu"):
            n = sum(p["metadata"]["labels"]["biga.dev/role"] == role
                    for p in pods)
            wait_for(f"{n} binds of {role} pods are counted",
                     lambda r=role, n=n: self.metric(
                         "biga_bind_wait_seconds_count",
                         f'role="{r}"') == n)

    def live(self, pods):
        """From planned to gone."""
        self.job("ring", state="Planned", size=2, placed=2, running=0,
                 reason="")
        self.bound(pods)  # its places may have been held alone
        self.set_status(pods, "Running", conditions=[
            {"type": "Ready", "status": "True"}],
            startTime="2026-01-02T03:04:05Z")
        self.job("ring", state="Running", running=2, ready=2,
                 started="2026-01-02T03:04:05Z")
        self.set_status([p for p in pods if p["metadata"]["labels"][
            "biga.dev/role"] == "host"], "Succeeded")
        self.job("ring", state="Succeeded", running=0, reason="")
        for p in pods:  # xPU pods go with their host pods
            self.api.delete("pods", "default", p["metadata"]["name"],
                            missing_ok=True, gracePeriodSeconds=0)
        self.job("ring", state="Succeeded", deleted=True)

    def metric(self, name, *labels):
        """The sum of those with these labels, such as 'reason="Gated"'."""
        text = self.read.call("GET", "/metrics")
        return sum(float(value) for found, value in re.findall(
            rf"^{name}({{.*}}|) (\S+)$", text, re.M)
            if all(label in found for label in labels))

    def counted(self, n_pods, word):
        """Until those that wait are one job of so many pods, for that."""
        reason = f'reason="{word}"'

        def so():
            pods, jobs_ = "biga_pending_pods", "biga_pending_jobs"
            assert self.metric(pods) == n_pods, self.metric(pods)
            assert self.metric(pods, reason) == n_pods, word
            assert self.metric(jobs_) == self.metric(jobs_, reason) == 1, word
            return self.metric(jobs_ + "_oldest_seconds", reason) > 0
        wait_for(f"{n_pods} pods are counted as {word}", so)

    def pending(self, name, n, reason):
        """Until that many of its pods are pending, each with what refuses
        it."""
        def so():
            there = [x for x in self.read.call(
                "GET", "/v1/pending?limit=1000")["items"]
                if x["job"] == name]
            assert len(there) == n, there[:2]
            bare = [x for x in there
                    if not x["reason"] or not x["since"] or not x["refused"]]
            assert not bare, bare[:2]
            assert reason in [r["reason"] for r in there[0]["refused"]], \
                there[0]
            return True
        wait_for(f"{n} pods of {name} are pending", so)


def door(t, name, lab, pods_of, word):
    with pool.cluster() as c:
        t.on_failure = c.log_ends
        with t.check(f"{name}: a job without room is told as pending"):
            told = Told(lab(c).up(nodes=NODES, replicas=1))
            fleet.add_pods(c.api, pods_of("large", LARGE))
            job = wait_for("its reason is told", lambda: (
                lambda j: j["reason"] and j)(told.job(
                    "large", state="Pending", size=LARGE, placed=0)))
            assert len(job["submitted"]) == 20, job
            t.note(job["reason"])
        if t.failed:
            return
        with t.check(f"{name}: so are its pods, with what refuses them"):
            told.pending("large", 2 * LARGE, "job-room")
        with t.check(f"{name}: metrics count them, and that none was planned"):
            told.counted(2 * LARGE, word)
            assert told.metric("biga_plans_refused_total", 'reason="room"') > 0
            assert told.metric("biga_bind_wait_seconds_count") == 0
        with t.check(f"{name}: a job is planned, runs, ends and is gone"):
            pods = pods_of("ring", 2)
            fleet.add_pods(c.api, pods)
            told.live(pods)
            for role in ("host", "xpu"):
                assert told.metric("biga_bind_wait_seconds_count",
                                   f'role="{role}"') == 2, role


def main():
    t = Checks()
    door(t, "asked by kube-scheduler", Lab, jobs.pairs, "NoPlace")
    door(t, "at the gate", gates.Lab, lambda job, size: [
        gates.by_gate(p) for p in jobs.pairs(job, size)], "Gated")
    t.finish()


if __name__ == "__main__":
    main()
