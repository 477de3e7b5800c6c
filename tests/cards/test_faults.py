#!/usr/bin/env python3
"""Cards in trouble, with real processes: frozen, killed, cut off, flapping,
without power, and behind a wire that loses a reply.  The others go on, the
card's capacity leaves the slice and comes back, and what ran there runs there
once.

    test_faults.py [frozen|killed|link|flapping|power|meanwhile|lost]…

Without arguments, several racks share them.  How soon a card is lost is for
tests/unit, which has a clock of its own, to judge.
"""
import contextlib
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import parts  # noqa: E402
import node as biga_node  # noqa: E402
from check import Checks  # noqa: E402
from node import pod, service  # noqa: E402
from proc import wait_for  # noqa: E402
from proxy import Proxy  # noqa: E402

PARTS = (("frozen", "killed", "link"), ("flapping", "power", "meanwhile"),
         ("lost",))
FLAPS = 12
GIVEN_BACK = 1.5  # seconds: three answers in a row take longer than that
BIG = 40000  # MiB, of which only one card has enough
SANDBOX_CONTAINER = (400, 1000)  # bytes, that a call to make one has at least


class Trouble:
    def __init__(self, t, node):
        self.t, self.node, self.rack = t, node, node.rack
        self.names = [f"svc{i}" for i in range(len(self.rack.cards))]
        self.n = 0

    def begin(self):
        """A service on every card, with some room beside it."""
        self.node.apply([service(n, cores=5) for n in self.names])
        self.node.wait_state(self.names, "running")
        self.on = {self.node.place_of(n).name: n for n in self.names}
        self.before = self.live()

    def live(self):
        """{pod: id of its sandbox}"""
        return {s["name"]: s["id"] for _, s in
                self.node.sandboxes_of_pods() if s["ready"]}

    def operation(self, card):
        """A pod runs on another card, and goes again."""
        self.n += 1
        name = f"op{self.n}"
        self.node.apply([service(name, cores=1)])
        self.node.wait_state([name], "running")
        assert self.node.place_of(name) is not card
        self.node.delete(name)
        self.node.wait_gone([name])

    def filter(self, card):
        """Asks as kube-scheduler does, for a pod that fits any card, while
        that one is away; others may have been for a moment, too."""
        wait_for("another card can be chosen",
                 lambda: self.node.capacity() - {card.id})
        said = self.node.extender.api("scheduler").call(
            "POST", "/v1/scheduler/filter", {
                "Pod": pod("probe", "service", {
                    "biga.dev/card": 1, "biga.dev/card-cores": 1,
                    "biga.dev/card-memory-mib": 1}),
                "NodeNames": [cards.NODE]})
        assert said["NodeNames"] == [cards.NODE], said

    def ready(self, card):
        """All is well before a fault, whatever became of earlier ones."""
        self.back(card)
        self.node.wait_state(self.names, "running")
        self.node.wait_clean()
        self.before = self.live()

    @contextlib.contextmanager
    def away(self, card, begin, end):
        """The card is withdrawn once begin() has returned; after end(), which
        is called whatever comes, it is back."""
        self.ready(card)
        begin()
        try:
            self.gone(card)
            yield
        finally:
            end()
        self.back(card)

    def cut(self, card):
        return self.away(card, lambda: card.link(False),
                         lambda: card.link(True))

    def gone(self, card):
        began = time.monotonic()
        wait_for(f"{card.name}'s capacity is withdrawn", lambda:
                 card.id not in self.node.capacity())
        self.t.note(f"withdrawn after {time.monotonic() - began:.1f} s")

    def back(self, card):
        wait_for(f"{card.name} can be chosen again", lambda:
                 card.id in self.node.capacity())

    def same(self):
        """What ran before runs, in the same sandboxes, and once."""
        self.node.wait_state(self.names, "running")
        self.node.wait_clean()
        now = self.live()
        assert now == self.before, (now, self.before)

    def others(self, card):
        """While one is away, the scheduler is answered and pods on other
        cards come and go; how fast is for bench_frozen.py to judge."""
        for _ in range(2):
            self.filter(card)
            self.operation(card)


def test_frozen(t, trouble, card):
    with t.check("a card is frozen: it is withdrawn, the others go on"):
        with trouble.away(card, card.freeze, card.thaw):
            name = trouble.on[card.name]
            local = trouble.node.local("GET", "/v1/pods")["items"]
            assert next(p["stale"] for p in local if p["name"] == name), local
            trouble.others(card)
        trouble.same()


def test_killed(t, trouble, card):
    with t.check("its containerd is killed: its pods go on, and are its own "
                 "again"):
        with trouble.away(card, card.kill, lambda: card.start().wait_up()):
            assert card.pods_running() >= 2
        trouble.same()


