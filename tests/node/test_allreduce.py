#!/usr/bin/env python3
"""deploy/examples/allreduce/job.yaml under a real kubelet, as its README says:
ranks on the host, their workers on cards, in the order of the map that
`biga job` writes; right sums, and the Job completes.

Nothing of the file is changed but the registry of its image, which is brought
to the host and the cards by hand."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
import allreduce  # noqa: E402
import cards  # noqa: E402
from check import Checks  # noqa: E402
from place import OnCard  # noqa: E402
from proc import wait_for  # noqa: E402

FILE = os.path.join(allreduce.FOLDER, "job.yaml")
REGISTRY, PAIRS = "registry.example.org/", allreduce.PAIRS


def example():
    with open(FILE, encoding="utf-8") as f:
        text = f.read()
    assert text.count(REGISTRY) == 2
    return text.replace(REGISTRY, "docker.io/library/")


def load(rack):
    """Its image, to all places."""
    made = os.path.join(rack.folder, "example")
    cards.run(os.path.join(cards.ROOT, "deploy", "images"), "--out", made,
              "--card", os.path.join(cards.BUILD, "biga-card"),
              "--allreduce", allreduce.PROGRAM)
    for place in rack.places:
        place.load(os.path.join(made, "allreduce.tar"))


def pods(r, role):
    return [p for p in r.c.api.list("pods", "default")
            if p["metadata"]["labels"].get("biga.dev/role") == role]


def workers_run(r):
    found = pods(r, "xpu")
    assert len(found) == PAIRS, f"{len(found)} workers"
    for p in found:
        assert p["status"].get("phase") == "Running", p["status"]
    return found


def test_sums(t, r):
    card = OnCard(r)
    with t.check("kubectl apply: the workers run, each on the card of its "
                 "rank"):
        r.c.apply(example())
        found = wait_for("workers run", lambda: workers_run(r))
        at = {int(p["metadata"]["labels"]["biga.dev/pair"]):
              card.card_of(p).address for p in found}
    with t.check("the map has them in the order of ranks"):
        given = r.run_biga("job", allreduce.JOB, "--dpu-hostfile")
        assert [line.split()[0] for line in given.splitlines()] == [
            at[n] for n in range(PAIRS)], (given, at)
    with t.check("with it in the ConfigMap, the Job completes"):
        r.c.kubectl("create", "configmap", "allreduce",
                    "--from-literal=workers=" + given)
        r.c.kubectl("wait", "--for=condition=Complete", "job/allreduce",
                    "--timeout=300s")
    with t.check("every rank had right sums, and rank 0 shows the figures"):
        said = {p["metadata"]["labels"][
            "batch.kubernetes.io/job-completion-index"]:
            r.c.kubectl("logs", p["metadata"]["name"])
            for p in pods(r, "host")}
        assert {n: allreduce.sums(text) for n, text in said.items()} == {
            str(n): (n, PAIRS, 32) for n in range(PAIRS)}, said
        assert set(allreduce.table(said["0"])) == set(allreduce.ROWS), said
        t.note(said["0"])
    with t.check("and its workers end"):
        wait_for("no worker is there", lambda: not pods(r, "xpu"))
        wait_for("nothing runs on cards", lambda: not [
            s for c in r.rack.cards for s in c.local().sandboxes()
            if s["ready"] and s["namespace"] == "default"])


def main():
    rig.require("router")
    with rig.Rig(PAIRS, "router") as r:
        t = Checks(on_failure=r.tail)
        with t.check("the node is ready"):
            r.start()
            r.rack.join_cards()
            load(r.rack)
            r.start_biga()
        if not t.failed:
            test_sums(t, r)
        t.finish()


main()
