#!/usr/bin/env python3
"""The reflector against a real API server: pages, memory, an API server that
dies, and an etcd that has forgotten."""
import itertools
import os
import re
import socket
import subprocess
import time

from api import Api, ApiError
from check import Checks
from cluster import Cluster, ROOT
from fleet import in_parallel
from proc import Process, wait_for

NS = "default"
WHERE = f"/api/v1/namespaces/{NS}/configmaps"
N = 2000  # four pages
FAT = "x" * 20000
COMPACTION_S = 1
PEAK_KIB = 20 << 10  # of a program that was sent 40 MB


def build():
    target = os.path.join(os.environ.get("BIGA_BUILD", "build"), "bench",
                          "bench_reflector")
    subprocess.run(["make", "-s", target], cwd=ROOT, check=True)
    return os.path.join(ROOT, target)


def add(c, names, text=""):
    in_parallel(lambda name: c.api.call("POST", WHERE, {
        "metadata": {"name": name, "labels": {"test": "reflector"}},
        "data": {"text": text}}), names)


def remove(c, names):
    in_parallel(lambda name: c.api.call("DELETE", f"{WHERE}/{name}"), names)


def names(c):
    query = {"labelSelector": "test=reflector"}
    return {o["metadata"]["name"] for o in c.api._pages(WHERE, query)["items"]}


class Watcher:
    """bench_reflector, and what it was told."""

    def __init__(self, c, program, name):
        self.process = Process(c.folder, name, [
            program, c.path("admin.kubeconfig"), WHERE,
            "labelSelector=test%3Dreflector"]).start()

    def lines(self):
        return [line for line in self.process.text().splitlines()
                if not line.startswith("ts=")]

    def held(self):
        """The names that a handler which does as it is told now holds."""
        held, listed = set(), None
        for line in self.lines():
            word, _, name = line.partition(" ")
            if word == "list":
                listed = set()
            elif word == "put":
                (held if listed is None else listed).add(name)
            elif word == "gone":
                held.discard(name)
            elif word == "listed":
                held, listed = listed, None
        return held

    def count(self, word):
        return sum(line.split(" ")[0] == word for line in self.lines())

    def wait_same(self, c):
        self.process.alive()
        want = names(c)
        wait_for("the watcher holds what the API server has",
                 lambda: self.process.alive() and self.held() == want)

    def end(self):
        """The last line: how it ended."""
        self.process.stop()
        return self.lines()[-1]


def is_free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def restart(c, between=lambda: None):
    c.apiserver.kill()
    between()
    wait_for("the port is free", lambda: is_free(c.ports["apiserver"]))
    c.apiserver.start()
    c.wait_ready()


def version(c):
    return c.api._pages(WHERE, {"limit": 1})["metadata"]["resourceVersion"]


def forget(c, was):
    """What was before this version is gone from etcd and from the API
    server's memory.

    At each interval the API server has etcd forget what was at the one
    before."""
    etcd = Api(f"https://127.0.0.1:{c.ports['etcd']}",
               *[c.path("pki", "etcd", name) for name in
                 ("ca.crt", "client.crt", "client.key")])

    def compacted():
        found = re.search(r"^etcd_debugging_mvcc_compact_revision (\S+)",
                          etcd.call("GET", "/metrics"), re.M)
        return float(found.group(1)) > int(was)
    wait_for(f"etcd forgets version {was}", compacted, every=0.2)
    restart(c)
    try:
        c.api._pages(WHERE, {"limit": 1, "resourceVersion": was,
                             "resourceVersionMatch": "Exact"})
    except ApiError as error:
        assert error.status == 410, error
    else:
        raise AssertionError(f"the API server has version {was}")


def in_the_middle(c, program):
    """A watcher that stands still in its first list; another where it was
    through when it stood still."""
    for i in itertools.count():
        late = Watcher(c, program, f"late{i}")
        wait_for("the first page", lambda late=late: late.count("list") == 1,
                 every=0.001)
        late.process.pause()
        if late.count("listed") == 0:
            return late
        late.process.stop()


def peak(line):
    return int(re.search(r"peak (\d+) KiB", line).group(1))


def main():
    t = Checks()
    program = build()
    with Cluster() as c:
        c.start(controllers=[])
        c.ensure_namespace(NS)
        add(c, [f"c{i}" for i in range(N)], FAT)
        w = Watcher(c, program, "watcher")

        with t.check(f"{N} objects of 20 kB are listed in pages"):
            w.wait_same(c)
            listed = [x for x in w.lines() if x.startswith("listed")]
            t.note(listed[0])
            assert re.match(rf"listed {N} objects, 4\d{{7}} bytes",
                            listed[0]), listed
        with t.check(f"they take less than {PEAK_KIB} KiB of memory"):
            assert peak(listed[0]) < PEAK_KIB, listed[0]

        with t.check("changes arrive, without another list"):
            add(c, ["new"])
            remove(c, ["c0"])
            began = time.monotonic()
            w.wait_same(c)
            t.note(f"within {time.monotonic() - began:.2f} s")
            assert w.count("list") == 1, w.count("list")

        with t.check("an API server that was killed is found again"):
            restart(c)
            add(c, ["after-restart"])
            remove(c, ["c1"])
            w.wait_same(c)

        c.apiserver.argv.append(
            f"--etcd-compaction-interval={COMPACTION_S}s")
        with t.check("what etcd has forgotten is listed again"):
            # the list after the restart above may have been a new one, and
            # that tells of no deletion by itself
            before, gone = w.count("listed"), w.count("gone")
            restart(c, w.process.pause)  # nothing waits in its socket
            was = version(c)
            add(c, ["unseen"])
            remove(c, ["c2", "new"])
            forget(c, was)
            w.process.resume()
            w.wait_same(c)
            assert w.count("listed") > before
            assert w.count("gone") == gone, "it was not forgotten"

        with t.check("so is a list that etcd forgets in the middle"):
            late = in_the_middle(c, program)
            was = version(c)
            remove(c, ["c3", "c1999"])
            forget(c, was)
            late.process.resume()
            late.wait_same(c)
            t.note(late.end())

        with t.check("the watcher ends"):
            last = w.end()
            t.note(last)
            took = int(re.match(r"ended after (\d+) ms", last).group(1))
            t.note(f"it took {took} ms")
            assert peak(last) < PEAK_KIB, last
    t.finish()


main()
