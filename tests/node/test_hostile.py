#!/usr/bin/env python3
"""Pods that ask a card for what is not theirs, under a real kubelet: each is
refused with an Event that names what it asked for, or has what it asked for
and nothing else; the host and the other card notice nothing."""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
import cards  # noqa: E402
from check import Checks  # noqa: E402
from place import OnCard, Place  # noqa: E402
from pods import WAIT, pod, sh, status_of  # noqa: E402
from proc import wait_for  # noqa: E402

GIVEN = "/var/lib/given"  # what the operator lets pods have of a card
SANDBOX, CONTAINER = "FailedCreatePodSandBox", "Failed"


def volume(source, **mount):
    """Of a pod and its container, one volume."""
    return ({"volumes": [{"name": "v", **source}]},
            {"volumeMounts": [{"name": "v", "mountPath": "/v", **mount}]})


def host_path(path, **mount):
    return volume({"hostPath": {"path": path}}, **mount)


def security(**more):
    return {}, {"securityContext": more}


# name: members of the pod and of its container; the Event's reason and words
REFUSED = {
    "etc": (host_path("/etc"), CONTAINER, 'mount of "/etc" at "/v"'),
    "beside": (host_path(GIVEN + "-not"), CONTAINER, "--host-paths"),
    "socket": (host_path("/run/containerd"), CONTAINER, "--host-paths"),
    "led": (({"volumes": [{"name": "v", "emptyDir": {}}],
              "initContainers": [sh("ln -s / /v/a", "lead", volumeMounts=[
                  {"name": "v", "mountPath": "/v"}])]},
             {"volumeMounts": [{"name": "v", "mountPath": "/v",
                                "subPath": "a"}]}),
            CONTAINER, "at 'a'"),
    "back": (({"volumes": [{"name": "v", "emptyDir": {}}]},
              {"env": [{"name": "UP", "value": "../.."}],
               "volumeMounts": [{"name": "v", "mountPath": "/v",
                                 "subPathExpr": "$(UP)"}]}),
             CONTAINER, ".."),
    "port": (({}, {"ports": [{"containerPort": 80, "hostPort": 8089}]}),
             SANDBOX, "hostPort 8089"),
    "all": (security(privileged=True), SANDBOX, "privileged"),
    "admin": (security(capabilities={"add": ["SYS_ADMIN"]}), CONTAINER,
              "SYS_ADMIN"),
    "pids": (({"hostPID": True}, {}), SANDBOX, "hostPID"),
    "ipc": (({"hostIPC": True}, {}), SANDBOX, "hostIPC"),
    "profile": (security(seccompProfile={
        "type": "Localhost", "localhostProfile": "x.json"}), CONTAINER,
        "seccompProfile"),
}

# What the API server itself does not take
NEVER = {
    "dots": (host_path(GIVEN + "/../../etc"), "must not contain '..'"),
    "up": (volume({"emptyDir": {}}, subPath="../.."), "must not contain '..'"),
    "ways": (host_path(GIVEN, mountPropagation="Bidirectional"),
             "Bidirectional"),
}


def wait_said(p, name, reason, words):
    """Until an Event of a Pod for that reason says so; of a slow machine it
    may say other things before."""
    def said():
        found = [e["message"] for e in p.r.c.api.list(
            "events", "default",
            fieldSelector=f"involvedObject.name={name}")
            if e["reason"] == reason]
        assert any(words in message for message in found), found
        return True
    wait_for(f"an Event {reason} of {name} says {words!r}", said)


def test_refused(t, p, other):
    with t.check("'..' in a hostPath or a subPath, or what is mounted on both "
                 "sides, is no Pod"):
        for what, ((spec, container), words) in NEVER.items():
            try:
                p.apply(what, sh(WAIT, **container), **spec)
            except RuntimeError as error:
                assert words in str(error), error
            else:
                raise AssertionError(f"{what} was taken")
    uid = other["metadata"]["uid"]
    theirs = f"/var/lib/kubelet/pods/{uid}/volumes/" \
        "kubernetes.io~configmap/cm"
    tries = {**REFUSED, "theirs": (host_path(theirs), CONTAINER,
                                   "is of another pod")}
    names = {what: p.apply(what, sh(WAIT, **container), **spec)
             for what, ((spec, container), _, _) in tries.items()}
    for what, (_, reason, words) in tries.items():
        with t.check(f"refused, as '{what}', and told why"):
            wait_said(p, names[what], reason, words)
    with t.check("none of them has run"):
        for name in names.values():
            found = p.r.pod(name)
            assert "started" not in str(found["status"].get("containerStatuses")
                                        ) or not status_of(found)["started"]
        p.k("delete", "pod", "--grace-period=0", "--force", *names.values())


def test_forged(t, p, other):
    told = other["metadata"]["annotations"]["biga.dev/allocation"]
    mine = pod(p.name("forged"), sh(WAIT), nodeName=cards.NODE,
               annotations={"biga.dev/allocation": told})
    p.dress(mine)
    with t.check("nobody but Biga writes an allocation"):
        try:
            p.r.c.apply([mine])
        except RuntimeError as error:
            assert "only Biga writes it" in str(error), error
        else:
            raise AssertionError("it was taken")
    with t.check("without that policy another pod's is refused on the node"):
        p.r.biga.allow_changes()
        p.r.c.apply([mine])
        wait_said(p, mine["metadata"]["name"], SANDBOX,
                  "AllocationRefused: biga.dev/allocation: pod.name")
        p.gone(mine["metadata"]["name"], "--grace-period=0", "--force")


