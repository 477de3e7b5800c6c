#!/usr/bin/env python3
"""kill -9 of biga-cri at every named point, under a real kubelet: each time
the pod runs after all, or is gone, exactly one container of it has run, and
nothing is left or lost.  With NODE_FULL=1 also at later hits, and sandboxes are
removed by the kubelet alone, which takes it a minute each time.

Which points there are is read from lib/io/failpoint.c: one that has no way to
be reached here fails the test.  Needs a biga-cri built with -DFAILPOINTS, in
$BIGA_FAILPOINTS_BUILD (default build-fp); `make test-node` builds it."""
import os
import re
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
import cards  # noqa: E402
from check import Checks  # noqa: E402
from cri import Cri, field, varint  # noqa: E402
from place import AtCard  # noqa: E402
from pods import sh  # noqa: E402
from proc import Ended, start_time, wait_for  # noqa: E402
from watch import WENT, Watch  # noqa: E402

FULL = bool(os.environ.get("NODE_FULL"))
TALK = "trap 'exit 0' TERM; n=0; while :; do n=$((n+1)); echo line $n; " \
    "sleep 0.5 & wait $!; done"
GATE = "biga.dev/test"


def points():
    """biga-cri's, in the order of its table."""
    with open(os.path.join(cards.ROOT, "lib", "io", "failpoint.c"),
              encoding="utf-8") as f:
        table = f.read().partition("names[] = {")[2].partition("NULL,")[0]
    return [name for name in re.findall(r'"([\w-]+)"', table)
            if name.startswith(("cri-", "call-", "log-"))]


class Points:
    def __init__(self, r):
        self.r, self.card = r, r.rack.cards[0]
        self.place = AtCard(r, self.card)
        self.names = []  # of pods that are to run
        self.n = self.rotated = 0

    # --- biga-cri ------------------------------------------------------------
    def begin(self, armed=""):
        """The next one; the one before is surely dead."""
        process = self.r.way.process
        process.kill()
        process.env = {"BIGA_FAILPOINTS": armed}
        try:
            self.r.way.start()
        except Ended:
            assert armed, "it died without a point"

    def wait_dead(self):
        process = self.r.way.process
        wait_for("it dies", lambda: not process.running)
        assert process.exit_status() == -9, process.exit_status()

    # --- what leads to a point -----------------------------------------------
    def add(self, **more):
        self.n += 1
        name = self.place.apply(str(self.n), sh(TALK), restartPolicy="Never",
                                **more)
        self.names.append(name)
        return name

    def obstacle(self, armed):
        """A sandbox that has the pod's name is there already, and is not what
        biga-cri would make."""
        name = self.add(schedulingGates=[{"name": GATE}])
        uid = self.r.pod(name)["metadata"]["uid"]
        labels = {"biga.dev/cluster": "biga", "biga.dev/node": rig.NODE,
                  "biga.dev/pod-uid": uid}
        config = field(1, field(1, name) + field(2, uid)
                       + field(3, "default")) \
            + b"".join(field(6, field(1, k) + field(2, v))
                       for k, v in labels.items()) \
            + field(8, field(2, field(1, varint(1 << 3) + varint(2))))
        self.card.local().call("RunPodSandbox", field(1, config))
        self.begin(armed)
        self.r.c.api.patch("pods", "default", name,
                           {"spec": {"schedulingGates": None}})

    def delete(self, armed):
        """One that runs; all of it, also what the kubelet leaves for later."""
        name = self.one()
        found = self.r.pod(name)
        self.names.remove(name)
        self.begin(armed)
        self.r.c.api.delete("pods", "default", name)
        if not FULL:
            self.talk(self.remove, found["metadata"]["uid"])

    def remove(self, uid):
        """As the kubelet's garbage collection does within a minute."""
        mine = Cri(unix=self.r.way.socket)
        wait_for("its containers are gone", lambda: not [
            c for c in mine.containers() if uid in c["labels"].values()])
        for s in mine.sandboxes():
            if s["uid"] == uid:
                mine.remove_pod(s["id"])

    def run_command(self, armed):
        ident = self.container()
        self.begin(armed)
        pid = self.r.way.process.pid
        began = pid and start_time(pid)

        def dead():  # the card may not be known to answer yet
            if not pid or start_time(pid) != began:
                return True
            Cri(unix=self.r.way.socket).exec(ident, "true")
            return False
        self.talk(wait_for, "it dies", dead)

    def rotate(self, armed):
        """As the kubelet does when a log is long."""
        name = self.one()
        ident, path = self.container(name), self.log_path(name)
        self.begin(armed)
        self.rotated += 1
        old = f"{path}.{self.rotated:04d}"
        os.rename(path, old)
        try:
            Cri(unix=self.r.way.socket).call("ReopenContainerLog",
                                             field(1, ident))
        except WENT:
            os.rename(old, path)  # it tries again later

    def nothing(self, armed):
        self.begin(armed)

    def new(self, armed):
        self.begin(armed)
        self.add()

    @staticmethod
    def talk(call, *args):
        """It does not get an answer, or a late one."""
        def run():
            try:
                call(*args)
            except (*WENT, TimeoutError):
                pass
        threading.Thread(target=run, daemon=True).start()

    # --- what is there -------------------------------------------------------
    def runs(self, name):
        try:
            return bool(self.r.ready_pod(name))
        except AssertionError:
            return False

    def one(self):
        """A pod that runs, after a while."""
        if not self.r.way.process.running:
            self.begin()
        return wait_for("a pod runs", lambda: next(
            (n for n in self.names if self.runs(n)), None))

    def container(self, name=None):
        state = self.r.pod(name or self.one())["status"]["containerStatuses"][0]
        return state["containerID"].split("//")[-1]

    def log_path(self, name):
        uid = self.r.pod(name)["metadata"]["uid"]
        top = self.r.rack.host.path("log", "pods", f"default_{name}_{uid}",
                                    "main")
        return max(os.path.join(top, f) for f in os.listdir(top)
                   if f.endswith(".log"))  # attempts are few

    def lines(self, name):
        """How many it has said; each is there once, and in order."""
        path = self.log_path(name)
        top, base = os.path.split(path)
        got = []
        for file in [*sorted(f for f in os.listdir(top)
                             if f.startswith(base + ".")), base]:
            with open(os.path.join(top, file), encoding="utf-8") as f:
                got += [line.split(" ", 3)[3].rstrip() for line in f]
        assert got == [f"line {n + 1}" for n in range(len(got))], got
        return len(got)

    WAYS = (("cri-commit", new),
            (r"cri-(before|after)-(announce|send|record)", new),
            (r"cri-(before|after)-(look|remove)", obstacle),
            (r"cri-(before|after)-forget", delete),
            (r"call-(before|after)-StartContainer", new),
            (r"call-(before|after)-ExecSync", run_command),
            (r"call-(before|after)-(Stop|Remove)\w+", delete),
            ("call-before-answer", new),
            (r"log-(half|before|after)-(write|state)", nothing),
            (r"log-(before|after)-(reopen|create)", rotate))

    def way(self, name):
        return next((f for like, f in self.WAYS
                     if re.fullmatch(like, name)), None)

    def at(self, name, hit):
        """Die there, and begin anew."""
        armed = f"{name}=kill:{hit}"
        if name == "log-half-write":
            armed = f"{name}=fail:{hit},log-before-write=kill:{hit}"
        if name == "cri-commit":
            armed = f"{name}=fail:{hit}"
        self.way(name)(self, armed)
        if name != "cri-commit":
            self.wait_dead()
        else:
            wait_for("it fails", lambda: "a failpoint" in
                     self.r.way.process.text())


