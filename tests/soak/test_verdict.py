#!/usr/bin/env python3
"""verdict.py finds what is wrong: a good history has nothing, and one that
is made bad in one way has that.  Also: a seed gives the same plan, and times
are measured where only one thing is broken."""
import copy
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "kube"))
import measure  # noqa: E402
import plan  # noqa: E402
import verdict  # noqa: E402
from check import Checks  # noqa: E402

CORES = 16


def got(name, node="n1", card="card-0", gpu=None, cores=8, role="host",
        number=1):
    """An allocation."""
    need = {"cards": 1, "pairCards": 1, "gpus": 1 if gpu else 0,
            "align": "SYS", "exclusive": False, "cores": cores,
            "memoryMiB": 64}
    return {"pod": {"namespace": "default", "name": name,
                    "uid": "uid-" + name, "role": role, "job": name,
                    "pair": 0},
            "node": node, "cards": [{"id": card}],
            "gpus": [{"id": gpu}] if gpu else [], "need": need,
            "number": number}


def pod(t, name, allocation=None, **more):
    return {"t": t, "e": "pod", "uid": "uid-" + name, "name": name,
            "node": allocation and allocation["node"], "phase": "Running",
            "deleting": False, "allocation": allocation, **more}


def good():
    """A bit of everything, as it should be."""
    a, b = got("a", gpu="gpu-0"), got("b", gpu="gpu-1", number=2)
    s = got("s", node="sim1", role="service", number=3)
    size = {"e": "size", "name": "embedded", "pid": 7, "start": 1,
            "calm": True, "files": 30, "threads": 9}
    same = {"filter": {"NodeNames": ["n1"]}}
    return [
        {"t": 0, "e": "begin", "wall": 1000.0, "seed": 1},
        {"t": 0, "e": "slice", "name": "n1-0", "node": "n1",
         "generation": 1, "cards": {"card-0": [CORES, 4096]}},
        {"t": 0, "e": "card", "node": "sim1", "card": "card-0",
         "cores": CORES, "memory_mib": 4096},
        {"t": 0, "e": "place", "place": "card0", "card": "card-7"},
        {"t": 0, "e": "place", "place": "card1", "card": "card-8"},
        {"t": 1, "e": "lease", "by": "extender0", "done": 1001.0,
         "came": 1000.9, "code": 200, "holder": "extender0_1234"},
        {"t": 2, "e": "binding", "by": "extender0", "pod": "a",
         "code": 201, "came": 1002.0, "done": 1002.1},
        pod(2, "a", a),
        {"t": 2, "e": "binding", "by": "extender0", "pod": "b",
         "code": 201, "came": 1002.2, "done": 1002.3},
        pod(3, "b", b),
        {"t": 3, "e": "bound", "unit": "s", "uid": "uid-s", "node": "sim1",
         "error": "", "asked": 2.9},
        {"t": 3.5, "e": "allocations", "asked": 3.4, "give": [s],
         "drop": [], "n": 1},
        {"t": 4, "e": "apply", "ok": True, "names": ["x"], "unit": "x"},
        {"t": 4, "e": "pod-state", "name": "x/uid-x", "state": "running",
         "cards": ["card-7"], "role": "service", "reason": ""},
        {"t": 5, "e": "task", "place": "card0", "id": "t1", "uid": "uid-x",
         "pod": "x", "kind": "container", "container": "main", "seen": 5},
        {"t": 6, "e": "task-end", "place": "card0", "id": "t1",
         "uid": "uid-x", "last": 6},
        {"t": 7, "e": "task", "place": "card0", "id": "t2", "uid": "uid-x",
         "pod": "x", "kind": "container", "container": "main", "seen": 7},
        {"t": 8, **size, "rss": 10000},
        {"t": 8, "e": "rest", "side": "cards", "round": 0, "when": "round",
         "took": 1, "wanted": ["x"], "pods": {"uid-x": {
             "name": "x", "state": "running", "cards": ["card-7"],
             "role": "service"}},
         "sandboxes": [{"place": "card0", "ready": True, "uid": "uid-x"}]},
        {"t": 8, "e": "rest", "side": "cluster", "round": 0,
         "when": "round", "took": 1, "wanted": ["a"], "pods": {"uid-a": {
             "name": "a", "node": "n1", "phase": "Running",
             "allocation": a}}},
        {"t": 9, "e": "compare", "side": "cards", "how": "kill",
         "round": 0, "before": same, "after": copy.deepcopy(same)},
        {"t": 9, "e": "ended", "name": "embedded", "how": "term",
         "clean": True, "status": 0, "took": 1, "ours": True},
        {"t": 9, **size, "rss": 11000},
        {"t": 10, "e": "deleting", "name": "a", "how": "delete"},
        {"t": 10, "e": "pod-deleted", "uid": "uid-a", "name": "a"},
        {"t": 10, "e": "releasing", "unit": "s"},
        {"t": 11, "e": "allocations", "asked": 10.9, "give": [],
         "drop": ["default/s"], "n": 0},
        {"t": 11, "e": "deleting", "name": "x"},
        {"t": 12, "e": "pod-gone", "name": "x/uid-x"},
        {"t": 13, "e": "end", "load": [1, 1, 1],
         "whole": True}]


