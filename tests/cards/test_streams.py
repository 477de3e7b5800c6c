#!/usr/bin/env python3
"""Streams of pods from another host, which has HTTPS to the extender and a
token, and nothing else: commands with input, output and a terminal, logs and
ports, of pods on a card and on the host; who may not have them; what becomes of
them when their pod ends or their card dies; and of a reader that takes nothing.
"""
import os
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
from check import Checks  # noqa: E402
from node import Node, pair, service  # noqa: E402
from proc import wait_for  # noqa: E402
from streams import (  # noqa: E402
    END, RESIZE, STDIN, STDOUT, Door, Refused, exit_code, ran)

# what is served has no end: a second after one side has ended containerd cuts
# off the other
SERVES = """
i=0; while [ $i -lt 5 ]; do echo line $i; i=$((i+1)); done
{ busybox echo served; exec busybox sleep 100000; } | busybox nc -l -p 8080"""
MANY = 20
TOKENS = {"all": "*:default", "reads": "log:default", "other": "*:elsewhere",
          "none": ""}


class SecureNode(Node):
    """With TLS and certificates between its programs, and tokens."""

    def __init__(self, rack):
        super().__init__(rack)
        pki = os.path.join(rack.folder, "extender-pki")
        cards.certs("ca", pki)
        cards.certs("server", pki, "extender", "--san", "127.0.0.1",
                    "--san", "localhost")
        cards.certs("client", pki, "node", "--cn",
                    "system:node:" + cards.NODE)
        self.ca = os.path.join(pki, "ca.crt")
        self.tokens = {name: f"{name}-{os.urandom(8).hex()}"
                       for name in TOKENS}
        file = os.path.join(rack.folder, "tokens")
        with open(file, "w", encoding="utf-8") as f:
            for name, rights in TOKENS.items():
                f.write(",".join(filter(None, (self.tokens[name], name,
                                               rights))) + "\n")
        with open(file + ".all", "w", encoding="utf-8") as f:
            f.write(self.tokens["all"])
        self.extender.argv += [
            "--tls-cert", os.path.join(pki, "extender.crt"),
            "--tls-key", os.path.join(pki, "extender.key"),
            "--client-ca", self.ca, "--read-tokens", file]
        argv = self.advertiser.argv
        # a name, which may have addresses where nobody listens, too
        argv[argv.index("--server") + 1] = self.extender.url(
            "publish", True).replace("127.0.0.1", "localhost")
        argv += ["--ca", self.ca, "--cert", os.path.join(pki, "node.crt"),
                 "--key", os.path.join(pki, "node.key")]
        self.token_file = file + ".all"

    def start(self):
        self.extender.start()
        self.extender.wait_up(ca=self.ca, token=self.tokens["all"])
        self.advertiser.start()
        self.wait_capacity(len(self.rack.cards))
        return self

    def env(self):
        return {**super().env(), "BIGA_SERVER": self.extender.url("read", True),
                "BIGA_CA": self.ca, "BIGA_TOKEN_FILE": self.token_file}

    def call(self, method, path, body=None):
        return self.extender.api(ca=self.ca, token=self.tokens["all"]).call(
            method, path, body)

    def door(self, name):
        return Door(self.extender.url("read", True), self.ca,
                    self.tokens.get(name))


def test_commands(t, door, name):
    sh = (name, "busybox", "sh", "-c")
    with t.check(f"{name}: a command's output and exit code"):
        got = ran(door.exec(*sh, "echo out; echo err >&2; exit 7"))
        assert got == (7, b"out\n", b"err\n"), got
        got = ran(door.exec(*sh, "exit 0", protocol="v4.channel.k8s.io"))
        assert got == (0, b"", b""), got
    with t.check(f"{name}: its input, of any size, and the end of it"):
        text = os.urandom(3 << 20)
        code, out, _ = ran(door.exec(name, "busybox", "cat", stdin=True),
                           text)
        assert (code, len(out), out == text) == (0, len(text), True), \
            (code, len(out))
    with t.check(f"{name}: a terminal, and its size"):
        # sizes and input come by streams of their own, in any order
        ws = door.exec(*sh, "read a; echo got $a; "
                       "until [ \"$(busybox stty size)\" = '31 97' ]; do "
                       "busybox usleep 20000; done; busybox stty size",
                       stdin=True, stderr=False, tty=True)
        ws.send(RESIZE, b'{"Width":97,"Height":31}')
        ws.send(STDIN, b"hello\n")
        text = ws.until(STDOUT, b"31 97")
        assert b"got hello\r\n" in text, text
        assert exit_code(ws.channels()[END]) == 0


