#!/usr/bin/env python3
"""A card in trouble is not the kubelet's trouble: frozen, killed, cut off,
flapping, lying, without power, rebooted, with a full disk.  All the time the
node is Ready, pods on the host start and end, other cards go on, and by the
records of both sides no container is told as gone that runs, none runs twice,
none is forgotten.  After each the truth is told.

    test_card_trouble.py [NAME…]    only the functions test_NAME

With NODE_FULL=1 it flaps for longer.
"""
import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
from check import Checks  # noqa: E402
from cri import Cri  # noqa: E402
from liar import Liar  # noqa: E402
from place import AtCard, Place  # noqa: E402
from pods import WAIT, sh, status_of  # noqa: E402
from proc import wait_for  # noqa: E402
from watch import Watch  # noqa: E402

FLAPS = 6 if os.environ.get("NODE_FULL") else 2
DISK_MIB = 160


class Trouble:
    def __init__(self, r, w, liar):
        self.r, self.w, self.liar = r, w, liar
        self.host = Place(r)
        self.cards = [AtCard(r, c) for c in r.rack.cards]
        self.n = 0

    def up(self, place, **more):
        """A pod that waits; its name."""
        self.n += 1
        return place.up(str(self.n), sh(WAIT), **more)

    def container(self, name):
        return status_of(self.r.pod(name))["containerID"].split("//")[-1]

    def works(self, name):
        """Whether a command runs in it."""
        try:
            return self.r.c.kubectl("exec", name, "--", "echo", "a") == "a\n"
        except RuntimeError:
            return False

    def wait_lost(self, card):
        """Until biga-cri says that it does not answer."""
        wait_for(f"{card.name} is known to be away", lambda:
                 self.health(card) == "lost")

    def wait_back(self, card):
        wait_for(f"{card.name} is back", lambda: self.health(card) == "ready")

    def health(self, card):
        """As the log said last."""
        said = [line for line in self.r.way.process.text().splitlines()
                if "event=remote-health" in line and
                f"remote={card.id} " in line]
        return said[-1].rpartition("health=")[2].strip() if said else ""

    def host_goes_on(self):
        """A pod of the host comes and goes, others on cards do not notice."""
        self.host.gone(self.up(self.host))
        assert self.r.condition()[0] == "True", self.r.condition()

    def same(self, name, was):
        """It runs, the same container as before."""
        found = self.r.ready_pod(name)
        assert self.container(name) == was, found["status"]
        assert status_of(found)["restartCount"] == 0

    def end_container(self, card, name):
        """Its first process dies, whatever containerd does."""
        folder = card.path("run", "io.containerd.runtime.v2.task", "k8s.io",
                           self.container(name))
        with open(os.path.join(folder, "init.pid"), encoding="utf-8") as f:
            os.kill(int(f.read()), signal.SIGKILL)


def away(t, x, what, begin, end):
    """A card that does not answer for a while, and is as it was then."""
    place = x.cards[0]
    card = place.card
    stays, ends, deleted, other = [
        x.up(p, restartPolicy="Never")
        for p in (place, place, place, x.cards[1])]
    was = {name: x.container(name) for name in (stays, other)}
    with t.check(f"{what}: its pods are told as they were, the host's come "
                 "and go, those of other cards work"):
        begin()
        x.r.c.api.delete("pods", "default", deleted)
        x.end_container(card, ends)
        x.wait_lost(card)
        x.host_goes_on()
        x.same(stays, was[stays])
        assert x.works(other)
        assert x.r.pod(deleted)["metadata"]["deletionTimestamp"]
    with t.check(f"{what}, and back: what ended is told, what runs runs on, "
                 "what was deleted goes"):
        end()
        x.wait_back(card)
        found = place.phase(ends, "Failed")
        assert status_of(found)["state"]["terminated"]["exitCode"] == 137
        wait_for("it works", lambda: x.works(stays))
        x.same(stays, was[stays])
        x.same(other, was[other])
        wait_for("it is gone", lambda: x.r.c.api.maybe(
            "pods", "default", deleted) is None)
        x.w.rest()
        place.gone(stays, ends, other)


def test_frozen(t, x):
    card = x.cards[0].card
    away(t, x, "frozen", card.freeze, card.thaw)


def test_killed(t, x):
    card = x.cards[0].card
    away(t, x, "its containerd killed", card.kill, card.start)


def test_cut(t, x):
    card = x.cards[0].card
    away(t, x, "cut off", lambda: card.silent(True),
         lambda: card.silent(False))


def test_flapping(t, x):
    place = x.cards[0]
    card = place.card
    name = x.up(place, restartPolicy="Never")
    was = x.container(name)
    with t.check("a card that comes and goes"):
        for i in range(FLAPS):
            card.freeze()
            x.wait_lost(card)
            if i == 0:
                x.host_goes_on()
            x.same(name, was)
            card.thaw()
            wait_for("it works", lambda: x.works(name))
        x.same(name, was)
        x.w.rest()
        place.gone(name)


