#!/usr/bin/env python3
"""Pods that are applied, run where they were placed, and end: a job of four
pairs, a service on every card, files and logs, and what is refused.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import node as biga_node  # noqa: E402
from check import Checks  # noqa: E402
from cri import field  # noqa: E402
from node import job, pair, service  # noqa: E402
from proc import wait_for  # noqa: E402


RSS_MIB = 12  # of an advertiser that has nothing to do


def names(pods):
    return [p["metadata"]["name"] for p in pods]


def nothing_left(node, places):
    """No sandbox of ours, no process and no file of a pod; and what there was
    did not have to be nobody's for that."""
    assert "event=orphan-removed" not in node.advertiser.text()
    left = [(place.name, s["name"]) for place, s in
            node.sandboxes_of_pods()]
    assert not left, left
    for place in places:
        files = [f for f in place.files() if f.count("/") > 1]
        assert not files, f"{place.name}: {files[:5]}"
    return True


def environment(node, name):
    """The variables of a pod's container, asked of the card itself."""
    uid = node.pods()[name]["uid"]
    for place in node.rack.places:
        cri = place.local()
        for c in cri.containers():
            if c["state"] == 1 and c["name"] == "main" and \
                    c["labels"].get("biga.dev/pod-uid") == uid:
                out = cri.exec(c["id"], "env")[1].decode()
                return dict(line.split("=", 1) for line in out.splitlines()
                            if "=" in line)
    raise AssertionError(f"{name} does not run")


def test_job(t, node):
    pods = job("ring", 4)
    with t.check("a job of four pairs comes up"):
        node.apply(pods)
        node.wait_state(names(pods), "running")
        node.wait_clean()
    with t.check("each xPU pod is on its pair's card, each host pod on the "
                 "host"):
        there = node.pods()
        where = {s["name"]: place for place, s in node.sandboxes()
                 if s["ready"]}
        for n in range(4):
            xpu = f"ring-{n}-xpu"
            assert where[xpu].id in [c["id"] for c in there[xpu]["cards"]]
            assert there[xpu]["cards"] == there[f"ring-{n}"]["cards"]
            assert where[f"ring-{n}"].name == "host", where
    with t.check("both sides are told where the other is"):
        for n in range(4):
            xpu, host = (environment(node, f"ring-{n}{side}")
                         for side in ("-xpu", ""))
            card = where[f"ring-{n}-xpu"]
            assert xpu["BIGA_RANK"] == host["BIGA_RANK"] == str(n), xpu
            assert xpu["BIGA_SIZE"] == host["BIGA_SIZE"] == "4", xpu
            assert host["BIGA_PEER_ADDRESS"] == card.address, host
            assert host["BIGA_CARD_PCI"] == xpu["BIGA_CARD_PCI"] == card.pci
            assert xpu["BIGA_PEER_ADDRESS"] == card.host_address, xpu
            assert "BIGA_NUMA_NODES" in xpu
    with t.check("biga ps shows them"):
        said = node.biga("ps")
        lacking = [n for n in names(pods) if n not in said]
        assert not lacking, said
    with t.check("what each xPU pod has is told beside what it was promised"):
        def told():
            for n in range(4):
                name = f"ring-{n}-xpu"
                found = node.call(
                    "GET", f"/v1/allocations/default/{name}")["achieved"]
                assert (found["state"], found.get("cards")) == (
                    "kept", [where[name].pci]), found
            return True
        wait_for("its card is told", told)
        head, *lines = node.biga("allocations").splitlines()
        assert "ACHIEVED" in head and not any(
            "lost" in line for line in lines), (head, lines)
    with t.check("an xPU pod ends after its host pod, and nothing is left"):
        node.delete("ring-0")
        node.wait_gone(["ring-0", "ring-0-xpu"])
        node.delete_all(names(pods)[2:])
        node.wait_gone(names(pods))
        wait_for("nothing is left", lambda: nothing_left(
            node, node.rack.places))


def test_services(t, node):
    pods = [service(f"svc{i}") for i in range(len(node.rack.cards))]
    with t.check("a service runs on every card"):
        node.apply(pods)
        node.wait_state(names(pods), "running")
        where = [place.name for place, s in node.sandboxes()
                 if s["name"].startswith("svc") and s["ready"]]
        assert sorted(where) == [c.name for c in node.rack.cards], where
    with t.check("one that ends is started again, by its policy"):
        card = node.place_of("svc3")
        cri = card.local()
        uid = node.pods()["svc3"]["uid"]

        def container():
            return next(c for c in cri.containers() if c["state"] == 1 and
                        c["labels"].get("biga.dev/pod-uid") == uid and
                        c["name"] == "main")
        before = container()["id"]
        cri.call("StopContainer", field(1, before))
        wait_for("it runs again", lambda: container()["id"] != before)
        wait_for("and is known to", lambda:
                 node.pods()["svc3"]["restarts"] >= 1)
        node.wait_clean()
    with t.check("they run until they are withdrawn"):
        for name in names(pods):
            node.delete(name)
        node.wait_gone(names(pods))
        wait_for("nothing is left", lambda: nothing_left(
            node, node.rack.places))