def mark(place, name):
    """A file beside those of pods; its path."""
    path = place.seen(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as f:
        f.write("here\n")
    return path


# Links that lead out of its volumes, a termination message of some MiB
LINKS = """cd /d && ln -s / root && ln -s /var/lib/biga/pods pods &&
ln -s ../../.. up && mkdir -p sub && ln -s /etc sub/etc &&
ln -s /var/lib/mark mark && ln /d/sub/../a hard 2>/dev/null
dd if=/dev/zero bs=1M count=3 2>/dev/null | tr '\\0' x >/dev/termination-log
echo linked; exit 3"""


def test_links(t, p, other):
    card = p.card_of(other)
    places = [p.r.rack.host, *p.r.rack.cards]
    marks = [mark(place, "var/lib/mark/file") for place in places]
    with t.check("links in its volume lead nowhere when it is removed, and of "
                 "its last words 4 KiB are read"):
        name = p.apply("links", sh(LINKS, volumeMounts=[
            {"name": "d", "mountPath": "/d"}]), restartPolicy="Never",
            volumes=[{"name": "d", "emptyDir": {}}])
        found = p.phase(name, "Failed")
        state = status_of(found)["state"]["terminated"]
        assert set(state["message"]) == {"x"}, state["message"][:80]
        assert len(state["message"]) <= 4096, len(state["message"])
        uid, there = found["metadata"]["uid"], p.card_of(found)
        assert any(uid in file for file in there.files())
        p.gone(name)

        def removed():
            # the kubelet may remove it at the same time
            left = [s for s in there.local().sandboxes()
                    if uid in s["labels"].values()]
            for s in left:
                p.r.crictl("rmp", "-f", s["id"])
            return not left
        wait_for("its sandbox is removed", removed)
        wait_for("its files are gone", lambda: not [
            file for file in there.files() if uid in file])
        for path in marks:
            assert os.path.exists(path), path
        uid = other["metadata"]["uid"]
        assert any(uid in file for file in card.files())


def test_given(t, p):
    with t.check("what it is given of the card is the card's, and not of the "
                 "host nor of the other card"):
        name = p.up("given", sh("echo mine >/v/file; " + WAIT,
                                **host_path(GIVEN)[1]), **host_path(GIVEN)[0])
        card = p.card_of(p.r.pod(name))
        here = os.path.join(GIVEN, "file")
        wait_for("it is written", lambda: os.path.exists(card.seen(here[1:])))
        for place in [p.r.rack.host, *p.r.rack.cards]:
            assert place is card or not os.path.exists(
                place.seen(here[1:])), place.name
        p.gone(name)


def test_large(t, p):
    with t.check("200 KiB of annotations, of variables and of arguments do "
                 "not disturb it"):
        big = "x" * 100000
        made = p.dress(pod(
            p.name("large"), {
                **sh(WAIT), "args": [big, big],
                "env": [{"name": f"V{i}", "value": big} for i in range(2)]},
            annotations={f"example.com/{i}": big for i in range(2)}))
        p.r.c.api.create("pods", made)  # kubectl would annotate all of it
        name = made["metadata"]["name"]
        p.ready(name)
        assert p.sh(name, "echo ${#V0} ${#V1}").split() == ["100000"] * 2
        p.gone(name)


def test_others(t, p, names, host):
    with t.check("nobody else has noticed"):
        assert p.r.condition()[0] == "True", p.r.condition()
        for name in names:
            found = p.r.ready_pod(name)
            assert status_of(found)["restartCount"] == 0
        assert p.sh(names[0], "cat /cm/a") == "1"
        assert {s["name"] for s in p.r.rack.host.local().sandboxes()
                if s["ready"]} == {names[1]}
        host.gone(names[1])
        p.gone(names[0])


def main():
    rig.require("router")
    with rig.Rig(2, "router") as r:
        t = Checks(on_failure=r.tail)
        with t.check("the node is ready"):
            r.way.settings["host-paths"] = GIVEN
            r.start()
            r.start_biga()
            for card in r.rack.cards:
                os.makedirs(card.seen(GIVEN[1:]))
        p, host = OnCard(r), Place(r)
        if not t.failed:
            r.c.apply([{"apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"name": "cm", "namespace": "default"},
                        "data": {"a": "1"}}])
            names = [p.up("other", sh(WAIT, volumeMounts=[
                {"name": "cm", "mountPath": "/cm"}]), volumes=[
                    {"name": "cm", "configMap": {"name": "cm"}}]),
                host.up("other", sh(WAIT))]
            other = r.pod(names[0])
            assert json.loads(other["metadata"]["annotations"]
                              ["biga.dev/allocation"])
            test_refused(t, p, other)
            test_links(t, p, other)
            test_given(t, p)
            test_large(t, p)
            test_forged(t, p, other)
            test_others(t, p, names, host)
        t.finish()


main()
