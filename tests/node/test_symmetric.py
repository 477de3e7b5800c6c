#!/usr/bin/env python3
"""The other way round: the kubelet is on a card, and runs pods of RuntimeClass
`host` on the card's host, which cannot call the card.

A rig's node is the card here, and its card 0, a machine of its own across a
wire, is the host: to biga-cri one is the home and one is remote, whatever they
are.  The host has no more than a containerd that obeys the card.  Both see one
file system, as machines do not, so only what crosses the wire is tried."""
import os
import ssl
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
import cards  # noqa: E402
from check import Checks  # noqa: E402
from mounts import config_map, mounted  # noqa: E402
from place import Place  # noqa: E402
from pods import WAIT, sh  # noqa: E402
from proc import wait_for  # noqa: E402

# As docs/cards.md says: calls for images name the RuntimeClass, and nothing
# that needs no key is served beyond loopback
KUBELET = {"featureGates": {"RuntimeClassInImageCriApi": True},
           "healthzBindAddress": "127.0.0.1"}


class OnHost(Place):
    """The card's host, by RuntimeClass."""

    prefix = "far"

    def dress(self, obj):
        obj["spec"]["runtimeClassName"] = "host"
        return obj

    def here(self, found):
        host = self.r.rack.cards[0]
        assert found["status"]["podIP"] == host.address, found["status"]
        return [s for s in host.local().sandboxes()
                if found["metadata"]["uid"] in s["labels"].values()]


def start(r):
    host = r.rack.cards[0]
    pki = r.rack.pki
    r.way = rig.Router(r, **{
        "card-file": None, "remote": f"tcp://{host.address}:{cards.PORT}",
        "ca": pki("ca.crt"), "cert": pki(f"{cards.NODE}.crt"),
        "key": pki(f"{cards.NODE}.key")})
    r.start()
    r.c.apply([{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass",
                "metadata": {"name": "host"}, "handler": "host"}])


def test_pod(t, r, card, host):
    with t.check("a pod of RuntimeClass host runs on the host, one without "
                 "it on the card"):
        r.c.apply([config_map("far-cm", a="1")])
        far = host.up("pod", sh(f"echo begun; {WAIT}",
                                volumeMounts=mounted(cm="/cm")),
                      volumes=[{"name": "cm", "configMap":
                                {"name": "far-cm"}}])
        near = card.up("pod", sh(WAIT))
        assert host.here(r.pod(far)) and card.here(r.pod(near))
        assert len(host.r.rack.cards[0].local().sandboxes()) == 2, \
            "the pod, and what writes its files"
    with t.check("logs, exec and its ConfigMap are as on the card"):
        host.said(far, "begun\n")
        assert host.execute(far, "cat", "/cm/a") == "1"
        r.c.apply([config_map("far-cm", a="2")])
        wait_for("it is told of the change", lambda:
                 host.execute(far, "cat", "/cm/a") == "2")
    return far, near


def test_end(t, r, card, host, names):
    with t.check("both are deleted, and nothing of them runs"):
        uid = r.pod(names[0])["metadata"]["uid"]
        host.gone(names[0])
        card.gone(names[1])
        there = r.rack.cards[0].local()
        wait_for("its sandbox has ended", lambda: not [
            s for s in there.sandboxes()
            if s["ready"] and uid in s["labels"].values()])
        assert not [c for c in there.containers()
                    if c["state"] == 1 and uid in c["labels"].values()]


# What a host may try: every port that anybody on the card listens at, on each
# address of it that the host has a way to.
TRY = """
import socket, sys
for address in sys.argv[1].split(","):
    for port in map(int, sys.argv[2].split(",")):
        try:
            socket.create_connection((address, port), 5).close()
            print(address, port)
        except OSError:
            pass
"""


def listening():
    """The TCP ports of this network that somebody listens at."""
    ports = set()
    for family in ("tcp", "tcp6"):
        with open(f"/proc/net/{family}", encoding="ascii") as f:
            ports |= {int(words[1].split(":")[1], 16)
                      for words in map(str.split, list(f)[1:])
                      if words[3] == "0A"}
    return ports


def kubelet_says(r, at):
    """To the host, with the one key that it has."""
    pki = r.rack.cards[0].path("pki")
    request = "GET /pods HTTP/1.0\\r\\n\\r\\n"
    said = subprocess.run(
        [*r.rack.cards[0].enter_network(), "openssl", "s_client", "-quiet",
         "-connect", f"{at[0]}:{at[1]}", "-cert", f"{pki}/card.crt",
         "-key", f"{pki}/card.key"], input=request.replace("\\r\\n", "\r\n"),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False)
    return said.stdout


def test_host(t, r):
    there = r.rack.cards[0]
    with t.check("no program of the card listens where its host can call, but "
                 "the kubelet, which wants a key that the host has not"):
        # the registry is no program of the card
        ports = listening() - {r.rack.registry_port}
        assert 10250 in ports, ports
        found = cards.run(
            *there.enter_network(), sys.executable, "-c", TRY,
            f"{there.host_address},{rig.ADDRESS}",
            ",".join(map(str, sorted(ports)))).split("\n")
        found = [tuple(line.split()) for line in found if line]
        t.note(f"of ports {sorted(ports)} the host reaches {found}")
        assert {port for _, port in found} <= {"10250"}, found
        for at in found:
            assert "401 Unauthorized" in kubelet_says(r, at)
    with t.check("its key does not open its own runtime to it either"):
        pki = there.path("pki")
        context = cards.client_tls(f"{pki}/ca.crt", f"{pki}/card.crt",
                                   f"{pki}/card.key")
        assert there.cri().version()
        try:
            there.cri(tls=context).version()
        except (ssl.SSLError, OSError) as error:
            t.note(str(error))
        else:
            raise AssertionError("it was served")


def main():
    rig.require("router")
    with rig.Rig(1, "router", kubelet=KUBELET) as r:
        t = Checks(on_failure=r.tail)
        with t.check("a card with a kubelet, and its host, are ready"):
            start(r)
        names = ()
        places = Place(r), OnHost(r)
        if not t.failed:
            test_host(t, r)
            names = test_pod(t, r, *places)
        if names:
            test_end(t, r, *places, names)
        t.finish()


main()
