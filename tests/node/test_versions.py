#!/usr/bin/env python3
"""What people do with pods, the short of it, with other versions of kubelet
and containerd than those of the other tests, and with what the kubelet asks
of a runtime only behind a feature gate.

    test_versions.py [NODE [TEST…]]    one of NODES; only the functions
                                       test_TEST
"""
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import everything  # noqa: E402
import lives  # noqa: E402
import mounts  # noqa: E402
import parts  # noqa: E402
import rig  # noqa: E402
import served  # noqa: E402
import verbs  # noqa: E402
from cri import Cri, CriError, fields  # noqa: E402
from place import OnCard, Place  # noqa: E402
from pods import WAIT, sh, status_of  # noqa: E402
from proc import wait_for  # noqa: E402

SHORT = (verbs.test_shown, verbs.test_logs, verbs.test_restart,
         verbs.test_exec, verbs.test_forward, lives.test_readiness,
         lives.test_hooks, lives.test_init, lives.test_message,
         lives.test_job, mounts.test_volumes, served.test_numbers)


def metric(r, name):
    """A number of the kubelet's, all its labels added up; 0 without one."""
    text = served.raw(Place(r), "metrics")
    return sum(float(line.split()[-1]) for line in text.split("\n")
               if re.match(name + "[ {]", line))


def router(r):
    return Cri(unix=r.way.socket)


def home(r):
    return r.rack.host.local()


# --- what the runtime says of itself ------------------------------------------
def answer(cri, method, request=b""):
    try:
        return cri.call(method, request)
    except CriError:
        return None


def handlers(cri):
    """{name: the message RuntimeHandler} of Status."""
    return {dict(fields(h)).get(1, b"").decode(): h
            for n, h in fields(cri.call("Status")) if n == 3}


def test_told(t, r):
    """Of the runtime, through the router."""
    with t.check("the node says its kubelet's and its runtime's versions"):
        t.note(r.c.kubectl("get", "nodes", "-o", "wide"))
        info = r.c.api.get("nodes", None, rig.NODE)["status"]["nodeInfo"]
        # without what Debian adds
        version = home(r).version()["version"].lstrip("v").partition("~")[0]
        assert info["containerRuntimeVersion"] == "containerd://" + version
        kubelet = os.path.basename(rig.binaries(r.versions["kubelet"]))
        assert info["kubeletVersion"] in kubelet, (info, kubelet)
    with t.check("RuntimeConfig is the host's, or refused as there"):
        said = answer(home(r), "RuntimeConfig")
        assert answer(router(r), "RuntimeConfig") == said, said
        assert (said is None) == ("host" not in r.versions), said
    with t.check("so are the runtime's handlers and their features; xpu is "
                 "added"):
        had, told = handlers(home(r)), handlers(router(r))
        t.note(f"the host's: {sorted(had)}")
        assert set(told) == {"", "xpu", *had}, (had, told)
        assert had.items() <= told.items(), (had, told)
        found = r.c.api.get("nodes", None, rig.NODE)["status"]
        assert {h["name"] for h in found["runtimeHandlers"]} == set(told)
        t.note(found["runtimeHandlers"])


# --- behind gates ------------------------------------------------
EVENTS = "kubelet_evented_pleg_connection_latency_seconds_count"
STREAMS = "kubelet_evented_pleg_connection_success_count"
FAILURES = "kubelet_evented_pleg_connection_error_count"


def test_events(t, r):
    """GetContainerEvents, with a host and cards that have it."""
    for p in (Place(r), OnCard(r)):
        with t.check(f"the kubelet has events of a pod, {p.prefix}"):
            before = metric(r, EVENTS)
            name = p.apply("heard", sh("echo done"), restartPolicy="Never")
            p.phase(name, "Succeeded")
            wait_for("its start and its end", lambda n=before:
                     metric(r, EVENTS) >= n + 3)
            p.gone(name)
        with t.check(f"a container that fails is started again, {p.prefix}"):
            name = p.apply("again", sh("exit 1"))
            wait_for("it was", lambda p=p, n=name: status_of(
                p.r.pod(n))["restartCount"] >= 2)
            p.gone(name)
    with t.check("its stream never broke so far"):
        t.note(f"{metric(r, EVENTS):.0f} events")
        assert metric(r, STREAMS) == 1 and metric(r, FAILURES) == 0
    # it then gives up after five tries, all at once
    with t.check("when its stream breaks, the kubelet goes on by lists"):
        names = [p.up("stays", sh(WAIT)) for p in (Place(r), OnCard(r))]
        r.way.process.stop()
        wait_for("it noticed", lambda: metric(r, FAILURES) > 0)
        r.way.start()
        r.wait_ready()
        for name in names:
            assert status_of(r.pod(name))["restartCount"] == 0
            r.c.kubectl("delete", "pod", name)
        for p in (Place(r), OnCard(r)):
            name = p.apply("listed", sh("echo done"), restartPolicy="Never")
            p.phase(name, "Succeeded")
            p.gone(name)


