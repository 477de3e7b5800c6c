#!/usr/bin/env python3
"""The cards of the other tests themselves: real runtimes, each on a machine
of its own as far as it can tell, that only the node may call; what Biga has
on them; and that nothing of them outlives the test.
"""
import base64
import os
import random
import signal
import ssl
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import keeper  # noqa: E402
from check import Checks  # noqa: E402
from cri import CriError, client_tls, field, varint  # noqa: E402
from proc import HANGS, start_time, wait_for  # noqa: E402

PIECE = 73728  # bytes in a piece of biga-card files


def refuses(what, *kinds):
    try:
        got = what()
    except kinds:
        return True
    raise AssertionError(f"is answered: {got}")


def test_tls(t, rack):
    card, other = rack.cards[:2]
    with t.check("each card answers its node over mutual TLS"):
        for c in rack.cards:
            said = c.cri().version()
            assert said["runtime"] == "containerd" and said["api"] == "v1", \
                said
    ca = rack.pki("ca.crt")
    with t.check("nobody without a certificate is answered"):
        refuses(lambda: card.cri(tls=client_tls(ca)).version(), OSError)
    with t.check("nor who has one of another authority"):
        pki = os.path.join(rack.folder, "foreign")
        cards.certs("ca", pki)
        cards.certs("node", pki, "host0")
        tls = client_tls(ca, pki + "/host0.crt", pki + "/host0.key")
        refuses(lambda: card.cri(tls=tls).version(), OSError)
    with t.check("a card's certificate is for its own address"):
        tls, name = card.tls(), other.address
        call = card.cri(tls=tls)
        connect = tls.wrap_socket
        tls = type("Misled", (), {"wrap_socket": staticmethod(
            lambda s, server_hostname: connect(s, server_hostname=name))})
        call.tls = tls
        refuses(call.version, ssl.SSLCertVerificationError)


def pieces(data):
    return [base64.b64encode(data[i:i + PIECE]).decode()
            for i in range(0, len(data), PIECE)]


def test_pod(t, card):
    """What is at work on a card, with biga-card as the helper."""
    cri = card.local()
    image = "biga-card:" + cards.version()
    with t.check("a pod runs there, with the pause image made here"):
        pod = cri.run_pod("p0", {"biga.dev/pod-uid": "u0"})
        os.makedirs(card.path("lib", "biga"), exist_ok=True)
        helper = cri.run_container(pod, "helper", image, mounts=[
            ("/var/lib/biga", "/var/lib/biga")])
        shell = cri.run_container(
            pod, "shell", "busybox:static",
            ["sh", "-c", "echo one; echo two >&2; sleep 1000"])
        found = {s["id"]: s for s in cri.sandboxes()}
        assert found[pod[0]]["ready"], found
        assert found[pod[0]]["labels"]["biga.dev/pod-uid"] == "u0", found
        running = {c["id"] for c in cri.containers() if c["state"] == 1}
        assert {helper, shell} <= running, cri.containers()
        assert card.pods_running() >= 3, card.pods_running()
    with t.check("the helper writes 1 MiB of files in one call"):
        big = random.Random(1).randbytes((1 << 20) - 3)
        parts = pieces(big)
        status, _, errors = cri.exec(
            helper, "/biga-card", "files", "/var/lib/biga/u0", "-",
            "v/big", "640", str(len(parts)), *parts, "v/c/small", "444", "1",
            pieces(b"abc")[0])
        assert status == 0, errors
        with open(card.path("lib", "biga", "u0", "v", "big"), "rb") as f:
            assert f.read() == big
        assert os.stat(f.name).st_mode & 0o777 == 0o640
        assert "u0/v/c/small" in card.files(), card.files()
    with t.check("and none outside of its folder"):
        status, _, errors = cri.exec(helper, "/biga-card", "files",
                                     "/var/lib/biga/u0", "-", "../x", "644",
                                     "0")
        assert status == 1 and b"../x" in errors, (status, errors)
    with t.check("it reads what containers wrote"):
        def read():
            status, out, errors = cri.exec(
                helper, "/biga-card", "log",
                "/var/lib/biga/log/p0/shell.log", "0", "1000")
            return status == 0 and sorted(out.split()) == [b"one", b"two"] \
                and errors.splitlines()[-1].startswith(b"next=")
        wait_for("both lines are there", read)
        status = cri.exec(helper, "/biga-card", "log",
                          "/var/lib/biga/none", "0", "1")[0]
        assert status == 3, status
    with t.check("it removes what a pod leaves"):
        status, _, errors = cri.exec(helper, "/biga-card", "rm",
                                     "/var/lib/biga/u0")
        assert status == 0, errors
        assert not [f for f in card.files() if f.startswith("u0")]
    with t.check("it ends at once when it is told to"):
        cri.call("StopContainer", field(1, helper)  # with a grace, in seconds
                 + varint(2 << 3) + varint(100 * int(HANGS)))
        cri.remove_pod(pod[0])
        assert not cri.sandboxes() and not cri.containers()
        wait_for("no process is left", lambda: not card.pods_running())


