#!/usr/bin/env python3
"""What a card does not have: an image, one for its architecture, room on its
disk.  Each ends in words that a person can act on, and leaves nothing."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import node as biga_node  # noqa: E402
from check import Checks  # noqa: E402
from cri import field, varint  # noqa: E402
from node import service  # noqa: E402
from proc import HANGS, wait_for  # noqa: E402


# a first process without a trap does not end on SIGTERM
UNTIL_TOLD = "trap 'exit 0' TERM; echo trapped; sleep 100000 & wait"


def wait_reason(node, name, *reasons):
    def said():
        pod = node.pods()[name]
        assert pod["reason"] in reasons, \
            f"{pod['state']}: {pod['reason']}: {pod['message']}"
        assert pod["message"], "it does not say what to do"
        return pod
    return wait_for(f"{name}: {' or '.join(reasons)}", said)


def end(node, name):
    node.delete(name)
    node.wait_gone([name])
    node.wait_clean()


def test_missing(t, node, card):
    with t.check("an image that is missing is named, and looked for again"):
        node.apply([service("later", image="later:1")])
        pod = wait_reason(node, "later", "ImageMissing")
        assert "later:1" in pod["message"], pod["message"]
        assert "later" in node.biga("ps")
        assert "ImageMissing" in node.biga("why", "later")
    with t.check("once it is there, the pod runs"):
        card.ctr("images", "tag", "docker.io/library/busybox:static",
                 "docker.io/library/later:1")
        node.wait_state(["later"], "running")
        end(node, "later")


def test_never(t, node, card):
    def now():
        return node.pods()["never"]

    def container():
        uid = now()["uid"]
        return next(c["id"] for c in card.local().containers()
                    if c["state"] == 1 and c["name"] == "main" and
                    c["labels"].get("biga.dev/pod-uid") == uid)
    card.ctr("images", "tag", "docker.io/library/busybox:static",
             "docker.io/library/never:1")
    with t.check("an image that went while its pod ran, and that may not be "
                 "pulled, is waited for"):
        node.apply([service("never", image="never:1", container={
            "imagePullPolicy": "Never",
            "command": ["/bin/sh", "-c", UNTIL_TOLD]})])
        node.wait_state(["never"], "running")
        wait_for("it can be told", lambda: "trapped" in node.biga(
            "logs", "never"))
        card.ctr("images", "rm", "docker.io/library/never:1")
        # as the card's own, which answers also when Biga takes it for lost
        card.local().call("StopContainer", field(1, container())  # and a grace
                          + varint(2 << 3) + varint(int(HANGS)))

        def lacking():
            pod = now()
            return "imagePullPolicy" in pod["message"] and pod
        pod = wait_for("it is said why", lacking)
        t.note(pod["message"])
        assert pod["reason"] == "ImageMissing", pod
        for word in ("never:1", "import it there", "tried again"):
            assert word in pod["message"], word
        assert pod["state"] == "running" and not pod["ready"], pod
    with t.check("and the container begins again once it is there"):
        card.ctr("images", "tag", "docker.io/library/busybox:static",
                 "docker.io/library/never:1")
        wait_for("it runs again", lambda: now()["ready"])
        assert now()["restarts"] >= 1, now()
        end(node, "never")


def test_arch(t, node, card):
    with t.check("an image for another architecture is not started, and it is "
                 "said why"):
        images = os.path.join(node.rack.folder, "images")
        other = "arm64" if cards.machine_arch() == "amd64" else "amd64"
        file = cards.foreign_image(
            os.path.join(images, "busybox.tar"),
            os.path.join(images, "foreign.tar"), other, "foreign:1")
        card.ctr("images", "import", "--all-platforms", "--no-unpack", file)
        node.apply([service("foreign", image="foreign:1", container={
            "imagePullPolicy": "Never"})])
        pod = wait_reason(node, "foreign", "ImageArch")
        t.note(pod["message"])
        for word in ("foreign:1", other, cards.machine_arch(), card.id):
            assert word in pod["message"], word
        wait_for("it is shown as failed", lambda:
                 node.pods()["foreign"]["state"] == "failed")
        assert "ImageArch" in node.biga("why", "foreign")
        end(node, "foreign")


def test_user(t, node, card):
    images = os.path.join(node.rack.folder, "images")
    for user, tag in (("nobody", "named:1"), ("1000:1000", "numbered:1")):
        card.ctr("images", "import", cards.user_image(
            os.path.join(images, "busybox.tar"),
            os.path.join(images, "user.tar"), user, tag))

    def asks(name, image, **more):
        return service(name, cores=2, image=image, container={
            "securityContext": {"runAsNonRoot": True, **more}})
    with t.check("an image that runs as root is refused where that may not "
                 "be, before anything is made"):
        node.apply([asks("root", "busybox:static"), asks("named", "named:1")])
        pod = wait_reason(node, "root", "RunAsNonRoot")
        assert "container main" in pod["message"], pod["message"]
        assert "user not given" in pod["message"], pod["message"]
        pod = wait_reason(node, "named", "RunAsNonRoot")
        assert "is a name, nobody" in pod["message"], pod["message"]
        assert pod["state"] == "failed", pod
        end(node, "root")
        end(node, "named")
    with t.check("with a number for its user it runs"):
        node.apply([asks("numbered", "numbered:1"),
                    asks("given", "busybox:static", runAsUser=1000)])
        node.wait_state(["numbered", "given"], "running")
        end(node, "numbered")
        end(node, "given")


def test_disk(t, node, card):
    with t.check("a card whose disk is full says so, and nothing half made "
                 "stays"):
        # what went before is collected now, and gives no room later
        card.ctr("images", "rm", "--sync", "docker.io/library/later:1")
        card.fill_disk()
        node.apply([service("full")])
        pod = wait_reason(node, "full", "DiskFull")
        t.note(pod["message"])
    with t.check("when there is room again, the pod runs"):
        card.clear_disk()
        node.wait_state(["full"], "running")
        end(node, "full")


def main():
    cards.require()
    with cards.Rack(1) as rack:
        t = Checks(on_failure=rack.tail)
        card = rack.cards[0]
        card.disk_mib = 64
        with t.check("Biga runs pods on a card with a small disk"):
            rack.start()
            node = biga_node.Node(rack).start()
        if not t.failed:
            test_missing(t, node, card)
            test_never(t, node, card)
            test_arch(t, node, card)
            test_user(t, node, card)
            test_disk(t, node, card)
    t.finish()


main()
