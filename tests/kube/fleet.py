"""Nodes without machines, pods on them, and the programs of Biga."""
import concurrent.futures
import os
import threading
import time
from http.client import HTTPException

from api import Api, ApiError
from proc import HANGS, Process, free_port, wait_for

THREADS = 4


def in_parallel(f, items, threads=THREADS):
    """[f(item) for item in items], in several threads; raises as they do."""
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return list(pool.map(f, items))


def names(prefix, n):
    """host01, host02, …: as biga-advertiser --fleet names them."""
    return [f"{prefix}{i:0{len(str(n))}}" for i in range(1, n + 1)]


def leaves(wanted, per_leaf=4, per_spine=16):
    """{node name: labels} that say where each hangs in the network."""
    return {name: {"fabric.topograph.run/tier-0": f"leaf{i // per_leaf}",
                   "fabric.topograph.run/tier-1": f"spine{i // per_spine}"}
            for i, name in enumerate(wanted)}


def node(name, cpu=128, memory="1Ti", pods=250, labels=None, extended=None):
    """A Node that is ready, with what fits on it."""
    room = {"cpu": str(cpu), "memory": memory, "pods": str(pods),
            **(extended or {})}
    return {"metadata": {"name": name, "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", **(labels or {})}},
            "status": {"capacity": room, "allocatable": room,
                       "conditions": [{
                           "type": "Ready", "status": "True",
                           "reason": "KubeletReady",
                           "message": "it has no kubelet",
                           "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                           "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}


def add_node(api, obj):
    """Create a Node; admission taints it as not ready until a kubelet, or
    this, has seen that it is."""
    made = api.create("nodes", obj)
    return api.patch("nodes", None, made["metadata"]["name"],
                     {"spec": {"taints": None}})


def add_nodes(api, wanted, **like):
    """Nodes of these names, or these Nodes; 1,000 take some 8 s."""
    return in_parallel(
        lambda n: add_node(api, node(n, **like) if isinstance(n, str) else n),
        wanted)


def set_ready(api, name, ready):
    """As the kubelet or the node controller says it."""
    word = "True" if ready else "Unknown"
    api.patch("nodes", None, name, {"status": {"conditions": [{
        "type": "Ready", "status": word, "reason": "Test",
        "message": "the test says so"}]}}, how="strategic", sub="status")


def pod(name, namespace="default", labels=None, annotations=None,
        requests=None, node_name=None, owners=None, **spec):
    """A Pod of one container with requests {"cpu": "1"}; extended resources
    among them become limits too, as the API server demands."""
    requests = {k: str(v) for k, v in (requests or {}).items()}
    limits = {k: v for k, v in requests.items() if "/" in k}
    container = {"name": "main", "image": "registry.example/none",
                 "resources": {"requests": requests, "limits": limits}}
    meta = {"name": name, "namespace": namespace, "labels": labels or {},
            "annotations": annotations or {}}
    if owners:
        meta["ownerReferences"] = owners
    if node_name:
        spec["nodeName"] = node_name
    return {"metadata": meta,
            "spec": {"containers": [container],
                     "terminationGracePeriodSeconds": 0, **spec}}


def add_pods(api, pods, threads=THREADS):
    return in_parallel(lambda p: api.create("pods", p), pods, threads)


def bound(api, namespace="default", **query):
    """{pod name: node name} of the pods that have a node."""
    return {p["metadata"]["name"]: p["spec"]["nodeName"]
            for p in api.list("pods", namespace, **query)
            if p["spec"].get("nodeName")}


def wait_bound(api, wanted, namespace="default"):
    """Until all pods of these names have a node; {pod: node}."""
    wanted = set(wanted)

    def all_bound():
        got = bound(api, namespace)
        lacking = wanted - got.keys()
        if lacking:
            raise AssertionError(
                f"{len(lacking)} of {len(wanted)} have none, as "
                + why_pending(api, sorted(lacking)[0], namespace))
        return {name: got[name] for name in wanted}
    return wait_for("pods get nodes", all_bound, every=0.1)


def why_pending(api, name, namespace="default"):
    """What the scheduler says about one pod."""
    found = api.maybe("pods", namespace, name)
    if not found:
        return f"{name}: there is no such pod"
    said = [c.get("message", "") for c in found["status"].get(
        "conditions", []) if c["type"] == "PodScheduled"]
    return f"{name}: {'; '.join(said) or 'the scheduler says nothing'}"


def allocation(obj):
    """The annotation biga.dev/allocation of a Pod, or None."""
    return obj["metadata"].get("annotations", {}).get("biga.dev/allocation")


class Kubelet:
    """The kubelets of all nodes, in a thread: runs what is bound, and lets
    go of what is deleted."""

    def __init__(self, api):
        self.api = api
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self.thread.start()
        return self

    def stop(self):
        self.stopped.set()

    def _run(self):
        while not self.stopped.is_set():
            try:
                # the list comes as events of the watch
                for _, obj in self.api.watch("pods", timeout=30.0):
                    if self.stopped.is_set():
                        return
                    self._see(obj)
            except (ApiError, OSError, ValueError, HTTPException):
                self.stopped.wait(0.2)  # the API server is away

    def _see(self, obj):
        if obj.get("kind") == "Status" or \
                not obj.get("spec", {}).get("nodeName"):
            return
        meta, phase = obj["metadata"], obj["status"].get("phase")
        try:
            if meta.get("deletionTimestamp"):
                self.api.delete("pods", meta["namespace"], meta["name"],
                                missing_ok=True, gracePeriodSeconds=0,
                                preconditions={"uid": meta["uid"]})
            elif phase == "Pending":
                # it may have ended since it was seen to wait
                self.phase(obj, "Running", ("uid", "resourceVersion"))
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    def phase(self, obj, phase, same=("uid",)):
        """Let a pod run, succeed or fail, if that of it is still the same."""
        meta, runs = obj["metadata"], phase == "Running"
        state = {"running": {}} if runs else {
            "terminated": {"exitCode": 0 if phase == "Succeeded" else 1}}
        self.api.patch(
            "pods", meta["namespace"], meta["name"],
            {"metadata": {k: meta[k] for k in same},
             "status": {
                 "phase": phase,
                 "conditions": [{"type": "Ready",
                                 "status": "True" if runs else "False"}],
                 "containerStatuses": [
                     {"name": c["name"], "image": c["image"], "imageID": "",
                      "ready": runs, "started": runs, "restartCount": 0,
                      "state": state}
                     for c in obj["spec"]["containers"]]}},
            how="strategic", sub="status")


# --- Biga's own programs ---------------------------------------------------
def program(name):
    """build/NAME of this tree, or below $BIGA_BUILD."""
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(here))
    return os.path.join(root, os.environ.get("BIGA_BUILD", "build"), name)


class Extender(Process):
    """biga-extender on ports of its own, the same after a restart."""

    def __init__(self, folder, name, *args, env=None):
        self.ports = {kind: free_port()
                      for kind in ("scheduler", "publish", "read")}
        argv = [program("biga-extender")]
        for kind, port in self.ports.items():
            if kind != "publish" or "--store=kubernetes" not in args:
                argv += [f"--{kind}-listen", f"127.0.0.1:{port}"]
        super().__init__(folder, name, argv + list(args), env)

    def url(self, kind, tls=False):
        return f"http{'s' if tls else ''}://127.0.0.1:{self.ports[kind]}"

    def api(self, kind="read", **tls):
        """An Api for one of its listeners; tls: ca, cert, key, token."""
        return Api(self.url(kind, tls=bool(tls.get("ca"))), **tls)

    def wait_up(self, **tls):
        """Until /healthz answers 200: it runs, leader or not."""
        return wait_for(f"{self.name} is up", lambda: self.alive() and
                        self.api(**tls).call("GET", "/healthz"))

    def wait_ready(self, **tls):
        """Until /readyz answers 200: it binds."""
        return wait_for(f"{self.name} is ready", lambda: self.alive() and
                        self.api(**tls).call("GET", "/readyz"))


# of a call to a server that a busy machine lets wait
PATIENT = "--timeout=60s"


class Advertiser(Process):
    """biga-advertiser, with the arguments it gets."""

    # It withdraws for so many seconds, each object with one call; then it
    # ends with this status (advertiser/main.c).
    WITHDRAWS, LEFT = 10, 3

    def __init__(self, folder, name, *args, env=None):
        super().__init__(folder, name,
                         [program("biga-advertiser"), *args], env)

    def end(self):
        """Stop it.  False when it had no time to withdraw what it has
        published, and says so."""
        began = time.monotonic()
        assert self.stop(timeout=HANGS), f"{self.name} was killed"
        return self.exit_status() != self.LEFT or \
            time.monotonic() - began < self.WITHDRAWS


def scheduler_extender(url, tls=None, **more):
    """The extender's part of a KubeSchedulerConfiguration, as deploy/
    ships it."""
    return {"urlPrefix": url + "/v1/scheduler", "filterVerb": "filter",
            "prioritizeVerb": "prioritize", "bindVerb": "bind",
            "preemptVerb": "preempt", "weight": 20, "nodeCacheCapable": True,
            "httpTimeout": "5s", "ignorable": False,
            **({"enableHTTPS": True, "tlsConfig": tls} if tls else {}),
            "managedResources": [
                {"name": "biga.dev/" + name, "ignoredByScheduler": True}
                for name in ("card", "card-cores", "card-memory-mib")],
            **more}
