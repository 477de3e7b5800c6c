#!/usr/bin/env python3
"""Cards in trouble, with real processes: frozen, killed, cut off, flapping,
without power, and behind a wire that loses a reply.  The others go on, the
card's capacity leaves the slice within 5 s and comes back, and what ran there
runs there once.

    test_faults.py [frozen|killed|link|flapping|power|lost|long|meanwhile]…
"""
import contextlib
import os
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import node as biga_node  # noqa: E402
from check import Checks  # noqa: E402
from node import pod, service  # noqa: E402
from proc import wait_for  # noqa: E402
from proxy import Proxy  # noqa: E402

LEAVES = 5.0  # seconds until a lost card's capacity is withdrawn
RETURNS = 15.0  # until it is back, once the card answers
BIG = 40000  # MiB, of which only one card has enough
SANDBOX_CONTAINER = (400, 1000)  # bytes, that a call to make one has at least
LONG = float(os.environ.get("BIGA_FREEZE", "60"))


def p99(times):
    return sorted(times)[int(len(times) * 0.99)]


class Scheduler:
    """Asks the extender as kube-scheduler does, for a pod that fits any
    card."""

    def __init__(self, node):
        self.api = node.extender.api("scheduler")
        self.body = {"Pod": pod("probe", "service", {
            "biga.dev/card": 1, "biga.dev/card-cores": 1,
            "biga.dev/card-memory-mib": 1}),
            "NodeNames": [cards.NODE]}

    def times(self, n=400):
        took = []
        for _ in range(n):
            began = time.perf_counter()
            self.api.call("POST", "/v1/scheduler/filter", self.body)
            took.append(time.perf_counter() - began)
        return took


class Trouble:
    def __init__(self, t, node):
        self.t, self.node, self.rack = t, node, node.rack
        self.scheduler = Scheduler(node)
        self.names = [f"svc{i}" for i in range(len(self.rack.cards))]
        self.n = 0

    def begin(self):
        """A service on every card, with some room beside it."""
        self.node.apply([service(n, cores=5) for n in self.names])
        self.node.wait_state(self.names, "running", 60)
        self.on = {self.node.place_of(n).name: n for n in self.names}
        self.before = self.live()
        self.filter = p99(self.scheduler.times())
        self.ops = p99([self.operation() for _ in range(8)])

    def live(self):
        """{pod: id of its sandbox}"""
        return {s["name"]: s["id"] for _, s in
                self.node.sandboxes_of_pods() if s["ready"]}

    def operation(self):
        """How long a pod takes to run and to go again."""
        self.n += 1
        name = f"op{self.n}"
        began = time.perf_counter()
        self.node.apply([service(name, cores=1)])
        wait_for("it runs", lambda: self.node.states([name]).get(name)
                 == "running", 30, 0.01)
        self.node.delete(name)
        wait_for("it is gone", lambda: not self.node.states([name]), 30, 0.01)
        return time.perf_counter() - began

    def ready(self, card):
        """All is well before a fault, whatever became of earlier ones."""
        self.back(card)
        self.node.wait_state(self.names, "running", 60)
        self.node.wait_clean()
        self.before = self.live()

    @contextlib.contextmanager
    def away(self, card, begin, end):
        """The card is withdrawn in time once begin() has returned; after
        end(), which is called whatever comes, it is back.  Gives when it
        began."""
        self.ready(card)
        began = time.monotonic()
        begin()
        try:
            wait_for(f"{card.name}'s capacity is withdrawn", lambda:
                     card.id not in self.node.capacity(), LEAVES)
            yield began
        finally:
            end()
        self.back(card)

    def cut(self, card):
        return self.away(card, lambda: card.link(False),
                         lambda: card.link(True))

    def back(self, card, timeout=RETURNS):
        wait_for(f"{card.name} can be chosen again", lambda:
                 card.id in self.node.capacity(), timeout, 0.05)

    def same(self):
        """What ran before runs, in the same sandboxes, and once."""
        self.node.wait_state(self.names, "running", 30)
        self.node.wait_clean()
        now = self.live()
        assert now == self.before, (now, self.before)

    def others(self):
        """While one is away, the scheduler is answered and pods on other
        cards come and go; how fast is for bench_frozen.py to judge."""
        for what, now, before in (
                ("filter", self.scheduler.times(), self.filter),
                ("a pod up and down", [self.operation() for _ in range(8)],
                 self.ops)):
            self.t.note(f"{what}, p99: {p99(now) * 1000:.1f} ms, "
                        f"{before * 1000:.1f} ms before")


