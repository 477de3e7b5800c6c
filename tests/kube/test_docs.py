#!/usr/bin/env python3
"""The commands of README and the documents that are marked "kube": they work
as they are written (tests/lib/documents.py)."""
import os
import re
import subprocess
import sys
import tempfile

from check import Checks, Skip
from cluster import ROOT, binaries
from proc import HANGS, running_in, wait_for

sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
import documents  # noqa: E402

FOLDER = os.path.join(ROOT, "build", "kube")
ENV = ". build/kube/env\n"


def run(text):
    return documents.run(text, HANGS)


def shown_aligned(said):
    assert "16 of 16 bound" in said and "on 1 leaf" in said, said
    ranks = re.findall(r"^ *\d+ +bound .* (\w+) +\w+ +[12]$", said, re.M)
    assert ranks == ["PIX"] * 16, said


def told_of_pods(text):
    """What is looked at of them; Events may come after what they tell, and
    xPU pods after their host pods are ready."""
    def seen():
        said = run(ENV + text)
        for word in ("-xpu ", "extender"):
            assert word in said, f"no {word!r} in {said}"
        return True
    wait_for("all is there", seen)
    describe, = [line for line in text.splitlines()
                 if line.startswith("kubectl describe ")]
    wait_for("it is told so", lambda: "Aligned" in run(ENV + describe))


def replica_killed(text):
    before, after = text.split("biga allocations\n")
    run(ENV + before)

    def shown():
        # nothing before has waited for the third pod of the file
        said = run(ENV + "biga allocations")
        assert "default/render-xpu" in said and \
            "default/telemetry" in said, said
        return True
    wait_for("they are shown", shown)
    run(ENV + after)
    assert not running_in(FOLDER), "make kube-down left something"


def main():
    binaries()
    t = Checks()
    told = {path: [b.text for b in own]
            for path, own in documents.told("kube")}
    begin, = told.pop("README.md")
    look, kill = told.pop("docs/cluster.md")
    # a person's cluster is left alone
    busy = bool(running_in(FOLDER)) or \
        os.environ.get("BIGA_BUILD", "build") != "build"
    try:
        with t.check("README: the job lands aligned, on one leaf"):
            if busy:
                raise Skip(f"{FOLDER} is in use, or not of this build")
            shown_aligned(run(begin))
        with t.check("docs/cluster.md: what is there"):
            if busy:
                raise Skip("as above")
            told_of_pods(look)
        for path, texts in told.items():
            with t.check(path), tempfile.TemporaryDirectory() as folder:
                if busy:
                    raise Skip("as above")
                documents.write_files(path, folder)
                run(ENV + f"cd {folder}\n" + "\n".join(texts))
        with t.check("docs/cluster.md: the other replica takes over"):
            if busy:
                raise Skip("as above")
            replica_killed(kill)
    finally:
        if not busy:
            subprocess.run([sys.executable, "-B",
                            os.path.join(ROOT, "tests", "kube", "down"),
                            FOLDER], stdout=subprocess.DEVNULL, check=False)
    t.finish()


main()
