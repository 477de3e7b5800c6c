"""A biga-extender with simulated hosts, on ports of its own, and pods that are
bound on them as kube-scheduler binds them."""
import http.client
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse

from driver import wait_for

BUILD = os.environ.get("BIGA_BUILD", "build")
PER_LEAF = 16
PER_SPINE = 4


def fabric(n_hosts, leaf="leaf"):
    """Leaves of 16 hosts, spines of four leaves."""
    digits = len(str(n_hosts))
    leaves = -(-n_hosts // PER_LEAF)
    spines = -(-leaves // PER_SPINE)
    switches = [{"name": f"{leaf}{i + 1}",
                 "links": [f"spine{i // PER_SPINE + 1}"]}
                for i in range(leaves)]
    switches += [{"name": f"spine{i + 1}", "links": ["core"]}
                 for i in range(spines)]
    hosts = [{"name": f"host{i + 1:0{digits}d}",
              "leaf": f"{leaf}{i // PER_LEAF + 1}"} for i in range(n_hosts)]
    return {"switches": switches + [{"name": "core"}], "hosts": hosts}


def pod(name, role="host", job=None, pair=0, size=1, namespace="default",
        cards=1, gpus=1, annotations=None, memory=None):
    """A Pod as the API server has it."""
    labels = {"biga.dev/role": role}
    notes = dict(annotations or {})
    if job:
        labels |= {"biga.dev/job": job, "biga.dev/pair": str(pair)}
        notes["biga.dev/size"] = str(size)
    resources = {"biga.dev/card": str(cards)}
    if role == "host" and gpus:
        resources["nvidia.com/gpu"] = str(gpus)
    if memory:
        resources["memory"] = memory
    return {"metadata": {"name": name, "namespace": namespace,
                         "uid": f"uid-{namespace}-{abs(hash(name))}-{role}",
                         "labels": labels, "annotations": notes},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {
                "requests": resources, "limits": resources}}]},
            "status": {"phase": "Pending"}}


