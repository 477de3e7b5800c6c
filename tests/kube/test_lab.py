#!/usr/bin/env python3
"""Biga in a cluster as tests/kube/up --biga leaves it: pairs are placed and
bound, and read back with the command line."""
import os
import subprocess
import time

import jobs
import pool
from check import Checks
from cluster import ROOT
from fleet import allocation, program, wait_bound
from lab import Lab
from proc import wait_for


def biga(lab, *args):
    """The command line, with what up tells a person to export."""
    got = subprocess.run(
        [program("biga"), *args], capture_output=True, text=True, check=False,
        env={**os.environ, "BIGA_SERVER": lab.url("read"),
             "BIGA_CA": lab.pki("ca.crt"),
             "BIGA_TOKEN_FILE": lab.c.path("reader.token")})
    return got.returncode, got.stdout + got.stderr


def one_pair(t, c, lab):
    with t.check("deploy/examples/pair.yaml is placed"):
        c.kubectl("apply", "-f",
                  os.path.join(ROOT, "deploy", "examples", "pair.yaml"))
        names = ["render", "render-xpu", "telemetry"]
        where = wait_bound(c.api, names)
        assert where["render"] == where["render-xpu"], where
        for name in names:
            assert allocation(c.api.get("pods", "default", name)), name
    with t.check("the pods run, in name"):
        wait_for("pods run", lambda: all(
            p["status"]["phase"] == "Running"
            for p in c.api.list("pods", "default")))
    with t.check("biga shows who has which card"):
        lab.write_reader_token()

        def shown():
            # the extender may hear of its bind after the pod's watchers
            status, said = biga(lab, "allocations")
            assert status == 0 and "default/render-xpu" in said, said
            return True
        wait_for("it is shown", shown)
    with t.check("without a token it shows nothing"):
        got = subprocess.run(
            [program("biga"), "--server", lab.url("read"), "--ca",
             lab.pki("ca.crt"), "nodes"], capture_output=True, text=True,
            check=False)
        assert got.returncode != 0 and "401" in got.stderr + got.stdout, got


def a_job(t, c, reader):
    with t.check("a job of 16 pairs, arriving interleaved, lands aligned"):
        began = time.monotonic()
        pods = jobs.pairs("ring", 16)
        for p in pods:
            c.api.create("pods", p)
        wait_bound(c.api, [p["metadata"]["name"] for p in pods])
        t.note(f"32 pods bound after {time.monotonic() - began:.1f} s")
        got = [a for (_, name), (_, a) in jobs.allocations(c.api).items()
               if name.startswith("ring-")]
        assert len(got) == 32, len(got)
        worse = [a["pod"]["name"] for a in got if a["relation"] != "PXB"
                 and a["relation"] != "PIX"]
        assert not worse, f"not behind one switch: {worse}"
        nodes = {a["node"] for a in got}
        assert len(nodes) == 2, f"8 GPUs a node, but on {sorted(nodes)}"
    with t.check("nothing was given away twice, and the extender agrees"):
        def right():
            bad = jobs.audit(c.api, reader)
            assert not bad, "\n".join(bad)
            return True
        wait_for("the audit finds nothing", right, every=0.3)


def a_line(t, c, lab):
    with t.check("biga run says what to run in a cluster, and that works"):
        args = ["run", "line", "-n", "2", "--image", "busybox:static"]
        status, said = biga(lab, *args, "--", "sleep", "600")
        command = ("  biga run line -n 2 --image busybox:static --dry-run "
                   "-- sleep 600 | kubectl apply -f -")
        assert status == 1 and command in said.splitlines(), said
        status, job = biga(lab, *args, "--dry-run", "--", "sleep", "600")
        assert status == 0, job
        c.kubectl("apply", "-f", "-", stdin=job)
        wait_for("its pods are bound", lambda: [
            p for p in c.api.list("pods", "default")
            if p["metadata"].get("labels", {}).get(
                "batch.kubernetes.io/job-name") == "line"
            and p["spec"].get("nodeName")][1:])
        c.kubectl("delete", "job", "line")


def ends(t, c, lab, reader):
    with t.check("what is deleted is free again"):
        c.api.delete_all("pods", "default")
        wait_for("pods go", lambda: not c.api.list("pods", "default"))
        wait_for("allocations go", lambda: not jobs.items(
            reader, "/v1/allocations"))
    with t.check("all programs end when they are told to"):
        for process in lab.extenders:
            assert process.stop(), f"{process.name} was killed"
            assert process.exit_status() == 0, process.exit_status()
        for process in lab.advertisers:
            if process.end():
                assert process.exit_status() == 0, process.exit_status()


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        lab = Lab(c)
        with t.check("Biga comes up in a cluster"):
            lab.up(nodes=16)
            lab.start_kubelet()
        if t.failed:
            t.finish()
        reader = lab.read_api(lab.leader(), lab.reader())
        one_pair(t, c, lab)
        a_job(t, c, reader)
        a_line(t, c, lab)
        ends(t, c, lab, reader)
        t.finish()


main()
