#!/usr/bin/env python3
"""Show Biga running pods on real cards: containerds of their own, each in a
network of its own.  One card loses its power under a running job, and the
story of its pair is told as it happens; then workers on the cards sum up for
the ranks of a job.  Takes half a minute; nothing of it is left.  Where there
can be no cards, the sums are done by processes on loopback.
"""
import argparse
import os
import sys
import tempfile
import textwrap
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import allreduce  # noqa: E402
import cards  # noqa: E402
import node  # noqa: E402
from proc import wait_for  # noqa: E402

EXAMPLE = os.path.join("deploy", "examples", "embedded.yaml")
JOB = ("ring-0", "ring-0-xpu", "ring-1", "ring-1-xpu")
VICTIM = "ring-1-xpu"
SUMS = 32  # of each rank, unless it is told otherwise


def say(text=""):
    print(text, flush=True)


def show(biga, *args):
    """A command and what it prints, as on a terminal."""
    say("  $ biga " + " ".join(args))
    for line in biga.biga(*args, ok=False).rstrip().splitlines():
        say("  " + line.rstrip())
    say()


class Progress(threading.Thread):
    """`with Progress("what"):` says it, a dot for each second, and how long
    it took."""

    def __init__(self, what):
        super().__init__(daemon=True)
        self.what, self.began = what, time.monotonic()
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(1):
            print(" .", end="", flush=True)

    def __enter__(self):
        print(f"{self.what} …", end="", flush=True)
        self.start()

    def __exit__(self, failed, *_):
        self.ended.set()
        self.join()
        say("" if failed else f" {time.monotonic() - self.began:.1f} s.")


class Story(threading.Thread):
    """Tells whenever something becomes otherwise, and when that was."""

    def __init__(self, biga, names):
        super().__init__(daemon=True)
        self.biga, self.names = biga, names
        self.began = time.monotonic()
        self.ended = threading.Event()
        self.last = {}

    def tell(self, text):
        lines = textwrap.wrap(text, 66)
        say(f"  {time.monotonic() - self.began:5.1f} s  {lines[0]}")
        for line in lines[1:]:
            say(" " * 13 + line)

    def _look(self):
        now = {}
        for name, pod in self.biga.pods().items():
            if name not in self.names:
                continue
            words = [pod.get("state", "?")]
            if pod.get("stale"):
                words.append("(as last known)")
            if pod.get("reason"):
                words.append(f"{pod['reason']}: {pod.get('message', '')}")
            now["pod " + name] = " ".join(words)
        now["cards that can be chosen"] = str(len(self.biga.capacity()))
        for what, how in now.items():
            if self.last.get(what, how) != how:
                self.tell(f"{what}: {how}")
        self.last = now

    def run(self):
        while not self.ended.wait(0.2):
            try:
                self._look()
            except (OSError, KeyError, ValueError, RuntimeError):
                pass  # the next look

    def end(self):
        self.ended.set()
        self.join(5)


def card_of(rack, biga, name):
    """The card on which the pod runs."""
    uid = biga.pods()[name]["uid"]
    for place, sandbox in biga.sandboxes():
        if sandbox["labels"]["biga.dev/pod-uid"] == uid and \
                place in rack.cards:
            return place
    raise RuntimeError(f"{name} is on no card")


def is_new(biga):
    pod = biga.pods()[VICTIM]
    return pod["attempt"] > 1 and pod["ready"]


def tell_fault(rack, biga):
    victim = card_of(rack, biga, VICTIM)
    say(f"{VICTIM} runs on {victim.id}.  That card loses its power:")
    say()
    story = Story(biga, JOB)
    story.start()
    time.sleep(0.5)
    story.tell(f"power cut of {victim.id}")
    victim.power_cut()
    wait_for("its capacity is withdrawn",
             lambda: victim.id not in biga.capacity(), every=0.1)
    time.sleep(0.5)  # for the story
    say()
    show(biga, "ps")
    story.tell("power is back, and its containerd starts")
    victim.start()
    victim.wait_up()
    wait_for("its capacity is back",
             lambda: victim.id in biga.capacity(), every=0.1)
    wait_for("its pod runs there again", lambda: is_new(biga), every=0.1)
    biga.wait_state(JOB, "running")
    time.sleep(0.5)  # for the story
    story.end()
    say()
    say("The card's sandboxes were void after the reboot, so its pod began "
        "anew there;")
    say("pods on other cards did not notice:")
    say()


