#!/usr/bin/env python3
"""The parts of a node are restarted, each alone and every two at once, under
a pair that stands: it runs on as it was, nothing is there twice, no line of a
log is lost, and all that people do with pods works as before.

    test_restarts.py [PART…]    only restarts of these alone, as in "router"

With NODE_FULL=1 every verb is tried after every restart, else after most a
third of them."""
import concurrent.futures
import contextlib
import itertools
import os
import signal
import sys
import threading
from http.client import HTTPException

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
import standing  # noqa: E402
from cards import NODE  # noqa: E402
from check import Checks  # noqa: E402
from cri import Cri  # noqa: E402
from pods import WAIT, sh, status_of  # noqa: E402
from proc import HANGS, wait_for  # noqa: E402
from standing import Standing  # noqa: E402

FULL = bool(os.environ.get("NODE_FULL"))
LOAD = 3  # pods that come at each place
TERM, KILL = signal.SIGTERM, signal.SIGKILL


# --- the parts --------
class Part:
    """What can be restarted.  find: its process.  back: returns when it does
    its work again; both get the rig."""

    def __init__(self, name, find, back):
        self.name, self.find, self.back = name, find, back


def kubelet_back(r):
    def knows():
        if not r.kubelet.running:
            r.kubelet.start()  # it ends when no runtime answers
        said = r.c.kubectl("get", "--raw",
                           f"/api/v1/nodes/{NODE}/proxy/pods")
        return all(f'"{p}-{standing.PAIR}"' in said for p in ("host", "card"))
    wait_for("the kubelet knows its pods", knows)


def router_back(r):
    """Also the kubelet reaches it: that dials what was away less and less
    often, and fails all that it is asked meanwhile."""
    wait_for("it answers", lambda: Cri(unix=r.way.socket).version())
    for p in ("host", "card"):
        wait_for("the kubelet reaches it", lambda p=p: r.c.kubectl(
            "exec", f"{p}-{standing.PAIR}", "--", "true") == "")


def runtime_back(r, place):
    """It does what it is asked through the router."""
    place.wait_up()
    found = [c["id"] for c in place.local().containers()
             if c["labels"].get("io.kubernetes.container.name") == "main"
             and c["state"] == 1]
    wait_for(f"{place.name} is reached", lambda: Cri(
        unix=r.way.socket).exec(found[0], "true")[0] == 0)


def all_parts(card):
    return (
        Part("kubelet", lambda r: r.kubelet, kubelet_back),
        Part("router", lambda r: r.way.process, router_back),
        Part("advertiser", lambda r: r.biga.advertisers[0],
             lambda r: r.biga.wait_slices(1)),
        Part("host containerd", lambda r: r.rack.host.containerd,
             lambda r: runtime_back(r, r.rack.host)),
        Part("card containerd", lambda r: card.containerd,
             lambda r: runtime_back(r, card)))


# --- what the node says of itself -------------------------------------------
class Conditions(threading.Thread):
    """All that was ever told of the node's Ready."""

    def __init__(self, r):
        super().__init__(daemon=True)
        self.r, self.seen, self.version = r, [], None
        self.start()

    def run(self):
        with contextlib.suppress(OSError, HTTPException):  # at the end
            while True:
                self.watch()

    def watch(self):
        for _, node in self.r.c.api.watch(
                "nodes", timeout=HANGS,
                fieldSelector="metadata.name=" + NODE):
            ready = next(c for c in node["status"]["conditions"]
                         if c["type"] == "Ready")
            self.seen.append((ready["status"], ready["message"]))
            self.version = node["metadata"]["resourceVersion"]

    def count(self):
        """How many there were until now."""
        now = self.r.c.api.get("nodes", None, NODE)["metadata"][
            "resourceVersion"]
        wait_for("the watch has come to now", lambda: self.version and
                 int(self.version) >= int(now))
        return len(self.seen)

    def bad(self, since):
        self.count()
        return [said for said in self.seen[since:] if said[0] != "True"]


# --- one restart -------------------------------------------------------------
class Streams:
    """exec -i of both pods, held over a restart."""

    def __init__(self, r, both):
        self.talks = [r.talk("exec", "-i", one.name, "--", "cat")
                      for one in both]
        for talk in self.talks:
            talk.write("before\n")
            talk.wait_text("before\n")

    def judge(self, names, how):
        """They went on, or ended, where what carries them ended.  Of a card's
        the client hears why: a command that was cut off is not one that ended
        well.  Only who is killed itself cannot say that."""
        host, card = self.talks
        for talk, carry in ((host, {"kubelet", "host containerd"}),
                            (card, {"kubelet", "router", "card containerd"})):
            if not carry & set(names):
                talk.write("after\n")
                talk.wait_text("after\n")
                talk.close_input()
                assert talk.wait() == 0, talk.text
        if names == ("router",) and how == TERM:
            assert card.wait() == 1, card.text
            assert "biga-cri is stopping" in card.text, card.text
        elif names == ("card containerd",):
            assert card.wait() == 1, card.text
            assert "ended the stream" in card.text, card.text
        for talk in self.talks:
            talk.wait()


