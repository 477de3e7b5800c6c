#!/usr/bin/env python3
"""What the gate door's policies make of pods: deploy/kustomize/components/gate
at a real API server, in dry runs."""
import os

import pool
from api import ApiError
from check import Checks
from cluster import ROOT
from proc import wait_for

GATE = os.path.join(ROOT, "deploy", "kustomize", "components", "gate")
CARD, CORES, MIB = (f"biga.dev/card{x}" for x in ("", "-cores",
                                                  "-memory-mib"))
PLACE = {"name": "biga.dev/place"}


def container(limits=None, requests=None, **more):
    resources = {k: v for k, v in (("limits", limits), ("requests", requests))
                 if v is not None}
    return {"name": more.pop("name", "main"), "image": "none", **more,
            **({"resources": resources} if resources else {})}


def pod(role, *containers, labels=None, annotations=None, **spec):
    metadata = {"name": "p", "namespace": "default",
                "labels": {**({"biga.dev/role": role} if role else {}),
                           **(labels or {})}}
    if annotations is not None:
        metadata["annotations"] = annotations
    return {"metadata": metadata,
            "spec": {"containers": list(containers) or [container()], **spec}}


class Asked:
    def __init__(self, api):
        self.api = api

    def made(self, obj):
        return self.api.create("pods", obj, dryRun="All")

    def said(self, obj):
        """(gates, annotations, resources of all containers) as created."""
        got = self.made(obj)
        spec = got["spec"]
        amounts = [c.get("resources", {}) for c in
                   spec.get("initContainers", []) + spec["containers"]]
        return (spec.get("schedulingGates", []),
                got["metadata"].get("annotations", {}), amounts)

    def refused(self, obj, *words):
        try:
            self.made(obj)
        except ApiError as error:
            assert error.status in (403, 422), error
            for word in words:
                assert word in str(error), f"{word!r} is not in {error}"
            return
        raise AssertionError("it was made")


def gates(t, a):
    for role in ("host", "xpu", "service"):
        with t.check(f"a pod of role {role} gets the gate"):
            assert a.said(pod(role)) == ([PLACE], {}, [{}]), a.said(pod(role))
    with t.check("a pod without a role, or with none of Biga's, is untouched"):
        limits = {"cpu": "1", "example.org/x": "2"}
        for role in (None, "other"):
            said = a.said(pod(role, container({**limits, CARD: "1"}),
                              annotations={"x": "y", CARD: "two"}))
            assert said[:2] == ([], {"x": "y", CARD: "two"}), said
            assert said[2][0]["limits"] == {**limits, CARD: "1"}, said
    with t.check("a gate that is there is not put twice, others stay"):
        other = {"name": "kueue.x-k8s.io/admission"}
        for given in ([PLACE], [other], [other, PLACE]):
            got = a.said(pod("host", schedulingGates=given))[0]
            assert sorted(g["name"] for g in got) == sorted(
                {g["name"] for g in [*given, PLACE]}), got
    with t.check("a pod that names its node goes there, as it is"):
        said = a.said(pod("host", container({CARD: "1"}), nodeName="n"))
        assert said[0] == [] and CARD in said[2][0]["limits"], said


def amounts(t, a):
    with t.check("resources of cards become annotations, others stay"):
        said = a.said(pod("xpu", container(
            {CARD: "1", CORES: "8", MIB: "8Ki", "cpu": "1", "memory": "1Gi"})))
        assert said == ([PLACE], {CARD: "1", CORES: "8", MIB: "8192"}, [
            {"limits": {"cpu": "1", "memory": "1Gi"},
             "requests": {"cpu": "1", "memory": "1Gi"}}]), said
    with t.check("of several containers their sum, beside other annotations"):
        said = a.said(pod(
            "host", container({CARD: "1", CORES: "2"}),
            container({CORES: "3"}, name="b"), container(name="c"),
            annotations={"biga.dev/align": "pix"}))
        assert said[1] == {"biga.dev/align": "pix", CARD: "1",
                           CORES: "5"}, said
        assert not any(map(str(said[2]).count, (CARD, CORES))), said
    with t.check("init containers count as Kubernetes counts them"):
        init = [container({CORES: "1"}, name="s", restartPolicy="Always"),
                container({CORES: "9"}, name="i")]
        said = a.said(pod("xpu", container({CORES: "2"}),
                          initContainers=init))
        assert said[1] == {CORES: "10"}, said
        said = a.said(pod("xpu", container({CORES: "20"}),
                          initContainers=init))
        assert said[1] == {CORES: "21"}, said
        assert CORES not in str(said[2]), said
    with t.check("an annotation that says the same stays"):
        said = a.said(pod("xpu", container({CARD: "2"}),
                          annotations={CARD: "2"}))
        assert said[1] == {CARD: "2"} and CARD not in str(said[2]), said
    with t.check("one that says another thing leaves the resource to be seen"):
        said = a.said(pod("xpu", container({CARD: "2", CORES: "1"}),
                          annotations={CARD: "1"}))
        assert said[1] == {CARD: "1", CORES: "1"}, said
        assert said[2][0]["limits"] == {CARD: "2"}, said
    with t.check("a request of 0 is no request"):
        said = a.said(pod("xpu", container({CARD: "0"})))
        assert said[1] == {} and CARD not in str(said[2]), said


def wrong(t, a):
    with t.check("an amount that is no whole number is refused"):
        for amount in ("500m", "1.5"):
            a.refused(pod("xpu", container({CORES: amount})),
                      "containers[0].resources", CORES, "must be an integer")
        a.refused(pod("xpu", container({CORES: "-1"})),
                  "containers[0].resources", CORES)
    with t.check("an annotation that is no amount is refused, and says why"):
        for amount in ("two", "", "-1", "1.5", "500m", "1T", "12345678901"):
            a.refused(pod("xpu", annotations={CORES: amount}),
                      f'metadata.annotations["{CORES}"]: is "{amount}", must '
                      "be a whole number, with or without one of k, M, G, Ki, "
                      "Mi, Gi")
        a.made(pod("xpu", annotations={CARD: "1", MIB: "8Gi"}))


def in_force(a):
    """The API server looks for new policies about once a second."""
    def both():
        if a.said(pod("host"))[0] != [PLACE]:
            return False
        try:
            a.made(pod("host", annotations={CARD: "x"}))
        except ApiError:
            return True
        return False
    wait_for("the policies", both)


def main():
    with pool.cluster() as c:
        t = Checks(on_failure=c.log_ends)
        a = Asked(c.api)
        with t.check("the policies are taken, without a warning"):
            got = c.kubectl("apply", "--server-side", "-f",
                            os.path.join(GATE, "place.yaml"))
            assert "Warning" not in got, got
            in_force(a)
        if not t.failed:
            gates(t, a)
            amounts(t, a)
            wrong(t, a)
        t.finish()


main()
