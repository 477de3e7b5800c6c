#!/usr/bin/env python3
"""What goes between a kubelet and pods on cards: volumes that change and go,
logs that are rotated, many streams at once; biga-cri is killed in between.

    test_data.py [--mib N] [updates|logs|streams…]

--mib: of log, 48 by default.
"""
import argparse
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
import logged  # noqa: E402
import streams  # noqa: E402
import updates  # noqa: E402
from check import Checks  # noqa: E402
from place import OnCard  # noqa: E402

PARTS = ("updates", "logs", "streams")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=int, default=48)
    parser.add_argument("part", nargs="*", choices=[[], *PARTS])
    args = parser.parse_args()
    rig.require("router")
    with rig.Rig(1, "router", kubelet=logged.ROTATES) as r:
        t = Checks(on_failure=r.tail)
        with t.check("the node is ready"):
            r.start()
            r.start_biga()
        p, parts = OnCard(r), args.part or PARTS
        if "updates" in parts and not t.failed:
            updates.test_updates(t, r, p)
        if "logs" in parts and not t.failed:
            logged.test_logs(t, r, p, args.mib)
            logged.test_follow(t, r, p)
        if "streams" in parts and not t.failed:
            streams.test_streams(t, r, p)
        t.finish()


main()
