#!/usr/bin/env python3
"""A hundred streams of one kind at once, by the biga command, and what is not
ours refused meanwhile: streams_many.py BIGA exec|logs|port-forward.  Where and
who is said by biga's variables; HANGS has the seconds after which nothing is
waited for any more.
"""
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request

MANY = 100
GROUP = 5  # that are begun at once: each has 10 s until its node has come
OURS, THEIRS = "team-a/one", "team-b/two"
HANGS = float(os.environ["HANGS"])
begun = []  # processes


def is_open(kind):
    """How many streams of this kind are."""
    token = open(os.environ["METRICS_TOKEN_FILE"], encoding="ascii").read()
    ask = urllib.request.Request(
        os.environ["BIGA_SERVER"] + "/metrics",
        headers={"Authorization": "Bearer " + token.strip()})
    tls = ssl.create_default_context(cafile=os.environ["BIGA_CA"])
    with urllib.request.urlopen(ask, timeout=HANGS, context=tls) as answer:
        text = answer.read().decode()
    return int(re.search(r'^biga_streams{kind="%s"} (\d+)$' % kind, text,
                         re.M)[1])


def until_open(kind, n):
    end = time.monotonic() + HANGS
    while is_open(kind) != n:
        assert time.monotonic() < end, f"{is_open(kind)} of {n} {kind}"
        time.sleep(0.02)


def begin(kind, one):
    """MANY of what one(i) gives, all open."""
    before, all_of_them = is_open(kind), []
    for i in range(0, MANY, GROUP):
        all_of_them += [one(j) for j in range(i, i + GROUP)]
        until_open(kind, before + len(all_of_them))
    return all_of_them, before


def run(biga, *words, **more):
    p = subprocess.Popen([biga, *words], stdout=subprocess.PIPE, **more)
    begun.append(p)
    return p


def refused(right, biga, *words):
    p = subprocess.run([biga, *words], capture_output=True, timeout=HANGS)
    assert p.returncode == 1 and not p.stdout, p
    assert f'would need ",{right}:team-b"' in p.stderr.decode(), p


def text_of(i):
    return b"%d\n" % i * 5000


def commands(biga):
    ps, before = begin("exec", lambda i: run(
        biga, "exec", "-i", OURS, "--", "cat", stdin=subprocess.PIPE))
    refused("exec", biga, "exec", THEIRS, "--", "true")
    for i, p in enumerate(ps):
        out, _ = p.communicate(text_of(i), timeout=HANGS)
        assert (p.returncode, out) == (0, text_of(i)), (i, p, out[:100])
    until_open("exec", before)


def logs(biga):
    ps, before = begin("log", lambda i: run(
        biga, "logs", "-f", OURS, "--tail", str(i + 1)))
    refused("log", biga, "logs", THEIRS)
    for i, p in enumerate(ps):
        for line in range(i + 1):
            got = p.stdout.readline()
            assert got == b"line %d of one\n" % line, (i, got)
        assert p.poll() is None, "it is followed"
        p.terminate()
        p.wait()
    until_open("log", before)


def echo(listener):
    def serve(s):
        while data := s.recv(65536):
            s.sendall(data)
        s.close()
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],),
                         daemon=True).start()


def connect(biga, pod, port):
    p = run(biga, "port-forward", pod, f":{port}")
    host, here = p.stdout.readline().split()[0].decode().split(":")
    return lambda: socket.create_connection((host, int(here)), HANGS)


def connections(biga):
    listener = socket.create_server(("127.0.0.1", 0), backlog=MANY)
    port = listener.getsockname()[1]
    threading.Thread(target=echo, args=(listener,), daemon=True).start()
    dial = connect(biga, OURS, port)
    all_of_them, before = begin("portforward", lambda i: dial())
    other = run(biga, "port-forward", THEIRS, f":{port}",
                stderr=subprocess.PIPE)
    said = other.communicate(timeout=HANGS)[1]
    assert other.returncode == 1 and b"team-a alone" in said, said
    for i, s in enumerate(all_of_them):
        threading.Thread(target=s.sendall, args=(text_of(i),)).start()
    for i, s in enumerate(all_of_them):
        got = b""
        while len(got) < len(text_of(i)) and (more := s.recv(65536)):
            got += more
        assert got == text_of(i), (i, got[:100])
    for s in all_of_them:
        s.close()
    until_open("portforward", before)


if __name__ == "__main__":
    try:
        {"exec": commands, "logs": logs,
         "port-forward": connections}[sys.argv[2]](sys.argv[1])
    finally:
        for process in begun:
            process.kill()
