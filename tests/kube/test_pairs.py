#!/usr/bin/env python3
"""What the leader does for pairs, what it tells, and that other users of the
scheduler's resource claims are left alone."""
import time

import fleet
import jobs
import pool
from check import Checks
from lab import Lab
from proc import HANGS, wait_for
from test_jobs import Bench

NODES = 3
READY = "biga.dev/XpuReady"
OTHER = "other.example"


def run_pair(b, name, owned=False, **more):
    """A pair that runs; its two pods."""
    host = b.api.create("pods", jobs.host_pod(name, **more))
    xpu = b.api.create("pods", jobs.xpu_pod(
        name, host=host if owned else None))
    wait_running(b, name, name + "-xpu")
    return host, xpu


def wait_running(b, *names):
    wait_for("pods run", lambda: all(
        b.api.get("pods", "default", n)["status"].get("phase") == "Running"
        for n in names))


def wait_gone(b, name):
    wait_for(name + " is gone", lambda: not b.api.maybe(
        "pods", "default", name))


def conditions(b, name):
    found = b.api.get("pods", "default", name)["status"]["conditions"]
    return {c["type"]: c for c in found}


def ready(b, name, status, reason):
    """Until the host pod says so of its xPU pods."""
    def says():
        got = conditions(b, name).get(READY)
        assert got and (got["status"], got["reason"]) == (status, reason), got
        return True
    wait_for("the host pod says " + reason, says)


def was_said(b, name, since, reason):
    """Until the host pod has said so, after that version of it, whatever it
    has said since."""
    for kind, pod in b.api.watch(
            "pods", "default", timeout=HANGS, resourceVersion=since,
            fieldSelector="metadata.name=" + name):
        assert kind == "MODIFIED", (kind, pod)
        if any(c["type"] == READY and c["reason"] == reason
               for c in pod["status"]["conditions"]):
            return
    raise AssertionError(f"{name} does not say {reason}")


def events(b, name, reason):
    """The Events of the extender about a pod, for a reason."""
    return [e for e in b.api.list("events", "default")
            if e["involvedObject"]["name"] == name and
            e["reason"] == reason and
            e.get("reportingComponent") == "biga-extender"]


def wait_event(b, name, reason):
    return wait_for(f"{name} has an Event {reason}",
                    lambda: events(b, name, reason))[0]


def finish(b, name, phase):
    fleet.Kubelet(b.api).phase(b.api.get("pods", "default", name), phase)


def ends(t, b):
    api = b.api
    for owned in (False, True):
        how = "with an owner" if owned else "without an owner"
        name = "owned" if owned else "free"
        with t.check("a deleted host pod takes its xPU pod along, " + how):
            run_pair(b, name, owned)
            b.audit()
            api.delete("pods", "default", name)
            wait_gone(b, name + "-xpu")
            if not owned:
                wait_event(b, name + "-xpu", "PairEnded")
            b.audit()
        for phase in ("Succeeded", "Failed"):
            with t.check(f"so does one that has {phase.lower()}, " + how):
                job = f"{name}-{phase.lower()}"
                run_pair(b, job, owned)
                finish(b, job, phase)
                wait_gone(b, job + "-xpu")
                assert api.get("pods", "default", job)["status"][
                    "phase"] == phase
                b.audit()
                assert (("default", job) not in jobs.allocations(api))
                api.delete("pods", "default", job)
    with t.check("and one that goes while nobody leads"):
        run_pair(b, "while")
        wait_for("the pair is marked", lambda: conditions(
            b, "while-xpu").get("biga.dev/Paired"))
        leader = b.lab.leader()
        other = [e for e in b.lab.extenders if e is not leader][0]
        other.pause()  # however long it takes, nobody leads
        leader.kill()
        api.delete("pods", "default", "while")
        wait_gone(b, "while")
        assert api.get("pods", "default", "while-xpu")
        other.resume()
        wait_gone(b, "while-xpu")
        assert b.lab.leader() is not leader
        leader.start()
        b.audit()
    with t.check("a pair that runs is left alone"):
        run_pair(b, "stays")
        run_pair(b, "goes")
        api.delete("pods", "default", "goes")
        wait_gone(b, "goes-xpu")  # the leader has looked at all pairs
        assert fleet.bound(api).keys() == {"stays", "stays-xpu"}
        b.audit()
    b.clear()