def was_cut(found):
    """Its first process may have run: containerd ended it when the call that
    started it was cut, and that is told."""
    return any("failed to start containerd task" in
               c["state"].get("terminated", {}).get("message", "")
               for c in found["status"].get("containerStatuses", ()))


def all_run(t, p):
    with t.check("then all pods run, one container of each has run, and no "
                 "line is lost"):
        for name in p.names:
            wait_for(f"{name} is ready", lambda n=name:
                     was_cut(p.r.pod(n)) or p.r.ready_pod(n))
        cut = [n for n in p.names if was_cut(p.r.pod(n))]
        p.names = [n for n in p.names if n not in cut]
        p.n -= len(cut)  # of which nobody knows whether they ran
        assert p.names
        for name in p.names:
            had = p.lines(name)
            wait_for("it goes on", lambda n=name, m=had: p.lines(n) > m)


def all_go(t, p):
    with t.check("when they are deleted, nothing is left on the card"):
        p.r.c.kubectl("delete", "pod", "--all")
        wait_for("all is gone", lambda: not [
            s for s in p.card.local().sandboxes()
            if not s["uid"].startswith("biga-helper-")])


def main():
    rig.Router.PROGRAM = os.path.join(cards.ROOT, os.environ.get(
        "BIGA_FAILPOINTS_BUILD", "build-fp"), "biga-cri")
    rig.require("router")
    with rig.Rig(1, "router") as r:
        t = Checks(on_failure=r.tail)
        with t.check("the node is ready"):
            r.start()
            p = Points(r)
        with t.check("a way leads to each point of biga-cri"):
            lacks = [n for n in points() if not p.way(n)]
            assert not lacks and len(points()) > 30, lacks
        with Watch(r, node=False) as w:
            for _ in range(3):
                p.add()
            for name in points() if not t.failed else ():
                for hit in (1, 2, 3) if FULL else (1,):
                    if not t.failed:
                        with t.check(f"it dies at {name}, hit {hit}"):
                            p.at(name, hit)
            with t.check("it begins once more"):
                p.begin()
            all_run(t, p)
            w.rest()
            all_go(t, p)
        found, made = w.check()
        t.note(", ".join(f"{n} {what}" for what, n in sorted(made.items())))
        t.ok(not found and made["containers that ran"] >= p.n,
             "by all records none was run twice, told as gone, or forgotten",
             "\n".join(map(str, found)))
        t.finish()


main()
