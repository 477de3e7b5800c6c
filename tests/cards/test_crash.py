#!/usr/bin/env python3
"""kill -9 of the advertiser at each of its named points, between the wish for
a pod and the pod that runs, and between its end and nothing left of it: after
a restart there is what there would be without, once and not twice, and
nothing that nobody wrote down.

    test_crash.py [POINT…]

Needs programs built with -DFAILPOINTS, in $BIGA_FAILPOINTS_BUILD (default
build-fp); `make test-cards` builds them.  Without arguments, several racks
share the points; those that wait for the grace of what is nobody's, twice,
have one each.
"""
import os
import re
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import parts  # noqa: E402
import node as biga_node  # noqa: E402
from check import Checks  # noqa: E402
from node import pair, service  # noqa: E402
from proc import wait_for  # noqa: E402

RACKS = 4
HITS = (1, 2)
# ends on SIGTERM, which a first process does not do by itself
QUICK = ("sh", "-c", "trap 'exit 0' TERM; sleep 100000 & wait")
# with files that have to be whole, whatever became of who wrote them
CAREFUL = ("sh", "-c", "touch /e/x /m/x && grep -qx whole /s/word || exit 1; "
           + QUICK[2])
SECRET = {"apiVersion": "v1", "kind": "Secret",
          "metadata": {"name": "word", "namespace": "default"},
          "stringData": {"word": "whole\n"}}
VOLUMES = [{"name": "s", "secret": {"secretName": "word"}},
           {"name": "e", "emptyDir": {}},
           {"name": "m", "emptyDir": {"medium": "Memory"}}]


def build():
    return os.path.join(cards.ROOT, os.environ.get("BIGA_FAILPOINTS_BUILD",
                                                   "build-fp"))


def points():
    """The names of all points of the actuator, from the table itself, or
    those asked for."""
    with open(os.path.join(cards.ROOT, "lib", "io", "failpoint.c"),
              encoding="utf-8") as f:
        return [p for p in re.findall(r'"(act-[a-z-]+)"', f.read())
                if p in sys.argv[1:] or not sys.argv[1:]]


class Crash:
    def __init__(self, node):
        self.node, self.n, self.twice = node, 0, []
        self.armed, self.reached = "", set()

    def restart(self, point="", hit=1):
        """Start it anew, to die there."""
        self.stop()
        self.armed = point
        self.node.advertiser.env = \
            {"BIGA_FAILPOINTS": f"{point}=kill:{hit}"} if point else {}
        self.node.advertiser.start()

    def stop(self):
        """Whatever was seen before, it may have died of its point since."""
        advertiser = self.node.advertiser
        if advertiser.stop() and advertiser.exit_status() == -signal.SIGKILL:
            self.reached.add(self.armed)

    def alive(self):
        return self.node.advertiser.running

    def until(self, true):
        """Until it has died, or this is so; whether it has died."""
        wait_for("it dies, or goes through", lambda: not self.alive() or
                 true(), every=0.1)
        died = not self.alive()
        if died:
            self.reached.add(self.armed)
        return died

    def reach(self, names, state):
        """Whether these pods have that state, and each is there once."""
        try:
            self.node.check_once()
        except AssertionError as error:
            self.twice.append(str(error))
        return all(s == state for s in self.node.states(names).values()) and \
            len(self.node.states(names)) == len(names)

    def gone(self, names):
        return not self.node.states(names)

    def arm(self, point, hit):
        """Start it anew, to die there; it may be dead when this returns."""
        self.restart(point, hit)
        wait_for("it listens", lambda: not self.alive() or
                 self.node.local("GET", "/v1/cards"))

    def begin(self, pods, point, ready, hit=1):
        """Apply pods with that point armed, until they are ready."""
        self.arm(point, hit)
        self.node.apply(pods)
        died = self.until(lambda: ready() and self.node.check_cards())
        if died:
            self.restart()
            wait_for("it goes on", ready)
            self.node.wait_clean()

    def end(self, names, point, hit=1):
        self.arm(point, hit)
        self.node.delete_all(names)
        died = self.until(lambda: self.gone(names) and
                          self.node.check_cards())
        if died:
            self.restart()
            wait_for("they are gone", lambda: self.gone(names), every=0.1)
            self.node.wait_clean()

    def go_on(self):
        if not self.alive():
            self.restart()

    def picture(self):
        return [(n.replace(f"c{self.n}", "c"), *p)
                for n, p in self.node.picture().items()]

    def stands(self, wanted):
        """What was told before it died is told again after: so it may be
        as wanted, not so, and as wanted."""
        self.go_on()
        picture = self.picture()
        assert picture == wanted, picture
        return True

    def round(self, point, hit, wanted=None):
        """One pair up and down with that point armed throughout; the picture
        in between."""
        self.n += 1
        pods = pair(f"c{self.n}", args=CAREFUL, restartPolicy="Never",
                    volumes=VOLUMES, container={"volumeMounts": [
                        {"name": v["name"], "mountPath": "/" + v["name"]}
                        for v in VOLUMES]})
        pods[0]["spec"]["containers"][0]["command"] = list(QUICK)
        names = [p["metadata"]["name"] for p in pods]
        self.begin(pods, point, lambda: self.reach(names, "running"), hit)
        picture = self.picture()
        if wanted:
            wait_for("all is as without", lambda: self.stands(wanted))
        self.end(names, point, hit)
        assert not self.twice, self.twice
        return picture

    def round_pull(self, point):
        """A pod whose image nobody has."""
        self.n += 1
        name = f"c{self.n}"
        self.begin(
            [service(name, cores=1, image="absent:1")], point,
            lambda: self.node.pods()[name]["reason"] == "ImageMissing")
        self.end([name], point)

    def round_exit(self, point):
        """A pod whose container ends and is begun again."""
        self.n += 1
        name = f"c{self.n}"
        self.begin(
            [service(name, cores=1, args=["sleep", "0.5"])], point,
            lambda: self.node.pods()[name]["restarts"] >= 1)
        self.end([name], point)

    def round_fail(self, point):
        """A pod that fails, whose last words are to be had."""
        self.n += 1
        name = f"c{self.n}"
        self.begin(
            [service(name, cores=1, restartPolicy="Never",
                     args=["sh", "-c", "echo last words; exit 3"])], point,
            lambda: self.node.states([name]).get(name) == "failed")

        def spoken():
            said = self.node.biga("logs", name, ok=False)
            assert said == "last words\n", said
            return True
        self.until(spoken)
        wait_for("its last words", lambda: self.go_on() or spoken())
        self.end([name], point)

    def round_orphan(self, point):
        """A sandbox with our labels that nobody wrote down, beside one that
        is not ours."""
        card = self.node.rack.cards[0]
        cri = card.local()
        labels = next(s["labels"] for _, s in self.node.sandboxes())
        mine = {k: v for k, v in labels.items() if k.startswith("biga.dev/")}
        mine |= {"biga.dev/pod-uid": "nobody", "biga.dev/attempt": "1"}
        self.stop()
        theirs = cri.run_pod("theirs")[0]
        orphan = cri.run_pod("orphan", mine)[0]
        self.restart(point)
        wait_for("it dies", lambda: not self.alive(), every=0.1)
        self.restart()
        wait_for("the orphan is removed", lambda: orphan not in [
            s["id"] for s in cri.sandboxes()], every=0.1)
        assert theirs in [s["id"] for s in cri.sandboxes()], "not ours"
        cri.remove_pod(theirs)


