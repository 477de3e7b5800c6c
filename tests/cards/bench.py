#!/usr/bin/env python3
"""What Biga adds to the start of a pod, on one real card, or of PODS at once on
eight: prints what bench_actuate does.  Status 77 where there can be no cards,
with the reason.

  bench.py [ROUNDS [PODS]]
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
    pods = sys.argv[2:]
    with cards.Rack(8 if pods else 1, host=False) as rack:
        rack.start()
        state = os.path.join(rack.folder, "bench")
        os.makedirs(state, mode=0o700)
        keys = [rack.pki(name) for name in
                ("ca.crt", f"{cards.NODE}.crt", f"{cards.NODE}.key")]
        ends = [card.endpoint for card in rack.cards]
        what = ["many", rounds, *pods, state, "busybox:static", *keys,
                *ends] if pods else \
               ["start", rounds, state, *ends, "busybox:static", *keys]
        return subprocess.run(
            [os.path.join(cards.BUILD, "bench", "bench_actuate"), *what],
            check=False).returncode


sys.exit(main())
