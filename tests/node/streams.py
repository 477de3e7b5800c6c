"""Streams of a pod on a card: many at once, and what ends them."""
import concurrent.futures
import os
import random
import subprocess

from cri import Cri
from pods import WAIT, sh, status_of
from proc import wait_for
from websocket import by_api, by_runtime

MANY, SPDY = 100, 10  # so many at once; so many of them over SPDY
PIECE, PIECES = 32 << 10, 8
ECHO = ("cat", "-u")  # says what it hears


class Kubectl:
    """exec -i by kubectl over SPDY, with the same functions as a
    WebSocket."""

    def __init__(self, r, pod, *argv):
        self.child = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", os.path.join(
                r.c.bin, "kubectl"), "--kubeconfig",
             r.c.path("admin.kubeconfig"), "exec", "-i", pod, "--", *argv],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false"})

    def write(self, data):
        self.child.stdin.write(data)
        self.child.stdin.flush()

    def read(self, size):
        data = self.child.stdout.read(size)
        if len(data) < size:
            raise ConnectionError(f"kubectl ended after {data!r}")
        return data

    def close_input(self):
        self.child.stdin.close()

    def wait(self):
        assert self.child.wait() == 0, self.child.returncode
        self.child.stdout.close()
        return {"status": "Success"}


def echoes(card):
    """How many of these commands run there."""
    n = 0
    for pid in card.members():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                n += f.read() == b"cat\0-u\0"
        except OSError:
            pass  # it has ended
    return n


def echo(kind, *first):
    """A stream to a command that says what it hears; it has begun."""
    stream = kind(*first, *ECHO)
    stream.write(b"hello")
    assert stream.read(5) == b"hello"
    return stream


def talk(stream, seed):
    """Bytes of its own go there and come back."""
    data = random.Random(seed).randbytes(PIECE * PIECES)
    for at in range(0, len(data), PIECE):
        stream.write(data[at:at + PIECE])
        got = stream.read(PIECE)
        assert got == data[at:at + PIECE], f"stream {seed}, byte {at}"
    stream.close_input()
    status = stream.wait()
    assert status["status"] == "Success", status


def test_many(t, r, p, pool):
    name = p.up("many", sh(WAIT))
    card = p.card_of(r.pod(name))
    with t.check(f"{MANY} streams at once, {SPDY} of them over SPDY"):
        # kubectl ends with the thread that starts it
        open_ = [echo(Kubectl, r, name) for _ in range(SPDY)]
        open_ += pool.map(lambda _: echo(by_api, r.c.api, name),
                          range(MANY - SPDY))
        assert echoes(card) == MANY, echoes(card)
    with t.check("each has its own bytes, and ends well"):
        for done in [pool.submit(talk, stream, seed)
                     for seed, stream in enumerate(open_)]:
            done.result()
        wait_for("nothing of them runs", lambda: echoes(card) == 0)
    with t.check("a client that is gone ends what it ran"):
        for stream in [echo(by_api, r.c.api, name) for _ in range(3)]:
            stream.cut()
        wait_for("nothing of them runs", lambda: echoes(card) == 0)
    return name, card


def test_runtime(t, r, name):
    container = status_of(r.pod(name))["containerID"].partition("//")[2]
    with t.check("a runtime's client over SPDY, and over WebSocket"):
        said = r.crictl("exec", "--transport", "spdy", container, "seq", "9")
        assert said.split() == [str(n) for n in range(1, 10)], said
        # crictl's own wants v5.channel.k8s.io, unknown to containerd 1.6
        stream = by_runtime(Cri(unix=r.way.socket), container, "head", "-c",
                            str(PIECE * PIECES))
        data = os.urandom(PIECE * PIECES)
        stream.write(data)
        assert stream.read(len(data)) == data
        assert stream.wait()["status"] == "Success"


def said(stream):
    """What it says at its end."""
    status = stream.wait()
    assert status, "it ended without a word"
    return status["message"]


def test_cut(t, r, p, name, card):
    with t.check("when biga-cri stops, streams end with a word"):
        stream = echo(by_api, r.c.api, name)
        r.way.process.stop()
        word = said(stream)
        r.way.start()
        assert "biga-cri" in word, word
    with t.check("when it is killed they end, too, and others begin"):
        # the kubelet dials what was away less and less often
        stream = wait_for("one", lambda: echo(by_api, r.c.api, name))
        r.way.process.kill()
        stream.wait()
        r.way.start()
        stream = wait_for("another", lambda: echo(by_api, r.c.api, name))
        wait_for("the one of before is gone", lambda: echoes(card) == 1)
    with t.check("when the card is silent they end with a word"):
        card.silent(True)
        try:
            word = said(stream)
        finally:
            card.silent(False)
        assert word.endswith(f"{card.id} does not answer"), word
        wait_for("it is back", lambda: echo(by_api, r.c.api, name).cut() or 1)
    with t.check("when the pod goes they end"):
        stream = echo(by_api, r.c.api, name)
        p.gone(name, "--grace-period=1")
        stream.wait()
        assert echoes(card) == 0


def test_streams(t, r, p):
    with concurrent.futures.ThreadPoolExecutor(MANY) as pool:
        name, card = test_many(t, r, p, pool)
    test_runtime(t, r, name)
    test_cut(t, r, p, name, card)
