#!/usr/bin/env python3
"""How fast kube-scheduler places pods with Biga and without an extender.

A control plane on this machine, 1,000 simulated hosts with 8 cards each. In
every round, in turn: pods are created that all request a card, then an
unmodified kube-scheduler is started, and the time from its first to its last
bind is taken by a watch.  Without an extender the cards are an ordinary
extended resource that the scheduler counts; with Biga (one replica, mutual
TLS, 16 candidates) each pod gets a certain card and Biga binds it.  Pods and
nodes are the same.  The advertisers publish throughout; the extender is ended
while the scheduler works without.
"""
import argparse
import json
import os
import statistics
import sys
import threading
import time

sys.dont_write_bytecode = True
import fleet
import jobs
from api import path
from cluster import Cluster
from lab import Lab
from proc import HANGS, wait_for

QPS = 5000  # the scheduler's own limit of calls would be the figure otherwise


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1500,
                        help="in each run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--percentages", default="100,default",
                        help="percentageOfNodesToScore of the runs "
                        "(default: %(default)s)")
    parser.add_argument("--heartbeat", type=int, default=10, metavar="S",
                        help="of each host; where 5,000 share a few "
                        "processors with the API server, 60 (default: "
                        "%(default)s)")
    parser.add_argument("--tsv", metavar="FILE",
                        help="append to it: nodes, percentage, pods/s without "
                        "and with Biga, ms of the extender's CPU per pod, all "
                        "medians")
    return parser.parse_args()


