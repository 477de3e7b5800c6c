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
from check import Checks, Skip  # noqa: E402
from node import service  # noqa: E402
from proc import wait_for  # noqa: E402
from standin import own_dev  # noqa: E402

# /dev/kmsg, which everybody may open to write, and /dev/loop-control: both are
# on every Linux, and none is among what every container has
VERBS, OTHER, THIRD = "1 11", "10 237", "10 229"
NODES = {"infiniband/uverbs0": VERBS, "infiniband/uverbs1": VERBS,
         "infiniband/cm": VERBS, "emulation": OTHER}
MORE = ["ln -s uverbs0 infiniband/uverbs9", "mkdir hugepages-2Mi",
        "{ mount -t hugetlbfs -o pagesize=2M none hugepages-2Mi || true; }"]
SETS = {"rdma": {"paths": ["/dev/infiniband/uverbs*", "/dev/infiniband/cm"],
                 "share": 2, "capabilities": ["IPC_LOCK"]},
        "snap": {"paths": ["/dev/emulation"], "hugepages": {"2Mi": "8Mi"}},
        "made": ["/dev/made*"],
        "none": ["/dev/nothing/*"]}
# which of the card's nodes can be opened; and whether one that a pod makes can:
# MKNOD is every container's
OPENS = ("for d in infiniband/uverbs0 infiniband/uverbs1 infiniband/uverbs9 "
         "infiniband/cm emulation; do [ -c /dev/$d ] && "
         "(: >>/dev/$d) 2>/dev/null && echo $d; done; "
         f"mknod /own c {THIRD} && (: >>/own) 2>&1; echo end; "
         "exec sleep 100000")


class Pages:
    """More huge pages of this machine, for as long as a test runs."""
    FILE = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"

    def __init__(self, n):
        self.n, self.got = n, 0

    @classmethod
    def there(cls):
        with open(cls.FILE, encoding="utf-8") as f:
            return int(f.read())

    def _add(self, n):
        with open(self.FILE, "w", encoding="utf-8") as f:
            f.write(str(max(self.there() + n, 0)))

    def __enter__(self):
        try:
            before = self.there()
            self._add(self.n)
            self.got = self.there() - before
        except OSError as e:
            print(f"# huge pages: {e}")
        return self

    def __exit__(self, *_):
        if self.got:
            self._add(-self.got)


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


def said(node, name):
    """The lines of a pod that ends them with "end"."""
    def whole():
        lines = node.biga("logs", name).splitlines()
        return lines if lines[-1:] == ["end"] else None
    return wait_for(f"{name} has said all", whole)[:-1]


def opened(node, name):
    """What a pod could open, once it has said all."""
    *lines, own = said(node, name)
    assert own.endswith("Operation not permitted"), own
    return set(lines)


def end(node, *names):
    for name in names:
        node.delete(name)
    node.wait_gone(names)


def reason(node, name, word, *says):
    """Waits until that is why, and the message says all of this."""
    def is_so():
        pod = node.pods()[name]
        assert pod.get("reason") == word, pod
        for text in says:
            assert text in pod["message"], pod
        return True
    wait_for(f"{name}: {word}", is_so, every=0.1)


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


# takes 4 MiB of huge pages twice
TAKES = ("cd /huge; for f in a b; do fallocate -l 4194304 $f 2>&1 && "
         "echo $f; done; echo end; exec sleep 100000")
# what it may take, by either version of cgroups
MAY = ("cat /sys/fs/cgroup/hugetlb.2MB.max "
       "/sys/fs/cgroup/hugetlb/hugetlb.2MB.limit_in_bytes 2>/dev/null; "
       "grep CapBnd /proc/self/status; echo end; exec sleep 100000")


def huge(name, amount, script=TAKES):
    pod = asks(name, "snap", volumes=[
        {"name": "huge", "emptyDir": {"medium": "HugePages"}}])
    container = pod["spec"]["containers"][0]
    container["command"] = ["sh", "-c", script]
    container["resources"]["limits"]["hugepages-2Mi"] = amount
    container["volumeMounts"] = [{"name": "huge", "mountPath": "/huge"}]
    return pod