def test_link(t, trouble, card):
    with t.check("its link is down"):
        with trouble.cut(card):
            trouble.others(card)
        trouble.same()
    with t.check("its packets vanish one way"):
        with trouble.away(card, lambda: card.silent(True),
                          lambda: card.silent(False)):
            pass
        trouble.same()


def test_flapping(t, trouble, card):
    with t.check("its link flaps once a second: it is not given back in "
                 "between"):
        trouble.ready(card)
        seen, longest, began = [], 0.0, time.monotonic()
        try:
            for _ in range(FLAPS):
                card.link(False)
                # whatever took its time, the link was not up for longer
                longest = max(longest, time.monotonic() - began)
                time.sleep(0.5)  # the fault is one of time itself
                seen.append(card.id in trouble.node.capacity())
                began = time.monotonic()
                card.link(True)
                time.sleep(0.5)
                seen.append(card.id in trouble.node.capacity())
        finally:
            card.link(True)
        changes = sum(a != b for a, b in zip(seen, seen[1:]))
        t.note(f"changed {changes} times in {FLAPS} flaps")
        # on a busy machine one may have been no flap but a recovery
        assert changes <= 2 or longest >= GIVEN_BACK, seen
        trouble.back(card)
        trouble.same()


def test_power(t, trouble, card):
    with t.check("its power fails: what ran there begins anew, once"):
        with trouble.away(card, card.power_cut,
                          lambda: card.start().wait_up()):
            name = trouble.on[card.name]
        wait_for("it runs again", lambda: trouble.live().get(name)
                 not in (None, trouble.before[name]))
        trouble.node.wait_state([name], "running")
        trouble.before[name] = trouble.live()[name]
        trouble.same()
        wait_for("biga ps tells of the second attempt",
                 lambda: trouble.node.pods()[name]["attempt"] >= 2)


def test_gone_meanwhile(t, trouble, card):
    name = trouble.on[card.name]
    with t.check("a pod that is deleted while its card is away ends when it "
                 "is back"):
        with trouble.cut(card):
            trouble.node.delete(name)
            trouble.names.remove(name)
            wait_for("its node knows", lambda: trouble.node.local(
                "GET", "/v1/pods/default/" + name)["stopping"])
            assert name in trouble.live(), "nobody could have ended it"
        trouble.node.wait_gone([name])
        trouble.node.wait_clean()


def test_reply_lost(t, trouble, card):
    proxy = card.proxy
    for bites, how in ((True, "with its connection"), (False, "in silence")):
        with t.check(f"a reply is lost {how}: the pod runs there once"):
            trouble.ready(card)
            for n, size in enumerate(SANDBOX_CONTAINER):
                name = f"lost{n}"
                proxy.swallow(size, bites)
                trouble.node.apply([service(name, cores=1, memory=BIG)])
                trouble.node.wait_state([name], "running")
                trouble.node.wait_clean()
                trouble.node.delete(name)
                trouble.node.wait_gone([name])
                assert proxy.hungry == 0, "no reply was lost"
            trouble.back(card)
            trouble.same()


def test_long(t, trouble, card):
    """A card is frozen for longer than any call, and than what is nobody's
    is left alone: as long as two calls whose replies are lost."""
    long = trouble.rack.cards[-1]
    with t.check("a card is frozen, and stays so"):
        trouble.ready(long)
        before = trouble.before
        long.freeze()
        trouble.gone(long)
    try:
        test_reply_lost(t, trouble, card)
    finally:
        long.thaw()
    with t.check("what ran there all the while runs there"):
        trouble.back(long)
        trouble.before = before
        trouble.same()


TESTS = {"frozen": test_frozen, "killed": test_killed, "link": test_link,
         "flapping": test_flapping, "power": test_power,
         "meanwhile": test_gone_meanwhile, "lost": test_long}


def put_proxy(card):
    """The card behind a wire that can lose a reply, and with more memory."""
    card.proxy = Proxy(cards.PORT, card.address)
    card.make_keys("127.0.0.1").restart().wait_local()
    card.endpoint = f"tcp://127.0.0.1:{card.proxy.port}"
    card.shape = {"memory": f"{2 * BIG}MiB"}


def main():
    cards.require()
    names = sys.argv[1:]
    if not names:
        parts.run(PARTS)
    with cards.Rack(len(names) + 1, host=False) as rack:
        t = Checks(on_failure=rack.tail)
        with t.check("a service runs on each card"):
            rack.start()
            if "lost" in names:
                put_proxy(rack.cards[names.index("lost")])
            trouble = Trouble(t, biga_node.Node(rack).start())
            trouble.begin()
        if not t.failed:
            for name, card in zip(names, rack.cards):
                TESTS[name](t, trouble, card)
    t.finish()


main()