def find(events, **wanted):
    return next(i for i, e in enumerate(events)
                if all(e.get(k) == v for k, v in wanted.items()))


# what is wrong: how a good history becomes so
def gpu_twice(h):
    h[find(h, e="pod", name="b")]["allocation"]["gpus"] = [{"id": "gpu-0"}]


def card_overfull(h):
    h[find(h, e="pod", name="b")]["allocation"]["need"]["cores"] = 9


def card_overfull_embedded(h):
    h[find(h, e="allocations")]["give"].append(
        got("z", node="sim1", role="service", cores=9))


def of_another(h):
    h[find(h, e="pod", name="b")]["allocation"]["pod"]["uid"] = "uid-a"


def moved(h):
    i = find(h, e="pod", name="b")
    h.insert(i + 1, {**h[i], "node": "n2"})


def no_allocation(h):
    h[find(h, e="pod", name="b")]["allocation"] = None


def bound_twice(h):
    i = find(h, e="binding", pod="b")
    h.insert(i + 1, dict(h[i]))


def lost_in_cluster(h):
    del h[find(h, e="pod", name="b")]


def pod_vanished(h):
    del h[find(h, e="deleting", name="a")]


def lost_sim(h):
    del h[find(h, e="releasing")]


def lost_sim_at_rest(h):
    h[find(h, e="allocations")]["give"] = []
    del h[find(h, e="allocations", drop=["default/s"])]


def applied_lost(h):
    del h[find(h, e="deleting", name="x")]


def applied_lost_at_rest(h):
    rest = h[find(h, e="rest", side="cards")]
    rest.update(pods={}, sandboxes=[], wanted=[])


def runs_twice(h):
    h[find(h, e="task-end")]["last"] = 7.5


def runs_on_two(h):
    del h[find(h, e="task-end")]
    h[find(h, e="task", id="t2")]["place"] = "card1"
    h[find(h, e="pod-state")]["cards"].append("card-8")


def wrong_card(h):
    h[find(h, e="task", id="t2")]["place"] = "card1"


def on_host(h):
    h[find(h, e="task", id="t2")]["place"] = "host"


def lost_for_nothing(h):
    i = find(h, e="pod-state")
    h.insert(i + 1, {**h[i], "state": "failed", "reason": "SandboxLost"})


def no_rest(h):
    h[find(h, e="rest")] = {"t": 8, "e": "no-rest", "text": "x is wanted"}


def does_not_run(h):
    h[find(h, e="rest", side="cards")]["pods"]["uid-x"]["state"] = "wanted"


