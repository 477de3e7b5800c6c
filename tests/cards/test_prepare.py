#!/usr/bin/env python3
"""A card is prepared before its pod: the operator's hook, how it ends, and
what becomes of it when the advertiser dies meanwhile; and what the operator
lets a pod ask of a card.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import node as biga_node  # noqa: E402
from check import Checks  # noqa: E402
from node import service  # noqa: E402
from proc import wait_for  # noqa: E402


class Hooks:
    """The operator's folder, and where hooks leave their marks."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "hooks")
        self.marks = os.path.join(folder, "marks")
        for path in (self.folder, self.marks):
            os.makedirs(path, mode=0o755)

    def put(self, name, script):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nL={self.marks}\n{script}\n")
        os.chmod(path, 0o755)

    def go(self, name):
        """What a hook of that name waits for: NAME.go."""
        with open(os.path.join(self.marks, name + ".go"), "w",
                  encoding="utf-8"):
            pass

    def mark(self, name):
        try:
            with open(os.path.join(self.marks, name), encoding="utf-8") as f:
                return f.read()
        except FileNotFoundError:
            return ""


def asks(name, hook=None, vfs=None):
    annotations = {}
    if hook is not None:
        annotations["biga.dev/prepare"] = hook
    if vfs is not None:
        annotations["biga.dev/sriov-vfs"] = vfs
    return service(name, cores=1, annotations=annotations)


def end(node, name):
    node.delete(name)
    node.wait_gone([name])


def reason(node, name, word):
    def said():
        pod = node.pods()[name]
        assert pod.get("reason") == word, pod
        return pod["message"]
    return wait_for(f"{name}: {word}", said, every=0.1)


def test_hook(t, node, hooks):
    hooks.put("look", "env >$L/env; echo all is well")
    hooks.put("bad", "echo no such firmware >&2; exit 4")
    with t.check("a hook runs before the pod, and is told for whom"):
        node.apply([asks("p0", "look")])
        node.wait_state(["p0"], "running")
        env = hooks.mark("env")
        for line in (f"BIGA_CARD={node.rack.cards[0].id}", "BIGA_POD=p0",
                     "BIGA_NAMESPACE=default", "BIGA_CARD_PCI=0000:"):
            assert line in env, env
        end(node, "p0")
    with t.check("its failure is the pod's reason, with its last words"):
        node.apply([asks("p1", "bad")])
        message = reason(node, "p1", "HookFailed")
        assert "status 4: no such firmware" in message, message
        said = node.biga("ps", "p1")
        assert "HookFailed" in said and "no such firmware" in said, said
    with t.check("and is over once the hook does better"):
        hooks.put("bad", "true")
        node.wait_state(["p1"], "running")
        end(node, "p1")
    with t.check("a hook that is not there, and a card without functions"):
        node.apply([asks("p2", "none")])
        reason(node, "p2", "HookMissing")
        end(node, "p2")
        node.apply([asks("p3", vfs="8")])
        reason(node, "p3", "VfsUnsupported")
        end(node, "p3")
    with t.check("what is no name of a hook is refused when it is applied"):
        text = node.biga("apply", "-", text=biga_node.json.dumps(
            asks("p4", "../bin/sh")), ok=False)
        assert "biga.dev/prepare" in text and "../bin/sh" in text, text
        assert "p4" not in node.pods()


def test_turns(t, node, hooks):
    hooks.put("long", "touch $L/long; "
              "while ! [ -e $L/long.go ]; do sleep 0.1; done")
    names = ["t0", "t1", "t2", "t3"]
    with t.check("a hook that takes its time holds up who wants one, too"):
        node.apply([service("t4", cores=1)])
        node.wait_state(["t4"], "running")
        node.apply([asks("t0", "long")])
        wait_for("it is begun", lambda: os.path.exists(
            os.path.join(hooks.marks, "long")))
        node.apply([asks(name, "look") for name in names[1:]])
        for name in names[1:]:
            reason(node, name, "WaitsForCard")
    with t.check("and nobody else: others begin and end"):
        node.apply([service("t5", cores=1)])
        node.wait_state(["t5"], "running")
        end(node, "t4")
        end(node, "t3")
        names.remove("t3")
    with t.check("then it is their turn"):
        hooks.put("look", "true")
        hooks.go("long")
        node.wait_state(names, "running")
        for name in [*names, "t5"]:
            end(node, name)