def unmade(t, b):
    """A buddy that cannot be made: the host pod says so, and why, and what
    comes in between is told; until it can."""
    api = b.api

    def says(*words):
        def told():
            got = conditions(b, "wait").get(READY)
            assert got and got["status"] == "False" and \
                got["reason"] == "BuddyFailed" and \
                all(w in got["message"] for w in words), got
            return got["message"]
        t.note(wait_for("it says " + words[0], told))

    with t.check("a host pod without its PodTemplate says so"):
        api.create("pods", jobs.host_pod("wait", asks={"buddy": "late"}))
        wait_running(b, "wait")
        says("late", "not found", "create that PodTemplate")
        event = wait_event(b, "wait", "BuddyFailed")
        assert event["type"] == "Warning" and \
            "create that PodTemplate" in event["message"], event
    with t.check("then what is wrong with the PodTemplate"):
        template = buddy_template("late")
        template["template"]["metadata"] = {
            "labels": {"biga.dev/role": "service"}}
        api.create("podtemplates", template)
        says("biga.dev/role", "mend the PodTemplate")
    with t.check("then that a quota is in the way"):
        api.create("resourcequotas", {
            "metadata": {"name": "full", "namespace": "default"},
            "spec": {"hard": {"pods": "1"}}})
        wait_for("it counts", lambda: api.get(
            "resourcequotas", "default", "full").get("status", {}).get(
                "used"))
        api.delete("podtemplates", "default", "late")
        api.create("podtemplates", buddy_template("late"))
        says("exceeded quota", "raise the quota")
    with t.check("and is ready once it has its xPU pod"):
        api.delete("resourcequotas", "default", "full")
        wait_for("it is made", lambda: api.maybe(
            "pods", "default", "wait-xpu"))
        wait_running(b, "wait-xpu")
        ready(b, "wait", "True", "XpuPodsReady")
        b.audit()
    api.delete("podtemplates", "default", "late")
    b.clear()


def buddy_template(name):
    return {
        "metadata": {"name": name, "namespace": "default"},
        "template": {"spec": {"runtimeClassName": "xpu", "containers": [{
            "name": "main", "image": "registry.example/none",
            "resources": {"limits": {"biga.dev/card": "1",
                                     "biga.dev/card-cores": "2"}}}]}}}


def fails(t, b):
    api = b.api
    api.create("podtemplates", buddy_template("buddy"))
    with t.check("a buddy is made, once, owned by its host pod"):
        host = api.create("pods", jobs.host_pod(
            "calm", asks={"buddy": "buddy"}))
        wait_for("it is made", lambda: api.maybe(
            "pods", "default", "calm-xpu"))
        wait_running(b, "calm", "calm-xpu")
        ready(b, "calm", "True", "XpuPodsReady")
        owner, = api.get("pods", "default", "calm-xpu")["metadata"][
            "ownerReferences"]
        assert owner["uid"] == host["metadata"]["uid"]
        wait_event(b, "calm", "BuddyMade")
        assert len(api.list("pods", "default")) == 2
        b.audit()
    with t.check("an xPU pod that fails is told on its host pod"):
        run_pair(b, "hurt")
        ready(b, "hurt", "True", "XpuPodsReady")
        finish(b, "hurt-xpu", "Failed")
        ready(b, "hurt", "False", "XpuPodFailed")
        event = wait_event(b, "hurt", "XpuPodFailed")
        assert event["type"] == "Warning" and \
            "hurt-xpu" in event["message"], event
        b.audit()
    with t.check("a buddy that fails is made again, on its card"):
        card = jobs.allocations(api)[("default", "calm-xpu")][1]["cards"]
        seen = b.api.get("pods", "default", "calm")["metadata"][
            "resourceVersion"]
        finish(b, "calm-xpu", "Failed")
        was_said(b, "calm", seen, "XpuPodFailed")  # until it is made again
        began = time.monotonic()
        wait_for("another is made", lambda: api.maybe(
            "pods", "default", "calm-xpu-2"))
        t.note(f"made again {time.monotonic() - began:.1f} s after")
        wait_running(b, "calm-xpu-2")
        ready(b, "calm", "True", "XpuPodsReady")
        assert jobs.allocations(api)[("default", "calm-xpu-2")][1][
            "cards"] == card
        b.audit()
    with t.check("an xPU pod that is deleted is told, too"):
        run_pair(b, "lone")
        ready(b, "lone", "True", "XpuPodsReady")
        api.delete("pods", "default", "lone-xpu")
        ready(b, "lone", "False", "XpuPodGone")
        wait_event(b, "lone", "XpuPodGone")
        b.audit()
    b.clear()


