#!/usr/bin/env python3
"""biga-cri is killed, replaced and frozen, and so are cards, under a real
kubelet with pods on the host and on a card: pods run on, nothing of the host
notices a card, and what is deleted goes."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
from check import Checks  # noqa: E402
from place import OnCard, Place  # noqa: E402
from pods import SAY, WAIT, held, sh, status_of  # noqa: E402
from proc import wait_for  # noqa: E402

TALK = f"n=0; while sleep 0.2; do {SAY}; done"


def restarts(r, name):
    return status_of(r.pod(name))["restartCount"]


def lines(r, name):
    """Of its log, as kubectl has it; each is there once and in order."""
    got = r.c.kubectl("logs", name).splitlines()
    assert got == [f"line {n + 1}" for n in range(len(got))], got[-5:]
    return len(got)


def begin(t, places):
    names = []
    with t.check("a pod on the host and one on a card talk"):
        for p in places:
            names.append(p.up("talk", sh(TALK)))
            assert p.here(p.r.pod(names[-1]))
    return names


def test_restart(t, r, names):
    for how in ("killed", "stopped"):
        with t.check(f"biga-cri is {how} and begun again: nothing restarts, "
                     "no line is lost"):
            before = {name: lines(r, name) for name in names}
            if how == "killed":
                r.way.process.kill()
            else:
                r.way.process.stop()
            r.way.start()
            r.wait_ready()
            for name in names:
                wait_for("it goes on", lambda n=name: lines(r, n) >
                         before[n] + 5)
                assert restarts(r, name) == 0
    with t.check("exec and logs -f work as before"):
        for name in names:
            assert r.c.kubectl("exec", name, "--", "echo", "a") == "a\n"
            follow = r.talk("logs", "-f", "--tail=1", name)
            wait_for("a line", lambda f=follow: "line" in f.text)
            follow.end()


def test_frozen(t, r, card, host, names):
    node = card.card_of(r.pod(names[1]))
    with t.check("a card freezes: the node stays ready, its pod is shown, "
                 "host pods come and go"):
        node.freeze()
        try:
            name = host.up("beside", sh(WAIT))
            host.gone(name)
            assert r.condition()[0] == "True", r.condition()
            assert r.ready_pod(names[1])
            assert lines(r, names[1]) > 0
        finally:
            node.thaw()
    with t.check("it thaws: its pod goes on, and nothing was started twice"):
        had = lines(r, names[1])
        wait_for("it goes on", lambda: lines(r, names[1]) > had + 5)
        assert restarts(r, names[1]) == 0
        assert len(card.here(r.pod(names[1]))) == 1


def test_card_runtime(t, r, card, names):
    node = card.card_of(r.pod(names[1]))
    with t.check("a card's containerd is killed and comes again: its pod "
                 "runs on"):
        had, found = lines(r, names[1]), r.pod(names[1])
        with held(node, found, node.seen(
                "var/lib/biga/pods", found["metadata"]["uid"], "logs",
                "main-0.log")):
            node.containerd.kill()
        assert r.condition()[0] == "True", r.condition()
        node.start()
        wait_for("it goes on", lambda: lines(r, names[1]) > had + 5)
        assert restarts(r, names[1]) == 0


def test_end(t, r, places, names):
    with t.check("both are deleted, and nothing of them is left"):
        card = places[1].card_of(r.pod(names[1]))
        for p, name in zip(places, names):
            p.gone(name)
        wait_for("no sandbox is there", lambda: not [
            s for s in card.local().sandboxes()
            if "card-talk" in s["labels"].values()])


def main():
    rig.require("router")
    with rig.Rig(2, "router") as r:
        t = Checks(on_failure=r.tail)
        with t.check("the node is ready"):
            r.start()
            r.start_biga()
        places = Place(r), OnCard(r)
        names = begin(t, places) if not t.failed else ()
        if names and not t.failed:
            test_restart(t, r, names)
            test_frozen(t, r, places[1], places[0], names)
            test_card_runtime(t, r, places[1], names)
            test_end(t, r, places, names)
        t.finish()


main()
