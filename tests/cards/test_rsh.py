#!/usr/bin/env python3
"""Commands in host pods by `biga rsh`, and mpirun that starts its ranks with
it: eight ranks in eight host pods of a real containerd.  A rank that is killed
ends the job, and no process of it is left.
"""
import http.server
import os
import signal
import socketserver
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import fleet  # noqa: E402
import mpi  # noqa: E402
import node as biga_node  # noqa: E402
from check import Checks  # noqa: E402
from node import pod  # noqa: E402
from proc import HANGS, wait_for  # noqa: E402

PAIRS = 8
JOB = "ring"


def pairs():
    """Host pods with Open MPI, xPU pods without."""
    made = []
    for n in range(PAIRS):
        job = (JOB, n, PAIRS)
        made += [pod(f"{JOB}-{n}", "host", {"biga.dev/card": 1}, job=job,
                     image=mpi.IMAGE),
                 pod(f"{JOB}-{n}-xpu", "xpu",
                     {"biga.dev/card": 1, "biga.dev/card-cores": 2,
                      "biga.dev/card-memory-mib": 64}, job=job)]
    return made


def processes(rack):
    """[(pid, command line)] of what runs in the containers of the host."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cgroup", encoding="utf-8") as f:
                groups = f.read()
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read().replace(b"\0", b" ").decode().strip()
        except OSError:
            continue
        if any(c["id"] in groups for c in rack.host.local().containers()):
            found.append((int(pid), line))
    return found


def ours(rack, word):
    return [p for p in processes(rack) if word in p[1]]


class Lacking(http.server.BaseHTTPRequestHandler):
    """What a host says of a pod that is on another one."""

    def do_GET(self):  # pylint: disable=invalid-name
        self.send_error(404)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def other_host(folder):
    """A socket of an advertiser without pods, as long as this test runs."""
    path = os.path.join(folder, "other.sock")
    server = socketserver.UnixStreamServer(path, Lacking)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return path


def test_commands(t, node, shell):
    with t.check("its output and its exit status are passed on"):
        done = shell.rsh(f"{JOB}-3", "echo out $BIGA_RANK;", "echo err >&2;",
                         "exit 7")
        assert done == (7, b"out 3\n", "err\n"), done
    with t.check("options behind the host are the command's"):
        done = shell.rsh(f"{JOB}-0", "echo", "-n", "--help", "-h")
        assert done == (0, b"--help -h", ""), done
        done = shell.run(fleet.program("biga"), "--server",
                         node.env()["BIGA_SERVER"], "-n", "default", "rsh",
                         f"{JOB}-0", "echo", "-n", "-h")
        assert done == (0, b"-h", ""), done
    with t.check("what it reads ends where ours ends, byte for byte"):
        data = os.urandom(300000) + b"\n\n\0end"
        done = shell.rsh(f"{JOB}-1", "cat", text=data)
        assert done[0] == 0 and done[1] == data, (done[0], len(done[1]),
                                                  done[2])
        done = shell.rsh(f"{JOB}-1", "wc -c", text=b"")
        assert done == (0, b"0\n", ""), done
        done = shell.rsh(f"{JOB}-1", "head -c 3", text=data)
        assert (done[0], done[1]) == (0, data[:3]), done[::2]
    with t.check("a node of several pods of the job: the lowest rank's, and "
                 "that is told"):
        code, out, err = shell.rsh(cards.NODE, "echo $BIGA_RANK")
        assert (code, out) == (0, b"0\n"), (code, out, err)
        assert f"{PAIRS - 1} more host pods of job default/{JOB}" in err, err
    with t.check("who is not there is refused, and what there is is told"):
        code, out, err = shell.rsh("host9", "true")
        assert code == 1 and not out and f"nodes: {cards.NODE}" in err, err
        code, _, err = shell.rsh("--job", "none", cards.NODE, "true")
        assert code == 1 and "404" in err, err
        code, _, err = shell.rsh("-c", "other", f"{JOB}-0", "true")
        assert code == 1 and 'no container "other"' in err, err
        for socket in ("/nowhere.sock", other_host(node.rack.folder)):
            code, _, err = shell.rsh("--socket", socket, f"{JOB}-0", "true")
            assert code == 1 and f"{JOB}-0 is on node {cards.NODE}" in err \
                and f"run it, or mpirun, on {cards.NODE}" in err, err
        code, _, err = shell.rsh("--job", "", f"{JOB}-0", "true")
        assert code == 2 and "BIGA_JOB" in err, err


def test_signals(t, node, shell):
    for name, stdin in (("without input", subprocess.DEVNULL),
                        ("with input", subprocess.PIPE)):
        with t.check("a signal is for the command and all that it began, "
                     + name):
            begun = shell.start(
                fleet.program("biga"), "rsh", f"{JOB}-2",
                "trap 'echo caught; exit 5' TERM; sleep 4711 & echo up; wait",
                stdin=stdin)
            assert begun.stdout.readline() == b"up\n"
            begun.send_signal(signal.SIGTERM)
            out, err = begun.communicate(timeout=HANGS)
            assert (begun.returncode, out) == (5, b"caught\n"), (
                begun.returncode, out, err)
            wait_for("nothing of it is left",
                     lambda: not ours(node.rack, "sleep 4711"))
    with t.check("one that kills it: 128 and its number"):
        begun = shell.start(fleet.program("biga"), "rsh", f"{JOB}-2",
                            "echo up; exec sleep 4712")
        assert begun.stdout.readline() == b"up\n"
        begun.send_signal(signal.SIGINT)
        _, err = begun.communicate(timeout=HANGS)
        assert begun.returncode == 128 + signal.SIGINT, (begun.returncode,
                                                         err)


def test_mpirun(t, node, shell):
    hosts = os.path.join(node.rack.folder, "hosts")
    with open(hosts, "w", encoding="utf-8") as f:
        f.write(node.biga("job", JOB, "--pod-hostfile"))
    mpirun = ("mpirun", "--hostfile", hosts, "-np", str(PAIRS))
    with t.check(f"mpirun runs {PAIRS} ranks in {PAIRS} pods"):
        code, out, err = shell.run(
            *mpirun, "sh", "-c",
            "echo rank $OMPI_COMM_WORLD_RANK in pod $BIGA_RANK of $BIGA_SIZE")
        said = sorted(out.decode().splitlines())
        assert code == 0 and said == [
            f"rank {n} in pod {n} of {PAIRS}" for n in range(PAIRS)], \
            (code, out, err)
        wait_for("no orted is left", lambda: not ours(node.rack, "orted"))
    with t.check("a rank that is killed ends the job, and no process is left"):
        begun = shell.start(*mpirun, "sh", "-c", "echo up; exec sleep 4713")
        for _ in range(PAIRS):
            assert begun.stdout.readline() == b"up\n"

        def asleep():
            # who has said "up" may be the shell for a moment more
            found = [pid for pid, line in ours(node.rack, "sleep 4713")
                     if line == "sleep 4713"]
            return found if len(found) == PAIRS else None
        os.kill(wait_for("all ranks sleep", asleep)[5], signal.SIGKILL)
        out, err = begun.communicate(timeout=HANGS)
        assert begun.returncode != 0 and b"signal 9" in err, (out, err)
        wait_for("nothing is left", lambda: not ours(
            node.rack, "orted") and not ours(node.rack, "sleep 4713"))
    with t.check("mpirun that is killed takes its ranks with it"):
        begun = shell.start(*mpirun, "sh", "-c", "echo up; exec sleep 4714")
        for _ in range(PAIRS):
            assert begun.stdout.readline() == b"up\n"
        begun.kill()
        begun.communicate(timeout=HANGS)
        wait_for("nothing is left", lambda: not ours(
            node.rack, "orted") and not ours(node.rack, "sleep 4714"))


def main():
    why = mpi.lacking()
    if why:
        print(why)
        sys.exit(77)
    cards.require()
    with cards.Rack() as rack:
        t = Checks(on_failure=rack.tail)
        with t.check("a job of eight pairs runs"):
            rack.start()
            rack.host.load(mpi.image(os.path.join(rack.folder, "mpi.tar")))
            node = biga_node.Node(rack).start()
            pods = pairs()
            node.apply(pods)
            node.wait_state([p["metadata"]["name"] for p in pods], "running")
        if not t.failed:
            shell = mpi.Shell(node, JOB)
            for test in (test_commands, test_signals, test_mpirun):
                test(t, node, shell)
            with t.check("and ends as it should"):
                node.delete_all(p["metadata"]["name"] for p in pods
                                if p["metadata"]["labels"]["biga.dev/role"]
                                == "host")
                node.wait_gone([p["metadata"]["name"] for p in pods])
                node.stop()
    t.finish()


main()
