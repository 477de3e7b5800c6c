"""Logs of a card copied to folders of a test, as biga-cri does, by
build/bench/bench_follow.
"""
import os
import subprocess

import cards
from proc import wait_for

STORE = "/var/lib/biga"  # on cards


class Follow:
    """The program; it may be killed, and started again."""

    def __init__(self, rack, card, helper, step=1 << 40, build=cards.BUILD):
        self.rack, self.card, self.helper, self.step = rack, card, helper, step
        self.program = os.path.join(build, "bench", "bench_follow")
        self.pods = os.path.join(rack.folder, "pods")
        self.states = os.path.join(rack.folder, "states")
        self.process, self.added = None, {}

    def start(self):
        os.makedirs(self.pods, exist_ok=True)
        pki = self.rack.pki
        self.process = subprocess.Popen(
            [self.program, self.card.endpoint, pki("ca.crt"),
             pki(f"{cards.NODE}.crt"), pki(f"{cards.NODE}.key"), self.helper,
             self.pods, self.states, str(self.step),
             os.environ.get("BIGA_ROUND", "0")], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for key, remote in self.added.items():
            self.add(key, remote)
        return self

    def kill(self):
        self.process.kill()
        self.wait()

    def stop(self):
        self.process.stdin.close()
        self.wait()

    def wait(self):
        self.process.wait()
        self.process.stdout.close()

    def say(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert answer.startswith("ok"), f"{words}: {answer}"
        return answer[3:]

    def path(self, key):
        """Of the kubelet's file."""
        return os.path.join(self.pods, "pod", key)

    def add(self, key, remote):
        os.makedirs(os.path.dirname(self.path(key)), exist_ok=True)
        self.added[key] = remote
        self.say("add", key, remote, self.path(key))

    def rotate(self, key):
        """As the kubelet does it."""
        n = 0
        while os.path.exists(f"{self.path(key)}.{n:06d}"):
            n += 1
        os.rename(self.path(key), f"{self.path(key)}.{n:06d}")
        self.say("reopen", key)

    def count(self):
        """(bytes, rounds, faults, lost)"""
        return tuple(int(n) for n in self.say("count").split())

    def files(self, key):
        """The oldest is the first."""
        folder = os.path.dirname(self.path(key))
        rotated = sorted(f for f in os.listdir(folder)
                         if f.startswith(key + "."))
        return [os.path.join(folder, f) for f in rotated] + [self.path(key)]

    def text(self, key):
        whole = b""
        for path in self.files(key):
            with open(path, "rb") as f:
                whole += f.read()
        return whole


def run_helper(card, attempt=0):
    """A container of biga-card there; its id."""
    made = pod(card, "helper", attempt)
    return card.cri().run_container(
        made, "helper", f"docker.io/library/biga-card:{cards.version()}",
        ("wait",), [(STORE, STORE)])


def pod(card, name, attempt=0):
    """A sandbox, with the folder of its logs."""
    os.makedirs(card.seen(log_path(name)[1:]), exist_ok=True)
    return card.cri().run_pod(name, attempt=attempt)


def log_path(name, *file):
    return os.path.join(STORE, "log", name, *file)


def wait_exited(card, container):
    wait_for("it has ended", lambda: any(
        c["id"] == container and c["state"] == 2
        for c in card.local().containers()))
