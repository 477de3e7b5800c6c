#!/usr/bin/env python3
"""One book: random operations of all kinds against a real kube-scheduler:
pods by both of Biga's doors, claims without Biga, deletions, drains of nodes.
A reader that knows nothing of Biga (onebook.py) finds nothing given twice, and
no card's cores over, at any look and in the end.

$BIGA_BOOK_OPS: how many (400; 10,000 by hand); $BIGA_SEED repeats them.
"""
import os
import random

import mixed
import onebook
import pool
from check import Checks
from proc import wait_for

SEED = int(os.environ.get("BIGA_SEED") or random.SystemRandom().randrange(
    1 << 32))
OPERATIONS = int(os.environ.get("BIGA_BOOK_OPS") or 400)
LOOK = 25        # operations between two looks
HOSTS = 8        # of each half
LIVE = 5 * HOSTS  # groups of pods, so that all fit in the end
WAITING = 60     # pods, before more are made
DOORS = {"gate": 4, "extender": 3, "plain": 3}


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        t.note(f"seed {SEED}")
        mixed.install(c, HOSTS, HOSTS, stock=False)
        mix = mixed.Mix(c, SEED, DOORS, LIVE)

        def few_wait():
            waiting = [p for p in c.api.list(
                "pods", "default", fieldSelector="spec.nodeName=")]
            assert len(waiting) < WAITING, f"{len(waiting)} pods wait"
            return True
        with t.check(f"{OPERATIONS} operations: one book at every look"):
            for number in range(1, OPERATIONS + 1):
                mix.step()
                if number % LOOK == 0:
                    onebook.assert_one_book(c.api, settled=False)
                    wait_for("the scheduler comes after", few_wait, every=0.1)
            t.note(mix.text())
        if not t.failed:
            with t.check("all that is left has a node, in one book"):
                mix.settle()
                onebook.assert_one_book(c.api)
        t.finish()


if __name__ == "__main__":
    main()
