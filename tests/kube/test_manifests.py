#!/usr/bin/env python3
"""What deploy/ holds: taken by the API server, the chart the same as the
overlay, and advertisers held to their own node."""
import difflib
import glob
import json
import os
import subprocess

import crds
import pool
from api import ApiError
from check import Checks
from cluster import HERE, ROOT
from fleet import add_node, node
from proc import wait_for

DEPLOY = os.path.join(ROOT, "deploy")
OVERLAYS = os.path.join(DEPLOY, "kustomize", "overlays")
COMPONENTS = os.path.join(DEPLOY, "kustomize", "components")
DRIVER = "xpu.biga.dev"


def objects(c, text):
    """The objects of a YAML text, by kind, namespace and name."""
    out = c.kubectl("create", "--dry-run=client", "--validate=false",
                    "-o", "json", "-f", "-", stdin=text)
    found, decoder, at = {}, json.JSONDecoder(), 0
    while at < len(out.rstrip()):
        at += len(out[at:]) - len(out[at:].lstrip())
        item, at = decoder.raw_decode(out, at)
        for x in item.get("items", [item]):
            x.pop("status", None)
            x["metadata"].pop("creationTimestamp", None)
            key = (x["kind"], x["metadata"].get("namespace", ""),
                   x["metadata"]["name"])
            assert key not in found, f"{key} is there twice"
            found[key] = x
    return found


def helm(*args):
    got = subprocess.run([os.path.join(HERE, "binaries"), "helm"],
                         stdout=subprocess.PIPE, text=True, check=True)
    program = os.path.join(got.stdout.strip(), "helm")
    got = subprocess.run([program, *args], capture_output=True, text=True,
                         check=False)
    return got.returncode, got.stdout, got.stderr


def rendered(*sets):
    code, out, err = helm(
        "template", "biga", os.path.join(DEPLOY, "chart"),
        "-n", "biga-system", "--kube-version", "1.37.1",
        *[word for s in sets for word in ("--set-json", s)])
    assert code == 0, err
    return out


def taken(c, text):
    """The API server takes all of it, in a dry run."""
    out = c.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-",
                    stdin=text)
    n = out.count("serverside-applied")
    assert n == len(objects(c, text)), out
    return n


def define_others(c):
    crds.define(
        c,
        ("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"),
        ("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors"),
        ("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"),
        ("kubeflow.org", "v2beta1", "MPIJob", "mpijobs"),
        ("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"))


def differences(a, b):
    text = []
    for key in sorted(a.keys() | b.keys()):
        one, two = (json.dumps(x.get(key), sort_keys=True, indent=1)
                    .splitlines() for x in (a, b))
        if one != two:
            text += [str(key), *difflib.unified_diff(one, two, lineterm="",
                                                     n=1)]
    return "\n".join(text)


def composed(c, name, overlay, components):
    """An overlay of ours with components of ours, as YAML."""
    folder = os.path.join(c.folder, name)
    os.makedirs(folder)
    with open(os.path.join(folder, "kustomization.yaml"), "w",
              encoding="utf-8") as file:
        json.dump({
            "resources": [os.path.relpath(os.path.join(OVERLAYS, overlay),
                                          folder)],
            "components": [os.path.relpath(os.path.join(COMPONENTS, x), folder)
                           for x in components]}, file)
    return c.kubectl("kustomize", folder)


def doors(t, c, ha, gate):
    """Each door brings what it needs, and nothing for the other one."""
    names = {"biga-place", "biga-extender-gate"}

    def of_gate(text):
        return {key: obj for key, obj in objects(c, text).items()
                if key[2] in names}
    with t.check("the gate brings policies and rights, the other door none"):
        assert not of_gate(ha), of_gate(ha)
        got = of_gate(gate)
        assert len(got) == 6, got
        assert not differences(
            objects(c, ha), {key: obj for key, obj in objects(c, gate).items()
                             if key not in got})
    with t.check("both doors: the gate is for namespaces that are labelled so"):
        both = of_gate(composed(c, "both-doors", "gate", ["gate-namespaces"]))
        selector = {"namespaceSelector": {"matchLabels": {
            "biga.dev/door": "gate"}}}
        for kind in ("Mutating", "Validating"):
            binding = both[(kind + "AdmissionPolicyBinding", "",
                            "biga-place")]
            assert binding["spec"]["matchResources"] == selector, binding
        diff = differences(both, of_gate(rendered('door="both"')))
        assert not diff, diff
    with t.check("the gate is refused where policies do not mutate yet"):
        for version, ok in (("1.35.9", False), ("1.36.0", True)):
            code, _, err = helm("template", "biga",
                                os.path.join(DEPLOY, "chart"),
                                "--kube-version", version,
                                "--set-json", 'door="gate"')
            assert (code == 0) == ok, err
            assert ok or "the gate needs Kubernetes 1.36" in err, err


