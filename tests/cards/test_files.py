#!/usr/bin/env python3
"""Files and folders of pods on cards: what is there, who can see it, and that
nothing of it keeps a pod from ending.
"""
import base64
import os
import stat
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
from check import Checks, Skip  # noqa: E402
from node import Node, service  # noqa: E402
from proc import wait_for  # noqa: E402

WORD = "nobody-may-see-this-0123456789"
NOBODY = 65534


def secret(name, **data):
    return {"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name, "namespace": "default"},
            "data": {k: base64.b64encode(v.encode()).decode()
                     for k, v in data.items()}}


def volumes_pod(name):
    """A user without rights, who is to read the one and write the others."""
    script = ("cat /s/deep/word; touch /e/x /m/x && df -T /m | tail -1; "
              "stat -c %a /e /m /s; sleep 100000")
    return service(
        name, args=("sh", "-c", script),
        container={
            "securityContext": {"runAsUser": NOBODY, "runAsGroup": NOBODY},
            "volumeMounts": [{"name": "s", "mountPath": "/s"},
                             {"name": "e", "mountPath": "/e"},
                             {"name": "m", "mountPath": "/m"}]},
        volumes=[
            {"name": "s", "secret": {"secretName": "word", "items": [
                {"key": "word", "path": "deep/word"},
                {"key": "more", "path": "deep/more"}]}},
            {"name": "e", "emptyDir": {}},
            {"name": "m", "emptyDir": {"medium": "Memory"}}])


class Spy(threading.Thread):
    """Reads the arguments of all processes, as any user may."""

    def __init__(self):
        super().__init__(daemon=True)
        hidden = base64.b64encode(WORD.encode())
        self.words, self.seen, self.n = (WORD.encode(), hidden), [], 0
        self.ended = False

    def run(self):
        known = set()
        while not self.ended:
            there = set(filter(str.isdigit, os.listdir("/proc")))
            for pid in there - known:
                try:
                    with open(f"/proc/{pid}/cmdline", "rb") as f:
                        text = f.read()
                except OSError:
                    continue
                if b"runc" not in text:  # that one becomes another
                    known.add(pid)
                self.n += text.startswith(b"/biga-card\0files")
                if any(word in text for word in self.words):
                    self.seen.append(text[:200])
            known &= there


def as_nobody(card, *argv):
    """Whether another user of the card's own system can do that."""
    return subprocess.run(
        [*card.enter(), "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
         "--clear-groups", *argv], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, check=False).returncode == 0


def own(card, *parts):
    """A path of the card's, from here."""
    return os.path.join("/proc", str(card.init.pid), "root", *parts)


def test_files(t, node):
    spy = Spy()
    spy.start()
    # as much as there may be
    node.apply([secret("word", word=WORD, more=WORD * 34950),
                volumes_pod("v")])
    node.wait_state(["v"], "running")
    spy.ended = True
    spy.join()
    card, uid = node.place_of("v"), node.pods()["v"]["uid"]
    with t.check("a user without rights has what the pod asked for"):
        def logged():
            said = node.biga("logs", "v").split("\n")
            assert said[0].startswith(WORD), said
            return said[-2:] == ["755", ""] and said
        said = "\n".join(wait_for("it has spoken", logged))
        assert "tmpfs" in said and "777\n777\n755" in said, said
    with t.check("arguments on the card do not tell what is in files"):
        assert not spy.seen, spy.seen
        if not spy.n:
            t.note("nobody was quick enough to read them")
    with t.check("nor does what its runtime keeps, and logs"):
        for c in card.local().containers():
            assert WORD not in card.ctr("containers", "info", c["id"])
        with open(card.containerd.log, "rb") as f:
            log = f.read()
        assert b"/biga-card files" in log, "it does not log commands"
        assert not any(word in log for word in spy.words)
    for top in (f"var/lib/biga/pods/{uid}", f"dev/shm/biga/{uid}"):
        with t.check(f"other users of the card do not get below /{top[:12]}"):
            mode = os.stat(own(card, top)).st_mode
            assert stat.S_IMODE(mode) == 0o700, oct(mode)
            assert as_nobody(card, "ls", "/var/lib/biga/pods")
            assert not as_nobody(card, "ls", "/" + top)
    with t.check("nothing of them is left at the end"):
        node.delete("v")
        node.wait_gone(["v"])
        for top in (f"var/lib/biga/pods/{uid}", f"dev/shm/biga/{uid}"):
            assert not os.path.exists(own(card, top)), top


def test_left(t, node):
    node.apply([volumes_pod("w")])
    node.wait_state(["w"], "running")
    card, uid = node.place_of("w"), node.pods()["w"]["uid"]
    kept = own(card, f"var/lib/biga/pods/{uid}/volumes/e/x")
    wait_for("it wrote there", lambda: os.path.exists(kept))
    immutable = True
    with t.check("a folder that cannot be removed is left, with words"):
        try:
            cards.run("chattr", "+i", kept)
        except (OSError, RuntimeError) as error:
            immutable = False
            raise Skip(f"no file here is immutable: {error}") from error
        node.delete("w")

        def told():
            pod = node.pods().get("w", {})
            return pod.get("reason") == "FilesLeft" and pod["message"]
        try:
            message = wait_for("it says why", told)
            assert "'x' in it" in message and uid in message, message
            node.wait_gone(["w"])
            assert os.path.exists(kept)
            wait_for("it is logged", lambda: "event=act-files-left" in
                     node.advertiser.text())
        finally:
            cards.run("chattr", "-i", kept)
    with t.check("and goes at the advertiser's next start"):
        if not immutable:
            raise Skip("no folder was left")
        node.advertiser.stop()
        node.advertiser.start()
        top = own(card, f"var/lib/biga/pods/{uid}")
        wait_for("it is gone", lambda: not os.path.exists(top))
        wait_for("it says so", lambda: "event=act-files-removed" in
                 node.advertiser.text())


def main():
    cards.require()
    rack = cards.Rack(1)
    usual = rack.cards[0].configuration
    rack.cards[0].configuration = lambda: \
        usual() + '\n[debug]\n  level = "debug"\n'
    t = Checks(on_failure=rack.tail)
    with rack:
        rack.start()
        node = Node(rack).start()
        try:
            test_files(t, node)
            test_left(t, node)
        finally:
            node.stop()
    t.finish()


main()