def orphan(h):
    h[find(h, e="rest", side="cards")]["sandboxes"].append(
        {"place": "card1", "ready": False, "uid": "nobody"})


def no_sandbox(h):
    h[find(h, e="rest", side="cards")]["sandboxes"] = []


def not_running(h):
    h[find(h, e="rest", side="cluster")]["pods"]["uid-a"]["phase"] = "Pending"


def rest_without(h):
    h[find(h, e="rest", side="cluster")]["pods"]["uid-a"]["allocation"] = None


def other_leader(h):
    h[find(h, e="binding", pod="b")]["by"] = "extender1"


def nobody_leads(h):
    h.insert(find(h, e="lease") + 1, {
        "t": 2, "e": "lease", "by": "extender0", "done": 1002.15,
        "came": 1002.0, "code": 200, "holder": ""})


def other_answer(h):
    h[find(h, e="compare")]["after"]["filter"]["NodeNames"] = ["n2"]


def died(h):
    h.insert(20, {"t": 9, "e": "died", "name": "embedded", "status": -11,
                  "ours": True, "log": ["the end"]})


def ended_badly(h):
    h[find(h, e="ended")]["status"] = 1


def left_its_slices(h):
    h[find(h, e="ended")].update(name="east", status=3)


def had_to_be_killed(h):
    h[find(h, e="ended")]["clean"] = False


def memory_grows(h):
    h[find(h, e="size", t=9)]["rss"] = 40000


def files_grow(h):
    h[find(h, e="size", t=9)]["files"] = 130


def broken(h):
    h.insert(20, {"t": 9, "e": "broken", "text": "KeyError"})


def cut_off(h):
    h.pop()


def ended_early(h):
    h[-1]["whole"] = False


BAD = [(gpu_twice, "given twice in the cluster"),
       (card_overfull, "given twice in the cluster"),
       (card_overfull_embedded, "given twice without a cluster"),
       (of_another, "an allocation of somebody else"),
       (moved, "a pod moved"),
       (no_allocation, "bound without an allocation"),
       (bound_twice, "bound twice"),
       (lost_in_cluster, "an acknowledged bind was lost"),
       (pod_vanished, "a pod that nobody deleted is gone"),
       (lost_sim, "an acknowledged bind was lost"),
       (lost_sim_at_rest, "an acknowledged bind was lost"),
       (applied_lost, "a pod that nobody deleted is gone"),
       (applied_lost_at_rest, "a pod that nobody deleted is gone"),
       (runs_twice, "a pod runs twice"),
       (runs_on_two, "a pod runs twice"),
       (wrong_card, "a pod runs where it should not"),
       (on_host, "a pod runs where it should not"),
       (lost_for_nothing, "a pod was lost without a cause"),
       (no_rest, "it does not come to rest"),
       (does_not_run, "at rest, and a pod does not run"),
       (orphan, "at rest, and a sandbox is nobody's"),
       (no_sandbox, "at rest, and a pod does not run once"),
       (not_running, "at rest, and a pod does not run"),
       (rest_without, "bound without an allocation"),
       (other_leader, "a bind of one that does not lead"),
       (nobody_leads, "a bind of one that does not lead"),
       (other_answer, "another answer after a restart"),
       (died, "a program died"),
       (ended_badly, "a program did not end well"),
       (left_its_slices, "a program did not end well"),
       (had_to_be_killed, "a program did not end well"),
       (memory_grows, "a program grows"),
       (files_grow, "a program grows"),
       (broken, "the soak itself broke"),
       (cut_off, "the soak itself broke"),
       (ended_early, "the soak itself broke")]


def judged(events):
    return verdict.Verdict(events).judge()


