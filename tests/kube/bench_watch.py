#!/usr/bin/env python3
"""What ResourceSlices, and the Leases that are hosts' heartbeats, cost the API
server and those who watch them, by object: listed whole, changed one by one
under no watch, one, and several, and under watches that select a part each, as
shards would.

A control plane on this machine, and the objects of simulated hosts with 8
cards.  A change is a small patch of one object, so that the difference to the
row without a watch is the watches'.  The watchers are bench_reflector, which
reads as the extender does and keeps nothing.
"""
import argparse
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import fleet
from api import path
from bench import cpu_seconds
from cluster import Cluster, ROOT
from lab import Lab
from proc import Process, wait_for

SHARDS = 8
LABEL = "bench.biga.dev/shard"
LISTED = re.compile(r"listed (\d+) objects, (\d+) bytes, (\d+) ms")


def program():
    target = os.path.join(os.environ.get("BIGA_BUILD", "build"), "bench",
                          "bench_reflector")
    subprocess.run(["make", "-s", target], cwd=ROOT, check=True)
    return os.path.join(ROOT, target)


class Watch:
    """bench_reflector on all of a collection, or on one shard of it."""

    count = 0

    def __init__(self, c, where, shard=None):
        Watch.count += 1
        query = [] if shard is None else [f"labelSelector={LABEL}%3D{shard}"]
        self.process = Process(c.folder, f"watch{Watch.count}", [
            program(), c.path("admin.kubeconfig"), where,
            *query]).start()
        self.listed = LISTED.search(wait_for(
            "it has listed", lambda: LISTED.search(self.text())
            and self.text()))
        self.objects, self.bytes, self.ms = map(int, self.listed.groups())

    def text(self):
        self.process.alive()
        return self.process.text()

    def told(self):
        return self.text().count("\nput ") - self.objects

    def wait_told(self, n):
        wait_for("all changes are heard", lambda: self.told() >= n, every=0.2)


class Bench:
    def __init__(self, c, kind, namespace=None):
        self.c, self.round = c, 0
        self.kind, self.namespace = kind, namespace
        self.where = path(kind, namespace)
        self.names = [o["metadata"]["name"]
                      for o in c.api.list(kind, namespace)]

    def touch(self):
        """Each is changed once; shards are the same each time."""
        self.round += 1
        fleet.in_parallel(lambda pair: self.c.api.patch(
            self.kind, self.namespace, pair[1], {"metadata": {
                "labels": {LABEL: str(pair[0] % SHARDS)},
                "annotations": {"bench.biga.dev/round": str(self.round)}}}),
            list(enumerate(self.names)))

    def changes(self, what, shards):
        """One line: what a change costs under these watches."""
        watches = [Watch(self.c, self.where, shard) for shard in shards]
        heard = [w.objects for w in watches]
        server = cpu_seconds(self.c.apiserver)
        clients = [cpu_seconds(w.process) for w in watches]
        began = time.monotonic()
        self.touch()
        for watch, n in zip(watches, heard):
            watch.wait_told(n)
        took = time.monotonic() - began
        server = (cpu_seconds(self.c.apiserver) - server) * 1e6
        client = sum(cpu_seconds(w.process) - was for w, was in
                     zip(watches, clients)) * 1e6
        for watch in watches:
            watch.process.stop()
        n = len(self.names)
        print(f"{what:42} {server / n:9.0f} {client / n:9.0f} "
              f"{n / took:9.0f}", flush=True)

    def lists(self):
        before = cpu_seconds(self.c.apiserver)
        watch = Watch(self.c, self.where)
        server = cpu_seconds(self.c.apiserver) - before
        client = cpu_seconds(watch.process)
        watch.process.stop()
        n = watch.objects
        print(f"a list of all: {watch.bytes / n:.0f} bytes each, "
              f"{server * 1e6 / n:.0f} us of the API server's CPU, "
              f"{client * 1e6 / n:.0f} of the client's, "
              f"{n * 1000 / max(watch.ms, 1):.0f} objects/s", flush=True)

    def measure(self, rounds, sets):
        """sets: (what, the shards that are watched) of each row."""
        self.touch()  # they have their shards
        print(f"\n{len(self.names)} {self.kind}", flush=True)
        for _ in range(rounds):
            self.lists()
        print(f"{'us of CPU per change':42} {'server':>9} {'clients':>9} "
              f"{'changes/s':>9}")
        for _ in range(rounds):
            for what, shards in sets:
                self.changes(what, shards)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with Cluster() as c:
        c.start()
        lab = Lab(c)
        lab.install()
        fleet.add_nodes(c.api, fleet.names("host", args.nodes))
        hosts = lab.advertise(args.nodes, "host",
                              "--fleet-shapes=dell-xe9680-bf3",
                              "--heartbeat=1h")
        lab.wait_slices(args.nodes, by=hosts)
        hosts.kill()  # told to end, it takes its slices away
        few = [("no watch", []), ("one watch of all", [None])]
        Bench(c, "leases", "biga-nodes").measure(args.rounds, few)
        Bench(c, "resourceslices").measure(args.rounds, few + [
            ("two of all", [None] * 2),
            (f"{SHARDS} watches of all", [None] * SHARDS),
            ("one watch of an eighth", [0]),
            (f"{SHARDS} watches of an eighth each", list(range(SHARDS)))])


if __name__ == "__main__":
    main()
