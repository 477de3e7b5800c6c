#!/usr/bin/env python3
"""tests/kube/up and down, as a person uses them; nodes, kubelets and a
restart of the API server, as the other tests use them."""
import os
import subprocess
import tempfile
import threading

import fleet
import pool
from api import ApiError, path
from check import Checks
from cluster import HERE, ROOT, binaries
from proc import HANGS, running_in, start_time, wait_for

NODES = 100


def script(name, *args, env=None):
    got = subprocess.run([os.path.join(HERE, name), *args], check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, env={**os.environ, **(env or {})})
    return got.returncode, got.stdout


def up_and_down(t, folder):
    with t.check("up starts a cluster in a folder that had one, and says how "
                 "to use it"):
        status, said = script("up", folder)
        assert status == 0, said
        assert f". {folder}/env" in said, said
    running = running_in(folder)
    names = sorted(p.name for p in running)
    t.ok(names == ["apiserver", "controller-manager", "etcd", "scheduler"],
         "it has left four programs running", names)
    with t.check("its keys are their owner's alone"):
        for where, _, files in os.walk(os.path.join(folder, "pki")):
            for file in files:
                mode = os.stat(os.path.join(where, file)).st_mode & 0o777
                assert mode == 0o600 or file == "kube-scheduler.crt", \
                    f"{file} has mode {mode:o}"
        for file in os.listdir(folder):
            if file.endswith(".kubeconfig"):
                mode = os.stat(os.path.join(folder, file)).st_mode & 0o777
                assert mode == 0o600, f"{file} has mode {mode:o}"
    with t.check("up refuses a folder in which a cluster runs"):
        status, said = script("up", folder)
        assert status != 0 and "a cluster runs there" in said, said
        assert {p.pid for p in running_in(folder)} == \
            {p.pid for p in running}, "and what ran has changed"
    with t.check("kubectl works with what up wrote"):
        got = subprocess.run(
            ["bash", "-c", f". {folder}/env && kubectl get nodes"],
            capture_output=True, text=True, check=False)
        assert got.returncode == 0 and "No resources" in got.stderr, got
    with t.check("so does its plugin"):
        got = subprocess.run(
            ["bash", "-c", f". {folder}/env && kubectl biga version && "
             "kubectl plugin list --name-only"],
            capture_output=True, text=True, check=False)
        assert got.returncode == 0 and got.stdout.startswith("biga "), got
        assert "kubectl-biga\n" in got.stdout, got
    with t.check("down ends them all"):
        pids = [p.pid for p in running]
        status, said = script("down", folder)
        assert status == 0 and said.count("has ended") == 4, said
        assert not running_in(folder)
        assert not [p for p in pids if start_time(p)], "one still runs"
    with t.check("down where nothing runs says so"):
        status, said = script("down", folder)
        assert status == 0 and "nothing runs" in said, said


def failures(t, folder):
    with t.check("up leaves other people's files alone"):
        with open(os.path.join(folder, "mine"), "w", encoding="utf-8") as f:
            f.write("mine")
        status, said = script("up", folder)
        assert status != 0 and "not a cluster's" in said, said
        os.unlink(os.path.join(folder, "mine"))
    with t.check("up that fails leaves nothing running"):
        status, said = script("up", folder, "--biga", "--nodes", "1",
                              env={"BIGA_BUILD": "there-is-none"})
        assert status != 0 and "there-is-none" in said, said
        assert not running_in(folder), said


