#!/usr/bin/env python3
"""The commands of README and the documents: those marked "here" and "demo" are
run, and those marked "checked" are read (tests/lib/documents.py).  Their
drawings are what biga draws."""
import filecmp
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), folder)
                for folder in ("lib", "kube")]
import documents  # noqa: E402
from proc import free_port  # noqa: E402

BUILD = os.path.abspath(os.environ.get("BUILD", "build"))


class Tap:
    def __init__(self):
        self.n = 0

    def ok(self, faults, name):
        self.n += 1
        print(f"{'not ok' if faults else 'ok'} {self.n} - {name}", flush=True)
        for line in faults:
            print(f"# {line}")


def run(command, folder):
    """The last lines that it said, when it fails."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("BIGA_")}
    env["PATH"] = BUILD + ":" + env["PATH"]
    got = subprocess.run(command, cwd=folder, env=env, text=True, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return got.stdout.splitlines()[-20:] if got.returncode else []


def run_blocks(tap, path, own, by):
    """`by` makes the command of a script."""
    with tempfile.TemporaryDirectory() as folder:
        documents.write_files(path, folder)
        os.symlink(os.path.join(documents.ROOT, "deploy"),
                   os.path.join(folder, "deploy"))
        with open(os.path.join(folder, "commands"), "w",
                  encoding="utf-8") as f:
            f.write(documents.script(own).replace("http://127.0.0.1:8700",
                                                  "$BIGA_SERVER")
                    .replace("'$BIGA_SERVER", "\"$BIGA_SERVER\"'"))
        tap.ok(run(by, folder), f"{path}: {len(own)} blocks of commands run")


def ports():
    """Options for a demo: others take the usual ones, and let go of them."""
    return [f"--{name}-listen=127.0.0.1:{free_port()}"
            for name in ("read", "scheduler", "publish")]


def drawings():
    """What docs/ has that scripts/pictures draws otherwise: texts."""
    with tempfile.TemporaryDirectory() as folder:
        said = run(["env", "BIGA_BUILD=" + BUILD, "scripts/pictures", folder]
                   + ports(), documents.ROOT)
        if said or not os.listdir(folder):
            return said or ["nothing is drawn"]
        docs, drawn = os.path.join(documents.ROOT, "docs"), os.listdir(folder)
        _, other, lacking = filecmp.cmpfiles(folder, docs, drawn,
                                             shallow=False)
        return [f"docs/{name} is not current: make docs"
                for name in other + lacking] + \
            [f"docs/{name} is drawn by nobody" for name in os.listdir(docs)
             if name.endswith(".svg") and name not in drawn]


def main():
    tap = Tap()
    tap.ok([f"{b}: its mark is {b.word}, must be one of "
            f"{', '.join(documents.RUNNERS)}"
            for path in documents.documents() for b in documents.shell(path)
            if b.word not in documents.RUNNERS],
           "each block of commands says who runs it")
    tap.ok(list(documents.unmarked()),
           "no command of biga stands outside of such a block")
    tap.ok(drawings(), "drawings are what biga draws")
    faults = documents.Faults(BUILD)
    for path, own in documents.told("checked"):
        tap.ok([f"{b}: {fault}" for b in own for fault in faults.of(b)],
               f"{path}: what {len(own)} blocks that are not run name exists")
    for path, own in documents.told("here"):
        run_blocks(tap, path, own, ["bash", "commands"])
    for path, own in documents.told("demo"):
        run_blocks(tap, path, own, ["biga", "demo", "--once"] + ports()
                   + ["--then", "bash commands"])


main()