def test_rights(t, node):
    lock = 1 << 14  # IPC_LOCK, of linux/capability.h

    def rights(name, sets, add):
        pod = service(name, cores=1, args=("sh", "-c", MAY),
                      annotations={"biga.dev/devices": sets})
        pod["spec"]["containers"][0]["securityContext"] = {
            "capabilities": {"add": add}}
        node.apply([pod])
    with t.check("a pod of a set that says so may lock memory"):
        rights("c0", "rdma", ["IPC_LOCK"])
        node.wait_state(["c0"], "running")
        assert int(said(node, "c0")[-1].split()[1], 16) & lock
    with t.check("one that does not ask for it may not"):
        rights("c1", "rdma", [])
        node.wait_state(["c1"], "running")
        assert not int(said(node, "c1")[-1].split()[1], 16) & lock
        end(node, "c0", "c1")
    with t.check("and one whose sets do not let it is not placed"):
        rights("c2", "snap", ["IPC_LOCK"])
        reason(node, "c2", "NoPlace", "lets pods have the rights IPC_LOCK")
        end(node, "c2")


def has_hugetlb(card):
    top = card.seen("/sys/fs/cgroup".lstrip("/"))
    try:
        with open(f"{top}/cgroup.controllers", encoding="utf-8") as f:
            return "hugetlb" in f.read().split()
    except FileNotFoundError:
        return os.path.exists(f"{top}/hugetlb/tasks")


def test_hugepages(t, node, pages):
    card = node.rack.cards[0]
    files = card.seen("dev/hugepages-2Mi")

    def need(limits=False):
        if pages.got < pages.n or not os.path.ismount(files):
            raise Skip(f"{pages.got} of {pages.n} pages of 2 MiB could be "
                       "reserved on this machine")
        if limits and not has_hugetlb(card):
            raise Skip("cgroups here have no hugetlb")
    with t.check("huge pages arrive"):
        need()
        node.apply([huge("h0", "8Mi")])
        node.wait_state(["h0"], "running")
        assert said(node, "h0") == ["a", "b"], said(node, "h0")
    with t.check("and go with their pod"):
        need()
        end(node, "h0")
        assert os.listdir(os.path.join(files, "biga")) == []
    with t.check("a container takes no more than its limit"):
        need(limits=True)
        node.apply([huge("h1", "6Mi")])
        node.wait_state(["h1"], "running")
        assert "a" in said(node, "h1") and "b" not in said(node, "h1")
        end(node, "h1")
    with t.check("and one without a limit none"):
        need(limits=True)
        node.apply([service("h2", cores=1, args=("sh", "-c", MAY))])
        node.wait_state(["h2"], "running")
        assert said(node, "h2")[0] == "0", said(node, "h2")
        end(node, "h2")
    with t.check("a set gives no more than the card file says"):
        node.apply([huge("h3", "10Mi")])
        reason(node, "h3", "NotAllowed", "8192 KiB", '"snap"')
        end(node, "h3")


def test_hook(t, node):
    with t.check("devices that a hook makes are found"):
        pod = asks("k0", "made")
        pod["metadata"]["annotations"]["biga.dev/prepare"] = "make"
        container = pod["spec"]["containers"][0]
        container["command"] = ["sh", "-c", "ls /dev/made*; echo end; "
                                "exec sleep 100000"]
        node.apply([pod])
        node.wait_state(["k0"], "running")
        assert said(node, "k0") == ["/dev/made7"], said(node, "k0")
        end(node, "k0")


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


def hook(node, card):
    """The operator's, which makes a device of the card."""
    folder = os.path.join(node.rack.folder, "hooks")
    os.makedirs(folder, mode=0o755)
    path = os.path.join(folder, "make")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\ncd {card.seen('dev')} && "
                f"{{ [ -c made7 ] || mknod made7 c {OTHER}; }}\n")
    os.chmod(path, 0o755)
    return folder


def main():
    cards.require()
    with Pages(4) as pages, cards.Rack(1) as rack:
        t = Checks(on_failure=rack.tail)
        with t.check("Biga runs pods on a card with devices"):
            card = rack.cards[0]
            card.more_mounts = lambda: own_dev(card, NODES, MORE)
            rack.start()
            node = biga_node.Node(rack)
            node.advertiser.argv += ["--hooks", hook(node, card)]
            node.extender.argv += ["--policy", policy(
                node, default=["made", "none", "other", "rdma", "snap"],
                guests=["rdma"])]
            with open(rack.card_file(), encoding="utf-8") as f:
                described = json.load(f)
            described["cards"][0]["devices"] = SETS
            with open(f.name, "w", encoding="utf-8") as f:
                json.dump(described, f)
            node.start()
        for part in (test_open, test_rights, test_hook, test_share, test_none,
                     lambda *a: test_hugepages(*a, pages), test_policy):
            if not t.failed:
                part(t, node)
        node.stop()
    t.finish()


main()
