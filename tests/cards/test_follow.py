#!/usr/bin/env python3
"""Logs of containers on a card, copied into the kubelet's files: byte for
byte what the card has, whatever was killed in between, rotated meanwhile,
and freed on the card.
"""
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import follow  # noqa: E402
from check import Checks  # noqa: E402
from proc import wait_for  # noqa: E402

LINE = "%09d what a pod has to say, which is about as long as lines of " \
    "logs are, and a bit longer"
LINES = 400000  # 55 MB with their heads
SHORT = 200000
SEED = int(os.environ.get("BIGA_SEED", "1"))


def writer(card, name, lines, pause=True):
    """A container that writes so many, in parts; its id.  With pause it
    waits a moment between parts, so that others come to do something."""
    part = lines // 20
    return card.cri().run_container(
        follow.pod(card, name), "main", "docker.io/library/busybox:static",
        ("sh", "-c", f"""
for part in $(seq 0 19); do
    awk -v p=$part 'BEGIN {{ for (i = p * {part}; i < (p + 1) * {part}; i++)
                             printf "{LINE}\\n", i }}'
    {"sleep 0.3" if pause else ":"}
done; printf 'a half line'"""))


def on_card(card, name):
    with open(card.seen(follow.log_path(name, "main.log")[1:]), "rb") as f:
        return f.read()


def texts(whole):
    """What the container wrote, of whole lines and half ones."""
    return [line.split(b" ", 3)[3] for line in whole.splitlines()]


def same(one, other):
    if one == other:
        return True
    at = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b),
              min(len(one), len(other)))
    raise AssertionError(f"{len(one)} bytes, not {len(other)}; byte {at}: "
                         f"{one[at - 60:at + 60]!r}, "
                         f"not {other[at - 60:at + 60]!r}")


class Faults:
    """What may happen while logs are copied."""

    def __init__(self, card, copier, keys):
        self.card, self.copier, self.keys = card, copier, keys
        self.random = random.Random(SEED)
        self.attempt = 0

    def rotate(self):
        for key in self.keys:
            self.copier.rotate(key)

    def kill_router(self):
        self.copier.kill()
        self.copier.start()

    def kill_containerd(self):
        self.card.restart()
        self.card.wait_up()

    def kill_helper(self):
        """It comes again as another container."""
        cri = self.card.cri()
        old = next(c for c in cri.containers()
                   if c["id"] == self.copier.helper)
        cri.remove_pod(old["sandbox"])
        self.attempt += 1
        self.copier.helper = follow.run_helper(self.card, self.attempt)
        self.copier.say("helper", self.copier.helper)

    def one(self):
        self.random.choice((self.rotate, self.rotate, self.kill_router,
                            self.kill_router, self.kill_containerd,
                            self.kill_helper))()


def test_faults(t, card, copier):
    copier.add("0.log", follow.log_path("a", "main.log"))
    copier.add("1.log", follow.log_path("b", "main.log"))
    big = writer(card, "a", LINES)
    small = writer(card, "b", 2000)
    faults = Faults(card, copier, ("0.log", "1.log"))
    goal = 0
    while not all(c["state"] == 2 for c in card.local().containers()
                  if c["id"] in (big, small)):
        goal += 3 << 20
        wait_for("more comes", lambda: sum(
            os.path.getsize(f) for f in copier.files("0.log")) > goal or any(
            c["id"] == big and c["state"] == 2
            for c in card.local().containers()))
        faults.one()
    with t.check("what was killed or rotated cost no byte"):
        copier.say("finish", "0.log")
        copier.say("finish", "1.log")
        same(copier.text("0.log"), on_card(card, "a"))
        same(copier.text("1.log"), on_card(card, "b"))
        assert copier.count()[3] == 0
    with t.check("each file has whole lines alone"):
        for path in copier.files("0.log")[:-1]:
            with open(path, "rb") as f:
                assert f.read()[-1:] in (b"\n", b""), path


def test_freed(t, card, copier):
    copier.step = 4 << 20
    copier.kill()
    copier.start()
    copier.add("2.log", follow.log_path("c", "main.log"))
    made = writer(card, "c", SHORT, pause=False)
    follow.wait_exited(card, made)

    def rest():
        st = os.stat(card.seen(follow.log_path("c", "main.log")[1:]))
        assert st.st_blocks * 512 < st.st_size / 2, st
        return True
    with t.check("what is freed on the card was copied"):
        # a round copies, and the next one frees that; none is after the end
        wait_for("the card has but the rest", rest)
        copier.say("finish", "2.log")
        wanted = [(LINE % i).encode() for i in range(SHORT)] + [b"a half line"]
        assert texts(copier.text("2.log")) == wanted
    with t.check("and the card's disk has but the rest"):
        rest()


def main():
    cards.require()
    rack = cards.Rack(1, host=False)
    t = Checks(on_failure=rack.tail)
    with rack:
        rack.start()
        card = rack.cards[0]
        copier = follow.Follow(rack, card, follow.run_helper(card))
        copier.start()
        try:
            test_faults(t, card, copier)
            test_freed(t, card, copier)
        finally:
            copier.kill()
    t.finish()


main()
