#!/usr/bin/env python3
"""What nodes tell of their pods, in ConfigMaps as advertisers write them: a
pod that got less than it was promised has an Event that says what, once, and
the read API shows both."""
import json

import fleet
import pool
from check import Checks
from lab import Lab
from proc import wait_for
from test_cluster import Beats, Scheduler, publish, schedule, wait_status

NODE = "host1"
PODS = ["a", "b", "c", "d"]


def gpu_pod(name):
    return fleet.pod(name, labels={"biga.dev/role": "host"},
                     annotations={"biga.dev/cards": "1"},
                     requests={"cpu": 1, "nvidia.com/gpu": 1,
                               "biga.dev/card": 1})


class World:
    def __init__(self, c, lab):
        self.api = c.api
        self.one = lab.extender("one", "--fresh=60s")
        lab.leader()
        self.read = lab.read_api(self.one)
        fleet.add_nodes(c.api, [NODE])
        publish(c.api, NODE)
        wait_status(self.read, NODE, "ready")
        for name in PODS:
            schedule(c.api, Scheduler(lab, self.one), gpu_pod(name), [NODE])
        wait_for("all are allocated", lambda: set(PODS) == set(self.seen()))
        self.promised = {name: a["gpus"][0]["pci"]
                         for name, a in self.seen().items()}
        self.cards = {name: a["cards"][0]["pci"]
                      for name, a in self.seen().items()}

    def seen(self):
        items = self.read.call("GET", "/v1/allocations")["items"]
        return {a["pod"]["name"]: a for a in items}

    def states(self):
        return {name: (a["achieved"]["state"], a["achieved"]["relation"])
                for name, a in self.seen().items()}

    def tell(self, gpus, node=NODE, name=NODE):
        """As the advertiser of a node does; gpus: of pods, by name."""
        report = {"node": node, "pods": [
            {"namespace": "default", "name": pod,
             "uid": self.api.get("pods", "default", pod)["metadata"]["uid"],
             "cards": [self.cards[pod]], "gpus": [gpu]}
            for pod, gpu in sorted(gpus.items())]}
        data = {"report": json.dumps(report)}
        if self.api.maybe("configmaps", "biga-nodes", name):
            self.api.patch("configmaps", "biga-nodes", name, {"data": data})
        else:
            self.api.create("configmaps", {"metadata": {
                "name": name, "namespace": "biga-nodes",
                "labels": {"biga.dev/report": "achieved"}}, "data": data})

    def wait(self, what, **expected):
        def is_so():
            got = self.states()
            assert all(got[k] == v for k, v in expected.items()), got
            return True
        wait_for(what, is_so)

    def events(self, pod):
        return [e for e in self.api.list(
            "events", "default",
            fieldSelector="involvedObject.name=" + pod)
                if e["reason"] == "AlignmentLost"]

    def metric(self, promised, achieved):
        _, _, body = self.read.raw("GET", "/metrics")
        text = body.decode() if isinstance(body, bytes) else body
        head = (f'biga_alignment{{promised="{promised}",'
                f'achieved="{achieved}"}} ')
        found, = [line[len(head):] for line in text.splitlines()
                  if line.startswith(head)]
        return int(found)


def before(t, lab, w):
    with t.check("it is said before that a device plugin chooses the GPUs"):
        assert {a["gpusChosenBy"] for a in w.seen().values()} == {
            "device-plugin"}
        why = w.read.call("GET", "/v1/why?pod=default%2Fa")["summary"]
        assert "gpus: chosen by the device plugin" in why, why
    with t.check("on demand, align is only promised of every choice"):
        strict = lab.extender("strict", "--fresh=60s", "--plugin-align=every")
        wait_status(lab.read_api(strict), NODE, "ready")
        near = gpu_pod("near")
        near["metadata"]["annotations"]["biga.dev/align"] = "pix"
        made = w.api.create("pods", near)
        assert Scheduler(lab, w.one).fit(made, [NODE]) == NODE
        said = json.dumps(Scheduler(lab, strict).filter(made, [NODE]))
        assert "with every GPU that a device plugin may give" in said, said
        w.api.delete("pods", "default", "near")
        strict.kill()


def losing(t, w):
    far = next(gpu for gpu in w.promised.values()
               if w.promised["a"][:6] != gpu[:6] and gpu != w.promised["a"])
    with t.check("what no node has told of is unknown, never the plan"):
        assert set(w.states().values()) == {("unknown", None)}, w.states()
        assert w.metric("PIX", "unknown") == len(PODS)
    with t.check("a pod that has what it was promised is not told"):
        w.tell(w.promised)
        w.wait("all are kept", **{name: ("kept", "PIX") for name in PODS})
        assert w.metric("PIX", "PIX") == len(PODS)
        assert not any(w.events(name) for name in PODS)
    with t.check("a pod that has another GPU has an Event with its cost"):
        w.tell({**w.promised, "a": far})
        wait_for("an Event on the pod", lambda: w.events("a"))
        event, = w.events("a")
        assert event["type"] == "Warning", event
        for part in (f"promised GPU {w.promised['a']} (PIX to card "
                     f"{w.cards['a']})", f"has {far} (",
                     "each transfer crosses", "claim GPUs to pin them"):
            assert part in event["message"], event["message"]
        assert event["involvedObject"]["uid"] == w.api.get(
            "pods", "default", "a")["metadata"]["uid"]
        achieved = w.seen()["a"]["achieved"]
        assert achieved["state"] == "lost" and achieved["gpus"] == [far]
        assert achieved["text"] == event["message"], achieved
        assert w.metric("PIX", achieved["relation"]) == 1
        why = w.read.call("GET", "/v1/why?pod=default%2Fa")["summary"]
        assert f"achieved: {achieved['relation']}, lost: promised" in why, why
    return far


def again(t, w, far):
    other, third = [name for name in PODS[1:] if w.promised[name] != far][:2]
    with t.check("it is told once, whatever else its node tells"):
        first, = w.events("a")
        w.tell({**w.promised, "a": far, other: far})
        wait_for("an Event on another", lambda: w.events(other))
        assert w.events("a") == [first], w.events("a")
    with t.check("what gets right loses the mark"):
        w.tell(w.promised)
        w.wait("all are kept", **{name: ("kept", "PIX") for name in PODS})
    with t.check("a report of another node, or none, tells nothing"):
        w.tell({**w.promised, third: far}, node="host2", name="host2x")
        w.tell({**w.promised, third: far}, node="host2")
        w.wait("nothing is known", **{third: ("unknown", None)})
        w.tell(w.promised)
        w.wait("it is known again", **{third: ("kept", "PIX")})
        w.api.delete("configmaps", "biga-nodes", NODE)
        w.wait("nothing is known", **{third: ("unknown", None)})
        assert not w.events(third), w.events(third)


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        lab = Lab(c, tls=False)
        lab.install()
        beats = Beats(c.api, [NODE])
        assert beats
        w = World(c, lab)
        before(t, lab, w)
        far = losing(t, w)
        if not t.failed:
            again(t, w, far)
        t.finish()


if __name__ == "__main__":
    main()
