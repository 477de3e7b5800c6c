#!/usr/bin/env python3
"""Certificates between the node and its cards: what is missing, foreign,
expired or for somebody else is refused on either side, with a reason that
says so; new keys are taken without a restart of the advertiser.
"""
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import node as biga_node  # noqa: E402
from check import Checks  # noqa: E402
from node import service  # noqa: E402
from proc import wait_for  # noqa: E402


class Keys:
    def __init__(self, t, rack, node):
        self.t, self.rack, self.node = t, rack, node
        self.foreign = os.path.join(rack.folder, "foreign")
        cards.certs("ca", self.foreign, "--cn", "cards of others")
        self.n = 0

    def refused(self, card, *words):
        """The card is lost, for a reason with one of these words, and not
        chosen any more."""
        def said():
            health, reason = self.node.health(card)
            assert health == "lost" and any(
                w in reason.lower() for w in words), f"{health}: {reason}"
            assert card.id not in self.node.capacity(), "can be chosen"
            return reason
        self.t.note(f"{card.name}: " + wait_for("it is refused", said))

    def card_shows(self, card, **how):
        """Another certificate of the card; containerd reads it at its
        start."""
        card.make_keys(**how).restart().wait_local()

    def well(self, card):
        self.node.wait_health(card, "ready")

    def node_shows(self, pki, *more):
        """Another certificate of the node, for the cards of this rack."""
        self.n += 1
        name = f"new{self.n}"
        cards.certs("client", pki, name, "--cn", "system:node:" + cards.NODE,
                    *more)
        for kind in ("key", "crt"):
            shutil.copy(os.path.join(pki, f"{name}.{kind}"),
                        self.rack.pki(f"{cards.NODE}.{kind}.new"))
            os.rename(self.rack.pki(f"{cards.NODE}.{kind}.new"),
                      self.rack.pki(f"{cards.NODE}.{kind}"))


def test_card(t, rack, keys):
    card, other = rack.cards
    for what, how, words in (
            ("has expired", {"days": -1}, ("expire",)),
            ("is of another authority", {"pki": keys.foreign},
             ("issuer", "authority", "unknown", "trust", "self-signed",
              "self signed")),
            ("is for another address", {"address": other.address},
             ("name", "address", "match"))):
        with t.check(f"a card whose certificate {what} is refused, and told "
                     "why"):
            try:
                keys.card_shows(card, **how)
                keys.refused(card, *words)
            finally:
                keys.card_shows(card)
            keys.well(card)


def test_node(t, rack, keys):
    node, card = keys.node, rack.cards[0]
    pid = node.advertiser.pid
    for what, pki, more, words in (
            ("of another authority", keys.foreign, (),
             ("cards of others",)),
            ("that has expired", rack.pki(), ("--days", "-1"),
             ("expired", "cards of " + cards.NODE))):
        with t.check(f"cards refuse a node with a certificate {what}, and "
                     "it says so"):
            keys.node_shows(pki, *more)
            for c in rack.cards:
                c.restart().wait_local()
            keys.refused(card, *words)
    with t.check("a new certificate is taken without a restart"):
        keys.node_shows(rack.pki())
        for c in rack.cards:
            keys.well(c)
        assert node.advertiser.pid == pid
    with t.check("also one that is renewed while pods run, who go on"):
        before = {s["id"] for _, s in node.sandboxes_of_pods() if s["ready"]}
        keys.node_shows(rack.pki())
        for c in rack.cards:
            keys.card_shows(c)
            keys.well(c)
        node.wait_clean()
        now = {s["id"] for _, s in node.sandboxes_of_pods() if s["ready"]}
        assert now == before and now, (now, before)


def main():
    cards.require()
    with cards.Rack(2) as rack:
        t = Checks(on_failure=rack.tail)
        with t.check("a service runs on each of two cards"):
            rack.start()
            node = biga_node.Node(rack).start()
            node.apply([service("svc0"), service("svc1")])
            node.wait_state(["svc0", "svc1"], "running")
        if not t.failed:
            keys = Keys(t, rack, node)
            test_card(t, rack, keys)
            test_node(t, rack, keys)
    t.finish()


main()