def waits(node):
    """Whether the advertiser has the lock's file of a hook open."""
    folder = f"/proc/{node.advertiser.pid}/fd"
    return any(os.path.basename(os.readlink(os.path.join(folder, fd)))
               == "hook-" + node.rack.cards[0].id for fd in os.listdir(folder))


def n_ready(node):
    """How often its card became ready, for all advertisers so far."""
    card = node.rack.cards[0].id
    return sum("event=place-health" in line and f"place={card} " in line and
               "health=ready" in line
               for line in node.advertiser.text().splitlines())


def ran(node, hooks, name, before):
    """It ran for an advertiser and for the next one, which saw its card become
    ready once; and again for each time that the card was lost and came back
    since it had become ready `before` times."""
    mark = hooks.mark(name)
    n, most = mark.count("begun"), 1 + n_ready(node) - before
    assert mark == "begun\nend\n" * n and 2 <= n <= most, (mark, most)


def test_kill(t, node, hooks):
    """The advertiser dies, or is stopped, while a hook runs."""
    for name in ("flash", "burn"):
        hooks.put(name, f"echo begun >>$L/{name}; while ! [ -e $L/{name}.go "
                  f"]; do sleep 0.1; done; echo end >>$L/{name}")
    with t.check("a hook that outlives the advertiser is waited for"):
        before = n_ready(node)
        node.apply([asks("f0", "flash")])
        wait_for("it is begun", lambda: hooks.mark("flash"))
        node.advertiser.kill()
        node.advertiser.start()
        wait_for("it waits", lambda: waits(node))
        assert hooks.mark("flash") == "begun\n", hooks.mark("flash")
        hooks.go("flash")
        node.wait_state(["f0"], "running")
        ran(node, hooks, "flash", before)
        end(node, "f0")
    with t.check("so is one that an orderly stop finds running"):
        before = n_ready(node)
        node.apply([asks("f1", "burn")])
        wait_for("it is begun", lambda: hooks.mark("burn"))
        node.advertiser.stop()
        assert hooks.mark("burn") == "begun\n", hooks.mark("burn")
        node.advertiser.start()
        hooks.go("burn")
        node.wait_state(["f1"], "running")
        ran(node, hooks, "burn", before)
        end(node, "f1")


def test_rights(t, node):
    """What pods may ask of a card is the operator's to say."""
    def master(name, **more):
        return service(name, cores=1, hostPID=True, container={
            "securityContext": {"privileged": True}}, **more)
    advertiser = node.advertiser
    with t.check("who asks for more than every pod has is not placed there"):
        node.apply([master("m0"), service("m1", cores=1, container={
            "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}})])
        message = reason(node, "m0", "NoPlace")
        assert "let pods have the rights privileged,host-pid" in message, \
            message
        message = reason(node, "m1", "NoPlace")
        assert "let pods have the rights NET_ADMIN" in message, message
        assert "no-rights" in node.biga("why", "m1", "--json")
        # one of before may be known for a moment after it is gone
        found = [p for p in node.local("GET", "/v1/pods")["items"]
                 if p["name"] in ("m0", "m1")]
        assert not found, f"it was begun: {found}"
        end(node, "m0")
        end(node, "m1")
    with t.check("and runs where the operator allows it"):
        advertiser.stop()
        advertiser.argv += ["--allow", "host-pid,privileged"]
        advertiser.start()
        node.apply([master("m2")])
        node.wait_state(["m2"], "running")
        end(node, "m2")
    with t.check("until that is taken back, as far as it has not begun"):
        node.apply([master("m3", image="later:1")])
        reason(node, "m3", "ImageMissing")
        advertiser.stop()
        del advertiser.argv[-2:]
        advertiser.start()
        reason(node, "m3", "NotAllowed")
        end(node, "m3")


def main():
    cards.require()
    with cards.Rack(1) as rack:
        t = Checks(on_failure=rack.tail)
        with t.check("Biga runs pods on a card"):
            rack.start()
            hooks = Hooks(rack.folder)
            node = biga_node.Node(rack)
            node.advertiser.argv += ["--hooks", hooks.folder]
            node.start()
        if not t.failed:
            test_hook(t, node, hooks)
            test_turns(t, node, hooks)
            test_kill(t, node, hooks)
            test_rights(t, node)
            node.stop()
    t.finish()


main()