def test_no_events(t, r):
    """As test_events, with a host that has none."""
    with t.check("the kubelet is told that the host has no events, and lists"):
        wait_for("it was", lambda: metric(r, FAILURES) >= 1)
        assert metric(r, EVENTS) == 0


# of each call, where its reply has the id of an item
LISTS = {"PodSandbox": "PodSandboxes", "Containers": "Containers"}


def ids(reply):
    return sorted(dict(fields(item))[1] for n, item in fields(reply)
                  if n == 1)


def test_streams(t, r):
    """Stream…, with a host that has it."""
    names = [p.up("listed", sh(WAIT)) for p in (Place(r), OnCard(r))]
    for one, many in LISTS.items():
        with t.check(f"Stream{many} has what List{one} has, cards' too"):
            def same(one=one, many=many):
                listed = ids(router(r).call("List" + one))
                streamed = ids(b"".join(router(r).messages("Stream" + many)))
                assert streamed == listed, (streamed, listed)
                assert len(listed) > len(ids(home(r).call("List" + one))) > 0
                return True
            wait_for("it is so", same)
    with t.check("the kubelet never fell back to lists in one message"):
        assert "falling back" not in r.kubelet.text()
    for name in names:
        Place(r).gone(name)


def test_no_streams(t, r):
    with t.check("the kubelet is told that the host streams no lists"):
        wait_for("it fell back", lambda: "falling back" in r.kubelet.text())


def test_images(t, r):
    """Images named with the handler of their pod."""
    p = OnCard(r)
    with t.check("an image is pulled on the card alone"):
        image = "registry.k8s.io/e2e-test-images/busybox:1.29-2"
        name = p.up("pulled", sh(WAIT, image=image,
                                 imagePullPolicy="Always"))
        card = p.card_of(r.pod(name))
        assert image in card.local().images(), card.local().images()
        assert image not in home(r).images(), home(r).images()
        p.gone(name)


def gates(*names):
    return {"featureGates": dict.fromkeys(names, True)}


BOTH_2 = {"host": "containerd-2", "cards": "containerd-2"}
STATS = "PodAndContainerStatsFromCRI"
# name: (arguments of Rig, what is tried besides)
NODES = {
    "kubelet-1.36": ({"versions": {"kubelet": "kubelet-1.36"}}, ()),
    "containerd-2": ({"versions": BOTH_2}, ()),
    "host-2": ({"versions": {"host": "containerd-2"},
                "kubelet": gates("CRIListStreaming", STATS,
                                 "RuntimeClassInImageCriApi")},
               (test_streams, test_images)),
    "cards-2": ({"versions": {"cards": "containerd-2"},
                 "kubelet": gates("CRIListStreaming", STATS, "EventedPLEG")},
                (test_no_streams, test_no_events)),
    "evented": ({"versions": BOTH_2, "kubelet": gates(
        "EventedPLEG", "CRIListStreaming", STATS,
        "RuntimeClassInImageCriApi")},
        (test_events, test_streams, test_images)),
    "evented-1.36": ({"versions": {"kubelet": "kubelet-1.36", **BOTH_2},
                      "kubelet": gates("EventedPLEG")}, (test_events,)),
}


def main(name, *names):
    node, more = NODES[name]

    def chosen(tests):
        return [test for test in tests
                if not names or test.__name__[5:] in names]

    def besides(t, r):
        for test in chosen((test_told, *more)):
            test(t, r)
    everything.try_all(rig.Rig(2, "router", **node), (Place, OnCard),
                       chosen(SHORT), besides)


if sys.argv[1:]:
    rig.require("router")
    main(*sys.argv[1:])
else:
    for need in ("kubelet-1.36", "containerd-2"):
        rig.binaries(need)
    rig.require("router")
    parts.run([[one] for one in NODES])
