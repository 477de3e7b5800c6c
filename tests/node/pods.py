"""Pods as people write them, and kubectl commands that go on for a while."""
import contextlib
import os
import pty
import re
import subprocess
import threading

import images
from proc import Ended, wait_for


def sh(script, name="main", **more):
    """A container that runs a script."""
    return {"name": name, "image": images.BASE,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", "-c", script], **more}


def pod(name, *containers, labels=None, annotations=None, **spec):
    """A Pod in namespace default."""
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default",
                         "labels": labels or {"app": name},
                         "annotations": annotations or {}},
            "spec": {"terminationGracePeriodSeconds": 2,
                     "containers": list(containers), **spec}}


# what a first process without a trap does not do: end on SIGTERM
WAIT = "trap 'echo told; exit 0' TERM; while :; do sleep 1 & wait $!; done"


# Of a script that counts in n: says the next line, but not while there is
# /tmp/hold; then it tells how many it has said, see held().
SAY = "if [ -e /tmp/hold ]; then echo $n >/tmp/held; " \
    "else rm -f /tmp/held; n=$((n+1)); echo line $n; fi"


@contextlib.contextmanager
def held(place, found, log):
    """A pod that says SAY says nothing, and all that it has said is in this
    log of its runtime: a containerd that is killed when it has read a line
    and not written it loses that line (docs/cards.md)."""
    ident = status_of(found)["containerID"].split("//")[-1]
    init = read(place.path("run", "io.containerd.runtime.v2.task", "k8s.io",
                           ident, "init.pid"))
    hold, told = (os.path.join("/proc", init, "root", "tmp", name)
                  for name in ("hold", "held"))

    def written():
        n = read(told).strip()
        assert n, "it has not told yet"
        text = read(log)
        assert text.endswith(f" line {n}\n") or n == "0" and not text, (
            n, text[-80:])
        return True
    with contextlib.suppress(FileNotFoundError):
        os.unlink(told)  # of an earlier time
    with open(hold, "wb"):
        pass
    try:
        wait_for("its log has all that it has said", written)
        yield
    finally:
        os.unlink(hold)


def read(name):
    with open(name, encoding="utf-8") as f:
        return f.read()


def status_of(found, name="main"):
    """The status of a container of a Pod."""
    status = found["status"]
    for kind in ("containerStatuses", "initContainerStatuses",
                 "ephemeralContainerStatuses"):
        for one in status.get(kind) or ():
            if one["name"] == name:
                return one
    raise KeyError(f"{found['metadata']['name']} has no status of {name}")


def is_ready(found):
    """Whether a Pod is ready; raises with why it is not."""
    for kind in found["status"].get("conditions", ()):
        if kind["type"] == "Ready":
            assert kind["status"] == "True", [
                c.get("state") for c in
                found["status"].get("containerStatuses", ())]
            return True
    raise AssertionError(f"has no condition: {found['status']}")


# What the kubelet adds to a log that is followed, when the container was
# removed before it has looked whether that still runs.
REMOVED = re.compile(r"rpc error: code = NotFound desc = [^\n]*\n?\Z")


class Talk:
    """A command that reads and writes for a while; terminal: on one."""

    def __init__(self, argv, terminal=False):
        self.got, self.lock = b"", threading.Lock()
        self.argv, ends = argv, (None, None)
        if terminal:
            ends = pty.openpty()
        self.child = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *argv],
            stdin=ends[1] if terminal else subprocess.PIPE,
            stdout=ends[1] if terminal else subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=terminal)
        if terminal:
            os.close(ends[1])
        self.to = ends[0] if terminal else self.child.stdin.fileno()
        self.out = ends[0] if terminal else self.child.stdout.fileno()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        while True:
            try:
                data = os.read(self.out, 65536)
            except OSError:  # of a terminal that nobody has any more
                return
            if not data:
                return
            with self.lock:
                self.got += data

    @property
    def text(self):
        with self.lock:
            return self.got.decode("utf-8", "replace")

    @property
    def log(self):
        """Of kubectl logs -f: what the container has said."""
        return REMOVED.sub("", self.text)

    def write(self, text):
        os.write(self.to, text.encode())

    def close_input(self):
        self.child.stdin.close()

    def wait_text(self, text):
        """Until it has said that; all that it has said."""
        def said():
            if text in self.text:
                return True
            if self.child.poll() is not None:
                self.reader.join(5)
                if text not in self.text:
                    raise Ended(f"{' '.join(self.argv[3:])}: ended with "
                                f"{self.child.returncode}: {self.text}")
            assert text in self.text, self.text[-400:]
            return True
        wait_for(f"it says {text!r}", said)
        return self.text

    def wait(self):
        """Its exit status."""
        wait_for(f"{' '.join(self.argv[3:])} ends",
                 lambda: self.child.poll() is not None)
        self.reader.join()
        return self.child.returncode

    def end(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
