#!/usr/bin/env python3
"""deploy/examples/allreduce on real containerds: ranks in host pods and their
workers on cards, in the order of the map that `biga job` writes, sum up right;
a worker that is killed and a card that is cut off end the job with a reason,
and nothing of it is left.
"""
import glob
import os
import signal
import socket
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import allreduce  # noqa: E402
import cards  # noqa: E402
import mpi  # noqa: E402
import node as biga_node  # noqa: E402
from allreduce import HOSTS, PAIRS, XPUS  # noqa: E402
from check import Checks  # noqa: E402
from node import pod  # noqa: E402
from proc import HANGS, wait_for  # noqa: E402

# with the usual --timeout: whoever has the map waits no longer than that for
# those that are still to be given it
LONG = ("--rounds", "100000", "--kib", "64")


def processes():
    """{pid: its card's or host's network} of the program, wherever it is;
    of this test: others have other namespaces."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
                ours = f.read() == "allreduce\n"
            if ours:
                found[int(pid)] = os.stat(f"/proc/{pid}/ns/net").st_ino
        except OSError:
            pass
    return found


def networks(rack):
    return [os.stat("/proc/self/ns/net").st_ino] + [
        os.stat(f"/run/netns/{card.netns}").st_ino for card in rack.cards]


def left(rack):
    return [pid for pid, net in processes().items() if net in networks(rack)]


def worker_on(card):
    """Its process."""
    net = os.stat(f"/run/netns/{card.netns}").st_ino
    pid, = [pid for pid, at in processes().items() if at == net]
    return pid


def longer(text):
    """The example for a job that does not end by itself."""
    words = "".join(f', "{word}"' for word in LONG)
    assert text.count('"600"]') == PAIRS
    return text.replace('"600"]', f'"600"{words}]')


def begin(node, text=None):
    """The job, until its ranks have the map; the map, and the addresses of
    their cards."""
    path = allreduce.EXAMPLE
    if text:
        path = os.path.join(node.rack.folder, "long.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    node.biga("apply", path)
    node.wait_state(HOSTS + XPUS, "running")
    # with the map it may end at any time, and who has ended has no card
    where = [node.place_of(name).address for name in HOSTS]
    return allreduce.give_map(node), where


def clear(node):
    node.biga("delete", "job", allreduce.JOB)
    node.wait_gone(HOSTS + XPUS)
    wait_for("no process is left", lambda: not left(node.rack))


def test_sums(t, node):
    with t.check("the map has each rank's card, in the order of ranks"):
        given, wanted = begin(node)
        assert [line.split()[0] for line in given.splitlines()] == wanted, \
            (given, wanted)
    with t.check("every rank has right sums, and rank 0 shows the figures"):
        node.wait_state(HOSTS, "gone")
        said = [node.biga("logs", name) for name in HOSTS]
        assert [allreduce.sums(text) for text in said] == [
            (n, PAIRS, 32) for n in range(PAIRS)], said
        shown = allreduce.table(said[0])
        assert {row: len(shown[row]) for row in shown} == dict(zip(
            allreduce.ROWS, (5, 5, 3))), said[0]
        assert not any(allreduce.table(text) for text in said[1:]), said
    with t.check("and nothing of it is left"):
        clear(node)


def test_killed(t, node, text):
    with t.check("a worker that is killed ends the job, and its rank says "
                 "why"):
        begin(node, text)
        card = node.place_of(XPUS[1])
        wait_for("the ring is closed", lambda: joined(card))
        os.kill(worker_on(card), signal.SIGKILL)
        allreduce.wait_ended(node)
        states = node.states(HOSTS)
        assert set(states.values()) == {"failed"}, states
        why = node.biga("logs", HOSTS[1])
        assert "the worker of rank 1 (" + card.address in why, why
        assert allreduce.sums(why) is None, why
    with t.check("no process of it is left"):
        wait_for("none is left", lambda: not left(node.rack))
        clear(node)


def joined(card):
    """Its rank and the worker before it have connected to the worker."""
    with open(f"/proc/{worker_on(card)}/net/tcp6", encoding="ascii") as f:
        here = [line.split() for line in f][1:]
    ports = range(7700, 7700 + PAIRS)
    return sum(int(line[1].split(":")[1], 16) in ports and line[3] == "01"
               for line in here) >= 2


def said_on(card):
    """What its containers wrote, read on the card itself."""
    text = ""
    for path in glob.glob(os.path.join(card.store(), "**", "*.log*"),
                          recursive=True):
        with open(path, encoding="utf-8", errors="replace") as f:
            text += f.read()
    return text


def test_cut_off(t, node, text):
    with t.check("a card that is cut off ends the job: its worker and a rank "
                 "say why"):
        begin(node, text)
        card = node.place_of(XPUS[2])
        wait_for("the ring is closed", lambda: joined(card))
        card.link(False)
        wait_for("all ranks have failed", lambda: set(
            node.states(HOSTS).values()) == {"failed"})
        said = [node.biga("logs", name) for name in HOSTS]
        # the first to fail; Biga may end the others before they see it
        assert any("allreduce: program of rank" in text for text in said), \
            said
        wait_for("its worker has given up", lambda:
                 "worker of rank 2: the job failed: " in said_on(card))
    with t.check("when it is back, nothing is left of the job"):
        card.link(True)
        node.rack.join_cards()
        clear(node)


def test_dead_rank(t, node):
    card = node.rack.cards[0]
    with t.check("a worker whose rank's machine is dead while it computes "
                 "gives it up"):
        worker = subprocess.Popen(
            [*card.enter_network(), allreduce.PROGRAM, "worker", "--once",
             "--port", "7900", "--timeout", "3"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, "BIGA_RANK": "0", "BIGA_SIZE": "1"})
        try:
            assert worker.stdout.readline() == "worker of rank 0: waits\n"
            rank = socket.create_connection((card.address, 7900), HANGS)
            hosts = card.address.encode()
            # kind 1, version 1, rank 0 of 1, step 0, and bytes that follow
            rank.sendall(struct.pack("<4sBBxxHHIQ", b"BGAR", 1, 1, 0, 1, 0,
                                     len(hosts)) + hosts)
            ready = rank.recv(24, socket.MSG_WAITALL)
            assert ready[:5] == b"BGAR\3", ready
            card.link(False)
            said = worker.communicate(timeout=HANGS)[0]
            assert worker.returncode == 1, (worker.returncode, said)
            assert "the job failed: rank 0 (" in said and \
                "the connection was lost: Connection timed out" in said, said
        finally:
            worker.kill()
            worker.communicate()
            card.link(True)
            node.rack.join_cards()


def mpi_pods():
    """The example's pairs, whose host pods have Open MPI and wait for
    mpirun."""
    made = []
    for n, (host, xpu) in enumerate(zip(HOSTS, XPUS)):
        job = (allreduce.JOB, n, PAIRS)
        made += [pod(host, "host", {"biga.dev/card": 1}, job=job,
                     image=mpi.IMAGE),
                 pod(xpu, "xpu", {"biga.dev/card": 1,
                                  "biga.dev/card-cores": 2,
                                  "biga.dev/card-memory-mib": 256}, job=job,
                     image="biga-allreduce:static",
                     args=("/allreduce", "worker"))]
    return made


def test_mpirun(t, node):
    why = mpi.lacking()
    if why:
        t.note("without mpirun: " + why)
        return
    folder = node.rack.folder
    with t.check("mpirun starts ranks in host pods by biga rsh: right sums, "
                 "too"):
        node.rack.host.load(mpi.image(os.path.join(folder, "mpi.tar"), {
            "/allreduce": allreduce.PROGRAM}))
        node.apply(mpi_pods())
        node.wait_state(HOSTS + XPUS, "running")
        hosts = os.path.join(folder, "hosts")
        with open(hosts, "w", encoding="utf-8") as f:
            f.write(node.biga("job", allreduce.JOB, "--pod-hostfile"))
        workers = node.biga("job", allreduce.JOB, "--dpu-hostfile")
        code, out, err = mpi.Shell(node, allreduce.JOB).run(
            "mpirun", "--hostfile", hosts, "-np", str(PAIRS), "sh", "-c",
            '/allreduce map /workers "$1" && exec /allreduce rank --workers '
            "/workers --kib 64", "sh", workers)
        out = out.decode()
        said = sorted(filter(None, map(allreduce.sums, out.splitlines())))
        assert code == 0 and said == [(n, PAIRS, 32) for n in range(PAIRS)], \
            (code, out, err)
        assert set(allreduce.table(out)) == set(allreduce.ROWS), out
    with t.check("and nothing of it is left"):
        clear(node)


def test_loopback(t, folder):
    with t.check("without cards, on loopback: right sums, too"):
        said = allreduce.loopback(folder, 3, "--kib", "40", "--rounds", "2")
        assert [allreduce.sums(text) for text in said] == [
            (n, 3, 8) for n in range(3)], said


def main():
    cards.require()
    with cards.Rack(PAIRS) as rack:
        t = Checks(on_failure=rack.tail)
        with t.check("a host and its cards are there"):
            rack.start(images=("biga-card", "busybox", "allreduce"))
            rack.join_cards()
            node = biga_node.Node(rack).start()
        if not t.failed:
            with open(allreduce.EXAMPLE, encoding="utf-8") as f:
                text = longer(f.read())
            test_sums(t, node)
            test_killed(t, node, text)
            test_cut_off(t, node, text)
            test_dead_rank(t, node)
            test_mpirun(t, node)
            test_loopback(t, rack.folder)
            with t.check("and Biga ends as it should"):
                node.stop()
    t.finish()


main()
