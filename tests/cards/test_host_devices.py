#!/usr/bin/env python3
"""Host pods without privilege open the device nodes of the card, NICs and GPUs
that they were given, and nothing of others.  The host has a /dev of its own,
with nodes that stand for its devices, and a /sys that tells of them.
"""
import json
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import node as biga_node  # noqa: E402
from check import Checks  # noqa: E402
from node import pod  # noqa: E402
from proc import wait_for  # noqa: E402
from standin import Sys, own_dev  # noqa: E402

CARD = cards.PCI[0]
FIRST, SECOND = CARD[:-1] + "1", CARD[:-1] + "2"
NIC, OTHER_NIC = "0000:20:00.0", "0000:21:00.0"
GPU, OTHER_GPU = "0000:22:00.0", "0000:23:00.0"
# drivers that are on every Linux, as whoever may opens them; of what is not
# there the answer is another than of what may not be opened
NODES = {"infiniband/uverbs0": "1 11", "infiniband/uverbs1": "10 237",
         "infiniband/uverbs2": "10 229", "infiniband/uverbs3": "10 236",
         "infiniband/uverbs4": "10 223", "infiniband/rdma_cm": "10 232",
         "dri/renderD128": "10 238", "dri/renderD129": "10 239"}
# which of all these numbers open, whatever their names: MKNOD is every
# container's; and which have a name
OPENS = ("".join(f"mknod /n c {number}; (: >>/n) 2>&1 | "
                 f"grep -q 'not permitted' || echo may {name}; rm /n; "
                 f"[ -c /dev/{name} ] && echo has {name}; "
                 for name, number in NODES.items())
         + "echo rdma=$BIGA_RDMA_DEVICE vfs=$BIGA_CARD_VFS; echo end; "
         "exec sleep 100000")


def host_sys(folder):
    s = Sys(folder)
    s.function(CARD, (0x15b3, 0xa2dc), 0x0200)
    s.rdma(CARD, "mlx5_0", "uverbs0", NODES["infiniband/uverbs0"])
    for n, pci in enumerate((FIRST, SECOND)):
        s.function(pci, (0x15b3, 0x101e), 0x0200, physfn=CARD, number=n)
        s.rdma(pci, f"mlx5_{n + 1}", f"uverbs{n + 1}",
               NODES[f"infiniband/uverbs{n + 1}"])
    for n, pci in enumerate((NIC, OTHER_NIC), 3):
        s.function(pci, (0x15b3, 0x1021), 0x0207)
        s.rdma(pci, f"mlx5_{n}", f"uverbs{n}",
               NODES[f"infiniband/uverbs{n}"])
    for n, pci in enumerate((GPU, OTHER_GPU), 128):
        s.function(pci, (0x1002, 0x740f), 0x0380)
        s.render(pci, f"renderD{n}", NODES[f"dri/renderD{n}"])
    s.write("sys/class/misc/rdma_cm/dev", "10:232\n")
    s.link("dev", "/dev")  # the host's, where the advertiser runs
    return folder


def pair(name, nics=0, gpus=0, **more):
    """A host pod that says what it may open, and its xPU pod."""
    notes = {**more, "biga.dev/nics": str(nics), "biga.dev/gpus": str(gpus)}
    limits = {"biga.dev/card": 1}
    job = (name, 0, 1)
    return [pod(name, "host", limits, ("sh", "-c", OPENS), job,
                annotations=notes),
            pod(f"{name}-xpu", "xpu",
                {**limits, "biga.dev/card-cores": 1,
                 "biga.dev/card-memory-mib": 64}, job=job,
                annotations=notes)]


def start(node, *names, **more):
    for name in names:
        node.apply(pair(name, **more))
    node.wait_state(names, "running")


def end(node, *names):
    node.delete_all([n for name in names for n in (name, f"{name}-xpu")])
    node.wait_gone([n for name in names for n in (name, f"{name}-xpu")])


def opens(node, name):
    """(what its container may open, what it is told)"""
    def said():
        lines = node.biga("logs", name).splitlines()
        return lines if "end" in lines else None
    *lines, told, _ = wait_for(f"{name} has said what it can open", said)
    may = {line[4:] for line in lines if line.startswith("may ")}
    has = {line[4:] for line in lines if line.startswith("has ")}
    assert may == has, lines
    return {os.path.basename(path) for path in may}, told


def expect(node, name, nodes, rdma, vfs):
    wanted = set(nodes.split()), f"rdma={rdma} vfs={vfs}"
    found = opens(node, name)
    assert found == wanted, found


def test_shared(t, node):
    with t.check("two pods that share a card have a virtual function each"):
        start(node, "a")
        expect(node, "a", "uverbs1 rdma_cm", "mlx5_1", FIRST)
        start(node, "b")
        expect(node, "b", "uverbs2 rdma_cm", "mlx5_2", SECOND)
    with t.check("an advertiser that is new gives none of them away"):
        node.advertiser.kill()
        node.advertiser.start()
        start(node, "c")
        expect(node, "c", "", "", "")
    with t.check("and one that has ended leaves its own to the next"):
        end(node, "a", "c")
        start(node, "d")
        expect(node, "d", "uverbs1 rdma_cm", "mlx5_1", FIRST)
        end(node, "b", "d")


def test_whole(t, node):
    with t.check("who has its card alone opens all of it"):
        start(node, "e", **{"biga.dev/exclusive": "true"})
        expect(node, "e", "uverbs0 uverbs1 uverbs2 rdma_cm",
               "mlx5_0,mlx5_1,mlx5_2", f"{FIRST},{SECOND}")
        end(node, "e")


def test_near(t, node):
    with t.check("NICs and GPUs are opened by whom they were given to"):
        start(node, "f", nics=1, gpus=1)
        start(node, "g", nics=1, gpus=1)
        for name, own in (("f", "uverbs1"), ("g", "uverbs2")):
            given = node.call("GET", f"/v1/allocations/default/{name}")
            nic, gpu = given["nics"][0]["id"], given["gpus"][0]["id"]
            verbs = "uverbs3" if "0000-20" in nic else "uverbs4"
            render = "renderD128" if "0000-22" in gpu else "renderD129"
            expect(node, name, f"{own} {verbs} {render} rdma_cm",
                   f"mlx5_{own[-1]}", FIRST if name == "f" else SECOND)
        end(node, "f", "g")


def test_none(t, node):
    with t.check("--host-devices none gives none"):
        node.advertiser.stop()
        node.advertiser.argv += ["--host-devices", "none"]
        node.advertiser.start()
        start(node, "h", nics=1, gpus=1)
        expect(node, "h", "", "mlx5_1", FIRST)
        end(node, "h")


def main():
    cards.require()
    with cards.Rack(1) as rack:
        t = Checks(on_failure=rack.tail)
        with t.check("Biga runs host pods where the host has devices"):
            rack.host.more_mounts = lambda: own_dev(rack.host, NODES)
            rack.start()
            node = biga_node.Node(rack)
            with open(rack.card_file(), encoding="utf-8") as f:
                said = json.load(f)
            said["cards"][0] |= {"cores": 8, "memory-mib": 4096,
                                 "arch": cards.machine_arch()}
            with open(f.name, "w", encoding="utf-8") as f:
                json.dump(said, f)
            at = node.advertiser.argv.index("--hostfile")
            node.advertiser.argv[at:at + 2] = [
                "--fsroot", host_sys(os.path.join(rack.folder, "host-root"))]
            node.start()
        for part in (test_shared, test_whole, test_near, test_none):
            if not t.failed:
                part(t, node)
        node.stop()
    t.finish()


main()
