"""Where pods of a test go, and what is done with them there by kubectl."""
import json
import socket

import cards
from pods import pod
from proc import wait_for


class Place:
    """The host, by the kubelet's own runtime."""

    prefix = "host"  # what names of its pods begin with
    biga = False  # whether Biga has to place them

    def __init__(self, r):
        self.r, self.k = r, r.c.kubectl

    def name(self, what):
        return f"{self.prefix}-{what}"

    def dress(self, obj):
        """A Pod with whatever it needs to go there."""
        return obj

    def here(self, found):
        """Whether a Pod that runs is where it belongs."""
        return found["spec"]["nodeName"] == cards.NODE and \
            found["status"]["podIP"].startswith("10.88.")

    servers = 3  # pods that may serve the same port
    most = 20  # pods at once

    def hostname(self, name):
        """What a pod of that name has as its own."""
        return name

    def addresses(self, n):
        """How many addresses n pods have there."""
        return n

    def apply(self, what, *containers, **more):
        """Apply a Pod; its name."""
        self.r.c.apply([self.dress(pod(self.name(what), *containers,
                                       **more))])
        return self.name(what)

    def up(self, what, *containers, **more):
        """A Pod that is ready; its name."""
        name = self.apply(what, *containers, **more)
        self.ready(name)
        return name

    def ready(self, name):
        return wait_for(f"{name} is ready", lambda: self.r.ready_pod(name))

    def phase(self, name, phase):
        """The Pod once it is in that phase."""
        def reached():
            found = self.r.pod(name)
            assert found["status"]["phase"] == phase, found["status"]
            return found
        return wait_for(f"{name} is {phase}", reached)

    def gone(self, name, *args):
        """Delete it; kubectl waits until it is gone."""
        self.k("delete", "pod", name, *args)

    def execute(self, name, *argv, container="main"):
        return self.k("exec", name, "-c", container, "--", *argv)

    def sh(self, name, script, container="main"):
        return self.execute(name, "sh", "-c", script, container=container)

    def said(self, name, text, *args):
        """Until its log is that text: its runtime writes it when it has read
        it, which may be later than what is told of the pod.  args: of
        kubectl logs."""
        def same():
            got = self.k("logs", name, *args)
            assert got == text, got
            return True
        wait_for(f"{name} has said {text!r}", same)

    def event(self, name, reason, text=""):
        """Until there is an Event of a Pod for that reason with that text;
        there may be others of the same reason, before and after it."""
        def told():
            found = [(e["reason"], e["message"]) for e in self.r.c.api.list(
                "events", "default",
                fieldSelector=f"involvedObject.name={name}")]
            assert any(r == reason and text in m for r, m in found), found
            return True
        wait_for(f"an Event {reason} {text!r} of {name}", told)


def allocation(found):
    """What Biga has given a Pod."""
    return json.loads(found["metadata"]["annotations"]["biga.dev/allocation"])


class OnCard(Place):
    """The cards: each pod goes where Biga puts it."""

    prefix, biga, servers, most = "card", True, 1, 12

    def dress(self, obj):
        obj["metadata"].setdefault("labels", {})["biga.dev/role"] = "service"
        spec = obj["spec"]
        spec["runtimeClassName"] = "xpu"
        spec["containers"][0].setdefault("resources", {})["limits"] = {
            "biga.dev/card": "1", "biga.dev/card-cores": "1",
            "biga.dev/card-memory-mib": "64"}
        return obj

    def card_of(self, found):
        """The card that Biga has given it."""
        told = allocation(found)["cards"][0]["id"]
        return next(c for c in self.r.rack.cards if c.id == told)

    def here(self, found):
        card = self.card_of(found)
        assert found["status"]["podIP"] == card.address, found["status"]
        return [s for s in card.local().sandboxes()
                if found["metadata"]["uid"] in s["labels"].values()]

    def hostname(self, name):
        """The card's: it is that of the network that it has."""
        return socket.gethostname()

    def addresses(self, n):
        return min(n, len(self.r.rack.cards))


class AtCard(Place):
    """One card, without Biga: what it would write is written here."""

    CLASS = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass",
             "metadata": {"name": "xpu"}, "handler": "xpu"}

    def __init__(self, r, card):
        super().__init__(r)
        self.card, self.prefix = card, card.name
        r.c.apply([self.CLASS])

    def dress(self, obj):
        meta = obj["metadata"]
        meta["annotations"]["biga.dev/allocation"] = json.dumps({
            "pod": {"namespace": "default", "name": meta["name"],
                    "role": "service"},
            "node": cards.NODE, "cards": [{"id": self.card.id}],
            "need": {"cores": 1, "memoryMiB": 64}})
        obj["spec"]["runtimeClassName"] = "xpu"
        return obj
