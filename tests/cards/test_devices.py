#!/usr/bin/env python3
"""Pods without privilege open the devices of a card that they ask for, and no
others; as many pods as the card file lets have them.  The card has a /dev of
its own, with nodes that stand for its devices.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import node as biga_node  # noqa: E402
from check import Checks  # noqa: E402
from node import service  # noqa: E402
from proc import wait_for  # noqa: E402

# /dev/kmsg, which everybody may open to write, and /dev/loop-control: both are
# on every Linux, and none is among what every container has
VERBS, OTHER, THIRD = "1 11", "10 237", "10 229"
SETS = {"rdma": {"paths": ["/dev/infiniband/uverbs*", "/dev/infiniband/cm"],
                 "share": 2},
        "snap": ["/dev/emulation"],
        "none": ["/dev/nothing/*"]}
# which of the card's nodes can be opened; and whether one that a pod makes can:
# MKNOD is every container's
OPENS = ("for d in infiniband/uverbs0 infiniband/uverbs1 infiniband/uverbs9 "
         "infiniband/cm emulation; do [ -c /dev/$d ] && "
         "(: >>/dev/$d) 2>/dev/null && echo $d; done; "
         f"mknod /own c {THIRD} && (: >>/own) 2>&1; echo end; "
         "exec sleep 100000")


def own_dev(card):
    """Commands that give the card a /dev of its own."""
    top = card.path("dev")
    nodes = {"null": "1 3", "zero": "1 5", "full": "1 7", "random": "1 8",
             "urandom": "1 9", "tty": "5 0", "ptmx": "5 2",
             "infiniband/uverbs0": VERBS, "infiniband/uverbs1": VERBS,
             "infiniband/cm": VERBS, "emulation": OTHER}
    return [f"mkdir -p {top}", f"mount -t tmpfs -o mode=755 none {top}",
            f"mkdir -p {top}/infiniband {top}/pts {top}/shm",
            *(f"mknod -m 666 {top}/{name} c {number}"
              for name, number in nodes.items()),
            f"ln -s infiniband/uverbs0 {top}/infiniband/uverbs9",
            f"mount --rbind /dev/pts {top}/pts",
            f"mount --rbind /dev/shm {top}/shm", f"mount --rbind {top} /dev"]


def policy(node, **namespaces):
    """Which sets they may have, from the extender's next look on: the file."""
    path = os.path.join(node.rack.folder, "policy.json")
    text = json.dumps({"devices": [{"namespace": name, "sets": sets}
                                   for name, sets in namespaces.items()]})
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(path + ".new", path)
    return path


def asks(name, sets, **more):
    return service(name, cores=1, args=("sh", "-c", OPENS),
                   annotations={"biga.dev/devices": sets}, **more)


def opened(node, name):
    """What a pod could open, once it has said all."""
    def said():
        lines = node.biga("logs", name).splitlines()
        return lines if "end" in lines else None
    *lines, own, _ = wait_for(f"{name} has opened what it can", said)
    assert own.endswith("Operation not permitted"), own
    return set(lines)


def end(node, *names):
    for name in names:
        node.delete(name)
    node.wait_gone(names)


def reason(node, name, word, *says):
    """Waits until that is why, and the message says all of this."""
    def said():
        pod = node.pods()[name]
        assert pod.get("reason") == word, pod
        for text in says:
            assert text in pod["message"], pod
        return True
    wait_for(f"{name}: {word}", said, every=0.1)


def test_open(t, node):
    rdma = {"infiniband/uverbs0", "infiniband/uverbs1", "infiniband/cm"}
    with t.check("a pod opens the devices of its set, and none of others"):
        node.apply([asks("d0", "rdma")])
        node.wait_state(["d0"], "running")
        assert opened(node, "d0") == rdma, opened(node, "d0")
        end(node, "d0")
    with t.check("one that asks for none opens none"):
        node.apply([service("d1", cores=1, args=("sh", "-c", OPENS))])
        node.wait_state(["d1"], "running")
        assert opened(node, "d1") == set(), opened(node, "d1")
        end(node, "d1")
    with t.check("and one that asks for two opens both"):
        node.apply([asks("d2", "snap, rdma")])
        node.wait_state(["d2"], "running")
        assert opened(node, "d2") == {*rdma, "emulation"}, opened(node, "d2")
        end(node, "d2")