def stay(seconds, began):
    """Until that long after it began."""
    time.sleep(max(0, seconds - (time.monotonic() - began)))


def test_frozen(t, trouble, card, seconds):
    with t.check(f"a card is frozen for {seconds:g} s: it is withdrawn, the "
                 "others go on"):
        with trouble.away(card, card.freeze, card.thaw) as began:
            name = trouble.on[card.name]
            local = trouble.node.local("GET", "/v1/pods")["items"]
            assert next(p["stale"] for p in local if p["name"] == name), local
            trouble.others()
            stay(seconds, began)
        trouble.same()


def test_killed(t, trouble, card):
    with t.check("its containerd is killed: its pods go on, and are its own "
                 "again"):
        with trouble.away(card, card.kill, lambda: card.start().wait_up()):
            assert card.pods_running() >= 2
        trouble.same()


def test_link(t, trouble, card):
    with t.check("its link is down for 8 s"):
        with trouble.cut(card) as began:
            trouble.others()
            stay(8, began)
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
        flaps = threading.Thread(target=card.flap, args=(12,))
        flaps.start()
        seen = []
        while flaps.is_alive():
            seen.append(card.id in trouble.node.capacity())
            time.sleep(0.1)
        changes = sum(a != b for a, b in zip(seen, seen[1:]))
        t.note(f"changed {changes} times in 12 s")
        assert changes <= 2, seen
        trouble.back(card)
        trouble.same()


def test_power(t, trouble, card):
    with t.check("its power fails: what ran there begins anew, once"):
        with trouble.away(card, card.power_cut,
                          lambda: card.start().wait_up()):
            name = trouble.on[card.name]
        wait_for("it runs again", lambda: trouble.live().get(name)
                 not in (None, trouble.before[name]), 60)
        trouble.node.wait_state([name], "running", 60)
        trouble.before[name] = trouble.live()[name]
        trouble.same()
        wait_for("biga ps tells of the second attempt",
                 lambda: trouble.node.pods()[name]["attempt"] >= 2, 10)


def test_gone_meanwhile(t, trouble, card):
    name = trouble.on[card.name]
    with t.check("a pod that is deleted while its card is away ends when it "
                 "is back"):
        with trouble.cut(card):
            trouble.node.delete(name)
            trouble.names.remove(name)
            time.sleep(1)
            assert name in trouble.live(), "nobody could have ended it"
        trouble.node.wait_gone([name], 30)
        trouble.node.wait_clean()


def test_reply_lost(t, trouble, card, proxy):
    with t.check("a reply is lost on its way: the pod runs there once"):
        trouble.ready(card)
        done = 0
        for n, size in enumerate(SANDBOX_CONTAINER * 2):
            name = f"lost{n}"
            proxy.swallow(size)
            trouble.node.apply([service(name, cores=1, memory=BIG)])
            trouble.node.wait_state([name], "running", 60)
            trouble.node.wait_clean()
            trouble.node.delete(name)
            trouble.node.wait_gone([name], 60)
            done += proxy.hungry == 0
            proxy.swallow(0)
        t.note(f"{done} replies were lost")
        assert done, "no reply was lost"
        trouble.back(card)
        trouble.same()


def main():
    cards.require()
    with cards.Rack() as rack:
        t = Checks(on_failure=rack.tail)
        last = rack.cards[7]
        with t.check("a service runs on each of eight cards"):
            rack.start()
            proxy = Proxy(cards.PORT, last.address)
            last.make_keys("127.0.0.1").restart().wait_local()
            last.endpoint = f"tcp://127.0.0.1:{proxy.port}"
            last.shape = {"memory": f"{2 * BIG}MiB"}
            node = biga_node.Node(rack)
            node.start()
            trouble = Trouble(t, node)
            trouble.begin()
        if not t.failed:
            for name, test, *args in (
                    ("frozen", test_frozen, rack.cards[0], 10),
                    ("killed", test_killed, rack.cards[1]),
                    ("link", test_link, rack.cards[2]),
                    ("flapping", test_flapping, rack.cards[3]),
                    ("power", test_power, rack.cards[4]),
                    ("lost", test_reply_lost, last, proxy),
                    ("long", test_frozen, rack.cards[5], LONG),
                    ("meanwhile", test_gone_meanwhile, rack.cards[6])):
                if not sys.argv[1:] or name in sys.argv[1:]:
                    test(t, trouble, *args)
    t.finish()


main()
