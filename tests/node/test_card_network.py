#!/usr/bin/env python3
"""Cards with a network for pods of their own (biga-cri --network pod): a pod
has an address of its card's CNI plugins, which the host reaches."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
import served  # noqa: E402
import verbs  # noqa: E402
from check import Checks  # noqa: E402
from lives import quick  # noqa: E402
from place import OnCard, Place  # noqa: E402
from pods import WAIT, sh  # noqa: E402


class OnNetwork(OnCard):
    """A card, and its network for pods."""

    servers = 2  # each has its ports

    def here(self, found):
        card = self.card_of(found)
        network = f"10.89.{card.index}."
        assert found["status"]["podIP"].startswith(network), found["status"]
        return [s for s in card.local().sandboxes()
                if found["metadata"]["uid"] in s["labels"].values()]

    def hostname(self, name):
        return name


def test_address(t, p, host):
    serve = verbs.WEB.replace("exec httpd -f", "httpd") + "; " + WAIT
    probes = {kind: quick(httpGet={"port": 8080, "path": "/"},
                          failureThreshold=60)
              for kind in ("readinessProbe", "livenessProbe",
                           "startupProbe")}
    with t.check("two pods on one port, probed from the host, have addresses "
                 "and names of their own"):
        names = [p.up(f"own{i}", sh(serve, **probes)) for i in range(2)]
        found = [p.r.pod(name) for name in names]
        assert all(map(p.here, found))
        addresses = {one["status"]["podIP"] for one in found}
        assert len(addresses) == 2, addresses
        for name, one in zip(names, found):
            assert verbs.fetch(one["status"]["podIP"], 8080) == \
                f"hello from {name}\n"
            assert one["status"]["podIP"] in p.sh(name, "ip addr")
    with t.check("host pods reach them, and they host pods"):
        near = host.up("near", sh(
            serve, readinessProbe=probes["readinessProbe"]))
        own = p.r.pod(near)["status"]["podIP"]
        for address in addresses:
            assert "hello" in host.sh(
                near, f"wget -qO- http://{address}:8080/")
        assert "hello" in p.sh(names[0], f"wget -qO- http://{own}:8080/")
        host.gone(near)
    with t.check("one with hostNetwork has the card's"):
        name = p.up("shared", sh(WAIT), hostNetwork=True)
        card = p.card_of(p.r.pod(name))
        assert p.r.pod(name)["status"]["podIP"] == card.address
        assert card.address in p.sh(name, "ip addr")
    p.k("delete", "pod", name, *names)


def main():
    rig.require("router")
    with rig.Rig(1, "router", card_pods=True) as r:
        t = Checks(on_failure=r.tail)
        with t.check("the node is ready"):
            r.way.settings["network"] = "pod"
            r.start()
            r.start_proxy()
            r.start_biga()
        p = OnNetwork(r)
        for test in (served.test_service, verbs.test_forward):
            if not t.failed:
                test(t, p)
        if not t.failed:
            test_address(t, p, Place(r))
        t.finish()


main()
