"""What people see and say of pods that run, tried with kubectl at a Place:
get, describe, logs, exec, attach, port-forward, cp, debug."""
import os
import re
import urllib.request

import images
from pods import WAIT, sh, status_of
from proc import wait_for

# says a line when it is asked to by a file
SPEAK = "n=0; while sleep 0.1; do if [ -e /tmp/say ]; then rm /tmp/say; " \
    "n=$((n+1)); echo line $n; echo aside $n >&2; fi; done"
# fails the first time, and remembers in /d that it did
TWICE = "if [ -e /d/x ]; then echo second; " + WAIT + "; fi; touch /d/x; " \
    "echo first; exit 3"


def test_shown(t, p):
    with t.check("get -o wide and describe show where it runs"):
        name = p.up("shown", sh(WAIT))
        found = p.r.pod(name)
        assert p.here(found), found["status"]
        said = p.k("get", "pod", name, "-o", "wide")
        assert found["status"]["podIP"] in said, said
        assert found["spec"]["nodeName"] in said, said

        def described():  # Events may come after what they tell
            said = p.k("describe", "pod", name)
            for word in ("Scheduled", "Created", "Started", "containerd://"):
                assert word in said, said
            return True
        wait_for("it is described", described)
        p.gone(name)


def test_logs(t, p):
    name = p.up("logs", sh(SPEAK), sh("echo other; " + WAIT, "other"))
    with t.check("logs -f shows each line when it is written"):
        follow = p.r.talk("logs", "-f", name, "-c", "main")
        for n in range(1, 4):
            p.execute(name, "touch", "/tmp/say")
            follow.wait_text(f"line {n}\n")
            follow.wait_text(f"aside {n}\n")
    with t.check("logs: all, --tail, --timestamps, another container's"):
        assert p.k("logs", name, "-c", "main").count("line") == 3
        assert p.k("logs", name, "-c", "main", "--tail=2").count("\n") == 2
        stamped = p.k("logs", name, "-c", "main", "--timestamps")
        assert re.match(r"\d{4}-\d\d-\d\dT[0-9:.]+Z (line|aside) 1\n", stamped)
        p.said(name, "other\n", "-c", "other")
    with t.check("logs -f ends with its container"):
        p.gone(name)
        assert follow.wait() == 0, follow.text


def test_restart(t, p):
    with t.check("a container that fails is started again; logs --previous "
                 "has what it said"):
        name = p.up("again", sh(TWICE, volumeMounts=[
            {"name": "d", "mountPath": "/d"}]),
            volumes=[{"name": "d", "emptyDir": {}}])
        wait_for("it has spoken", lambda: "second" in p.k("logs", name))
        p.said(name, "first\n", "--previous")

        def again():  # the API server hears of it later than the log has it
            status = status_of(p.r.pod(name))
            assert status["restartCount"] == 1, status
            return status
        status = wait_for("it is told as started again", again)
        assert status["lastState"]["terminated"]["exitCode"] == 3, status
        p.gone(name)


def test_exec(t, p):
    name = p.up("exec", sh(WAIT))
    with t.check("exec: output, errors and exit status"):
        got = p.k("exec", name, "--", "sh", "-c",
                  "echo out; echo err >&2; exit 7", check=False)
        assert got.stdout == "out\n", got.stdout
        assert "err\n" in got.stderr and got.returncode == 7, got
    with t.check("exec -i: what is piped in arrives whole"):
        text = "".join(f"{n:07d}\n" for n in range(40000))
        got = p.k("exec", "-i", name, "--", "sh", "-c",
                  "wc -c; echo done", stdin=text)
        assert got.split() == [str(len(text)), "done"], got
        big = p.execute(name, "seq", "1", "200000")
        assert big.splitlines()[-1] == "200000" and len(big) == 1288895
    with t.check("exec -it: a shell on a terminal"):
        shell = p.r.talk("exec", "-it", name, "--", "sh", terminal=True)
        shell.write("tty; echo a$((20+3))b\n")
        assert "/dev/pts/" in shell.wait_text("a23b")
        shell.write("exit 5\n")
        assert shell.wait() == 5, shell.text
    p.gone(name)


def test_attach(t, p):
    with t.check("attach -i: what is typed arrives, what is said is seen"):
        name = p.up("attach", sh("while read l; do echo heard $l; done; "
                                 "echo bye", stdin=True, stdinOnce=True),
                    restartPolicy="Never")
        talk = p.r.talk("attach", "-i", name)
        talk.write("one\n")
        talk.wait_text("heard one\n")
        talk.write("two\n")
        talk.wait_text("heard two\n")
        talk.close_input()
        p.phase(name, "Succeeded")
        assert talk.wait() == 0, talk.text
        p.said(name, "heard one\nheard two\nbye\n")
        p.gone(name)


def fetch(address, port, path="/"):
    with urllib.request.urlopen(f"http://{address}:{port}{path}",
                                timeout=30) as answer:
        return answer.read().decode()


WEB = "mkdir /tmp/w; echo hello from $HOSTNAME >/tmp/w/index.html; " \
    "exec httpd -f -p 8080 -h /tmp/w"


def test_forward(t, p):
    with t.check("port-forward reaches a port of it, again and again"):
        name = p.up("web", sh(WEB, readinessProbe={
            "tcpSocket": {"port": 8080}, "periodSeconds": 1}))
        talk = p.r.talk("port-forward", name, ":8080")
        talk.wait_text("Forwarding from 127.0.0.1:")
        port = re.search(r"127\.0\.0\.1:(\d+)", talk.text).group(1)
        for _ in range(5):
            assert fetch("127.0.0.1", port) == \
            f"hello from {p.hostname(name)}\n"
        talk.end()
    with t.check("and so does its address"):
        address = p.r.pod(name)["status"]["podIP"]
        assert fetch(address, 8080) == \
            f"hello from {p.hostname(name)}\n"
        p.gone(name)


def test_cp(t, p):
    with t.check("cp there and back: the same bytes"):
        name = p.up("cp", sh(WAIT))
        there, back = (p.r.rack.host.path(f) for f in ("there", "back"))
        with open(there, "wb") as f:
            f.write(os.urandom(3 << 20))
        p.k("cp", there, f"{name}:/tmp/file")
        p.k("cp", f"{name}:/tmp/file", back)
        with open(there, "rb") as a, open(back, "rb") as b:
            assert a.read() == b.read()
        p.gone(name)


def test_debug(t, p):
    with t.check("debug: an ephemeral container sees its target's processes"):
        name = p.up("debug", sh(WAIT))
        p.k("debug", name, "--image=" + images.BASE, "--container=dbg",
            "--target=main", "--profile=general", "--", "sh", "-c",
            "echo seen $(grep -c told /proc/1/cmdline); sleep 100000")
        wait_for("it has looked", lambda: "seen 1" in p.k(
            "logs", name, "-c", "dbg"))
        wait_for("it is told as running", lambda: "running" in status_of(
            p.r.pod(name), "dbg")["state"])
        p.gone(name)


ALL = (test_shown, test_logs, test_restart, test_exec, test_attach,
       test_forward, test_cp, test_debug)