def manifests(t, c):
    define_others(c)
    c.ensure_namespace("biga-system")
    c.ensure_namespace("biga-nodes")
    overlays = {}
    for folder in sorted(glob.glob(os.path.join(OVERLAYS, "*"))):
        name = os.path.basename(folder)
        with t.check(f"overlay {name} is taken by the API server"):
            overlays[name] = c.kubectl("kustomize", folder)
            t.note(f"{taken(c, overlays[name])} objects")
    t.ok({"single", "ha", "lab", "gate"} <= set(overlays),
         "all overlays are there")

    with t.check("overlay ha with all components is taken"):
        parts = sorted(os.listdir(COMPONENTS))
        assert len(parts) >= 2, parts
        text = composed(c, "with-components", "ha", parts)
        taken(c, text)
        for word in ("kind: ServiceMonitor", "kind: PrometheusRule",
                     "kind: PodMonitor", "--card-file=", "--claims",
                     "--metrics-client-ca="):
            assert word in text, f"no {word}"

    overlays["monitoring"] = composed(c, "monitored", "ha", ["monitoring"])
    for name, sets in (("ha", ()), ("gate", ('door="gate"',)),
                       ("monitoring", ("monitoring.enabled=true",))):
        with t.check(f"the chart renders what overlay {name} gives"):
            chart = objects(c, rendered(*sets))
            overlay = objects(c, overlays[name])
            # whose namespace it is installed into is helm's business
            del overlay[("Namespace", "", "biga-system")]
            diff = differences(overlay, chart)
            assert not diff, diff
    doors(t, c, overlays["ha"], overlays["gate"])
    with t.check("the chart with every setting changed is taken"):
        text = rendered(
            'door="both"', "claims=true",
            "tls.enabled=false", "monitoring.enabled=true",
            "networkPolicy.enabled=false", "extender.replicas=1",
            'extender.policy={"quotas":[]}', "extender.maxCandidates=0",
            'extender.lease="10s"', 'extender.gpuResources=["a.b/gpu"]',
            'extender.fabricLabels=["a/leaf","a/spine"]',
            'extender.nodeSelector={"a":"b"}', 'advertiser.cards={"cards":[]}',
            'advertiser.nodeSelector={"a":"b"}',
            'images.pullSecrets=[{"name":"x"}]')
        taken(c, text)
        for word in ("--plain-http=anywhere", "--policy=", "--card-file=",
                     "--max-candidates=0", "--lease=10s", "a/leaf,a/spine",
                     "--gpu-resources=a.b/gpu", "kind: PrometheusRule",
                     "--claims",
                     "{{ $labels.route }}"):
            assert word in text, f"no {word}"
        for word in ("NetworkPolicy", "PodDisruptionBudget", "--tls-cert"):
            assert word not in text, f"there is {word}"
    with t.check("the chart refuses values that it does not know"):
        for wrong in ("extender.replicas=0", "extender.replica=2",
                      'extender.fresh="soon"', "tls.enabled=\"yes\"",
                      'door="back"', 'claims="no"'):
            code, _, err = helm("template", "biga",
                                os.path.join(DEPLOY, "chart"),
                                "--kube-version", "1.37.1",
                                "--set-json", wrong)
            key = wrong.split("=", maxsplit=1)[0].split(".")[-1]
            assert code != 0 and key in err, f"{wrong}: {err}"

    c.kubectl("apply", "--server-side", "-f", "-", stdin=overlays["ha"])
    examples = os.path.join(DEPLOY, "examples")
    for file in sorted(glob.glob(os.path.join(examples, "**", "*.yaml"),
                                 recursive=True)):
        with t.check(f"examples/{os.path.relpath(file, examples)} is taken"), \
                open(file, encoding="utf-8") as f:
            taken(c, f.read())


# --- the admission of advertisers ---------------------------------------------

def slice_of(node, pool=None, driver=DRIVER, name=None):
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": name or f"{node}-{DRIVER}-0"},
            "spec": {"driver": driver, "nodeName": node,
                     "pool": {"name": pool or node, "generation": 1,
                              "resourceSliceCount": 1},
                     "devices": [{"name": "numa-0"}]}}


def lease_of(node, namespace="biga-nodes"):
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": node, "namespace": namespace},
            "spec": {"holderIdentity": "x", "leaseDurationSeconds": 40}}


