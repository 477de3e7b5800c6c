#!/usr/bin/env python3
"""The commands of README and the documents that are marked "cards": they work
as they are written (tests/lib/documents.py)."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import proc  # noqa: E402
from check import Checks, Skip  # noqa: E402

sys.path.insert(0, os.path.join(cards.ROOT, "tests", "lib"))
import documents  # noqa: E402

FOLDER = os.path.join(cards.BUILD, "cards")


# before what a document does with cards that it does not make
UP = """make cards-up CARDS_ARGS=--biga
. build/cards/env
"""


def scripts(own):
    """The blocks of a document: name, commands.  Those that make cards begin
    anew, others go on."""
    if any("make cards-up" in b.text for b in own):
        return [(str(b), documents.script([b])) for b in own]
    return [(own[0].path, UP + documents.script(own))]


def down():
    documents.run("make --no-print-directory cards-down", proc.HANGS)


def main():
    t = Checks()
    # a person's cards are left alone
    busy = bool(proc.running_in(FOLDER)) or \
        os.environ.get("BIGA_BUILD", "build") != "build"
    why = cards.lacking() or \
        (f"{FOLDER} is in use, or not of this build" if busy else "")
    for path, own in documents.told("cards"):
        for name, text in scripts(own):
            with t.check(name):
                if why:
                    raise Skip(why)
                try:
                    documents.run(text, proc.HANGS)
                finally:
                    down()
                assert not proc.running_in(FOLDER), "something was left"
    t.finish()


main()