class Fleet:
    """All of it; ends when it is closed."""

    def __init__(self, n_hosts, *options, leaf="leaf"):
        self.dir = tempfile.mkdtemp(prefix="biga-console-")
        self.processes = []
        self.n_hosts = n_hosts
        with open(f"{self.dir}/fabric.json", "w", encoding="utf-8") as file:
            json.dump(fabric(n_hosts, leaf), file)
        self.start("biga-extender", "--state", f"{self.dir}/state",
                   "--fabric", f"{self.dir}/fabric.json",
                   "--scheduler-listen", "127.0.0.1:0",
                   "--publish-listen", "127.0.0.1:0",
                   "--read-listen", "127.0.0.1:0", *options)
        wait_for("event=ready", lambda: "event=ready" in self.log())

    def start(self, program, *args):
        """A program; what it says goes to its log."""
        log = f"{self.dir}/{program}.log"
        with open(log, "w", encoding="utf-8") as file:
            self.processes.append(subprocess.Popen(
                [f"{BUILD}/{program}", *args], stderr=file,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL))
        return self.processes[-1]

    def publish(self, *options):
        """The hosts publish themselves."""
        self.start("biga-advertiser", "--fleet", str(self.n_hosts),
                   "--server", f"http://127.0.0.1:{self.port('publish')}",
                   *options)

    def log(self, program="biga-extender"):
        """What it has said."""
        with open(f"{self.dir}/{program}.log", encoding="utf-8") as file:
            return file.read()

    def port(self, listener):
        """Where that listener is."""
        found = re.search(rf"listener={listener} .*port=(\d+)", self.log())
        assert found, self.log()
        return int(found.group(1))

    def base(self, scheme="http"):
        """The read listener."""
        return f"{scheme}://127.0.0.1:{self.port('read')}"

    def call(self, listener, method, path, body=None, headers=None):
        """The status and the body, as JSON where it is some."""
        server = http.client.HTTPConnection("127.0.0.1", self.port(listener),
                                            timeout=60)
        data = None if body is None else json.dumps(body)
        server.request(method, path, data, {
            "Content-Type": "application/json", **(headers or {})})
        answer = server.getresponse()
        text = answer.read().decode()
        self.headers = dict(answer.getheaders())
        server.close()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def nodes_ready(self):
        """How many nodes are ready."""
        status, answer = self.call(
            "read", "GET", "/v1/nodes?status=ready&limit=100000")
        return len(answer["items"]) if status == 200 else 0

    def filter(self, wanted, nodes=None):
        """Where kube-scheduler would be told that it fits."""
        if nodes is None:
            digits = len(str(self.n_hosts))
            nodes = [f"host{i + 1:0{digits}d}" for i in range(self.n_hosts)]
        status, answer = self.call("scheduler", "POST", "/v1/scheduler/filter",
                                   {"Pod": wanted, "NodeNames": nodes})
        assert status == 200, answer
        return answer.get("NodeNames") or []

    def place(self, wanted):
        """Filter and bind; the node, or None."""
        nodes = self.filter(wanted)
        meta = wanted["metadata"]
        if not nodes:
            return None
        status, answer = self.call("scheduler", "POST", "/v1/scheduler/bind", {
            "PodName": meta["name"], "PodNamespace": meta["namespace"],
            "PodUID": meta["uid"], "Node": nodes[0]})
        assert status == 200 and not answer.get("Error"), answer
        return nodes[0]

    def place_job(self, job, size, namespace="default", **options):
        """All pairs of a job."""
        return [self.place(pod(f"{job}-{role}-{pair}", role, job, pair, size,
                               namespace, **options))
                for pair in range(size) for role in ("host", "xpu")]

    def furnish(self):
        """All nodes are ready; a job has its places, and another none."""
        wait_for("all nodes", lambda: self.nodes_ready() == self.n_hosts)
        self.node = self.place_job("train", 32, "ml")[0]
        assert not self.place(pod("huge-0", "host", "huge", 0, 4, "ml",
                                  cards=16))
        self.free = [x for x in self.filter(pod("any"))
                     if x != self.node][-1]
        self.card = self.call("read", "GET", f"/v1/cards?node={self.node}")[
            1]["items"][0]["id"]

    def publish_runner(self, name):
        """A node that runs what is applied, as far as it says."""
        slices = subprocess.run(
            [f"{BUILD}/biga-advertiser", "--hostfile", "dell-r7525-2bf2",
             "--node", name, "--print", "slices"], check=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        one, _ = json.JSONDecoder().raw_decode(slices)
        one = one.get("items", [one])[0]
        places = ["host"] + [x["name"] for x in one["spec"]["devices"]
                             if "card" in x["name"]]
        one["metadata"]["annotations"]["biga.dev/runs-pods"] = " ".join(places)
        status, answer = self.call(
            "publish", "PUT", "/apis/resource.k8s.io/v1/resourceslices/" +
            one["metadata"]["name"], one)
        assert status in (200, 201), answer

    def report(self, node, pods):
        """What that node says of its pods: name of each, and its status."""
        told = []
        for name, status in pods.items():
            _, shown = self.call("read", "GET", f"/v1/pods/{name}")
            told.append({"uid": shown["uid"], **status})
        self.call("publish", "GET", f"/v1/nodes/{node}/pods")
        status, answer = self.call("publish", "POST",
                                   f"/v1/nodes/{node}/status",
                                   {"boot": "b", "pods": told})
        assert status == 204, answer

    def close(self):
        """All ends, and what was kept goes."""
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def segment(text):
    """One segment of a path."""
    return urllib.parse.quote(text, safe="")


def see_bind(browser, fleet, name):
    """Bind a pod on the node whose page is shown: milliseconds of the bind,
    and from its end until the page has the pod, by itself."""
    browser.get(fleet.base() + f"/ui/nodes/{fleet.free}")
    browser.find("#live:not([hidden]):not(.lost)")
    browser.run(
        "const name = arguments[0];"
        "window.seen = new Promise((done) => { new MutationObserver(() => {"
        "if (document.body.innerText.includes(name)) done(Date.now()); })"
        ".observe(document.getElementById('main'),"
        " { childList: true, subtree: true }); })", name)
    wanted = pod(name, namespace="ml", gpus=0)
    assert fleet.filter(wanted, [fleet.free]) == [fleet.free]
    began = time.time()
    status, answer = fleet.call("scheduler", "POST", "/v1/scheduler/bind", {
        "PodName": name, "PodNamespace": "ml", "Node": fleet.free,
        "PodUID": wanted["metadata"]["uid"]})
    assert status == 200 and not answer.get("Error"), answer
    bound = time.time()
    seen = browser.run_async(
        "const done = arguments[0]; window.seen.then(done)") / 1000
    return (bound - began) * 1000, (seen - bound) * 1000
