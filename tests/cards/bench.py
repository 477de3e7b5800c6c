#!/usr/bin/env python3
"""What Biga adds to the start of a pod, on one real card: prints what
bench_actuate does.  Status 77 where there can be no cards, with the reason.
"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402


def main():
    rounds = sys.argv[1] if len(sys.argv) > 1 else "20"
    why = cards.lacking()
    if why:
        print(why, file=sys.stderr)
        return 77
    with cards.Rack(1, host=False) as rack:
        rack.start()
        card = rack.cards[0]
        state = os.path.join(rack.folder, "bench")
        os.makedirs(state, mode=0o700)
        return subprocess.run(
            [os.path.join(cards.BUILD, "bench", "bench_actuate"), "start",
             rounds, state, card.endpoint, "busybox:static",
             rack.pki("ca.crt"), rack.pki(f"{cards.NODE}.crt"),
             rack.pki(f"{cards.NODE}.key")], check=False).returncode


sys.exit(main())