def tell_sums(biga):
    """The job of deploy/examples/allreduce, as its README runs it."""
    say("Now a job that computes: each rank hands its buffer to the worker on "
        "its card,")
    say("the workers sum up among themselves, and the rank checks every "
        "number.")
    say()
    show(biga, "apply", os.path.relpath(allreduce.EXAMPLE, cards.ROOT))
    with Progress("Its pods start"):
        biga.wait_state(allreduce.HOSTS + allreduce.XPUS, "running")
    say()
    show(biga, "job", allreduce.JOB, "--dpu-hostfile")
    with Progress("Every rank is given this map, by which the workers make "
                  "their ring, and begins"):
        allreduce.give_map(biga)
        allreduce.wait_ended(biga)
    say()
    show(biga, "logs", allreduce.HOSTS[0])
    said = [biga.biga("logs", name) for name in allreduce.HOSTS]
    tell_ranks(said)
    show(biga, "delete", "job", allreduce.JOB)
    with Progress("Until nothing of it is left"):
        biga.wait_gone(allreduce.HOSTS + allreduce.XPUS)
    say()


def tell_ranks(said):
    """Whether all of them had right sums."""
    for n, text in enumerate(said):
        if not (allreduce.sums(text) or ()) == (n, len(said), SUMS):
            raise RuntimeError(f"rank {n} has no right sums: {text}")
    say(f"All {len(said)} ranks had right sums, {SUMS} each.  Workers and "
        "ranks share this machine's")
    say("processors here: how the figures are read is in "
        "deploy/examples/allreduce.")
    say()


def sums_on_loopback():
    with tempfile.TemporaryDirectory() as folder, \
            Progress("A sum that workers take off ranks, as processes on "
                     "loopback"):
        said = allreduce.loopback(folder, allreduce.PAIRS)
    say()
    for line in said[0].rstrip().splitlines():
        say("  " + line)
    say()
    tell_ranks(said)


def demo(rack, biga):
    show(biga, "apply", EXAMPLE)
    with Progress("Its pods start"):
        biga.wait_state(JOB + ("metrics",), "running")
    say()
    show(biga, "ps")
    say("What an xPU pod of the job wrote, on its card:")
    say()
    show(biga, "logs", "ring-0-xpu")
    tell_fault(rack, biga)
    show(biga, "ps")
    show(biga, "delete", "job", "ring")
    with Progress("Until nothing of it is left on any card"):
        biga.wait_gone(JOB)
    say()
    tell_sums(biga)
    say("The same under a real kubelet, with kubectl: make node-up")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cards", type=int, default=allreduce.PAIRS,
                        choices=range(allreduce.PAIRS, len(cards.PCI) + 1),
                        help="how many (default: %(default)s)")
    n = parser.parse_args().cards
    os.chdir(cards.ROOT)
    why = cards.lacking()
    if why:
        say(f"Real cards are not shown: {why}.")
        say()
        sums_on_loopback()
        return 0
    cards.own_network()
    with cards.Rack(n) as rack:
        with Progress(f"Real cards: a host and {n} cards start, each a "
                      "containerd of its own"):
            rack.start(images=("biga-card", "busybox", "allreduce"))
            rack.join_cards()
        biga = node.Node(rack)
        try:
            with Progress(f"And Biga on them, until {n} cards can be chosen"):
                biga.start()
            say()
            demo(rack, biga)
        finally:
            biga.stop()
    return 0


try:
    sys.exit(main())
except (RuntimeError, TimeoutError, AssertionError) as error:
    sys.exit(f"demo on cards: {error}")
except KeyboardInterrupt:
    sys.exit(130)