def test_verdict(t):
    with t.check("a good history has nothing"):
        assert not judged(good()), judged(good())
    for change, what in BAD:
        with t.check(f"{change.__name__}: {what}"):
            history = good()
            change(history)
            found = judged(history)
            assert what in [word for word, _ in found], found
    with t.check("a lost bind of a node that is doubtful is none"):
        history = good()
        lost_sim(history)
        history.insert(5, {"t": 3, "e": "node-state",
                           "node": "embedded/sim1", "status": "doubtful"})
        assert not judged(history), judged(history)
    with t.check("a pod is lost with the power of its card"):
        history = good()
        lost_for_nothing(history)
        at = find(history, reason="SandboxLost")
        history[at:at] = fault(4, "card0", "power", 1, 1)
        assert not judged(history), judged(history)
    with t.check("an advertiser may leave its slices when nobody takes them"):
        history = good() + fault(8, "apiserver", "freeze", 1, 5)
        left_its_slices(history)
        assert not judged(history), judged(history)
    with t.check("what a killed API server did last is not known"):
        history = good()
        other_leader(history)
        history.insert(8, {"t": 2.15, "e": "fault", "n": 1, "kind": "kill",
                           "target": "apiserver", "asked": "apiserver"})
        assert not judged(history), judged(history)


def fault(t, target, kind, n, seconds):
    return [{"t": t, "e": "fault", "target": target, "kind": kind, "n": n,
             "asked": target},
            {"t": t + seconds, "e": "healed", "target": target,
             "kind": kind, "n": n}]


def test_measure(t):
    def state(at, healthy):
        return {"t": at, "e": "card-state", "card": "card-7",
                "healthy": healthy}
    base = [{"t": 0, "e": "place", "place": "card0", "card": "card-7"},
            state(0, True), state(14, False), state(25, True)]
    what = "a card that died is withdrawn"
    with t.check("a card's death is measured"):
        history = base + fault(10, "card0", "freeze", 1, 10)
        assert measure.measures(history)[what] == (5, [4]), \
            measure.measures(history)[what]
        text = "\n".join(measure.table(history))
        assert "4.00" in text and "5 s" in text, text
    with t.check("not while its advertiser is frozen as well"):
        history = base + fault(10, "card0", "freeze", 1, 10) \
            + fault(11, "advertiser", "freeze", 2, 2)
        assert measure.measures(history)[what][1] == []
    with t.check("a leader that crashed"):
        history = [
            {"t": 0, "e": "ready", "name": "extender0", "ready": True},
            {"t": 0, "e": "ready", "name": "extender1", "ready": False},
            {"t": 20.2, "e": "ready", "name": "extender0", "ready": None},
            {"t": 30, "e": "ready", "name": "extender1", "ready": True},
            *fault(20, "extender0", "kill", 1, 5)]
        what = "a leader that crashed is followed"
        assert measure.measures(history)[what] == (15, [10]), \
            measure.measures(history)[what]


def test_plan(t):
    with t.check("a seed gives the same plan, another gives another"):
        assert plan.of_round(1, 0) == plan.of_round(1, 0)
        assert plan.of_round(1, 0) != plan.of_round(2, 0)
        assert plan.of_round(1, 0) != plan.of_round(1, 1)
    with t.check("each fault ends in its round, and one at a time"):
        for number in range(20):
            ends = {}
            for f in plan.of_round(3, number)["faults"]:
                assert f["at"] + f["for"] <= plan.ROUND + 0.02, f
                assert f["at"] >= ends.get(f["target"], 0), f
                ends[f["target"]] = f["at"] + f["for"]
    with t.check("each kind of fault comes up"):
        seen = {(f["target"], f["kind"]) for number in range(200)
                for f in plan.of_round(4, number)["faults"]}
        lacks = {(target, kind) for target, (_, kinds) in
                 plan.TARGETS.items() for kind in kinds} - seen
        assert not lacks, lacks


def main():
    t = Checks()
    test_verdict(t)
    test_measure(t)
    test_plan(t)
    t.finish()


if __name__ == "__main__":
    main()
