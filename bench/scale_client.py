#!/usr/bin/env python3
"""The client of bench/scale: a job of many pairs, and what is answered.

  scale_client.py run SCHEDULER READ NAMES PAIRS PID    plans and binds a job
  scale_client.py release READ PAIRS PID                of it, everything
  scale_client.py answers SCHEDULER READ NAMES          digests of answers

SCHEDULER and READ are ports on loopback, NAMES a file of nodes' names, PID
the extender's.  `run` and `release` print lines of WHAT, ms, ms of the
extender's CPU time; `answers` prints WHAT, bytes, SHA-256, without the numbers
of the snapshot and of binds, which count commits.
"""
import hashlib
import http.client
import json
import re
import sys
import threading
import time

CONNECTIONS = 16
PAGE = 1000
OFFERED = 16  # names in a filter that comes when the job has its places
COUNTED = re.compile(rb'"(snapshot|number)":\d+,')


class Server:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port,
                                                     timeout=600)

    def call(self, method, path, body=None, expected=(200,)):
        self.connection.request(method, path, body)
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status in expected, (path, answer.status, text[:500])
        return text

    def filter(self, pod, names):
        answer = self.call("POST", "/v1/scheduler/filter", json.dumps(
            {"Pod": pod, "Nodes": None, "NodeNames": names}))
        assert json.loads(answer)["NodeNames"], answer[:500]
        return answer

    def bind(self, pod, node):
        answer = json.loads(self.call("POST", "/v1/scheduler/bind", json.dumps(
            {"PodName": pod["metadata"]["name"], "PodNamespace": "bench",
             "PodUID": pod["metadata"]["uid"], "Node": node})))
        assert answer["Error"] == "", answer

    def pages(self, path):
        """Each page of a list, without what counts commits."""
        after = ""
        while True:
            page = self.call("GET", f"{path}?limit={PAGE}{after}")
            yield COUNTED.sub(b"", page)
            found = re.search(rb'"continue":"([^"]*)"\}\s*$', page)
            if not found:
                return
            after = "&continue=" + found[1].decode()


def pod(name, labels, annotations):
    return {"metadata": {
        "name": name, "namespace": "bench", "uid": f"uid-{name}",
        "labels": {"biga.dev/role": "host", **labels},
        "annotations": {"biga.dev/cards": "1", **annotations}},
        "spec": {"containers": [{"name": "rank", "resources": {"requests": {
            "biga.dev/card": "1", "nvidia.com/gpu": "1"}}}]}}


def member(rank, pairs):
    return pod(f"big-{rank}", {"biga.dev/job": "big",
                               "biga.dev/pair": str(rank)},
               {"biga.dev/size": str(pairs),
                "biga.dev/prefer-align": "pxb"})


class Steps:
    """Tells what the extender and the clock took for each step."""

    def __init__(self, pid):
        # CPUCLOCK_SCHED of another process, as clock_getcpuclockid() makes it
        self.clock = ~int(pid) << 3 | 2

    def now(self):
        return time.monotonic(), time.clock_gettime(self.clock)

    def step(self, what, action):
        wall, cpu = self.now()
        found = action()
        wall_end, cpu_end = self.now()
        print(f"{what}\t{(wall_end - wall) * 1000:.1f}\t"
              f"{(cpu_end - cpu) * 1000:.1f}", flush=True)
        return found


def in_parallel(port, ranks, work):
    """work(server, rank) of each; the first that fails is raised."""
    failed = []

    def run(mine):
        server = Server(port)
        try:
            for rank in mine:
                if failed:
                    return
                work(server, rank)
        except Exception as why:  # told by the thread that waits
            failed.append(why)
    threads = [threading.Thread(target=run, args=(ranks[i::CONNECTIONS],))
               for i in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def read_names(path):
    with open(path, encoding="utf-8") as file:
        return file.read().split()


def run_job(scheduler, read, path, pairs, pid):
    names, pairs, steps = read_names(path), int(pairs), Steps(pid)
    server = Server(scheduler)
    first = member(0, pairs)
    best = json.loads(steps.step("plan", lambda: server.filter(
        first, names)))["NodeNames"]
    steps.step("first-bind", lambda: server.bind(first, best[0]))
    job = json.loads(Server(read).call("GET", "/v1/jobs/bench/big"))
    places = {pair["rank"]: pair["node"] for pair in job["pairList"]}
    assert len(places) == pairs, f"{len(places)} of {pairs} have a place"

    order = {name: i for i, name in enumerate(names)}

    def bind(server, rank):
        node = places[rank]
        at = order[node]
        filtered = server.filter(member(rank, pairs),
                                 names[at:at + OFFERED])
        assert json.loads(filtered)["NodeNames"][0] == node, filtered
        server.bind(member(rank, pairs), node)
    steps.step("other-binds", lambda: in_parallel(
        scheduler, range(1, pairs), bind))


def release_job(read, pairs, pid):
    answer = Steps(pid).step("release", lambda: Server(read).call(
        "DELETE", "/v1/jobs/bench/big/allocations"))
    assert json.loads(answer)["released"]["allocations"] == int(pairs), answer


def answers(scheduler, read, path):
    single = pod("single", {}, {"biga.dev/prefer-align": "pxb"})
    found = {
        "filter": [Server(scheduler).filter(single, read_names(path))],
        "job": [Server(read).call("GET", "/v1/jobs/bench/big",
                                  expected=(200, 404))]}
    for what in ("nodes", "usage", "allocations"):
        found[what] = Server(read).pages(f"/v1/{what}")
    for what, pages in found.items():
        digest, size = hashlib.sha256(), 0
        for page in pages:
            digest.update(page)
            size += len(page)
        print(f"{what}\t{size}\t{digest.hexdigest()}", flush=True)


if __name__ == "__main__":
    {"run": run_job, "release": release_job,
     "answers": answers}[sys.argv[1]](*sys.argv[2:])
