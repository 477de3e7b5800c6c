#!/usr/bin/env python3
"""What hosts have left limits what a job is promised: with the real scheduler
and pods that are none of Biga's."""
import jobs
import pool
from check import Checks
from fleet import bound, pod, wait_bound, why_pending
from lab import Lab
from proc import wait_for

NODES, CPUS = 3, 20  # that pods of others leave on each


def left(reader, node):
    """CPUs of the host, as the extender has it."""
    return reader.call("GET", f"/v1/nodes/{node}")["room"]["cpuMilli"] / 1000


def wait_left(reader, nodes, cpus):
    def is_so():
        got = [left(reader, node) for node in nodes]
        assert got == [cpus] * len(nodes), got
        return True
    wait_for(f"hosts have {cpus} CPUs left", is_so)


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        lab = Lab(c)
        lab.up(NODES, 1)
        reader = lab.read_api(lab.leader(), lab.reader())
        nodes = sorted(n["metadata"]["name"] for n in c.api.list("nodes"))

        with t.check("pods of others are taken off, of whatever size"):
            has = {node: wait_for(f"{node} is known", lambda n=node: left(
                reader, n)) for node in nodes}
            for node in nodes:
                c.api.create("pods", pod(
                    f"other-{node}", node_name=node,
                    requests={"cpu": int(has[node]) - CPUS}))
            wait_left(reader, nodes, CPUS)
        if t.failed:
            t.finish()  # the others would wait for what does not come

        with t.check("a job that hosts have no CPUs for is not begun"):
            made = jobs.pairs("seven", 7, cpu=8)  # two to a host are six
            for p in made:
                c.api.create("pods", p)
            name = made[0]["metadata"]["name"]

            def is_said():
                why = why_pending(c.api, name)
                assert "needs 7 pairs; there is room for 6" in why, why
                return True
            wait_for("it is said why", is_said)
            assert not [n for n in bound(c.api) if n.startswith("seven")]
            wait_left(reader, nodes, CPUS)
        if t.failed:
            t.finish()

        with t.check("it is once a pod has gone"):
            c.api.delete("pods", "default", f"other-{nodes[0]}")
            wait_bound(c.api, [p["metadata"]["name"] for p in made])
            for p in made:
                # the extender ends xPU pods, too
                c.api.delete("pods", "default", p["metadata"]["name"],
                             missing_ok=True)
            wait_left(reader, nodes[:1], has[nodes[0]])
            wait_left(reader, nodes[1:], CPUS)
        if t.failed:
            t.finish()

        with t.check("what it is promised is taken off once"):
            made = jobs.pairs("four", 4, cpu=8)
            before = sum(left(reader, node) for node in nodes)
            for p in made:
                c.api.create("pods", p)
            wait_bound(c.api, [p["metadata"]["name"] for p in made])
            wait_for("host pods are charged", lambda: before - sum(
                left(reader, node) for node in nodes) == 4 * 8)
        t.finish()


if __name__ == "__main__":
    main()
