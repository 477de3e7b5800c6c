#!/usr/bin/env python3
"""Streams of pods as the node brings them to an extender: commands with input,
output and a terminal, logs, ports, from a card and from the host; what becomes
of them when their pod ends or their card dies, and of a reader that takes
nothing.  A stand-in hands out the orders; runtimes and cards are real.
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
    END, RESIZE, STDIN, STDOUT, Front, exit_code, ran)

SERVES = """
i=0; while [ $i -lt 5 ]; do echo line $i; i=$((i+1)); done
while :; do busybox echo served | busybox nc -l -p 8080; done"""
MANY = 20


def test_commands(t, front, name):
    sh = (name, "busybox", "sh", "-c")
    with t.check(f"{name}: a command's output and exit code"):
        got = ran(front.exec(*sh, "echo out; echo err >&2; exit 7"))
        assert got == (7, b"out\n", b"err\n"), got
        got = ran(front.exec(*sh, "true"))
        assert got == (0, b"", b""), got
    with t.check(f"{name}: its input, of any size, and the end of it"):
        text = os.urandom(3 << 20)
        code, out, _ = ran(front.exec(name, "busybox", "cat", stdin=True),
                           text)
        assert (code, len(out), out == text) == (0, len(text), True), \
            (code, len(out))
    with t.check(f"{name}: a terminal, and its size"):
        ws = front.exec(*sh, "read a; echo got $a; busybox stty size",
                        stdin=True, stderr=False, tty=True)
        ws.send(RESIZE, b'{"Width":97,"Height":31}')
        ws.send(STDIN, b"hello\n")
        text = ws.until(STDOUT, b"31 97")
        assert b"got hello\r\n" in text, text
        assert exit_code(ws.channels()[END]) == 0


def test_refusals(t, front):
    def refused(kind, name, **more):
        line, sock, _ = front.order(kind, name, **more)
        sock.close()
        return line["status"], line.get("error", "")

    with t.check("what cannot be is said at once, and why"):
        sh = {"command": ["sh"], "stdout": True}
        for status, text, kind, name, more in [
                (404, "no pod default/nobody", "exec", "nobody", sh),
                (404, 'no container "x"', "exec", "web",
                 {**sh, "container": "x"}),
                (404, "uid other is not here", "exec", "web",
                 {**sh, "uid": "other"}),
                (404, "uid other is not here", "log", "web",
                 {"uid": "other"}),
                (404, "was not begun before", "log", "web",
                 {"previous": True}),
                (400, "command: is empty", "exec", "web", {"stdout": True}),
                (400, "sinceTime", "log", "web", {"sinceTime": "then"})]:
            got = refused(kind, name, **more)
            assert got[0] == status and text in got[1], (got, status, text)
    with t.check("a command that is not there ends with the runtime's word"):
        got = ran(front.exec("web", "no-such-command"))
        assert "no-such-command" in str(got[0]), got


def test_logs(t, front):
    lines = [f"line {i}\n" for i in range(5)]
    with t.check("a log: all, its last lines, with times, so many bytes"):
        wait_for("it has begun", lambda: front.log("web") == "".join(lines))
        assert front.log("web", tailLines=2) == "".join(lines[-2:])
        assert front.log("web", limitBytes=9) == "line 0\nli"
        stamped = front.log("web", timestamps=True).splitlines(True)
        assert [x.split(" ", 1)[1] for x in stamped] == lines, stamped
        since = stamped[3].split(" ")[0]
        assert front.log("web", sinceTime=since) == "".join(lines[3:])
        assert front.log("web", sinceSeconds=3600) == "".join(lines)
        assert front.log("web", sinceTime="2100-01-01T00:00:00Z") == ""


def test_followed(t, node, front):
    node.apply([service("talker", cores=1, args=(
        "busybox", "sh", "-c",
        "echo one; while [ ! -e /go ]; do busybox usleep 20000; done; "
        "echo two; sleep 100000"))])
    node.wait_state(["talker"], "running")
    with t.check("a log is followed, to the end of its pod"):
        line, sock, text = front.order("log", "talker", follow=True)
        assert line == {"status": 200}, line
        while b"one\n" not in text:
            text += sock.recv(1000)
        assert ran(front.exec("talker", "busybox", "touch", "/go"))[0] == 0
        while b"two\n" not in text:
            text += sock.recv(1000)
        node.delete("talker")
        while more := sock.recv(1000):
            text += more
        assert text == b"one\ntwo\n", text


def test_ports(t, front):
    with t.check("a port of a pod"):
        ws = front.open("portforward", "web", ports=[8080])
        begun = sorted([ws.recv(), ws.recv()])
        assert begun == [(0, b"\x90\x1f"), (1, b"\x90\x1f")], begun
        assert ws.until(0, b"\n") == b"served\n"
        ws.send(0, b"thanks\n")
        ws.close()
        wait_for("it came", lambda: "thanks" in front.log("web"))
    with t.check("and one where nobody listens"):
        ws = front.open("portforward", "web", ports=[81])
        text = ws.until(1, b"refused")
        assert b"81" in text, text


def test_many(t, front):
    with t.check(f"{MANY} at once, and a reader of one that takes nothing"):
        slow = front.exec("web", "busybox", "cat", "/dev/zero")
        got = {}

        def one(i):
            got[i] = ran(front.exec("web", "busybox", "cat", stdin=True),
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


def test_ends(t, node, front):
    with t.check("a pod that ends ends its streams"):
        ws = front.exec("p-0", "sleep", "100000")
        node.delete("p-0")
        status = ws.channels()[END]
        assert b"Failure" in status, status
    with t.check("a card that dies ends its streams, and says so"):
        card = node.rack.cards[0]
        ws = front.exec("web", "sleep", "100000")
        _, sock, text = front.order("log", "web", follow=True)
        card.freeze()
        status = ws.channels()[END]
        assert b"does not answer" in status, status
        while more := sock.recv(1000):
            text += more
        assert b"biga: the log ends here: card" in text, text
        line, sock, _ = front.order("exec", "web", command=["true"],
                                    stdout=True)
        sock.close()
        assert line["status"] == 503, line
        assert "does not answer" in line["error"], line
        card.thaw()


def main():
    cards.require()
    with cards.Rack(1) as rack:
        t = Checks(on_failure=rack.tail)
        rack.start()
        node = Node(rack)
        node.extender.start()
        node.extender.wait_up()
        front = Front(node.extender.url("publish"))
        argv = node.advertiser.argv
        argv[argv.index("--server") + 1] = front.url
        node.advertiser.start()
        node.wait_capacity(1)
        try:
            node.apply([service("web", cores=3,
                                args=("busybox", "sh", "-c", SERVES)),
                        *pair("p")])
            node.wait_state(["web", "p-0", "p-0-xpu"], "running")
            test_commands(t, front, "web")
            test_commands(t, front, "p-0")
            test_refusals(t, front)
            test_logs(t, front)
            test_followed(t, node, front)
            test_ports(t, front)
            test_many(t, front)
            test_ends(t, node, front)
        finally:
            node.stop()
    t.finish()


main()
