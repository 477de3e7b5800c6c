#!/usr/bin/env python3
"""Jobs in one object or one line really run: a batch/v1 Job with xPU pods on
cards runs and ends, who waits for it is told, and one that fails ends whole.
"""
import os
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import fleet  # noqa: E402
import node as biga_node  # noqa: E402
from check import Checks  # noqa: E402
from proc import HANGS, wait_for  # noqa: E402

EXAMPLE = os.path.join(cards.ROOT, "deploy", "examples",
                       "embedded-job.yaml")
STAYS = "trap exit TERM; while :; do sleep 1; done"
TIMEOUT = f"--timeout={int(HANGS)}s"


class Waiting:
    """`biga ARGS`, which waits, beside us."""

    def __init__(self, node, *args):
        self.text = self.code = None
        self.argv = [fleet.program("biga"), *args]
        self.env = {**os.environ, **node.env()}
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        done = subprocess.run(
            self.argv, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=False, env=self.env)
        self.text, self.code = done.stdout, done.returncode

    def expect(self, code, text):
        self.thread.join()
        assert self.code == code and text in self.text, \
            (self.argv, self.code, self.text)


def line(node, job):
    """Of `biga jobs`."""
    return next((x.split() for x in node.biga("jobs").splitlines()
                 if x.startswith(f"default/{job} ")), [])


def test_example(t, node):
    with t.check("a Job with a PodTemplate is applied in one object"):
        said = node.biga("apply", EXAMPLE)
        assert "Job default/sum created: 4 pods" in said, said
        assert line(node, "sum")[1] in ("Pending", "Planned", "Running",
                                        "Succeeded"), line(node, "sum")
        runs = Waiting(node, "wait", "job/sum", "--for=running", TIMEOUT)
        ends = Waiting(node, "wait", "job/sum", TIMEOUT)
    with t.check("who waits is told when it runs, on the host and on cards"):
        runs.expect(0, "job default/sum is running")
    with t.check("and when it has ended"):
        ends.expect(0, "job default/sum is done")
        assert line(node, "sum")[1] == "Succeeded", line(node, "sum")
        wait_for("its xPU pods follow", lambda: "HostPodEnded" ==
                 node.pods()["sum-1-xpu"]["reason"])
    with t.check("each pod knew its index"):
        for n in range(2):
            said = node.biga("logs", f"sum-{n}")
            assert f"rank {n} of 2, index {n}" in said, said
    with t.check("delete --wait ends when nothing of it is left"):
        Waiting(node, "delete", "job", "sum", "--wait", TIMEOUT).expect(
            0, "job default/sum is deleted")
        assert not node.pods()
        assert line(node, "sum")[1] == "Succeeded", "it is remembered"


def test_run(t, node):
    image = "--image=busybox:static"
    xpu = ["--xpu-image=busybox:static", "--xpu-command=" + STAYS]
    with t.check("pairs in one line run, and are gone with --rm"):
        Waiting(node, "run", "ok", "-n", "2", image, *xpu, "--rm", TIMEOUT,
                "--", "sh", "-c", "echo $JOB_COMPLETION_INDEX").expect(
            0, "job default/ok is done")
        wait_for("nothing is left", lambda: not node.pods())
    with t.check("one that fails ends the others, and the wait"):
        Waiting(node, "run", "bad", "-n", "2", image, *xpu, "--wait",
                TIMEOUT, "--", "sh", "-c",
                f"[ $JOB_COMPLETION_INDEX = 0 ] || {{ {STAYS}; }}; exit 3"
                ).expect(1, "job default/bad will not be done")
        wait_for("the other one is ended", lambda: "JobFailed" ==
                 node.pods()["bad-1"]["reason"])
        wait_for("and has ended", lambda: line(node, "bad")[1] == "Failed")
        node.biga("delete", "job", "bad", "--wait", TIMEOUT)
        node.wait_clean()


def main():
    cards.require()
    with cards.Rack(2) as rack:
        t = Checks(on_failure=rack.tail)
        with t.check("Biga runs pods on two cards"):
            rack.start()
            node = biga_node.Node(rack).start()
        if not t.failed:
            test_example(t, node)
            test_run(t, node)
            with t.check("and ends as it should"):
                assert node.advertiser.stop(), "it had to be killed"
                assert node.extender.stop(), "it had to be killed"
    t.finish()


main()
