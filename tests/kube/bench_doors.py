#!/usr/bin/env python3
"""How fast pods are placed through Biga's two doors, beside Kubernetes alone.

A control plane on this machine, 1,000 simulated hosts with 9 cards each.  In
every round, in turn:

  plain     pods with a claim of one card; kube-scheduler as it comes
  gate      the same pods with Biga's gate and role: Biga plans each, pins its
            claim and opens the gate; kube-scheduler as it comes
  extender  as many pods that request a card; kube-scheduler asks Biga, which
            binds them (no claims: the cards are in its own book)

All pods are there before who is to place them is started: kube-scheduler, and
for the gate Biga.  A watch takes the time from the first bind to the last.
Rates depend on the machine, ratios within a round less so; nothing is judged.
"""
import argparse
import os
import statistics
import sys

sys.dont_write_bytecode = True
import bench
import claims
import fleet
import gates
import gpus
import onebook
from cluster import Cluster
from proc import HANGS, wait_for

WAYS = ("plain", "gate", "extender")
QPS = 5000  # the scheduler's own limit of calls would be the figure otherwise
SHAPE = "dell-xe9680-bf3"


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1000,
                        help="in each run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ways", default=",".join(WAYS),
                        help="of %(default)s")
    args = parser.parse_args()
    args.ways = args.ways.split(",")
    if not set(args.ways) <= set(WAYS):
        parser.error(f"--ways: {args.ways}; they are of {', '.join(WAYS)}")
    return args


class Doors:
    def __init__(self, c, lab, args):
        self.c, self.api, self.lab, self.args = c, c.api, lab, args
        self.extender = lab.extender("extender0", "--fresh=40s")
        self.by_claims = None
        self.hosts = None
        self.reader = lab.read_api(self.extender, lab.reader())

    def book(self, by_claims):
        """The cards of all hosts are given by claims, or by Biga."""
        if self.by_claims == by_claims:
            return
        if self.hosts:
            self.hosts.end()
        more = claims.CARDS_BY_CLAIMS if by_claims else ()
        self.hosts = self.lab.advertise(
            self.args.nodes, "host", "--fleet-shapes=" + SHAPE,
            "--heartbeat=10s", *more,
            name="fleet-claims" if by_claims else "fleet")

        def published():
            self.hosts.alive()
            found = gpus.devices_of(self.api.list("resourceslices"), "card")
            right = [node for node, cards in found.items() if all(
                bool(gpus.attribute(card, "biga.dev/claims")) == by_claims
                for card in cards)]
            assert len(right) == self.args.nodes, \
                f"{len(right)} of {self.args.nodes} have"
            return True
        wait_for("all hosts have published", published, every=0.5)
        self.by_claims = by_claims

    def start_biga(self):
        if not self.extender.running:
            self.extender.start()
        self.lab.leader()

    def all_ready(self):
        found = self.reader.call("GET", "/metrics")
        assert f'biga_nodes{{status="ready"}} {self.args.nodes}' in found, \
            [line for line in found.splitlines()
             if line.startswith("biga_nodes")]
        return True

    def make(self, way):
        """The pods, and their claims."""
        n = self.args.pods
        if way == "extender":
            bench.make_pods(self.api, n)
            return
        made = [claims.pod(f"bench-{i:05}", "card", requests={"cpu": "10m"})
                for i in range(n)]
        if way == "gate":
            for pod in made:
                pod["metadata"]["labels"]["biga.dev/role"] = "host"
                claims.gated(pod)
        fleet.add_pods(self.api, made)

        def named():
            lacks = [p for p in self.api.list("pods", "default")
                     if not p["status"].get("resourceClaimStatuses")]
            assert not lacks, f"{len(lacks)} have none"
            return True
        wait_for("pods have claims", named, every=0.5)

    def run(self, way):
        """(pods/s, what it cost)"""
        self.book(way != "extender")
        if way == "extender":
            self.start_biga()
            wait_for("all nodes are ready", self.all_ready)
        elif self.extender.running:
            self.extender.stop()
        self.make(way)
        binds = bench.Binds(self.api, self.args.pods)
        before = self.cpu(None)
        if way == "extender":
            scheduler = self.c.start_scheduler(self.c.scheduler_config(
                [self.lab.scheduler_part(self.extender.url(
                    "scheduler", self.lab.tls))], qps=QPS))
        else:
            scheduler = self.c.start_stock_scheduler(QPS)
        if way == "gate":
            before["scheduler"] = bench.cpu_seconds(scheduler)
            self.start_biga()
        if not binds.done.wait(HANGS):
            left = {f"bench-{i:05}" for i in range(self.args.pods)} \
                - set(fleet.bound(self.api))
            raise AssertionError(f"{len(left)} pods have no node; "
                                 + fleet.why_pending(self.api, min(left))
                                 if left else "all are bound, late")
        used = {name: after - before[name]
                for name, after in self.cpu(scheduler).items()}
        onebook.assert_one_book(self.api)
        scheduler.stop()
        self.clear()
        return self.args.pods / (binds.last - binds.first), ", ".join(
            f"{name} {s * 1000 / self.args.pods:.2f}"
            for name, s in used.items())

    def cpu(self, scheduler):
        """{part: seconds of CPU so far}"""
        parts = {"scheduler": scheduler, "API server": self.c.apiserver,
                 "etcd": self.c.etcd,
                 "extender": self.extender if self.extender.running else None}
        return {name: bench.cpu_seconds(p) if p else 0
                for name, p in parts.items()}

    def clear(self):
        self.api.delete_all("pods", "default")

        def nothing():
            left = len(self.api.list("pods", "default")) + \
                len(self.api.list("resourceclaims", "default"))
            assert not left, f"{left} are left"
            return True
        wait_for("pods and claims go", nothing, every=0.5)


def main():
    args = arguments()
    rates = {way: [] for way in args.ways}
    with Cluster() as c:
        c.start()
        lab = gates.Lab(c)
        lab.install()
        fleet.add_nodes(c.api, fleet.names("host", args.nodes), cpu=224,
                        extended={name: "1000000" for name in gates.CARD[:1]})
        c.api.create("resourceclaimtemplates", claims.template(
            "card", claims.requests(n_gpus=0, cores=1, memory_mib=512)))
        print(f"{args.nodes} nodes are there", flush=True)
        doors = Doors(c, lab, args)
        for number in range(args.rounds):
            # in turn, so that none is always first
            at = number % len(args.ways)
            for way in args.ways[at:] + args.ways[:at]:
                rate, cpu = doors.run(way)
                rates[way].append(rate)
                print(f"round {number + 1}: {way:9}{rate:6.0f} pods/s; ms of "
                      f"CPU per pod: {cpu}", flush=True)
        print()
        for way in args.ways:
            text = f"{way:9}{statistics.median(rates[way]):6.0f} pods/s"
            if way != args.ways[0]:
                of = [one / other for one, other in
                      zip(rates[way], rates[args.ways[0]])]
                text += f", {statistics.median(of):.2f} times " \
                        f"{args.ways[0]} ({min(of):.2f} to {max(of):.2f})"
            print(text)
        print(f"{args.nodes} nodes, {args.pods} pods, medians of "
              f"{args.rounds} rounds, {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