def answers(card, timeout):
    try:
        return bool(card.cri(timeout).version())
    except (OSError, CriError):
        return False


def test_faults(t, rack):
    a, b = rack.cards[:2]
    for what, begin, end in (
            ("a card without a link does not answer, the others do",
             lambda: a.link(False), lambda: a.link(True)),
            ("nor one behind a black hole",
             lambda: a.silent(True), lambda: a.silent(False)),
            ("nor one that is frozen", a.freeze, a.thaw)):
        with t.check(what):
            assert answers(a, HANGS)
            begin()
            try:
                assert not answers(a, 1) and answers(b, HANGS)
            finally:
                end()
            wait_for("it is back", lambda: answers(a, 10))
    with t.check("its pods outlive its containerd"):
        cri = a.local()
        pod = cri.run_pod("p1")
        cri.run_container(pod, "shell", "busybox:static", ["sleep", "1000"])
        # the sandbox and its container; runc may take its time to end
        wait_for("two processes", lambda: a.pods_running() == 2)
        a.restart().wait_up()
        wait_for("the same two", lambda: a.pods_running() == 2)
        assert [s["ready"] for s in cri.sandboxes()] == [True]
    with t.check("but not its power"):
        a.power_cut()
        a.start().wait_up()
        assert [s["ready"] for s in cri.sandboxes()] == [False]
        assert a.pods_running() == 0
        cri.remove_pod(pod[0])


def test_end(t, records):
    """A rack whose script is killed, and one whose keeper is, too.  records:
    a folder for theirs, of which no other rack knows."""
    script = ("import sys, time; sys.path.insert(0, sys.argv[1]); "
              "import cards, keeper; keeper.RECORDS = sys.argv[2]; "
              "r = cards.Rack(2).start(); "
              "c = r.cards[0].local(); p = c.run_pod('p'); "
              "c.run_container(p, 's', 'busybox:static', ['sleep', '999']); "
              "print(r.folder, r.record_path, r.keeper.pid, flush=True); "
              "time.sleep(999)")

    def start():
        child = subprocess.Popen(
            [sys.executable, "-B", "-c", script, cards.HERE, records],
            stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
            env={k: v for k, v in os.environ.items() if k != "BIGA_KEEP"})
        words = child.stdout.readline().split()
        assert len(words) == 3, "it did not start"
        return child, *words

    def gone(folder, record, pid):
        there = [path for path in (folder, record) if os.path.exists(path)]
        names = [n for n in os.listdir("/run/netns") if f"-{pid}-" in n]
        held = subprocess.run(["ip", "-br", "link"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        wires = [w for w in held.split() if w.startswith(f"bt{pid}n")]
        assert not there + names + wires, there + names + wires
        return True

    with t.check("a rack whose script is killed leaves nothing"):
        child, folder, record, _ = start()
        child.kill()
        child.wait()
        wait_for("all is gone", lambda: gone(folder, record, child.pid))
    with t.check("one whose keeper is killed too is cleared away by the next"):
        child, folder, record, pid = start()
        held = keeper.Held()
        held.of_record(keeper.read_record(record))
        try:
            os.kill(int(pid), signal.SIGKILL)
            child.kill()
            child.wait()
            wait_for("the keeper has ended",
                     lambda: start_time(int(pid)) is None)
            assert keeper.members(held.numbers()), "nothing runs"
            keeper.sweep(records)
            gone(folder, record, child.pid)
            left = keeper.members(held.numbers())
            assert not left, left
        finally:
            held.close()


def main():
    cards.require()
    rack = cards.Rack()
    t = Checks(on_failure=rack.tail)
    with rack:
        with t.check("a host and eight cards start"):
            rack.start()
        if not t.failed:
            test_tls(t, rack)
            test_pod(t, rack.cards[0])
            test_faults(t, rack)
    with tempfile.TemporaryDirectory() as records:
        test_end(t, records)
    t.finish()


main()
