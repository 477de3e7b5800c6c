"""Kueue and JobSet in a cluster of tests/kube, as their own config/ installs
them: CRDs, rights, webhooks; their managers run here, beside the cluster's
other programs, as their service accounts.

    jobset = JobSet(c).up()
    kueue = Kueue(c).up(frameworks=["batch/job", "jobset.x-k8s.io/jobset"])
"""
import base64
import json
import os
import subprocess
import sys
import threading
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import api as kube
from cluster import HERE as KUBE, certs
from proc import free_port, wait_for

kube.PREFIX.update({
    **dict.fromkeys(("clusterqueues", "localqueues", "resourceflavors",
                     "topologies", "workloads.kueue"),
                    "/apis/kueue.x-k8s.io/v1beta2"),
    "jobsets": "/apis/jobset.x-k8s.io/v1alpha2",
    **dict.fromkeys(("mutatingwebhookconfigurations",
                     "validatingwebhookconfigurations"),
                    "/apis/admissionregistration.k8s.io/v1")})
# what a cluster with machines needs, and this one does not
NOT_HERE = ("Deployment", "APIService", "ConfigMap")
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def objects(text):
    """The objects that kubectl prints one after the other."""
    reader, at, found = json.JSONDecoder(), 0, []
    while at < len(text):
        obj, at = reader.raw_decode(text, at)
        found += obj["items"] if obj["kind"] == "List" else [obj]
        while at < len(text) and text[at].isspace():
            at += 1
    return found


class Controller:
    """One manager; what differs is in the classes below."""

    name = account = service = secret = None

    def __init__(self, c):
        self.c = c
        got = subprocess.run(
            [os.path.join(KUBE, "binaries"), self.name],
            stdout=subprocess.PIPE, text=True, check=False)
        if got.returncode:
            sys.exit(got.returncode)
        self.folder = got.stdout.strip()
        self.space = self.name + "-system"
        self.port, self.health = free_port(), free_port()
        self.certs = c.path(self.name + "-certs")
        self.process = None

    def install(self):
        """What its config/default has; its webhooks are called here."""
        shipped = self.c.kubectl(
            "kustomize", os.path.join(self.folder, "config", "default"))
        found = [self._here(obj) for obj in objects(self.c.kubectl(
            "create", "--dry-run=client", "--validate=false", "-o", "json",
            "-f", "-", stdin=shipped))
            if obj["kind"] not in NOT_HERE]
        found = [obj for obj in found if obj]
        # what others are of, or in, comes first; who is asked about all
        # that is written, last
        first = ("Namespace", "CustomResourceDefinition")
        self._apply([o for o in found if o["kind"] in first])
        self._apply([o for o in found if o["kind"] not in first + WEBHOOKS])
        self._apply([o for o in found if o["kind"] in WEBHOOKS])
        return self

    def _apply(self, found):
        self.c.kubectl("apply", "--server-side", "-f", "-",
                       stdin=json.dumps({"apiVersion": "v1", "kind": "List",
                                         "items": found}))

    def _here(self, obj):
        """The object with its Service at our port; None: not needed."""
        if obj["kind"] == "Service":
            if obj["metadata"]["name"] != self.service:
                return None
            # by its name the API server finds who serves, and is who it says
            obj["spec"] = {"type": "ExternalName", "externalName": "localhost",
                           "ports": [{"port": self.port}]}
        if obj["kind"] in WEBHOOKS:
            for hook in obj["webhooks"]:
                hook["clientConfig"]["service"]["port"] = self.port
        hook = obj.get("spec", {}).get("conversion", {}).get("webhook")
        if obj["kind"] == "CustomResourceDefinition" and hook:
            hook["clientConfig"]["service"]["port"] = self.port
        return obj

    def start(self, config):
        """Its manager with this configuration, ready."""
        os.makedirs(self.certs, exist_ok=True)
        file = kube.write_private(self.c.path(self.name + ".yaml"),
                                  json.dumps(config, indent=2) + "\n")
        account = self.c.account_kubeconfig(self.space, self.account)
        self.process = self.c.process(
            self.name, [os.path.join(self.folder, self.name),
                        "--config=" + file, "--kubeconfig=" + account,
                        "--zap-log-level=2"]).start()
        wait_for(f"{self.name} is ready", self._ready, every=0.2)
        return self

    def _ready(self):
        self.process.alive()
        with urllib.request.urlopen(
                f"http://127.0.0.1:{self.health}/readyz") as answer:
            return answer.status == 200

    def configuration(self):
        """What all of them are told."""
        return {"kind": "Configuration",
                "health": {"healthProbeBindAddress":
                           f"127.0.0.1:{self.health}"},
                "metrics": {"bindAddress": "0"},
                "webhook": {"port": self.port, "host": "127.0.0.1",
                            "certDir": self.certs},
                "leaderElection": {"leaderElect": False}}