def refused(what, *words):
    try:
        what()
    except ApiError as error:
        assert error.status == 403, error
        for word in words:
            assert word in str(error), f"{word!r} is not in {error}"
        return
    raise AssertionError("it was allowed")


def admission(t, c):
    for name in ("node-a", "node-b"):
        add_node(c.api, node(name))
    token = c.api.token_request("biga-system", "biga-advertiser",
                                node="node-a")
    unbound = c.api.token_request("biga-system", "biga-advertiser")
    stranger = c.api.as_token(unbound, c.ca)

    def in_force():
        """The API server looks for new policies about once a second."""
        try:
            stranger.create("resourceslices", slice_of("node-a"))
        except ApiError as error:
            return "name no node" in str(error)
        c.api.delete("resourceslices", None, f"node-a-{DRIVER}-0")
        return False

    wait_for("the admission policy", in_force)
    callers = {
        "a token bound to the node": c.api.as_token(token, c.ca),
        "a certificate of the node": c.user(
            "advertiser-a", "system:node:node-a", ["biga:advertisers"]),
    }
    for who, api in callers.items():
        with t.check(f"{who} writes its own slice, lease and annotation"):
            slice_a = api.create("resourceslices", slice_of("node-a"))
            slice_a["spec"]["pool"]["generation"] = 2
            api.update("resourceslices", slice_a)
            lease = api.create("leases", lease_of("node-a"))
            lease["spec"]["holderIdentity"] = "y"
            api.update("leases", lease)
            api.patch("nodes", None, "node-a", {"metadata": {
                "annotations": {"biga.dev/topology": who.replace(" ", "-")}}})
            api.delete("resourceslices", None, slice_a["metadata"]["name"])
            api.delete("leases", "biga-nodes", "node-a")
        theirs = c.api.create("resourceslices", slice_of("node-b"))
        c.api.create("leases", lease_of("node-b"))
        name = theirs["metadata"]["name"]
        with t.check(f"{who} cannot write another node's slice"):
            refused(lambda a=api: a.create(
                "resourceslices", slice_of("node-b", name="other")),
                "node-a", "nodeName")
            theirs["spec"]["pool"]["generation"] = 9
            refused(lambda a=api: a.update("resourceslices", theirs),
                    "node-a")
            refused(lambda a=api: a.delete("resourceslices", None, name),
                    "node-a")
            refused(lambda a=api: a.create(
                "resourceslices", slice_of("node-a", pool="node-b")), "pool")
            refused(lambda a=api: a.create("resourceslices", slice_of(
                "node-a", driver="gpu.example.org")), DRIVER)
            got = c.api.get("resourceslices", None, name)
            assert got["spec"]["pool"]["generation"] == 1, got
        with t.check(f"{who} cannot write another node's lease"):
            lease = c.api.get("leases", "biga-nodes", "node-b")
            refused(lambda a=api: a.update("leases", lease), "biga-nodes")
            refused(lambda a=api: a.create("leases", lease_of("node-c")),
                    "biga-nodes/node-a")
            refused(lambda a=api: a.delete("leases", "biga-nodes", "node-b"))
        with t.check(f"{who} can do nothing else to a node"):
            for change in (
                    {"spec": {"unschedulable": True}},
                    {"spec": {"taints": [{"key": "x",
                                          "effect": "NoSchedule"}]}},
                    {"metadata": {"labels": {"x": "y"}}},
                    {"metadata": {"annotations": {"x": "y"}}},
                    {"metadata": {"finalizers": ["x/y"]}}):
                refused(lambda a=api, p=change: a.patch(
                    "nodes", None, "node-a", p), "annotations")
            refused(lambda a=api: a.patch("nodes", None, "node-b", {
                "metadata": {"annotations": {"biga.dev/topology": "x"}}}),
                "node-a")
        c.api.delete("resourceslices", None, name)
        c.api.delete("leases", "biga-nodes", "node-b")
    with t.check("a token that is bound to no node writes nothing"):
        refused(lambda: stranger.create("resourceslices", slice_of("node-a")),
                "name no node")
    with t.check("others are not held to anything by it"):
        c.api.create("resourceslices", slice_of("node-b"))
        c.api.delete("resourceslices", None, f"node-b-{DRIVER}-0")


# --- what pods say of their cards --------------------------------------------

