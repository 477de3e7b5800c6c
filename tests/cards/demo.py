#!/usr/bin/env python3
"""Show Biga running pods on real cards: containerds of their own, each in a
network of its own.  One card loses its power under a running job, and the
story of its pair is told as it happens.  Takes half a minute; nothing of it
is left.
"""
import argparse
import os
import sys
import textwrap
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import node  # noqa: E402
from proc import wait_for  # noqa: E402

EXAMPLE = os.path.join("deploy", "examples", "embedded.yaml")
JOB = ("ring-0", "ring-0-xpu", "ring-1", "ring-1-xpu")
VICTIM = "ring-1-xpu"


def say(text=""):
    print(text, flush=True)


def show(biga, *args):
    """A command and what it prints, as on a terminal."""
    say("  $ biga " + " ".join(args))
    for line in biga.biga(*args, ok=False).rstrip().splitlines():
        say("  " + line.rstrip())
    say()


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


def demo(rack, biga):
    show(biga, "apply", EXAMPLE)
    biga.wait_state(JOB + ("metrics",), "running")
    show(biga, "ps")
    say("What an xPU pod of the job wrote, on its card:")
    say()
    show(biga, "logs", "ring-0-xpu")
    tell_fault(rack, biga)
    show(biga, "ps")
    show(biga, "delete", "job", "ring")
    biga.wait_gone(JOB)
    say("Deleted: nothing of the job is left on any card.")
    say()
    say("The same under a real kubelet, with kubectl: make node-up")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cards", type=int, default=2,
                        choices=range(2, len(cards.PCI) + 1),
                        help="how many (default: %(default)s)")
    n = parser.parse_args().cards
    os.chdir(cards.ROOT)
    why = cards.lacking()
    if why:
        say(f"Real cards are not shown, only the placement: {why}.")
        return 0
    say(f"Real cards: starting a host and {n} cards, each a containerd of "
        "its own, …")
    with cards.Rack(n) as rack:
        rack.start()
        biga = node.Node(rack)
        try:
            biga.start()
            say(f"… and Biga on them: {n} cards can be chosen.")
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