# three GPUs and a card behind one switch, a card behind another root of the
# socket, a card on the other socket
STEPS = """package 0
  numa 0 cpus=32 memory=128GiB
    root 0000:10
      bridge 0000:10:01.0
        bridge 0000:11:00.0
          bridge 0000:12:00.0
            gpu 0000:13:00.0 id=10de:2330
          bridge 0000:12:01.0
            gpu 0000:14:00.0 id=10de:2330
          bridge 0000:12:02.0
            gpu 0000:15:00.0 id=10de:2330
          bridge 0000:12:03.0
            card 0000:16:00.0 {0} serial=a
    root 0000:30
      card 0000:31:00.0 {0} serial=b
package 1
  numa 1 cpus=32 memory=128GiB
    root 0000:50
      card 0000:51:00.0 {0} serial=c
distance 0 1 21
""".format("id=15b3:a2dc cores=8 memory=16GiB")


def told(t, b):
    api, file = b.api, b.c.path("steps.host")
    with open(file, "w", encoding="utf-8") as f:
        f.write(STEPS)
    fleet.add_nodes(api, ["steps"], extended={jobs.GPU: "4"})
    b.lab.advertiser("steps", "--hostfile=" + file)
    wait_for("it is ready", lambda: b.read().call(
        "GET", "/v1/nodes/steps")["status"] == "ready")
    on_host1 = {"nodeSelector": {"kubernetes.io/hostname": "host1"}}
    on_it = {"nodeSelector": {"kubernetes.io/hostname": "steps"}}
    for name, reason, kind in (("first", "Aligned", "Normal"),
                               ("second", "AlignmentDegraded", "Warning"),
                               ("third", "Unaligned", "Warning")):
        with t.check(f"the {name} pod on a node is told as {reason}"):
            api.create("pods", jobs.host_pod(
                name, asks={"exclusive": "true"}, **on_it))
            fleet.wait_bound(api, [name])
            event = wait_event(b, name, reason)
            t.note(f"{event['type']}: {event['message']}")
            a = jobs.allocations(api)[("default", name)][1]
            assert a["relation"] in event["message"], event
            assert event["involvedObject"]["uid"] == api.get(
                "pods", "default", name)["metadata"]["uid"]
            assert len(events(b, name, reason)) == 1
            assert event["type"] == kind, event["type"]
            b.audit()
    with t.check("a pod with a misspelt key is placed, and told of it once"):
        made = jobs.host_pod("misspelt", asks={"aling": "pix"}, **on_host1)
        api.create("pods", made)
        fleet.wait_bound(api, ["misspelt"])
        event = wait_event(b, "misspelt", "UnknownKey")
        t.note(f"{event['type']}: {event['message']}")
        assert event["type"] == "Warning", event["type"]
        assert "did you mean biga.dev/align?" in event["message"], event
        api.patch("pods", "default", "misspelt", {"metadata": {
            "annotations": {"test.example/poke": "1"}}})
        text = b.read().call("GET", "/v1/why?pod=default/misspelt")
        assert text["warning"] == event["message"], text
        assert len(events(b, "misspelt", "UnknownKey")) == 1
        b.audit()
    with t.check("a refused pod has one Event in a minute, however often"):
        began = time.monotonic()
        api.create("pods", jobs.host_pod("fourth", **on_it))
        event = wait_event(b, "fourth", "Refused")
        assert event["type"] == "Warning", event["type"]
        t.note(event["message"])
        asked = refusals(b)

        def again():  # each wakes the pod, after a back-off
            api.patch("nodes", None, "host1", {"metadata": {"annotations": {
                "test.example/poke": str(time.monotonic())}}})
            return refusals(b) >= asked + 2
        wait_for("it is refused twice more", again, every=0.3)
        now, = events(b, "fourth", "Refused")
        # or it took a minute, and it was due again
        assert time.monotonic() > began + 60 or \
            now["metadata"]["resourceVersion"] == \
            event["metadata"]["resourceVersion"], now
        b.audit()
    b.clear()
    b.lab.advertisers[-1].stop()
    api.delete("nodes", None, "steps")


