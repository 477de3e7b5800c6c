"""deploy/examples/allreduce, run as its README says: on cards by Biga, or as
plain processes on loopback where there can be no cards.
"""
import os
import re
import socket
import subprocess

from cards import BUILD, ROOT
from proc import HANGS, wait_for

FOLDER = os.path.join(ROOT, "deploy", "examples", "allreduce")
EXAMPLE = os.path.join(FOLDER, "embedded.yaml")
PROGRAM = os.path.join(BUILD, "allreduce")
JOB, PAIRS = "allreduce", 4
HOSTS = [f"{JOB}-{n}" for n in range(PAIRS)]
XPUS = [name + "-xpu" for name in HOSTS]
ABOVE = 300  # ports of ranks are so much above workers'
ROWS = ("with offload", "without offload", "with / without")


def give_map(biga):
    """Where the workers are, as `biga job` says, to every rank; the map."""
    workers = biga.biga("job", JOB, "--dpu-hostfile")
    for name in HOSTS:
        biga.biga("exec", name, "--", "/allreduce", "map", "/workers",
                  workers)
    return workers


def sums(text):
    """(rank, ranks, how many) of what a rank says of its sums; or None."""
    said = re.search(r"^rank (\d+) of (\d+): (\d+) sums of \d+ KiB, all "
                     "right$", text, re.MULTILINE)
    return said and tuple(map(int, said.groups()))


def table(text):
    """{row: its figures} of what rank 0 shows."""
    return {row: [float(x) for x in line[len(row):].split()]
            for row in ROWS for line in text.splitlines()
            if line.startswith(row + " ")}


def free_ports(n):
    """A first port of which n, and those of ranks, are free now."""
    while True:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            first = s.getsockname()[1]
        try:
            for port in (first + i + above for i in range(n)
                         for above in (0, ABOVE)):
                with socket.socket() as s:
                    s.bind(("", port))
            if 1024 <= first <= 64000:
                return first
        except (OSError, OverflowError):
            pass


def loopback(folder, n, *options):
    """n ranks and their workers as processes; what each rank said."""
    workers = os.path.join(folder, "workers")
    with open(workers, "w", encoding="ascii") as f:
        f.write(f"127.0.0.1 slots={n}\n")
    port, started = str(free_ports(n)), []

    def start(role, rank, *more):
        started.append(subprocess.Popen(
            [PROGRAM, role, "--port", port, *more], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={
                **os.environ, "BIGA_RANK": str(rank), "BIGA_SIZE": str(n),
                "BIGA_PEER_ADDRESS": "127.0.0.1"}))
        return started[-1]
    try:
        for rank in range(n):
            start("worker", rank, "--once")
        ranks = [start("rank", rank, "--workers", workers, *options)
                 for rank in range(n)]
        said = [rank.communicate(timeout=10 * HANGS)[0] for rank in ranks]
        for rank, text in zip(ranks, said):
            if rank.returncode != 0:
                raise RuntimeError(text)
        return said
    finally:
        for process in started:
            process.kill()
            process.communicate()


def wait_ended(biga):
    """Until no pod of the job runs."""
    wait_for("the job has ended", lambda: not set(biga.states(
        HOSTS + XPUS).values()) - {"gone", "failed", None})