def test_refusals(t, node, door):
    sh = {"command": ["sh"], "stdout": True}

    def refused(status, text, who, kind, name, **more):
        try:
            stream = who.log(name, **more) if kind == "log" \
                else who.open(kind, name, **more)
        except Refused as error:
            assert error.status == status and text in error.text, error
        else:
            stream.close()
            raise AssertionError(f"{kind} {name} {more} is given")

    with t.check("what cannot be is said at once, and why"):
        refused(404, "nobody", door, "exec", "nobody", **sh)
        refused(404, 'no container', door, "exec", "web",
                **{**sh, "container": "x"})
        refused(404, "was not begun before", door, "log", "web",
                previous=True)
        refused(400, "command", door, "exec", "web", stdout=True)
        refused(400, "sinceTime", door, "log", "web", sinceTime="then")
    with t.check("and who may not have it is told so"):
        refused(401, "", node.door("nobody"), "exec", "web", **sh)
        for who in ("none", "other", "reads"):
            refused(403, "", node.door(who), "exec", "web", **sh)
            refused(403, "", node.door(who), "portforward", "web", ports=80,
                    protocol="v4.channel.k8s.io")
        refused(403, "", node.door("other"), "log", "web")
        assert node.door("reads").text("web", tailLines=1) == "line 4\n"
    with t.check("a command that is not there ends with the runtime's word"):
        got = ran(door.exec("web", "no-such-command"))
        assert "no-such-command" in str(got[0]), got


def test_logs(t, door):
    lines = [f"line {i}\n" for i in range(5)]
    with t.check("a log: all, its last lines, with times, so many bytes"):
        wait_for("it has begun", lambda: door.text("web") == "".join(lines))
        assert door.text("web", tailLines=2) == "".join(lines[-2:])
        assert door.text("web", limitBytes=9) == "line 0\nli"
        stamped = door.text("web", timestamps=True).splitlines(True)
        assert [x.split(" ", 1)[1] for x in stamped] == lines, stamped
        since = stamped[3].split(" ")[0]
        assert door.text("web", sinceTime=since) == "".join(lines[3:])
        assert door.text("web", sinceSeconds=3600) == "".join(lines)
        assert door.text("web", sinceTime="2100-01-01T00:00:00Z") == ""


def test_followed(t, node, door):
    node.apply([service("talker", cores=1, args=(
        "busybox", "sh", "-c",
        "echo one; while [ ! -e /go ]; do busybox usleep 20000; done; "
        "echo two; sleep 100000"))])
    node.wait_state(["talker"], "running")
    with t.check("a log is followed, to the end of its pod"):
        log, text = door.log("talker", follow=True), b""
        while b"one\n" not in text:
            text += log.recv(1000)
        assert ran(door.exec("talker", "busybox", "touch", "/go"))[0] == 0
        while b"two\n" not in text:
            text += log.recv(1000)
        node.delete("talker")
        text += log.rest()
        assert text == b"one\ntwo\n", text


def test_ports(t, door):
    with t.check("a port of a pod"):
        ws = door.forward("web", 8080)
        begun = sorted([ws.recv(), ws.recv()])
        assert begun == [(0, b"\x90\x1f"), (1, b"\x90\x1f")], begun
        assert ws.until(0, b"\n") == b"served\n"
        ws.send(0, b"thanks\n")
        ws.close()
        wait_for("it came", lambda: "thanks" in door.text("web"))
    with t.check("and one where nobody listens"):
        text = door.forward("web", 81).until(1, b"refused")
        assert b"81" in text, text


def test_many(t, door):
    with t.check(f"{MANY} at once, and a reader of one that takes nothing"):
        slow = door.exec("web", "busybox", "cat", "/dev/zero")
        got = {}

        def one(i):
            got[i] = ran(door.exec("web", "busybox", "cat", stdin=True),
                         b"%d" % i * 10000)
        threads = [threading.Thread(target=one, args=(i,))
                   for i in range(MANY)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert got == {i: (0, b"%d" % i * 10000, b"")
                       for i in range(MANY)}, got.keys()
        slow.close()


def test_ends(t, node, door):
    with t.check("a pod that ends ends its streams"):
        ws = door.exec("p-0", "sleep", "100000")
        node.delete("p-0")
        status = ws.channels()[END]
        assert b"Failure" in status, status
    with t.check("a card that dies ends its streams, and says so"):
        card = node.rack.cards[0]
        ws = door.exec("web", "sleep", "100000")
        log = door.log("web", follow=True)
        card.freeze()
        status = ws.channels()[END]
        assert b"does not answer" in status, status
        text = log.rest(cut=True)
        assert b"biga: the log ends here: card" in text, text
        try:
            door.exec("web", "true")
        except Refused as error:
            assert error.status == 503, error
            assert "does not answer" in error.text, error
        else:
            raise AssertionError("it is given")
        card.thaw()
    with t.check("an advertiser that stops ends them, and says so"):
        def begun():
            try:
                return door.exec("web", "sleep", "100000")
            except Refused as error:
                assert error.status == 503, error
                return None
        ws = wait_for("the card answers again", begun)
        node.advertiser.stop()
        status = ws.channels()[END]
        assert b"is stopping" in status, status


def main():
    cards.require()
    with cards.Rack(1) as rack:
        t = Checks(on_failure=rack.tail)
        rack.start()
        node = SecureNode(rack).start()
        door = node.door("all")
        try:
            node.apply([service("web", cores=3,
                                args=("busybox", "sh", "-c", SERVES)),
                        *pair("p")])
            node.wait_state(["web", "p-0", "p-0-xpu"], "running")
            test_commands(t, door, "web")
            test_commands(t, door, "p-0")
            test_refusals(t, node, door)
            test_logs(t, door)
            test_followed(t, node, door)
            test_ports(t, door)
            test_many(t, door)
            test_ends(t, node, door)
        finally:
            node.stop()
    t.finish()


main()
