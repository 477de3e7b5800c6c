"""Biga in a cluster, as deploy/ puts it there: RBAC, admission, mutual TLS,
two replicas behind one address, a fleet of simulated hosts, and the scheduler
that asks them.

    with Cluster() as c:
        c.start()
        lab = Lab(c).up(nodes=16)
"""
import os
import sys
from http.client import HTTPException

import fleet
from api import Api, ApiError, path, write_private
from cluster import HERE, ROOT, certs
from proc import free_port, wait_for

KUSTOMIZE = os.path.join(ROOT, "deploy", "kustomize")
BASE = os.path.join(KUSTOMIZE, "base")
MANIFESTS = ("namespaces", "rbac-extender", "rbac-advertiser", "rbac-reader",
             "admission", "classes")
SERVICE = "biga-extender.biga-system.svc"
MONTH = 30 * 24 * 3600


class Reader(Api):
    """One whose token a replica has the API server review: asked again while
    that has not answered in time."""

    def call(self, *args):
        ask = super().call

        def said():
            try:
                return ask(*args), None
            except ApiError as error:
                slow = error.status == 503 and \
                    "could not be reviewed" in str(error.body)
                return None if slow else (None, error)
            except Exception as error:
                return None, error
        answer, error = wait_for("the token is reviewed", said, every=0.2)
        if error:
            raise error
        return answer