def refusals(b):
    """Filter calls; nobody waits but the pod that is refused."""
    text = b.metrics()
    return sum(int(line.split()[-1]) for line in text.splitlines()
               if line.startswith('biga_http_requests_total') and
               'route="filter"' in line)


def claim(api, name, device_class):
    api.create("resourceclaims", {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{
            "name": "one", "exactly": {"deviceClassName": device_class}}]}}})


def claimer(name, role=None):
    """A pod that uses the claim of its name."""
    made = fleet.pod(name, requests={"cpu": 1}) if not role else \
        jobs.host_pod(name, gpus=0)
    made["spec"]["resourceClaims"] = [{"name": "it",
                                       "resourceClaimName": name}]
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "it"}]
    return made


def claims(t, b):
    """Dynamic Resource Allocation goes on beside Biga as without it."""
    api, node = b.api, fleet.names("host", NODES)[1]
    api.create("deviceclasses", {"metadata": {"name": OTHER}, "spec": {
        "selectors": [{"cel": {
            "expression": f'device.driver == "{OTHER}"'}}]}})
    api.create("resourceslices", {
        "metadata": {"name": "of-another"},
        "spec": {"driver": OTHER, "nodeName": node,
                 "pool": {"name": node, "generation": 1,
                          "resourceSliceCount": 1},
                 "devices": [{"name": f"d{i}"} for i in range(2)]}})
    ours = {s["metadata"]["name"]: s["spec"] for s in
            api.list("resourceslices") if s["spec"]["driver"] == jobs.DRIVER}

    def place(names):
        for name, device_class, role in names:
            claim(api, name, device_class)
            api.create("pods", claimer(name, role))
        got = fleet.wait_bound(api, [n for n, _, _ in names])
        found = {}
        for name, _, _ in names:
            status = api.get("resourceclaims", "default", name)["status"]
            result, = status["allocation"]["devices"]["results"]
            assert status["reservedFor"][0]["name"] == name, status
            found[name] = (got[name], result["driver"], result["pool"],
                           result["device"])
        return found

    def is_refused(name):
        def refused():
            said = fleet.why_pending(api, name)
            assert "0/" in said and "cannot allocate all claims" in said, said
            return True
        wait_for("it is refused", refused)

    plain = [("dra-other", OTHER, None)]
    with t.check("claims of another driver are allocated"):
        with_biga = place(plain)
        assert with_biga["dra-other"] == (node, OTHER, node, "d0"), with_biga
        b.audit()
    with t.check("a card that Biga gives goes to no claim"):
        claim(api, "dra-card", jobs.DRIVER)
        api.create("pods", claimer("dra-card"))
        is_refused("dra-card")
        b.audit()
    with t.check("a host pod with a claim gets both, on one node"):
        got = place([("dra-host", OTHER, "host")])
        assert got["dra-host"][:3] == (node, OTHER, node), got
        assert jobs.allocations(api)[("default", "dra-host")][1][
            "node"] == node
        b.audit()
    with t.check("what has no device left waits, and takes nothing"):
        claim(api, "dra-late", OTHER)
        api.create("pods", claimer("dra-late", "host"))
        is_refused("dra-late")
        b.audit()
        api.delete("pods", "default", "dra-host")
        fleet.wait_bound(api, ["dra-late"])
        b.audit()
    forget(b)
    with t.check("without Biga the same claims are allocated the same"):
        b.c.start_scheduler(b.c.scheduler_config(percentage=100))
        got = place(plain)
        assert got["dra-other"] == with_biga["dra-other"], got
        assert {s["metadata"]["name"]: s["spec"] for s in
                api.list("resourceslices")
                if s["spec"]["driver"] == jobs.DRIVER} == ours
    forget(b)
    b.lab.start_scheduler()


def forget(b):
    b.clear()
    for c in b.api.list("resourceclaims", "default"):
        b.api.delete("resourceclaims", "default", c["metadata"]["name"])
    wait_for("claims go", lambda: not b.api.list(
        "resourceclaims", "default"))


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        lab = Lab(c)
        lab.up(nodes=NODES)
        lab.start_kubelet()
        b = Bench(t, c, lab)
        ends(t, b)
        unmade(t, b)
        fails(t, b)
        told(t, b)
        claims(t, b)
        t.finish()


main()
