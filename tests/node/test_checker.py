#!/usr/bin/env python3
"""checker.py finds what is wrong: a good record has nothing, and one that is
made bad in one way has that and nothing else."""
import copy
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "kube"))
import checker  # noqa: E402
from check import Checks  # noqa: E402

LOG = 'ts=1970-01-01T00:16:{:06.3f}Z level=info event=routed call={} ' \
    'remote=card-0 namespace=default pod="a b" container=main id={} ' \
    'code={} ms=3'


def pod(t, uid, *containers, once=False):
    return {"t": t, "e": "pod", "uid": uid, "name": uid, "once": once,
            "containers": [{"name": "main", "id": i, "state": state}
                           for i, state in containers]}


def task(t, ident, uid, place="card0", kind="container"):
    return {"t": t, "e": "task", "place": place, "id": ident, "uid": uid,
            "pod": uid, "kind": kind, "container": "main", "seen": t - 0.1}


def over(t, ident, place="card0"):
    return {"t": t, "e": "task-end", "place": place, "id": ident,
            "uid": "", "last": t - 0.1}


def told(t, ident, state):
    return {"t": t, "e": "told", "id": ident, "state": state}


def good():
    """One that runs once, and one that is begun again and runs on."""
    return [
        {"t": 0, "e": "begin", "wall": 1000.0},
        task(0, "h1", "biga-helper-1"),
        {"t": 1, "e": "node", "ok": "True", "why": ""},
        {"t": 1, "e": "healthz", "ok": "True", "why": "ok"},
        pod(1, "once", once=True), pod(1, "long"),
        task(2, "s1", "once", kind="sandbox"), task(2, "c1", "once"),
        task(2, "c2", "long"), told(3, "c1", 1), told(3, "c2", 1),
        pod(3, "once", ("c1", "running"), once=True),
        pod(3, "long", ("c2", "running")),
        {"t": 4, "e": "rest"},
        over(5, "c2"), told(6, "c2", 2), task(7, "c3", "long"),
        pod(7, "long", ("c3", "running")), told(7, "c3", 1),
        over(8, "c1"), over(8, "s1"),
        {"t": 9.2, "e": "told-gone", "id": "c1"},
        {"t": 9.5, "e": "pod-gone", "uid": "once"},
        {"t": 10, "e": "rest"}, {"t": 11, "e": "end"}]


GOOD_LOG = [LOG.format(40 + t, *more) for t, *more in (
    (2, "StartContainer", "c1", "OK"), (3, "StopContainer", "c2", "UNKNOWN"),
    (9, "StopContainer", "c1", "OK"), (9, "RemovePodSandbox", "s1", "OK"))]


def judge(events, log=()):
    return checker.Checker(
        events + list(checker.audit(log, 1000.0))).judge()


BAD = {  # what is added to a good record, and what is found then
    "a second one beside the first, on the same card":
        ([task(4, "c9", "long"), over(5, "c9")], "runs twice"),
    "on another card":
        ([task(4, "c9", "long", "card1"), over(5, "c9", "card1")],
         "runs twice"),
    "one after another, where one was to run":
        ([task(8.5, "c9", "once"), over(9, "c9")], "ran twice"),
    "a list without one that runs":
        ([{"t": 8, "e": "told-gone", "id": "c3"}], "told as gone, and runs"),
    "a list that has it as ended":
        ([told(8, "c3", 2)], "told as gone, and runs"),
    "the kubelet tells its end":
        ([pod(8, "long", ("c3", "terminated"))], "told as gone, and runs"),
    "its pod is gone, and it runs until it ends":
        ([{"t": 8, "e": "pod-gone", "uid": "new"}, task(7, "c9", "new"),
          over(9, "c9")], "told as gone, and runs"),
    "one runs in the end, and no pod is there":
        ([task(8, "c9", "none")], "is forgotten"),
    "a sandbox likewise":
        ([task(8, "s9", "none", kind="sandbox")], "is forgotten"),
    "a list has what ended long ago":
        ([task(2, "c9", "new"), pod(2, "new"), told(3, "c9", 1),
          over(5, "c9")], "told as running, and has ended"),
    "the API has what ended long ago":
        ([task(2, "c9", "new"), over(5, "c9"),
          pod(6, "new", ("c9", "running"))], "told as running, and has ended"),
    "the node is not ready":
        ([{"t": 6, "e": "node", "ok": "Unknown", "why": "silent"}],
         "the node is not well"),
    "the kubelet is not healthy":
        ([{"t": 6, "e": "healthz", "ok": "False", "why": "PLEG"}],
         "the node is not well"),
}


def main():
    t = Checks()
    with t.check("a good record has nothing wrong"):
        assert judge(good(), GOOD_LOG) == [], judge(good(), GOOD_LOG)
    for what, (more, rule) in BAD.items():
        with t.check(f"{what}: {rule}"):
            found = judge(copy.deepcopy(good()) + more, GOOD_LOG)
            assert [r for r, _ in found] == [rule], found
    for call in checker.ENDS:
        with t.check(f"{call} was well, and it runs on"):
            found = judge(good(), [LOG.format(48, call, "c3", "OK")])
            assert [r for r, _ in found] == ["told as gone, and runs"], found
    with t.check("what a place that lies has is not judged"):
        found = judge(good() + [{"t": 0, "e": "lies", "place": "card1"},
                                task(4, "c9", "long", "card1")])
        assert found == [], found
    t.finish()


main()
