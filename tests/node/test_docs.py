#!/usr/bin/env python3
"""The commands of the documents that are marked "node": they work as they are
written (tests/lib/documents.py)."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
import cards  # noqa: E402
import proc  # noqa: E402
from check import Checks, Skip  # noqa: E402

sys.path.insert(0, os.path.join(cards.ROOT, "tests", "lib"))
import documents  # noqa: E402

FOLDER = os.path.join(cards.BUILD, "node")


def main():
    t = Checks()
    # a person's node is left alone
    busy = bool(proc.running_in(FOLDER)) or \
        os.environ.get("BIGA_BUILD", "build") != "build"
    why = rig.lacking() or \
        (f"{FOLDER} is in use, or not of this build" if busy else "")
    for path, own in documents.told("node"):
        with t.check(path):
            if why:
                raise Skip(why)
            try:
                documents.run(documents.script(own), proc.HANGS)
                assert not proc.running_in(FOLDER), "something was left"
            finally:
                documents.run("make --no-print-directory node-down",
                              proc.HANGS)
    t.finish()


main()
