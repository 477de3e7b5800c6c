#!/usr/bin/env python3
"""What biga-cri costs the pods of the host: calls of a real containerd, direct
and through it, in turn; pods started by a kubelet that dials the one and the
other, in turn; then its memory and its processor time at rest, beside what
the kubelet's polling costs containerd.

    bench_router.py [ROUNDS [PODS [SECONDS]]]     (3 110 60)

Calls are measured first, with 40 pods there and no kubelet: on all processors,
then with caller, biga-cri and containerd on one, where no call waits until
another processor wakes, which in a virtual machine takes longer than the call.
Status 77 where there can be no node, with the reason.
"""
import contextlib
import os
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
from cards import NODE  # noqa: E402
from cri import Cri  # noqa: E402
from pods import pod  # noqa: E402
from proc import wait_for  # noqa: E402

CALLS = os.path.join(os.environ.get("BUILD", "build"), "bench", "bench_grpcd")
CALLED = ("/runtime.v1.RuntimeService/Version",
          "/runtime.v1.RuntimeService/ListContainers",
          "/runtime.v1.RuntimeService/ListPodSandbox",
          "/runtime.v1.ImageService/ImageFsInfo")
FEW = 40
TIMES = 8  # the 99th percentile varies by more than a relay takes
TICK = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    """Seconds of processor that a process has had."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f
                    if line.startswith("VmRSS:"))


class Bench:
    def __init__(self, r):
        self.r, self.api, self.round = r, r.c.api, 0

    def dial(self, endpoint):
        """A kubelet that dials this runs when it returns."""
        self.hang_up()
        self.r.changes["containerRuntimeEndpoint"] = endpoint
        self.r.start_kubelet()
        self.r.wait_ready()

    def hang_up(self):
        if self.r.kubelet:
            self.r.kubelet.stop()
            self.r.kubelet = None

    def start(self, n):
        """Seconds from the first of n pods being made until the last runs."""
        self.round += 1
        names = {f"p{self.round}-{i}" for i in range(n)}
        began = time.monotonic()
        for name in names:
            self.api.create("pods", pod(
                name, {"name": "main", "image": rig.BASE,
                       "imagePullPolicy": "IfNotPresent",
                       "command": ["sleep", "1000000"]},
                nodeName=NODE, terminationGracePeriodSeconds=0))
        for _, found in self.api.watch("pods", "default", 300):
            if found["status"].get("phase") == "Running":
                names.discard(found["metadata"]["name"])
            if not names:
                return time.monotonic() - began
        raise TimeoutError(f"{len(names)} pods do not run")

    def clear(self):
        """No pod and no sandbox is there when it returns."""
        self.api.delete_all("pods", "default")
        wait_for("all pods are gone",
                 lambda: not self.api.list("pods", "default"))
        runtime = Cri(unix=self.r.rack.host.endpoint[len("unix://"):])

        def removed():  # what the kubelet has stopped; it would do so later
            left = runtime.sandboxes()
            for one in left:
                runtime.remove_pod(one["id"])
            return not left
        wait_for("no sandbox is left", removed)

    def at_rest(self, seconds, processes):
        """Per cent of a core that each has had."""
        before = [cpu_s(p.pid) for p in processes]
        began = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - began
        return [100 * (cpu_s(p.pid) - b) / took
                for p, b in zip(processes, before)]

    @contextlib.contextmanager
    def on(self, processors):
        """This and what it measures run on these alone."""
        usual = os.sched_getaffinity(0)
        tasks = [0] + [int(task) for p in (
            self.r.way.process, self.r.rack.host.containerd)
            for task in os.listdir(f"/proc/{p.pid}/task")]

        def move(to):
            for task in tasks:
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(task, to)
        move(processors)
        yield
        move(usual)

    def calls(self):
        """Prints microseconds, each the median of TIMES runs."""
        n = len(os.sched_getaffinity(0))
        runs = [subprocess.run(
            [CALLS, "20", self.r.rack.host.endpoint[len("unix://"):],
             self.r.way.socket, *CALLED], check=True, text=True,
            stdout=subprocess.PIPE).stdout.splitlines() for _ in range(TIMES)]
        for lines in zip(*runs):
            # METHOD 0 B direct P50 P99 relayed P50 P99 more P50 P99 ratio R
            rows = [line.split() for line in lines]
            us = [f"{statistics.median(float(row[i]) for row in rows):8.1f}"
                  for i in (4, 5, 7, 8, 10, 11)]
            print(f"call, us, processors {n}: {rows[0][0]:16} direct", *us[:2],
                  " relayed", *us[2:4], " more", *us[4:], flush=True)


def main():
    rounds, n, seconds = (int(x) for x in (sys.argv[1:] + ["3", "110", "60"][
        len(sys.argv) - 1:]))
    rig.require("router")
    with rig.Rig(2, "router") as r:
        r.start()
        bench = Bench(r)
        through, direct = r.way.endpoint, r.rack.host.endpoint
        bench.start(FEW)
        bench.hang_up()
        bench.calls()
        with bench.on({min(os.sched_getaffinity(0))}):
            bench.calls()
        took, own = {direct: [], through: []}, []
        for i in range(rounds):
            for endpoint in (direct, through)[::-1 if i % 2 else 1]:
                bench.clear()
                bench.dial(endpoint)
                before = cpu_s(r.way.process.pid)
                took[endpoint].append(bench.start(n))
                if endpoint == through:
                    own.append(cpu_s(r.way.process.pid) - before)
        medians = [statistics.median(took[e]) for e in (direct, through)]
        print(f"start of {n} pods, s: direct", *(
            f"{x:.2f}" for x in took[direct]), " through", *(
            f"{x:.2f}" for x in took[through]),
            f" ratio of the medians {medians[1] / medians[0]:.3f};"
            f" processor of biga-cri, s: {statistics.median(own):.2f}",
            flush=True)
        bench.dial(through)
        own, runtime = bench.at_rest(
            seconds, (r.way.process, r.rack.host.containerd))
        print(f"at rest with {n} pods: biga-cri {own:.2f} % of a core, "
              f"containerd {runtime:.2f} %; RSS of biga-cri "
              f"{rss_kib(r.way.process.pid) / 1024:.1f} MB", flush=True)
    return 0


sys.exit(main())