def no_power(x, card, meanwhile):
    card.power_cut()
    meanwhile()
    card.start().wait_up()


def test_power(t, x):
    place = x.cards[0]
    card = place.card
    name, once = x.up(place), x.up(place, restartPolicy="Never")
    was = x.container(name)

    def meanwhile():
        x.wait_lost(card)
        x.host_goes_on()
        x.same(name, was)
    with t.check("without power: the host's pods come and go, its own are "
                 "told as they were"):
        no_power(x, card, meanwhile)
    with t.check("with power again: its pod is started again, one that runs "
                 "once is told as ended"):
        # a command runs in the new one before the API server hears of it
        wait_for("it runs again", lambda: x.works(name) and
                 x.container(name) != was)
        place.phase(once, "Failed")
        x.w.rest()
        place.gone(name, once)


def test_reboot(t, x):
    """biga-cri and the kubelet, which die with their host, come back before
    the card, or after it."""
    place = x.cards[0]
    card, way = place.card, x.r.way
    for first in ("card", "host"):
        name, beside = x.up(place), x.up(x.cards[1], restartPolicy="Never")
        was = x.container(name), x.container(beside)
        with t.check("host and card reboot, the %s is back first: the pod of "
                     "the card runs again, that of another runs on" % first):
            x.r.kubelet.kill()
            way.process.kill()
            card.power_cut()
            if first == "card":
                card.start().wait_up()
            way.start()
            x.r.start_kubelet()
            x.r.wait_ready()
            x.same(beside, was[1])
            if first == "host":
                x.host_goes_on()
                card.start().wait_up()
            wait_for("it runs again", lambda n=name, id=was[0]:
                     x.works(n) and x.container(n) != id)
            x.same(beside, was[1])
            x.w.rest()
            place.gone(name, beside)


def test_full(t, x):
    place = x.cards[2]
    card = place.card
    name = x.up(place, restartPolicy="Never")
    was = x.container(name)
    with t.check("its disk is full: a new pod waits and says why, the others "
                 "go on"):
        card.fill_disk()
        late = place.apply("late", sh(WAIT))
        place.event(late, "FailedCreatePodSandBox", "no space left")
        x.host_goes_on()
        x.same(name, was)
    with t.check("it has room again: the new pod starts"):
        card.clear_disk()
        place.ready(late)
        x.same(name, was)
        x.w.rest()
        place.gone(name, late)


def test_lying(t, x):
    """What the card says of its own pods is all that anybody knows; of
    others' it says nothing."""
    place, lies = x.cards[3], x.liar.lies
    names = [x.up(p, restartPolicy="Never")
             for p in (x.cards[0], x.cards[1], x.host)]
    mine = x.up(place)
    was = [x.container(n) for n in names]
    x.w.lies(place.card.name)

    def others():
        for name, ident in zip(names, was):
            x.same(name, ident)
            assert x.works(name)
    with t.check("a card says that what runs has ended: that is told, and "
                 "others run on"):
        lies.ended = True
        wait_for("it is believed", lambda: status_of(
            x.r.pod(mine)).get("lastState", {}).get("terminated"))
        x.host_goes_on()
        others()
        lies.ended = False
        place.ready(mine)
    with t.check("it calls its own by the ids of another card's and of the "
                 "host's: those are not touched"):
        for there in was[1:]:
            lies.ids = {x.container(mine): there}
            wait_for("the lie is told", lambda i=x.container(mine): i not in {
                c["id"] for c in Cri(unix=x.r.way.socket).containers()})
            x.host_goes_on()
            others()
            lies.ids = {}
            place.ready(mine)
    with t.check("all is well again, and the pod of that card goes"):
        others()
        x.w.rest()
        place.gone(mine, *names)


ALL = (test_frozen, test_killed, test_cut, test_flapping, test_power,
       test_reboot, test_full, test_lying)


def nothing_left(t, x):
    with t.check("nothing is left on any card"):
        wait_for("all is gone", lambda: not [
            s for card in x.r.rack.cards for s in card.local().sandboxes()
            if not s["uid"].startswith("biga-helper-")])


def main():
    rig.require("router")
    with rig.Rig(4, "router") as r:
        t = Checks(on_failure=r.tail)
        r.rack.cards[2].disk_mib = DISK_MIB
        liar = Liar(r.rack.cards[3])
        with t.check("the node is ready"):
            r.start()
            liar.begin()
        with Watch(r) as w:
            x = Trouble(r, w, liar)
            for test in ALL if not t.failed else ():
                if not sys.argv[1:] or test.__name__[5:] in sys.argv[1:]:
                    test(t, x)
            nothing_left(t, x)
        found, made = w.check()
        t.note(", ".join(f"{n} {what}" for what, n in sorted(made.items())))
        t.ok(not found and made["looks at the node"] > 10,
             "by all records the node was well all the time, nothing was told "
             "as gone that ran, run twice, or forgotten",
             "\n".join(map(str, found)))
        t.finish()


main()
