"""What a pod on a card writes arrives in the kubelet's files, every byte of
it, while the kubelet rotates them and biga-cri is killed.
"""
import gzip
import os
import random
import re
import time

from pods import sh, status_of
from proc import wait_for

SEED = int(os.environ.get("BIGA_SEED", "1"))
# lines of a part: the last of them is too long for one line of a CRI log
PART, WORDS, LONG = 1000, "what a pod has to say " * 8, 200
SHORT = f"%09d {WORDS}"
PART_SIZE = PART * len(SHORT % 0 + "\n") + (LONG - 1) * len(WORDS)
ASIDE = "part %d is written"
WRITE = f"""
awk 'BEGIN {{
    words = "{WORDS}"
    for (i = 0; i < {LONG}; i++) long = long words
    for (i = 0; i < PARTS * {PART}; i++)
        if (i % {PART} < {PART - 1}) {{
            printf "%09d %s\\n", i, words
        }} else {{
            printf "%09d %s\\n", i, long
            printf "{ASIDE}\\n", i / {PART} >"/dev/stderr"
        }}
}}'; printf 'a half line'"""
# the kubelet does not look at logs more often
ROTATES = {"containerLogMaxSize": "1Mi", "containerLogMaxFiles": 10000,
           "containerLogMonitorInterval": "3s"}
HEAD = rb"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d) "
BEGUN = re.compile(HEAD + rb"stdout P (.*)\n", re.M)
WHOLE = re.compile(HEAD + rb"stdout F ", re.M)
ASIDES = re.compile(HEAD + rb"stderr F (.*\n)", re.M)


def expected(parts):
    """What it writes, part by part."""
    for part in range(parts):
        first = part * PART
        yield "".join([SHORT % i + "\n" for i in range(
            first, first + PART - 1)] + [
                f"{first + PART - 1:09d} {WORDS * LONG}\n"]).encode()
    yield b"a half line"


class Files:
    """The kubelet's files of a container: rotated, compressed."""

    def __init__(self, r, name):
        uid = r.pod(name)["metadata"]["uid"]
        self.folder = r.rack.host.path("log", "pods", f"default_{name}_{uid}",
                                       "main")

    def names(self):
        """The oldest is the first; the name has its time."""
        names = [n for n in os.listdir(self.folder) if n.startswith("0.log")]
        return sorted(names, key=lambda n: (n == "0.log", n))

    def settled(self):
        """Whether the kubelet compresses none just now."""
        names = self.names()
        return not any(n.endswith(".tmp") or n + ".gz" in names
                       for n in names)

    def read(self):
        """All of them, in pieces of whole lines."""
        for name in self.names():
            path = os.path.join(self.folder, name)
            opened = gzip.open if name.endswith(".gz") else open
            with opened(path, "rb") as f:
                while lines := f.readlines(8 << 20):
                    assert lines[-1].endswith(b"\n"), (name, lines[-1][-80:])
                    yield b"".join(lines)

    def size(self):
        """How many there are, and the bytes of the one that is written: of
        none, when the kubelet has just renamed it."""
        n = len(self.names())
        try:
            return n, os.path.getsize(os.path.join(self.folder, "0.log"))
        except FileNotFoundError:
            return n, 0


class Compared:
    """What came, with what should have, as it comes."""

    def __init__(self, pieces):
        self.pieces, self.rest, self.n = pieces, b"", 0

    def add(self, data):
        while len(self.rest) < len(data):
            piece = next(self.pieces, None)
            assert piece is not None, f"{len(data)} bytes too many: " \
                f"{data[len(self.rest):][:200]!r}"
            self.rest += piece
        if not self.rest.startswith(data):
            at = next(i for i, pair in enumerate(zip(data, self.rest))
                      if pair[0] != pair[1])
            raise AssertionError(
                f"byte {self.n + at}: {data[at - 60:at + 60]!r}, not "
                f"{self.rest[at - 60:at + 60]!r}")
        self.rest, self.n = self.rest[len(data):], self.n + len(data)

    def finish(self):
        left = len(self.rest) + sum(map(len, self.pieces))
        assert not left, f"{left} bytes lack behind byte {self.n}"


def compare(files, parts):
    """Every byte, in its order; how many they are."""
    found = Compared(expected(parts))
    asides = Compared(iter([f"{ASIDE % n}\n".encode()
                            for n in range(parts)]))
    for piece in files.read():
        for aside in ASIDES.findall(piece):
            asides.add(aside)
        piece = ASIDES.sub(b"", piece)
        found.add(BEGUN.sub(rb"\1", WHOLE.sub(b"", piece)))
    # runtimes end the half line at the end, too
    found.finish()
    asides.finish()
    return found.n


def disturb(r, p, name, files, chance):
    """Until it has ended: biga-cri is killed, and at times its helper on the
    card, each when more has come; how often."""
    n, card = 0, p.card_of(r.pod(name))

    def over():
        return r.pod(name)["status"]["phase"] in ("Succeeded", "Failed")
    while not over():
        rotated, size = files.size()
        more = size + chance.randrange(1 << 20, 8 << 20)
        wait_for("more comes", lambda: files.size() >= (rotated, more) or
                 over())
        n += 1
        if chance.randrange(4) == 0:
            for helper in card.local().containers():
                if helper["name"] == "helper" and helper["state"] == 1:
                    card.ctr("task", "kill", "-s", "KILL", helper["id"])
        r.way.process.kill()
        r.way.start()
    return n


def test_logs(t, r, p, mib):
    parts = max(1, (mib << 20) // PART_SIZE)
    chance = random.Random(SEED)
    name = p.apply("wrote", sh(WRITE.replace("PARTS", str(parts))),
                   restartPolicy="Never")
    with t.check(f"{parts * PART_SIZE >> 20} MiB of log, biga-cri killed in "
                 f"between (seed {SEED})"):
        wait_for("it runs", lambda: status_of(r.pod(name))["started"] or
                 status_of(r.pod(name))["state"]["terminated"])
        began = time.monotonic()
        files = Files(r, name)
        n = disturb(r, p, name, files, chance)
        found = p.phase(name, "Succeeded")
        assert status_of(found)["restartCount"] == 0
        t.note(f"killed {n} times in {time.monotonic() - began:.0f} s")
    with t.check("every byte is there, and in its order"):
        # a card that was lost just then sends the rest when it is back
        size = wait_for("all has come, and none is being compressed", lambda:
                        files.settled() and compare(files, parts), every=1)
        t.note(f"{size} bytes in {len(files.names())} files")
    p.gone(name)


TELL = "n=0; while sleep 0.05; do n=$((n+1)); echo line $n; done"


def test_follow(t, r, p):
    with t.check("logs -f has every line while the kubelet rotates"):
        name = p.up("tell", sh(TELL))
        follow = r.talk("logs", "-f", name)
        files = Files(r, name)
        for n in range(1, 4):
            # as many bytes as the kubelet rotates at
            p.sh(name, "head -c 1100000 /dev/zero | tr '\\0' x >/proc/1/fd/1;"
                 "echo >/proc/1/fd/1")
            wait_for("it is rotated", lambda n=n: len(files.names()) > n)
            follow.wait_text("line")
        p.gone(name, "--grace-period=1")
        follow.wait()
        lines = re.findall(r"line \d+", follow.text)
        assert lines == [f"line {n + 1}" for n in range(len(lines))]
