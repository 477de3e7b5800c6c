#!/usr/bin/env python3
"""Logs of pods on a card: all of a large one, byte for byte, and that nobody
waits for who reads one.
"""
import hashlib
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import fleet  # noqa: E402
from check import Checks  # noqa: E402
from node import Node, service  # noqa: E402
from proc import HANGS, Ended, wait_for  # noqa: E402

LINES = 750000  # 72 MiB
LINE = "%09d what a pod has to say, which is about as long as lines of " \
    "logs are, and a bit longer"


def writer():
    """A pod that writes them, and then a last word."""
    return service("writer", args=("sh", "-c", f"""
awk 'BEGIN {{ for (i = 0; i < {LINES}; i++) printf "{LINE}\\n", i }}'
echo done >/ended; sleep 100000"""))


def wanted():
    whole = hashlib.sha256()
    for i in range(0, LINES, 1000):
        whole.update("".join(LINE % n + "\n"
                             for n in range(i, i + 1000)).encode())
    return whole.hexdigest()


def last_line(node):
    """Whether its log, as the card's containerd wrote it, has that."""
    card, uid = node.rack.cards[0], node.pods()["writer"]["uid"]
    found = [f for f in card.files()
             if f.startswith(f"pods/{uid}/logs/") and "." in f]
    assert len(found) == 1, card.files()
    with open(os.path.join(card.store(), found[0]), "rb") as f:
        f.seek(-min(1000, f.seek(0, os.SEEK_END)), os.SEEK_END)
        return f.read().endswith((LINE % (LINES - 1) + "\n").encode())


def start_logs(node):
    return subprocess.Popen(
        [fleet.program("biga"), "logs", "writer", "--limit-bytes",
         str(1 << 30)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, **node.env()})


AWAY = "does not answer"  # of a card that is lost for a moment


def read_logs(node):
    """(exit status, how many bytes, their hash, what was complained of)"""
    whole, size = hashlib.sha256(), 0
    with start_logs(node) as logs:
        while piece := logs.stdout.read(1 << 20):
            whole.update(piece)
            size += len(piece)
        said = logs.stderr.read().decode()
    return logs.returncode, size, whole.hexdigest(), said


def all_logs(node):
    """The same, of a card that answered all the time."""
    def read():
        got = read_logs(node)
        return got if AWAY not in got[3] else None
    return wait_for("the card answers", read)


def begun_logs(node):
    """The program that reads them, when it has had the first byte."""
    def begun():
        logs = start_logs(node)
        if logs.stdout.read(1):
            return logs
        with logs:
            said = logs.stderr.read().decode()
        if AWAY not in said:
            raise Ended(f"no byte of its log: {said}")
        return None
    return wait_for("the card answers", begun)


def ask(node):
    """Some of its log by the socket."""
    def asked():
        try:
            node.local("GET", "/v1/pods/default/writer/logs?max=100")
        except RuntimeError as error:
            if AWAY not in str(error):
                raise Ended(str(error)) from error
            return False
        return True
    wait_for("the card answers", asked)


def test_logs(t, node):
    node.apply([writer()])
    node.wait_state(["writer"], "running")
    size = len(LINE % 0 + "\n") * LINES
    with t.check("it has written all of it"):
        wait_for("it has ended", lambda: "done" in node.biga(
            "exec", "writer", "--", "busybox", "cat", "/ended", ok=False))
        # what it wrote last may be on its way to the log for a moment more
        wait_for("its log has the last line", lambda: last_line(node))
    with t.check("a log of over 64 MiB is given whole"):
        status, got, text, said = all_logs(node)
        assert size > 64 << 20 and (status, got, said) == (0, size, ""), \
            (status, got, size, said)
        assert text == wanted(), text
    with t.check("nobody waits for a reader that takes nothing"):
        with begun_logs(node) as logs:
            try:
                for _ in range(8):
                    ask(node)
                assert logs.poll() is None, "it has ended"
            finally:
                logs.kill()
    with t.check("and a reader that goes away leaves nothing under way"):
        with begun_logs(node) as logs:
            logs.stdout.close()
            logs.wait(HANGS)
        assert logs.returncode != 0
        for _ in range(8):
            ask(node)


def main():
    cards.require()
    rack = cards.Rack(1, host=False)
    t = Checks(on_failure=rack.tail)
    with rack:
        rack.start()
        node = Node(rack).start()
        try:
            test_logs(t, node)
        finally:
            node.stop()
    t.finish()


main()