def test_share(t, node):
    with t.check("two pods share what two may"):
        node.apply([asks("s0", "rdma"), asks("s1", "rdma")])
        node.wait_state(["s0", "s1"], "running")
    with t.check("a third one waits, and is told for whom"):
        node.apply([asks("s2", "rdma")])
        reason(node, "s2", "DevicesInUse", '"rdma"', "at most 2 pods",
               "default/s0", "default/s1")
    with t.check("others do not wait for it"):
        node.apply([asks("s3", "snap")])
        node.wait_state(["s3"], "running")
        assert node.states(["s2"]) == {"s2": "preparing"}, node.states()
    with t.check("nor does an advertiser that is new give away more"):
        node.advertiser.kill()
        node.advertiser.start()
        node.apply([asks("s4", "snap")])
        # at first it does not know yet what runs there
        reason(node, "s4", "DevicesInUse", "at most 1 pod ", "default/s3")
        reason(node, "s2", "DevicesInUse", "at most 2 pods")
    with t.check("it begins when one of them has ended"):
        end(node, "s0")
        node.wait_state(["s1", "s2"], "running")
        assert node.states(["s4"]) == {"s4": "preparing"}, node.states()
        end(node, "s1", "s2", "s3")
        node.wait_state(["s4"], "running")
        end(node, "s4")


def test_none(t, node):
    with t.check("a set without a device there is the pod's reason"):
        node.apply([asks("n1", "none")])
        reason(node, "n1", "NoDevices", "/dev/nothing/*")
        end(node, "n1")


def test_policy(t, node):
    """Last: what is taken back."""
    with t.check("a pod of a namespace that may not is refused, and told why"):
        pod = asks("p0", "rdma,snap")
        pod["metadata"]["namespace"] = "guests"
        node.apply([pod])
        reason(node, "p0", "NoPlace",
               'namespace guests may have the devices "rdma"',
               '"rdma snap" is asked for')
        assert "not-allowed" in node.biga("why", "guests/p0", "--json")
        node.delete("p0", namespace="guests")
    with t.check("and so is one that asks for what no card has"):
        node.apply([asks("p1", "other")])
        reason(node, "p1", "NoPlace", 'no card with the devices "other"')
        end(node, "p1")
    with t.check("what is taken back is kept by who has it"):
        node.apply([asks("p2", "rdma")])
        node.wait_state(["p2"], "running")
        policy(node, guests=["rdma"])
        wait_for("the policy is read", lambda: '"default"' not in node.biga(
            "policy", "--json"))
        node.apply([asks("p3", "rdma")])
        reason(node, "p3", "NoPlace", "namespace default may have no devices")
        assert node.states(["p2"]) == {"p2": "running"}, node.states()
        end(node, "p2", "p3")


def main():
    cards.require()
    with cards.Rack(1) as rack:
        t = Checks(on_failure=rack.tail)
        with t.check("Biga runs pods on a card with devices"):
            card = rack.cards[0]
            card.more_mounts = lambda: own_dev(card)
            rack.start()
            node = biga_node.Node(rack)
            node.extender.argv += ["--policy", policy(
                node, default=["none", "other", "rdma", "snap"],
                guests=["rdma"])]
            with open(rack.card_file(), encoding="utf-8") as f:
                said = json.load(f)
            said["cards"][0]["devices"] = SETS
            with open(f.name, "w", encoding="utf-8") as f:
                json.dump(said, f)
            node.start()
        for part in (test_open, test_share, test_none, test_policy):
            if not t.failed:
                part(t, node)
        node.stop()
    t.finish()


main()