def fakes(t, c):
    with t.check(f"{NODES} nodes are there"):
        fleet.add_nodes(c.api, fleet.names("host", NODES))
        nodes = c.api.list("nodes")
        assert len(nodes) == NODES, len(nodes)
        assert not [n for n in nodes if n["spec"].get("taints")], "taints"
    kubelet = fleet.Kubelet(c.api).start()
    with t.check("pods are bound and run"):
        names = [f"p{i}" for i in range(20)]
        fleet.add_pods(c.api, [fleet.pod(n, requests={"cpu": 1})
                               for n in names])
        fleet.wait_bound(c.api, names)
        wait_for("pods run", lambda: all(
            p["status"]["phase"] == "Running"
            for p in c.api.list("pods", "default")))
    with t.check("a pod goes with its owner"):
        owner = c.api.get("pods", "default", "p0")["metadata"]
        c.api.create("pods", fleet.pod("child", owners=[{
            "apiVersion": "v1", "kind": "Pod", "name": "p0",
            "uid": owner["uid"]}], terminationGracePeriodSeconds=30))
        fleet.wait_bound(c.api, ["child"])
        c.api.delete("pods", "default", "p0")
        wait_for("the child goes", lambda: not c.api.maybe(
            "pods", "default", "child"))
    with t.check("a watch ends with the API server, which comes back whole"):
        begun, ended = threading.Event(), threading.Event()

        def watch():
            for _ in c.api.watch("nodes", timeout=HANGS):
                begun.set()
            ended.set()
        threading.Thread(target=watch, daemon=True).start()
        wait_for("the watch says something", begun.is_set)
        assert c.apiserver.stop(), "it did not end on SIGTERM"
        wait_for("the watch ends", ended.is_set)
        c.apiserver.start()
        c.wait_ready()
        assert len(c.api.list("nodes")) == NODES
    with t.check("the scheduler and the kubelets come back by themselves"):
        c.api.create("pods", fleet.pod("late", requests={"cpu": 1}))
        fleet.wait_bound(c.api, ["late"])
        wait_for("it runs", lambda: c.api.get("pods", "default", "late")[
            "status"]["phase"] == "Running")
    kubelet.stop()


def identities(t, c):
    with t.check("a node's certificate is the node, and no more"):
        api = c.user("node-host001", "system:node:host001",
                     ["biga:advertisers"])
        try:
            api.list("pods", "default")
        except ApiError as error:
            assert error.status == 403 and \
                'User "system:node:host001"' in str(error), error
        else:
            raise AssertionError("it may list pods")
    with t.check("a token can be bound to a node"):
        token = c.api.token_request("default", "default", "host001")
        who = c.api.call("POST", path("tokenreviews"),
                         {"apiVersion": "authentication.k8s.io/v1",
                          "kind": "TokenReview", "spec": {"token": token}})
        extra = who["status"]["user"]["extra"]
        nodes = extra["authentication.kubernetes.io/node-name"]
        assert nodes == ["host001"], extra
    with t.check("nobody without credentials reads anything"):
        try:
            c.api.as_token(None, c.ca).list("nodes")
        except ApiError as error:
            assert error.status in (401, 403), error
        else:
            raise AssertionError("anybody may list nodes")


def configured(t, c):
    """With --config it heeds no --kubeconfig: the file has to name one."""
    with t.check("kube-scheduler takes the file for embedded mode"):
        credentials = "/etc/kubernetes/scheduler.conf"
        with open(os.path.join(ROOT, "deploy", "scheduler",
                               "kube-scheduler-embedded.yaml"),
                  encoding="utf-8") as f:
            text = f.read()
        assert credentials in text, text
        with open(c.path("embedded.yaml"), "w", encoding="utf-8") as f:
            f.write(text.replace(credentials, c.path("scheduler.kubeconfig")))
        got = subprocess.run(
            [os.path.join(c.bin, "kube-scheduler"),
             "--config", c.path("embedded.yaml"), "--secure-port=0",
             "--write-config-to", c.path("written.yaml")],
            capture_output=True, text=True, check=False)
        assert got.returncode == 0, got.stderr


def main():
    binaries()
    t = Checks()
    with tempfile.TemporaryDirectory(prefix="biga-kube-") as folder:
        try:
            failures(t, folder)
            up_and_down(t, folder)
        finally:
            script("down", folder)
    with pool.cluster() as c:
        t.on_failure = c.log_ends
        c.start_scheduler()
        fakes(t, c)
        identities(t, c)
        configured(t, c)
    t.finish()


main()