class Lab:
    def __init__(self, cluster, tls=True):
        self.c, self.tls = cluster, tls
        self.extenders, self.advertisers = [], []
        self.service = self.kubelet = None
        self.service_ports = {}

    def pki(self, *parts):
        return self.c.path("biga-pki", *parts)

    # --- what an administrator does once -----------------------------------
    def install(self, *more):
        """Namespaces, identities, rights and classes, from deploy/, and
        more of its files; keys and certificates."""
        files = [os.path.join(BASE, name + ".yaml") for name in MANIFESTS]
        files += [os.path.join(KUSTOMIZE, name) for name in more]
        self.c.kubectl("apply", "--server-side",
                       *[word for file in files for word in ("-f", file)])
        # As a leader leaves it that has ended cleanly.  Where there is none,
        # the first replica waits as long as a leader could hold on whose
        # Lease somebody has deleted.
        self.c.api.create("leases", {
            "metadata": {"name": "biga-extender",
                         "namespace": "biga-system"},
            "spec": {"holderIdentity": "", "leaseDurationSeconds": 1}})
        # the rights of a whole fleet of simulated hosts: those of one
        # advertiser, without being held to one node
        self.bind("fleet", "biga-advertiser", cluster=True)
        self.bind("fleet", "biga-advertiser-heartbeats",
                  namespace="biga-nodes")
        certs("ca", self.pki(), "--cn", "biga-test")
        self.server_cert("extender")
        self.client_cert("scheduler", "system:kube-scheduler")
        return self

    def allow_changes(self):
        """Let others than the extender's service account write allocations,
        as they could without the policy that keeps them from it
        (test_manifests.py tries that one)."""
        self.c.api.call("DELETE", "/apis/admissionregistration.k8s.io/v1/"
                        "validatingadmissionpolicybindings/biga-allocation")
        pod = {"metadata": {"name": "probe", "annotations":
                            {"biga.dev/allocation": "{}"}},
               "spec": {"containers": [{"name": "c", "image": "none"}]}}
        where = path("pods", "default") + "?dryRun=All"
        # the API server goes by the policies of a moment ago
        wait_for("the policy is not in force any more", lambda: self.c.api.raw(
            "POST", where, pod)[0] == 201, every=0.2)

    def bind(self, user, role, cluster=False, namespace=None):
        kind = "Cluster" if cluster else ""
        obj = {"apiVersion": "rbac.authorization.k8s.io/v1",
               "kind": kind + "RoleBinding",
               "metadata": {"name": f"test-{user}-{role}"},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io",
                           "kind": kind + "Role", "name": role},
               "subjects": [{"apiGroup": "rbac.authorization.k8s.io",
                             "kind": "User", "name": user}]}
        if namespace:
            obj["metadata"]["namespace"] = namespace
        try:
            self.c.api.create(
                "clusterrolebindings" if cluster else "rolebindings", obj)
        except ApiError as error:
            if error.status != 409:
                raise
        self._wait_bound(user, self.c.api.get(
            "clusterroles" if cluster else "roles", namespace, role))

    def _wait_bound(self, user, role):
        """Until the API server lets a user do what a role says first."""
        rule = role["rules"][0]
        ask = {"verb": rule["verbs"][0]}
        if "nonResourceURLs" in rule:
            what = {"nonResourceAttributes": {
                **ask, "path": rule["nonResourceURLs"][0]}}
        else:
            resource, _, sub = rule["resources"][0].partition("/")
            what = {"resourceAttributes": {
                **ask, "group": rule["apiGroups"][0], "resource": resource,
                "subresource": sub,
                "name": rule.get("resourceNames", [""])[0],
                "namespace": role["metadata"].get("namespace", "")}}

        wait_for(f"{user} is a {role['metadata']['name']}",
                 lambda: self.may(user, what), every=0.02)

    def may(self, user, what):
        """Whether the API server lets a user do this; what: as in a
        SubjectAccessReview."""
        said = self.c.api.create("subjectaccessreviews", {
            "spec": {"user": user, **what}})["status"]
        return said.get("allowed", False)

    def server_cert(self, name, *days):
        certs("server", self.pki(), name, "--san", SERVICE, "--san",
              "localhost", "--san", "127.0.0.1", *days)

    def client_cert(self, name, cn, *more):
        certs("client", self.pki(), name, "--cn", cn, *more)
        return self.pki(name + ".crt"), self.pki(name + ".key")

    def reader(self, account="reader"):
        """An Api of the read listener's kind of user; its token."""
        api = self.c.api
        if not api.maybe("serviceaccounts", "default", account):
            api.create("serviceaccounts", {"metadata": {
                "name": account, "namespace": "default"}})
            self.bind(f"system:serviceaccount:default:{account}",
                      "biga-reader", cluster=True)
        return api.token_request("default", account, seconds=MONTH)

    def write_reader_token(self):
        """reader.token in the cluster's folder."""
        return write_private(self.c.path("reader.token"),
                             self.reader() + "\n")

    # --- programs ------------------------------------------------------------
    def extender(self, name=None, *args, start=True):
        """One more replica, with the service account's token."""
        name = name or f"extender{len(self.extenders)}"
        config = self.c.kubeconfig_token(
            name, self.c.api.token_request("biga-system", "biga-extender",
                                           seconds=MONTH))
        more = ["--store=kubernetes", "--kubeconfig=" + config,
                "--identity=" + name]
        if self.tls:
            more += ["--tls-cert=" + self.pki("extender.crt"),
                     "--tls-key=" + self.pki("extender.key"),
                     "--client-ca=" + self.pki("ca.crt"),
                     "--read-tokens=kubernetes"]
        found = fleet.Extender(self.c.folder, name, *more, *args)
        self.extenders.append(found)
        if start:
            found.start()
            found.wait_up(**self.ca())
        return found

    def ca(self):
        """What an Api of a listener needs to trust it."""
        return {"ca": self.pki("ca.crt")} if self.tls else {}

    def read_api(self, extender, token=None):
        """The read listener of one replica, for someone who may read."""
        return Reader(extender.url("read", self.tls), token=token, **self.ca())

    def scheduler_api(self, extender, cert="scheduler"):
        """The scheduler's listener, with a client's certificate."""
        more = self.ca()
        if self.tls and cert:
            more.update(cert=self.pki(cert + ".crt"),
                        key=self.pki(cert + ".key"))
        return extender.api("scheduler", **more)

    def ready(self):
        """The replicas that say that they are ready: one, the leader."""
        def is_ready(extender):
            try:
                status, _, _ = Api(
                    extender.url("read", self.tls), timeout=2,
                    **self.ca()).raw("GET", "/readyz")
            except (OSError, HTTPException):
                return False
            return status == 200
        return [e for e in self.extenders if e.running and is_ready(e)]

    def leader(self):
        """Wait for a replica that binds."""
        return wait_for("a replica leads", self.ready)[0]

    def wait_renewed(self):
        """Until the Lease is: it holds for some seconds more."""
        def when():
            return self.c.api.get("leases", "biga-system", "biga-extender")[
                "spec"]["renewTime"]
        was = when()
        wait_for("the Lease is renewed", lambda: when() != was)

    def start_service(self):
        """One address for all replicas; returns the scheduler's URL."""
        kinds = ("scheduler", "read")
        self.service_ports = {kind: free_port() for kind in kinds}

        def listed(ports):
            return ",".join(str(ports[kind]) for kind in kinds)
        self.service = self.c.process("service", [
            sys.executable, "-B", os.path.join(HERE, "service.py"),
            listed(self.service_ports),
            *[f"{e.url('read', self.tls)}/readyz={listed(e.ports)}"
              for e in self.extenders]]).start()
        return self.url()

    def url(self, kind="scheduler"):
        """Of the replica that is ready, whichever that is."""
        return (f"http{'s' if self.tls else ''}://127.0.0.1:"
                f"{self.service_ports[kind]}")

    def scheduler_part(self, url=None, **more):
        """The extender's part of the scheduler's configuration; url: by
        default the Service's, or that of one replica."""
        tls = {"caFile": self.pki("ca.crt"), "serverName": SERVICE,
               "certFile": self.pki("scheduler.crt"),
               "keyFile": self.pki("scheduler.key")} if self.tls else None
        return fleet.scheduler_extender(url or self.url(), tls=tls, **more)

    def start_scheduler(self, percentage=100, qps=None, url=None, **more):
        part = self.scheduler_part(url)
        return self.c.start_scheduler(self.c.scheduler_config(
            [part], percentage, qps=qps, **more))

    def advertise(self, n, prefix="host", *args, name="fleet"):
        """Simulated hosts publish, named as fleet.names() does."""
        config = self.c.kubeconfig("fleet", "fleet")
        found = fleet.Advertiser(
            self.c.folder, name, "--server=kubernetes",
            "--kubeconfig=" + config, fleet.PATIENT, f"--fleet={n}",
            "--fleet-prefix=" + prefix, *args)
        self.advertisers.append(found)
        return found.start()

    def advertiser(self, node, *args):
        """One host's own advertiser, with the credentials of its node."""
        config = self.c.account_kubeconfig(
            "biga-system", "biga-advertiser", node,
            name="advertiser-" + node)
        found = fleet.Advertiser(
            self.c.folder, "advertiser-" + node, "--server=kubernetes",
            "--kubeconfig=" + config, fleet.PATIENT, "--node=" + node, *args)
        self.advertisers.append(found)
        return found.start()

    def start_kubelet(self):
        """Pods that are bound run, and end when they are deleted."""
        self.kubelet = self.c.process("kubelet", [
            sys.executable, "-B", os.path.join(HERE, "kubelet.py"),
            self.c.folder]).start()

    def wait_slices(self, n, by=None):
        """Until the slices of n nodes are there, for as long as the
        advertiser `by` runs."""
        def enough():
            if by:
                by.alive()
            nodes = {s["spec"].get("nodeName") for s in
                     self.c.api.list("resourceslices")}
            assert len(nodes) >= n, f"{len(nodes)} of {n}"
            return True
        return wait_for("nodes publish", enough, every=0.2)

    def up(self, nodes=16, replicas=2, say=lambda text: None,
           shapes="dell-xe9680-bf3", gpus=8, cpu=224, extender=(),
           advertiser=(), qps=None, stock=False):
        """All of it, ready to schedule; each Node has so many GPUs and
        CPUs as one of the shape has, and four are on a leaf switch.
        extender, advertiser: their arguments; qps: the scheduler's limit
        of calls; stock: it is as it comes, and does not know of Biga."""
        self.install()
        say("namespaces, rights and classes are there")
        fabric = fleet.leaves(fleet.names("host", nodes))
        fleet.add_nodes(self.c.api, [
            fleet.node(name, cpu, labels=labels,
                       extended={"nvidia.com/gpu": str(gpus)})
            for name, labels in fabric.items()])
        say(f"{nodes} nodes are there")
        for _ in range(replicas):
            self.extender(None, *extender)
        hosts = self.advertise(nodes, "host", "--fleet-shapes=" + shapes,
                               *advertiser)
        self.wait_slices(nodes, by=hosts)
        say(f"{nodes} simulated hosts publish")
        if not stock:
            self.start_service()
        leader = self.leader()
        say(f"{leader.name} binds")
        if stock:
            self.c.start_stock_scheduler(qps)
            say("kube-scheduler runs as it comes")
        else:
            self.start_scheduler(qps=qps)
            say("kube-scheduler asks it")
        return self
