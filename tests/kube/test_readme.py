#!/usr/bin/env python3
"""docs/cluster.md: works as it is written."""
import os
import re
import subprocess
import sys

from check import Checks, Skip
from cluster import ROOT, binaries
from proc import HANGS, running_in, wait_for

FOLDER = os.path.join(ROOT, "build", "kube")


def commands():
    """Its shell commands, block after block."""
    with open(os.path.join(ROOT, "docs", "cluster.md"), encoding="utf-8") as f:
        return re.findall(r"^```sh\n(.*?)^```$", f.read(), re.M | re.S)


def run(text):
    """Each line has to succeed.  What a person would not wait for longer is
    waited for until it hangs."""
    text, n = re.subn(r"--timeout=\d+s", f"--timeout={HANGS:.0f}s", text)
    got = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=ROOT,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, check=False, timeout=(n + 1) * HANGS)
    assert got.returncode == 0, f"exit {got.returncode}:\n{got.stdout}"
    return got.stdout


def main():
    binaries()
    t = Checks()
    first, second = commands()[:2]
    # a person's cluster is left alone
    busy = bool(running_in(FOLDER)) or \
        os.environ.get("BIGA_BUILD", "build") != "build"
    try:
        with t.check("the job lands aligned, on one leaf"):
            if busy:
                raise Skip(f"{FOLDER} is in use, or not of this build")
            said = run(first)
            shown = said.split("\njob ")[1].split("\nName: ")[0]
            assert "16 of 16 bound" in shown and "on 1 leaf" in shown, shown
            ranks = re.findall(r"^ *\d+ +bound .* (\w+) +[12]$", shown, re.M)
            assert ranks == ["PIX"] * 16, shown
            for word in ("-xpu ", "extender"):
                assert word in said, f"no {word!r} in {said}"
            # Events may come after what they tell
            describe, = [line for line in first.splitlines()
                         if line.startswith("kubectl describe ")]
            wait_for("it is told so", lambda: "Aligned" in run(
                ". build/kube/env\n" + describe))
        with t.check("the other replica takes over"):
            if busy:
                raise Skip("as above")
            env = ". build/kube/env\n"
            before, after = second.split("biga allocations\n")
            run(env + before)

            def shown():
                # nothing before has waited for the third pod of the file
                said = run(env + "biga allocations")
                assert "default/render-xpu" in said and \
                    "default/telemetry" in said, said
                return True
            wait_for("they are shown", shown)
            run(env + after)
            assert not running_in(FOLDER), "make kube-down left something"
    finally:
        if not busy:
            subprocess.run([sys.executable, "-B",
                            os.path.join(ROOT, "tests", "kube", "down"),
                            FOLDER], stdout=subprocess.DEVNULL, check=False)
    t.finish()


main()