class JobSet(Controller):
    name, account = "jobset", "jobset-controller-manager"
    service = "jobset-webhook-service"

    def up(self):
        self.install()
        self._certify()
        config = self.configuration()
        config.update({
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
            # its own certificates would stand in a folder of all who test
            "internalCertManagement": {"enable": False}})
        config["metrics"]["certDir"] = self.certs
        return self.start(config)

    def _certify(self):
        certs("ca", self.certs, "--cn", "jobset-test")
        certs("server", self.certs, "tls", "--san",
              f"{self.service}.{self.space}.svc")
        with open(os.path.join(self.certs, "ca.crt"), "rb") as f:
            ca = base64.b64encode(f.read()).decode()
        for kind in ("mutatingwebhookconfigurations",
                     "validatingwebhookconfigurations"):
            for obj in self.c.api.list(kind):
                if not obj["metadata"]["name"].startswith("jobset-"):
                    continue
                for hook in obj["webhooks"]:
                    hook["clientConfig"]["caBundle"] = ca
                self.c.api.update(kind, obj)


class Kueue(Controller):
    name, account = "kueue", "kueue-controller-manager"
    service, secret = "kueue-webhook-service", "kueue-webhook-server-cert"

    def up(self, frameworks=("batch/job",), features=None, **more):
        """frameworks: what it queues; features: its own gates; more: of its
        configuration, as resources={…}."""
        self.install()
        config = self.configuration()
        config.update({
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "internalCertManagement": {"enable": True},
            "integrations": {"frameworks": list(frameworks)},
            "clientConnection": {"qps": 300, "burst": 600},
            # it is served by an APIService, which is not installed
            "featureGates": {"VisibilityOnDemand": False,
                             **(features or {})}, **more})
        os.makedirs(self.certs, exist_ok=True)
        threading.Thread(target=self._mount, daemon=True).start()
        return self.start(config)

    def _mount(self):
        """Its Secret as files, as a kubelet mounts it: it makes its
        certificates, and waits for them."""
        def there():
            data = self.c.api.get("secrets", self.space, self.secret).get(
                "data", {})
            return data if "tls.crt" in data else None
        data = wait_for("Kueue has certificates", there, every=0.2)
        for name, content in data.items():
            kube.write_private(os.path.join(self.certs, name),
                               base64.b64decode(content).decode())


# --- what an administrator of queues writes -----------------------------------
def _of_kueue(kind, name, spec, **meta):
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind,
            "metadata": {"name": name, **meta}, "spec": spec}


def flavor(name, labels=None, topology=None):
    spec = {"nodeLabels": labels or {}}
    if topology:
        spec["topologyName"] = topology
    return _of_kueue("ResourceFlavor", name, spec)


def cluster_queue(name, flavor_name, **quota):
    """quota: {"biga.dev/card": 8}."""
    return _of_kueue("ClusterQueue", name, {
        "namespaceSelector": {},
        "resourceGroups": [{
            "coveredResources": list(quota),
            "flavors": [{"name": flavor_name, "resources": [
                {"name": what, "nominalQuota": str(n)}
                for what, n in quota.items()]}]}]})


def local_queue(name, cluster, namespace="default"):
    return _of_kueue("LocalQueue", name, {"clusterQueue": cluster},
                     namespace=namespace)


def topology(name, *levels):
    return _of_kueue("Topology", name, {
        "levels": [{"nodeLabel": level} for level in levels]})


def conditions(obj):
    """{type: status} of any object."""
    return {c["type"]: c["status"]
            for c in obj.get("status", {}).get("conditions", [])}