def allocation(t, c):
    """Only the extender says what a pod was given."""
    note = {"biga.dev/allocation": "{}"}
    c.kubectl("apply", "--server-side", "-f",
              os.path.join(COMPONENTS, "gate", "rbac.yaml"))
    user = c.user("tenant", "tenant", ["system:masters"])
    extender = c.api.as_token(
        c.api.token_request("biga-system", "biga-extender"), c.ca)

    def tenant_pod(name, **metadata):
        return {"metadata": {"name": name, "namespace": "default",
                             "labels": {"biga.dev/role": "host"}, **metadata},
                "spec": {"schedulerName": "nobody", "containers": [
                    {"name": "main", "image": "none"}]}}

    def bind(api, name, annotations):
        return api.create("pods", {
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": name, "namespace": "default",
                         "annotations": annotations},
            "target": {"kind": "Node", "name": "node-a"}}, sub="binding")

    def in_force():
        try:
            user.create("pods", tenant_pod("probe", annotations=note),
                        dryRun="All")
        except ApiError as error:
            return "only Biga writes" in str(error)
        return False

    def granted():
        return extender.create("selfsubjectaccessreviews", {"spec": {
            "resourceAttributes": {"verb": "patch", "resource": "pods",
                                   "namespace": "default"}}})["status"][
                                       "allowed"]

    wait_for("the other policy", in_force)
    wait_for("the rights of the gate", granted)
    with t.check("no user says that a pod has cards"):
        refused(lambda: user.create("pods", tenant_pod(
            "forged", annotations=note)), "only Biga writes")
        user.create("pods", tenant_pod("mine", annotations={"x": "y"}))
        refused(lambda: user.patch("pods", "default", "mine", {
            "metadata": {"annotations": note}}), "only Biga writes")
        refused(lambda: user.patch("pods", "default", "mine", {
            "metadata": {"annotations": note}}, sub="status"),
            "only Biga writes")
        refused(lambda: bind(user, "mine", note), "only Biga writes")
    with t.check("a pod that is not bound may still change its role"):
        for role in ("xpu", "host"):
            user.patch("pods", "default", "mine", {
                "metadata": {"labels": {"biga.dev/role": role}}})
    with t.check("the extender's bind says it"):
        bind(extender, "mine", note)
        got = c.api.get("pods", "default", "mine")
        assert got["metadata"]["annotations"] == {"x": "y", **note}, got
        assert got["spec"]["nodeName"] == "node-a", got
    with t.check("what a pod was given stays, and so does its role"):
        for other in (None, "", '{"cards":[]}'):
            refused(lambda value=other: user.patch("pods", "default", "mine", {
                "metadata": {"annotations": {"biga.dev/allocation": value}}}),
                "only Biga writes")
        for role in (None, "service"):
            refused(lambda value=role: user.patch("pods", "default", "mine", {
                "metadata": {"labels": {"biga.dev/role": value}}}),
                "must stay")
        user.patch("pods", "default", "mine", {
            "metadata": {"annotations": {"x": None}, "labels": {"a": "b"}}})
    with t.check("the extender says it as it opens the gate, and again"):
        gated = tenant_pod("gated")
        gated["spec"]["schedulingGates"] = [{"name": "biga.dev/place"}]
        user.create("pods", gated)
        refused(lambda: extender.patch("pods", "default", "gated", {
            "metadata": {"annotations": note}}, sub="status"),
            "only Biga writes")
        opened = extender.patch("pods", "default", "gated", {
            "metadata": {"annotations": note}, "spec": {
                "schedulingGates": [], "affinity": {"nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchFields": [{
                            "key": "metadata.name", "operator": "In",
                            "values": ["node-a"]}]}]}}}}})
        assert opened["metadata"]["annotations"] == note, opened
        assert not opened["spec"].get("schedulingGates"), opened
        for other in ({"biga.dev/allocation": None}, note):
            extender.patch("pods", "default", "gated", {
                "metadata": {"annotations": other}})
        refused(lambda: user.patch("pods", "default", "gated", {
            "metadata": {"annotations": {"biga.dev/allocation": None}}}),
            "only Biga writes")
    with t.check("once it is bound, whoever binds it, that stays"):
        bind(user, "gated", {})
        refused(lambda: extender.patch("pods", "default", "gated", {
            "metadata": {"annotations": {"biga.dev/allocation": None}}}),
            "only Biga writes")
    with t.check("whoever may update a pod may open its gate"):
        gated["metadata"]["name"] = "theirs"
        user.create("pods", gated)
        got = user.patch("pods", "default", "theirs", {
            "spec": {"schedulingGates": []}})
        assert not got["spec"].get("schedulingGates"), got
    with t.check("other pods are bound by whoever may"):
        other = tenant_pod("other")
        del other["metadata"]["labels"]
        user.create("pods", other)
        bind(user, "other", {"x": "y"})


def main():
    with pool.cluster() as c:
        t = Checks(on_failure=c.log_ends)
        manifests(t, c)
        admission(t, c)
        allocation(t, c)
        t.finish()


main()