class Bench:
    def __init__(self, t, r):
        self.t, self.r = t, r
        self.both = standing.begin(r)
        self.parts = all_parts(self.both[1].where)
        self.conditions = Conditions(r)
        self.turn = 0

    def end(self, parts, how):
        with contextlib.ExitStack() as stack:
            for one in self.both:
                if one.where.containerd in [p.find(self.r) for p in parts]:
                    stack.enter_context(one.held())
            for part in parts:
                part.find(self.r).send(how)
            for part in parts:
                part.find(self.r).stop(told=True)

    def restart(self, parts, how):
        names = tuple(p.name for p in parts)
        what = " and ".join(names) + (" stopped" if how == TERM else " killed")
        since = self.conditions.count()
        with self.t.check(f"{what}: nothing is started again, no line lost"):
            streams = Streams(self.r, self.both)
            self.end(parts, how)
            for part in parts:
                part.find(self.r).start()
            for part in parts:
                part.back(self.r)
            self.r.wait_ready()
            for one in self.both:
                one.goes_on()
                one.same()
            streams.judge(names, how)
        bad = self.conditions.bad(since)
        if len(parts) == 1 and names != ("kubelet",):
            self.t.ok(not bad, f"{what}: the node was Ready all the time", bad)
        elif bad:
            self.t.note(f"the node was not Ready: {bad}")
        return what

    def try_verbs(self, what, verbs):
        """At both places, and several at once: most of it is to wait."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            asked = [(verb, [pool.submit(verb, one) for one in self.both])
                     for verb in verbs]
            for verb, answers in asked:
                with self.t.check(f"{what}: {verb.__doc__}"):
                    for answer in answers:
                        answer.result()

    def some(self):
        """A third of the verbs, another each time; all of them, if wanted."""
        self.turn += 1
        return Standing.VERBS if FULL else Standing.VERBS[self.turn % 3::3]

    def singles(self):
        for part in self.parts:
            if sys.argv[1:] and part.name not in sys.argv[1:]:
                continue
            self.try_verbs(self.restart([part], TERM), Standing.VERBS)
            self.try_verbs(self.restart([part], KILL), self.some())

    def pairs(self):
        for two in itertools.combinations(self.parts, 2):
            self.try_verbs(self.restart(two, KILL), self.some())

    # --- the router alone, in bad moments --------
    def under_load(self, how):
        """It is replaced while pods come."""
        word = "stopped" if how == TERM else "killed"
        router = self.r.way.process
        with self.t.check(f"router {word} while pods come: all are there, "
                          "each once"):
            # a card's pod has not failed when its start was cut off before
            # any process of it could run
            names = [(one.p, one.p.apply(
                f"load{n}", sh(WAIT),
                restartPolicy="Never" if one.p.biga else "Always"))
                     for n in range(LOAD) for one in self.both]
            wait_for("the first has begun", lambda: any(
                "load" in s["name"] for s in
                self.r.rack.host.local().sandboxes()))
            self.end([self.parts[1]], how)
            router.start()
            for p, name in names:
                self.settled(p, name)
            self.r.c.kubectl("delete", "pod", *[name for _, name in names])
            for one in self.both:
                one.same()

    def while_away(self, how):
        """It is replaced while a card stands still."""
        word = "stopped" if how == TERM else "killed"
        host, card = self.both
        where = card.where
        with self.t.check(f"router {word} while a card is frozen: the pod "
                          "there stays as it is"):
            where.freeze()
            try:
                self.end([self.parts[1]], how)
                self.r.way.process.start()
                host.new()  # by then the kubelet has looked often
                found = self.r.pod(card.name)
                assert card.containers(found) == card.ids, found["status"]
                card.lines()
            finally:
                where.thaw()
            runtime_back(self.r, where)
            card.goes_on()
            card.same()

    def settled(self, p, name):
        """It runs, once; or its start was cut off when a process of it might
        have run: then it has failed, as it is not to restart."""
        def known():
            found = self.r.pod(name)
            if found["status"]["phase"] == "Failed":
                return found
            found = self.r.ready_pod(name)
            return found and self.objects(p, found)[1] and found
        found = wait_for(f"{name} runs, or is known to have failed", known)
        if found["status"]["phase"] != "Failed":
            self.once(p, found)
            return
        ended = status_of(found)["state"]["terminated"]
        assert p.biga and ended["reason"] == "StartError" and \
            "failed to start containerd task" in ended["message"], ended
        assert not self.objects(p, found)[1], found

    def objects(self, p, found):
        """Of a pod: the sandboxes that are ready, the containers that run."""
        where = p.card_of(found) if p.biga else self.r.rack.host
        uid = found["metadata"]["uid"]
        sandboxes, containers = where.objects()
        return ([s for s in sandboxes if s["uid"] == uid and s["ready"]],
                [c for c in containers if c["state"] == 1 and
                 c["labels"].get("io.kubernetes.pod.uid") == uid])

    def once(self, p, found):
        """There is one sandbox that is ready, and one container, and none
        ran before.  (The kubelet counts it as a restart when the call that
        starts a container fails.)"""
        last = status_of(found)["lastState"]
        assert "running" not in last, last
        assert last.get("terminated", {}).get("reason", "StartError") == \
            "StartError", last
        live, running = self.objects(p, found)
        assert len(live) == len(running) == 1, (live, running)


def main():
    rig.require("router")
    with rig.Rig(2, "router") as r:
        t = Checks(on_failure=r.tail)
        with t.check("the node is ready, a pair stands on it"):
            r.start()
            r.start_proxy()
            r.start_biga()
            bench = Bench(t, r)
        if not t.failed:
            bench.try_verbs("before all", Standing.VERBS)
            bench.singles()
            if not sys.argv[1:]:
                bench.pairs()
            if not sys.argv[1:] or "router" in sys.argv[1:]:
                for how in (TERM, KILL):
                    bench.under_load(how)
                    bench.while_away(how)
            with t.check("the pair ends, its logs are those of the runtimes"):
                for one in bench.both:
                    one.end()
        t.finish()


main()
