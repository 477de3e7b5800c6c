"""All that people do with pods, at each place of a node: the body of
test_direct.py and of the same tests by other ways.

    test_direct.py [NAME…]    only the functions test_NAME
"""
import sys

import rig
import lives
import mounts
import served
import verbs
from check import Checks
from place import Place

ALL = (*verbs.ALL, *lives.ALL, *mounts.ALL, *served.ALL)


def main(way, places=(Place,), n_cards=0):
    rig.require(way)
    chosen = [test for test in ALL if not sys.argv[1:]
              or test.__name__[5:] in sys.argv[1:]]
    try_all(rig.Rig(n_cards, way), places, chosen)


def try_all(node, places, tests, first=None):
    """These tests at these places of a Rig that is not started yet, which
    ends with them.  first: called before them, with the Checks and it."""
    with node as r:
        t = Checks(on_failure=r.tail)
        with t.check("the node is ready"):
            r.start()
            r.start_proxy()
            if any(place.biga for place in places):
                r.start_biga()
        if first and not t.failed:
            first(t, r)
        for place in places if not t.failed else ():
            p = place(r)
            t.note(f"at {p.prefix}")
            for test in tests:
                test(t, p)
        with t.check("nothing has ended that should run"):
            for process in (r.kubelet, r.proxy, r.rack.host.containerd):
                process.alive()
        t.finish()
