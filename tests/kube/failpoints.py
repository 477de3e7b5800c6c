#!/usr/bin/env python3
"""kill -9 at every named point of a bind, in a real cluster: after the restart
the extender has what the pods have, every pod can be bound, and no card has two
owners.  Run by `make failpoints`, which builds the programs for it."""
import sys
from http.client import HTTPException

import fleet
from api import ApiError
from check import Checks
from cluster import Cluster
from lab import Lab
from proc import wait_for
from test_cluster import (Beats, Scheduler, agree, allocations, host_pod,
                          publish, statuses, xpu_pod)

NODES = 2
POINTS = ("bind-begin", "bind-decided", "bind-before-write",
          "bind-after-write", "bind-before-commit", "bind-after-commit",
          "bind-before-swap", "bind-after-swap", "bind-before-reply",
          "post-before-call", "post-after-call", "post-before-look")
HITS = (1, 3)


class Points:
    def __init__(self, c, lab, nodes):
        self.api, self.lab, self.nodes = c.api, lab, nodes
        self.extender = lab.extender("one", "--fresh=1m")
        lab.leader()
        self.read = lab.read_api(self.extender)
        self.scheduler = Scheduler(lab, self.extender)

    def start(self, points):
        """Start it as a leader; the one before is surely dead."""
        self.api.patch("leases", "biga-system", "biga-extender", {"spec": {
            "holderIdentity": "", "leaseDurationSeconds": 1}})
        self.extender.env = {"BIGA_FAILPOINTS": points}
        self.extender.start()
        self.lab.leader()

    def bind(self, made):
        """As the scheduler would, and then once more."""
        name = made["metadata"]["name"]
        now = self.api.get("pods", "default", name)
        node = now["spec"].get("nodeName")
        if not node:
            node = self.scheduler.fit(made, self.nodes)
        for _ in range(2):
            error = self.scheduler.bind(made, node)
            assert error == "", f"{name}: {error}"

    def die(self):
        """Bind pods until it dies; returns all pods."""
        wanted = [host_pod("alone", cards=1), host_pod("other", cards=1)]
        for pair in range(2):
            wanted += [host_pod(f"h{pair}", "job", pair, 2),
                       xpu_pod(f"x{pair}", "job", pair, 2)]
        made = [self.api.create("pods", p) for p in wanted]
        try:
            for obj in made:
                self.bind(obj)
        except (OSError, HTTPException, ApiError):
            pass
        wait_for("it dies", lambda: self.extender.exit_status() is not None)
        assert self.extender.exit_status() == -9, self.extender.exit_status()
        return made

    def check(self, made):
        agree(self.read, self.api)
        bound = fleet.bound(self.api)
        for obj in made:
            self.bind(obj)
        for name, node in fleet.bound(self.api).items():
            assert bound.get(name, node) == node, f"{name} moved"
        agree(self.read, self.api)
        cards = [(node, card) for name, (node, ids, _) in
                 allocations(self.read).items() for card in ids
                 if not name.startswith("default/x")]  # its host pod's
        assert len(cards) == len(set(cards)) == 6, sorted(cards)
        return len(bound)

    def clear(self):
        self.api.delete_all("pods", "default")
        wait_for("nothing is left", lambda: not allocations(self.read))


def main():
    with open(fleet.program("biga-extender"), "rb") as f:
        if b"BIGA_FAILPOINTS" not in f.read():
            print("built without -DFAILPOINTS")
            sys.exit(77)
    with Cluster() as c:
        t = Checks(c.log_ends)
        c.start()
        lab = Lab(c, tls=False)
        lab.install()
        nodes = fleet.names("host", NODES)
        beats = Beats(c.api, nodes)
        fleet.add_nodes(c.api, nodes)
        for node in nodes:
            publish(c.api, node)
        p = Points(c, lab, nodes)
        wait_for("all hosts are ready", lambda: statuses(p.read) == {
            n: "ready" for n in nodes})
        assert beats.nodes
        p.extender.kill()
        for name in POINTS:
            for hit in HITS:
                with t.check(f"kill -9 at {name}, hit {hit}"):
                    p.start(f"{name}=kill:{hit}")
                    made = p.die()
                    p.start("")
                    n = p.check(made)
                    t.note(f"{n} of {len(made)} were bound")
                    p.clear()
                p.extender.kill()
                if t.failed:
                    t.finish()
        t.finish()


if __name__ == "__main__":
    main()
