#!/usr/bin/env python3
"""The history of an extender in a cluster: binds, refusals that are told in
Events, pods that run and end, and a replica that starts over."""
import fleet
import jobs
import pool
from check import Checks
from fleet import wait_bound
from lab import Lab
from proc import wait_for


class Past:
    def __init__(self, lab):
        self.lab = lab
        self.reader = lab.read_api(lab.leader(), lab.reader())

    def events(self, **query):
        rest = "&".join(f"{k}={v}" for k, v in query.items())
        return self.reader.call(
            "GET", f"/v1/events?limit=1000&{rest}")["items"]

    def reasons(self, name):
        """What happened to a pod, in order."""
        return [e["reason"] for e in self.events(kind="pod", name=name)]

    def wait(self, name, *reasons):
        def told():
            found = self.reasons(name)
            assert [r for r in found if r in reasons] == list(reasons), found
            return True
        wait_for(f"{name}: {reasons}", told)


def lives(t, c, past):
    with t.check("a pair that is bound, runs and ends is told of"):
        for p in jobs.pairs("ring", 1):
            c.api.create("pods", p)
        where = wait_bound(c.api, ["ring", "ring-xpu"])
        past.wait("ring", "Bound", "Started")
        past.wait("ring-xpu", "Bound", "Started")
        bound, = [e for e in past.events(kind="pod", name="ring")
                  if e["reason"] == "Bound"]
        assert bound["node"] == where["ring"] and bound["job"] == "ring", bound
        c.api.delete("pods", "default", "ring")
        past.wait("ring", "Bound", "Started", "Ended", "Released")
    with t.check("where it was is known afterwards"):
        found = past.reader.call(
            "GET", f"/v1/history/pod/default/ring?at={bound['time']}")
        assert found["place"]["node"] == where["ring"], found
        assert found["place"]["cards"], found
    with t.check("why a pod is refused is remembered"):
        c.api.create("pods", jobs.host_pod("big", asks={"cards": 9}))
        past.wait("big", "Refused")
        found = past.reader.call("GET", "/v1/history/pod/default/big")
        assert found["place"] is None, found
        assert found["refused"]["message"], found


def starts_over(t, c, lab, past):
    with t.check("a replica that starts over tells nothing twice"):
        names = "kept", "kept-xpu", "over", "over-xpu"
        for p in jobs.pairs("kept", 1) + jobs.pairs("over", 1):
            c.api.create("pods", p)
        wait_bound(c.api, names)
        for name in names:
            past.wait(name, "Bound", "Started")
        before = past.events()
        extender, = lab.extenders
        extender.kill()
        fleet.Kubelet(c.api).phase(c.api.get("pods", "default", "over"),
                                   "Failed")
        extender.start()
        again = Past(lab)
        again.wait("over", "Bound", "Started", "Failed", "Released")
        # now what it found at its start is compared, and what follows is news
        c.api.delete("pods", "default", "kept")
        again.wait("kept", "Bound", "Started", "Ended", "Released")
        events = again.events()
        news = events[len(before):]
        assert not [e for e in news if e["reason"] in ("Bound", "Started")
                    and e.get("name", "").startswith("kept")], news
        # a busy machine may let one go stale, and come back
        for name in sorted({e["node"] for e in events if e["kind"] == "node"}):
            told = [e["reason"] for e in events
                    if e["kind"] == "node" and e["node"] == name]
            assert "NodeGone" not in told, (name, told)
            assert all(a != b for a, b in zip(told, told[1:])), (name, told)


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        lab = Lab(c)
        with t.check("Biga comes up in a cluster"):
            lab.up(nodes=4, replicas=1,
                   extender=["--history=" + c.path("history")])
            lab.start_kubelet()
        if t.failed:
            t.finish()
        past = Past(lab)
        lives(t, c, past)
        starts_over(t, c, lab, past)
        t.finish()


main()