class Binds:
    """When pods were seen to have a node."""

    def __init__(self, api, wanted):
        self.first = self.last = None
        self.seen, self.wanted, self.api = set(), wanted, api
        self.done = threading.Event()
        threading.Thread(target=self._run, args=(self._watch(),),
                         daemon=True).start()

    def _watch(self):
        connection = self.api.connection(HANGS)
        connection.request(
            "GET", path("pods", "default") +
            "?watch=true&fieldSelector=spec.nodeName%21%3D",
            headers={"Accept": "application/json;as=PartialObjectMetadata;"
                               "g=meta.k8s.io;v=v1"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        return connection, answer

    def _run(self, watch):
        while len(self.seen) < self.wanted:
            line = watch[1].readline()
            if not line:  # the server may end it; it begins with all there is
                watch = self._watch()
                continue
            event = json.loads(line)
            if event["type"] != "ADDED":
                continue
            now = time.monotonic()
            self.first = self.first or now
            self.seen.add(event["object"]["metadata"]["uid"])
            self.last = now
        self.done.set()


def make_pods(api, n):
    fleet.add_pods(api, [fleet.pod(
        f"bench-{i:05}", labels={"biga.dev/role": "host"},
        requests={"cpu": "10m", "biga.dev/card": 1}) for i in range(n)])


def cpu_seconds(process):
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def loop_text(metrics):
    """What kube-scheduler says of its own loop, of these metrics."""
    def sum_of(name):
        return sum(float(line.rsplit(" ", 1)[1])
                   for line in metrics.splitlines()
                   if line.startswith("scheduler_" + name))

    def ms(name):
        return 1000 * sum_of(name) / pods

    point = 'framework_extension_point_duration_seconds_sum{extension_point="'
    algorithm = "scheduling_algorithm_duration_seconds_"
    pods = sum_of(algorithm + "count")
    again = sum_of("schedule_attempts_total") - sum_of(
        'schedule_attempts_total{profile="default-scheduler",'
        'result="scheduled"')
    return (f"its loop {ms(algorithm + 'sum'):.2f} ms a pod, own filters "
            f"{ms(point + 'Filter'):.2f}, scores {ms(point + 'Score'):.2f}; "
            f"{again:.0f} tried again")


class Bench:
    def __init__(self, c, lab, args):
        self.c, self.lab, self.args = c, lab, args
        self.extender = lab.extender("extender0",
                                     f"--fresh={4 * args.heartbeat}s")
        self.api = c.api

    def biga_on(self):
        if not self.extender.running:
            self.extender.start()
        self.lab.leader()
        reader = self.lab.read_api(self.extender, self.token())

        def all_ready():
            nodes = reader.call("GET", "/v1/nodes?limit=1")
            found = reader.call("GET", "/metrics")
            assert f'biga_nodes{{status="ready"}} {self.args.nodes}' in found, \
                [line for line in found.splitlines()
                 if line.startswith("biga_nodes")]
            return nodes
        wait_for("all nodes are ready", all_ready)

    def token(self):
        if not hasattr(self, "_token"):
            self._token = self.lab.reader()
        return self._token

    def run(self, biga, percentage):
        if biga:
            self.biga_on()
        elif self.extender.running:
            self.extender.stop()
        make_pods(self.api, self.args.pods)
        binds = Binds(self.api, self.args.pods)
        parts = [self.lab.scheduler_part(
            self.extender.url("scheduler", self.lab.tls))] if biga else []
        before = self.cpu(None, biga)
        scheduler = self.c.start_scheduler(self.c.scheduler_config(
            parts, None if percentage == "default" else int(percentage),
            qps=QPS))
        if not binds.done.wait(HANGS):
            raise AssertionError(
                f"{len(binds.seen)} of {self.args.pods} pods were bound; "
                + fleet.why_pending(self.api, sorted(
                    {f"bench-{i:05}" for i in range(self.args.pods)}
                    - set(fleet.bound(self.api)))[0]))
        seconds = binds.last - binds.first
        used = {name: after - before[name] for name, after in
                self.cpu(scheduler, biga).items()}
        loop = loop_text(self.c.scheduler_metrics())
        bad = jobs.audit(self.api) if biga else []
        if bad:
            raise AssertionError("\n".join(bad[:10]))
        scheduler.stop()
        self.clear()
        return self.args.pods / seconds, {
            name: seconds * 1000 / self.args.pods
            for name, seconds in used.items()}, loop

    def cpu(self, scheduler, biga):
        """{part: seconds of CPU so far}"""
        parts = {"scheduler": scheduler, "API server": self.c.apiserver,
                 "etcd": self.c.etcd}
        if biga:
            parts["extender"] = self.extender
        return {name: cpu_seconds(p) if p else 0 for name, p in parts.items()}

    def clear(self):
        self.api.delete_all("pods", "default")
        wait_for("pods go", lambda: not self.api.list("pods", "default",
                                                      limit=1), every=0.2)


def main():
    args = arguments()
    rates, extender = {}, {}
    with Cluster() as c:
        c.start()
        lab = Lab(c)
        lab.install()
        fleet.add_nodes(c.api, fleet.names("host", args.nodes), cpu=224,
                        extended={"biga.dev/card": "8"})
        print(f"{args.nodes} nodes are there", flush=True)
        lab.advertise(args.nodes, "host", "--fleet-shapes=dell-xe9680-bf3",
                      f"--heartbeat={args.heartbeat}s")
        lab.wait_slices(args.nodes)
        print(f"{args.nodes} simulated hosts publish", flush=True)
        bench = Bench(c, lab, args)
        bench.biga_on()
        percentages = args.percentages.split(",")
        for number in range(args.rounds):
            for percentage in percentages:
                # in turn, so that neither is always first
                for biga in ((False, True), (True, False))[number % 2]:
                    rate, cpu, loop = bench.run(biga, percentage)
                    rates.setdefault((percentage, biga), []).append(rate)
                    if biga:
                        extender.setdefault(percentage, []).append(
                            cpu["extender"])
                    took = ", ".join(f"{name} {ms:.2f}"
                                     for name, ms in cpu.items())
                    print(f"round {number + 1}, percentageOfNodesToScore "
                          f"{percentage:>7}: "
                          f"{'with Biga' if biga else 'no extender':11} "
                          f"{rate:6.0f} pods/s; ms of CPU per pod: {took}; "
                          f"{loop}", flush=True)
        print()
        for percentage in percentages:
            alone, biga = (statistics.median(rates[(percentage, b)])
                           for b in (False, True))
            print(f"{args.nodes} nodes, percentageOfNodesToScore "
                  f"{percentage:>7}: no extender {alone:.0f} pods/s, with "
                  f"Biga {biga:.0f} pods/s: {biga / alone:.2f} times "
                  f"(medians of {args.rounds})")
            if args.tsv:
                with open(args.tsv, "a", encoding="utf-8") as file:
                    print(args.nodes, percentage, f"{alone:.1f}",
                          f"{biga:.1f}",
                          f"{statistics.median(extender[percentage]):.3f}",
                          sep="\t", file=file)


if __name__ == "__main__":
    main()