def test_files(t, node):
    config = {"apiVersion": "v1", "kind": "ConfigMap",
              "metadata": {"name": "conf", "namespace": "default"},
              "data": {"a": "first\n", "b": "x" * 100000}}
    secret = {"apiVersion": "v1", "kind": "Secret",
              "metadata": {"name": "key", "namespace": "default"},
              "stringData": {"k": "hidden"}}
    mounts = [{"name": "conf", "mountPath": "/etc/conf"},
              {"name": "scratch", "mountPath": "/scratch"}]
    with_files = service(
        "files", cores=1,
        args=["sh", "-c", "cat /etc/conf/a; wc -c </etc/conf/b; "
              "echo $KEY; touch /scratch/x; echo done >&2; sleep 100000"],
        container={"volumeMounts": mounts, "env": [
            {"name": "KEY", "valueFrom": {"secretKeyRef": {
                "name": "key", "key": "k"}}}]},
        volumes=[{"name": "conf", "configMap": {"name": "conf"}},
                 {"name": "scratch", "emptyDir": {}}])
    with t.check("files of a ConfigMap are on the card, and a Secret's text"):
        node.apply([config, secret, with_files])
        node.wait_state(["files"], "running")
        wanted = ["first", "100000", "hidden", "done"]

        def logged():
            said = node.biga("logs", "files").split()
            assert sorted(said) == sorted(wanted), said
            return True
        wait_for("the log has it all", logged)
    with t.check("a command runs in it"):
        said = wait_for("its card answers", lambda: node.biga(
            "exec", "files", "--", "cat", "/etc/conf/a"))
        assert "first" in said, said
    with t.check("its files go with it"):
        node.delete("files")
        node.wait_gone(["files"])
        wait_for("nothing is left", lambda: nothing_left(
            node, node.rack.places))


def test_refused(t, node):
    with t.check("a path of the host is refused by name, before anything "
                 "starts"):
        bad = service("bad", cores=1, volumes=[
            {"name": "v", "hostPath": {"path": "/etc"}}])
        path = os.path.join(node.rack.folder, "bad.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(bad, f)
        said = node.biga("apply", path, ok=False)
        assert "hostPath" in said, said
        assert "bad" not in node.pods()
    with t.check("a pod whose image is not there says so"):
        node.apply([service("noimage", cores=1, image="absent:1", container={
            "imagePullPolicy": "Never"})])
        wait_for("ImageMissing", lambda: node.pods()["noimage"]["reason"]
                 == "ImageMissing")
        node.delete("noimage")
        node.wait_gone(["noimage"])
    with t.check("a job of which one pair cannot start ends whole, and says "
                 "why"):
        pods = pair("half", 0, 2) + pair("half", 1, 2, image="absent:1",
                                         container={
                                             "imagePullPolicy": "Never"})
        node.apply(pods)

        def ended():
            there = node.pods()
            assert all(there[n]["state"] in ("failed", "gone")
                       for n in names(pods)), node.states(names(pods))
            assert any("ImageMissing" in there[n]["reason"] + there[n][
                "message"] for n in names(pods)), there
            return True
        wait_for("it has ended", ended)
        wait_for("nothing is left", lambda: nothing_left(
            node, node.rack.places))
        for name in reversed(names(pods)):  # xPU pods first
            node.delete(name)
        node.wait_gone(names(pods))


def test_drain(t, node):
    card = node.rack.cards[2]
    with t.check("a drained card keeps what it has and gets nothing new"):
        stays = [service(f"d{i}") for i in range(len(node.rack.cards))]
        node.apply(stays)
        node.wait_state(names(stays), "running")
        node.biga("card", "drain", card.id)
        wait_for("its capacity is gone", lambda: card.id not in
                 node.capacity())
        node.wait_state(names(stays), "running")
        there = next(n for n in names(stays)
                     if node.place_of(n) is card)
        node.delete(there)
        node.wait_gone([there])
        node.apply([service("late")])

        def told():
            said = node.biga("why", "late")
            assert "drained" in said, said
            return True
        wait_for("it is told why", told)
        assert node.states(["late"]) == {"late": "pending"}
    with t.check("until it is undrained"):
        node.biga("card", "undrain", card.id)
        node.wait_state(["late"], "running")
        for name in {*names(stays), "late"} - {there}:
            node.delete(name)
        node.wait_gone([*names(stays), "late"])


def memory(pid):
    """How much a process has, in MiB."""
    with open(f"/proc/{pid}/statm", encoding="utf-8") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_idle(t, node):
    """What it costs in time of processors is for bench/run to judge."""
    def small():
        now = memory(node.advertiser.pid)
        assert now <= RSS_MIB, f"{now:.1f} MiB"
        return f"{now:.1f} MiB"
    with t.check("with eight cards and nothing to do, the advertiser is "
                 "small"):
        t.note(wait_for("it is", small))


def main():
    cards.require()
    with cards.Rack() as rack:
        t = Checks(on_failure=rack.tail)
        with t.check("Biga runs pods on eight cards"):
            rack.start()
            node = biga_node.Node(rack).start()
        if not t.failed:
            test_idle(t, node)
            for test in (test_job, test_services, test_files, test_refused,
                         test_drain):
                test(t, node)
            with t.check("and ends as it should"):
                assert node.advertiser.stop(), "it had to be killed"
                assert node.extender.stop(), "it had to be killed"
    t.finish()


main()
