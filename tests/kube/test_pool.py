#!/usr/bin/env python3
"""A cluster of the pool is as new for whoever takes it next, and ends with
the pool, also when that is killed."""
import os
import subprocess
import sys

import fleet
import pool
from check import Checks
from cluster import HERE, binaries
from proc import start_time, wait_for


def leave(c):
    """All kinds of things, and an API server that stands still."""
    fleet.add_nodes(c.api, fleet.names("host", 12))
    stays = fleet.pod("stays", node_name="host01")
    stays["metadata"]["finalizers"] = ["test.example/stay"]
    c.api.create("pods", stays)
    c.api.create("jobs", {
        "metadata": {"name": "job", "namespace": "biga-system"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "none"}]}}}})
    wait_for("the job has its pod", lambda: c.api.list("pods", "biga-system"))
    c.api.create("clusterroles", {"metadata": {"name": "mine"}, "rules": []})
    c.api.delete("pods", "default", "stays")
    c.apiserver.pause()


def inside():
    """What runs in the pool: what is wrong, or nothing, and then pids."""
    with pool.cluster() as c:
        folder, pid = c.folder, c.apiserver.pid
        leave(c)
    with pool.cluster() as c:
        assert c.apiserver.pid == pid, "another cluster"
        assert c.folder != folder and not os.path.exists(folder)
        for kind in ("nodes", "pods", "jobs"):
            assert not c.api.list(kind), kind
        assert not c.api.maybe("clusterroles", None, "mine")
        assert c.api.get("serviceaccounts", "biga-system", "default")
        pids = [p.pid for p in (c.etcd, c.apiserver, c.controller_manager)]
    print("pids", os.environ["BIGA_KUBE_POOL"], *pids, flush=True)
    sys.stdin.read()  # until the test ends it


def main():
    binaries()
    t = Checks()
    with subprocess.Popen(
            [os.path.join(HERE, "pool"), sys.executable, "-B", __file__,
             "inside"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True) as run:
        try:
            with t.check("who takes a cluster finds nothing of another's"):
                said = run.stdout.readline().split()
                assert said[:1] == ["pids"], said
            if not t.failed:
                with t.check("it ends with a pool that is killed"):
                    run.kill()
                    wait_for("all have ended", lambda: not any(
                        start_time(int(pid)) for pid in said[2:]))
                    wait_for("the folder is gone",
                             lambda: not os.path.exists(said[1]))
        finally:
            run.stdin.close()
    t.finish()


if sys.argv[1:] == ["inside"]:
    inside()
else:
    main()