def test_pair(t, crash, wanted):
    for point in points():
        for hit in HITS:
            with t.check(f"killed at {point}, hit {hit}"):
                crash.round(point, hit, wanted)


def test_others(t, crash):
    crash.restart()
    for point in points():
        if point in crash.reached:
            continue
        if point.endswith("-pull"):
            with t.check(f"killed at {point}, of an image that is missing"):
                crash.round_pull(point)
        elif point.endswith("-kept"):
            with t.check(f"killed at {point}, of a pod that fails"):
                crash.round_fail(point)
        elif point.endswith("-orphan"):
            with t.check(f"killed at {point}"):
                crash.round_orphan(point)
        else:
            with t.check(f"killed at {point}, of a pod that ends by itself"):
                crash.round_exit(point)
    with t.check("each point was reached"):
        crash.stop()
        missed = [p for p in points() if p not in crash.reached]
        assert not missed, missed


def test_left(t, node):
    with t.check("nothing is left of any of them"):
        assert not node.sandboxes_of_pods()
        for place in node.rack.places:
            files = [f for f in place.files() if f.count("/") > 1]
            assert not files, f"{place.name}: {files[:5]}"
        assert not os.listdir(node.rack.cards[0].memory())


def main():
    cards.require()
    why = None
    if not os.path.exists(os.path.join(build(), "biga-advertiser")):
        why = f"there is no {build()}/biga-advertiser with failpoints"
    elif not points():
        why = "the actuator has no failpoints"
    if why:
        print(why)
        sys.exit(77)
    if not sys.argv[1:]:
        alone = [p for p in points() if p.endswith("-orphan")]
        others = [p for p in points() if p not in alone]
        parts.run([others[n::RACKS] for n in range(RACKS)]
                  + [[p] for p in alone])
    with cards.Rack(1) as rack:
        t = Checks(on_failure=rack.tail)
        with t.check("a pair comes and goes without a crash"):
            rack.start()
            node = biga_node.Node(rack, build=build()).start()
            crash = Crash(node)
            node.apply([SECRET])
            wanted = crash.round(points()[0], 1000000)
            assert not crash.reached and len(wanted) == 2, wanted
        if not t.failed:
            test_pair(t, crash, wanted)
            test_others(t, crash)
            test_left(t, node)
    t.finish()


main()
