"""What a soak does, decided from its seed alone: faults and work of each
round, in seconds from the round's start.

    plan.py SEED ROUND      # prints a round's plan
"""
import json
import random
import sys

ROUND = 60.0     # seconds of faults and work; then all is healed and judged
FIRST = 2.0      # seconds before the first fault of a round
NODES = 6        # of each fleet of simulated hosts
FLEETS = ("east", "west")
SIMULATED = 6    # hosts that publish to the embedded extender, beside the real
CARDS = 4
SMALL_DISK = 3   # the card whose disk is small, and can be filled

# {kind: (weight, shortest, longest)} in seconds; see faults.py
PROGRAM = {"kill": (4, 0.2, 6), "term": (2, 0.2, 6), "freeze": (3, 1, 22),
           "clock": (2, 2, 15), "reboot": (1, 0.2, 4)}
TARGETS = {
    # name: (mean seconds between faults, kinds)
    "leader": (14, {**PROGRAM, "cut": (2, 1, 22), "swallow": (1, 3, 3)}),
    "extender1": (40, {**PROGRAM, "cut": (2, 1, 22)}),
    # long lives show leaks
    "extender2": (40, {"freeze": (1, 1, 22), "cut": (1, 1, 22),
                       "clock": (1, 2, 15)}),
    "scheduler": (40, {"kill": (2, 0.2, 5), "term": (1, 0.2, 5),
                       "freeze": (2, 1, 15)}),
    "apiserver": (45, {"kill": (2, 0.5, 10), "term": (1, 0.5, 5),
                       "freeze": (2, 1, 18), "etcd-freeze": (1, 1, 10),
                       "etcd-kill": (1, 0.5, 5)}),
    "east": (25, {**PROGRAM, "cut": (3, 1, 22)}),
    "west": (40, {"freeze": (1, 1, 22), "cut": (1, 1, 22),
                  "clock": (1, 2, 15)}),
    "slices": (12, {"deleted": (1, 0, 0)}),
    "embedded": (14, {**PROGRAM, "full": (2, 2, 12)}),
    "advertiser": (14, {**PROGRAM, "full": (2, 2, 12)}),
    "host": (50, {"kill": (1, 0.5, 6), "freeze": (1, 1, 12)}),
    **{f"card{i}": (25, {
        "freeze": (3, 1, 20), "kill": (2, 0.5, 12), "link": (3, 1, 20),
        "silent": (2, 1, 20), "flap": (1, 4, 10), "drain": (2, 2, 15),
        **({"full": (4, 2, 15)} if i == SMALL_DISK else
           {"power": (2, 0.5, 10)})}) for i in range(CARDS)},
}
CLOCKS = (-86400, -3600, -30, -2, 2, 30, 3600, 30 * 86400)  # seconds
# Every third round has faults of one target on each side, and longer ones:
# what is promised of one fault is measured then.
ALONE = (("leader", "leader", "east", "scheduler"),
         ("card0", "card1", "card2", "advertiser", "embedded"))
BOOTS = (5, 3600, 10 ** 6)  # what the monotonic clock says after a reboot


def pick(rng, kinds):
    names = sorted(kinds)
    return rng.choices(names, [kinds[name][0] for name in names])[0]


def targets(seed, number):
    """{name: (mean seconds between faults, kinds)} of a round."""
    if number % 3 != 2:
        return TARGETS
    rng = random.Random(f"{seed}/{number}/alone")
    return {name: (8, TARGETS[name][1])
            for name in [rng.choice(side) for side in ALONE]}


def faults(seed, number, seconds):
    found = []
    there = targets(seed, number)
    for target, (mean, kinds) in sorted(there.items()):
        rng = random.Random(f"{seed}/{number}/{target}")
        at = FIRST + rng.expovariate(1 / mean)
        while at < seconds - 1:
            kind = pick(rng, kinds)
            _, least, most = kinds[kind]
            # short ones are more frequent
            long = least + (most - least) * rng.random() ** (
                2 if there is TARGETS else 0.5)
            fault = {"at": round(at, 2), "target": target, "kind": kind,
                     "for": round(min(long, seconds - at), 2)}
            if kind == "clock":
                fault["by"] = rng.choice(CLOCKS)
            elif kind == "reboot":
                fault["monotonic"] = rng.choice(BOOTS)
            elif kind == "swallow":
                fault["size"] = rng.choice((200, 400, 800))
            elif target == "slices":
                fault["node"] = rng.randrange(NODES * len(FLEETS))
            found.append(fault)
            at += fault["for"] + rng.expovariate(1 / mean) + (
                1.5 if there is TARGETS else 10)
    return sorted(found, key=lambda f: (f["at"], f["target"]))


def units(seed, number, seconds):
    """Pods that belong together: when they come, and when they end."""
    found = []
    for world, mean in (("cluster", 1.2), ("cards", 2.5), ("sim", 1.0)):
        rng = random.Random(f"{seed}/{number}/work/{world}")
        at = rng.expovariate(1 / mean)
        while at < seconds - 1:
            unit = {"id": f"{world[0]}{number}-{len(found)}", "world": world,
                    "at": round(at, 2)}
            unit.update(WORK[world](rng))
            found.append(unit)
            at += rng.expovariate(1 / mean)
    return sorted(found, key=lambda u: (u["at"], u["id"]))


def cluster_unit(rng):
    kind = rng.choices(["pair", "job", "service", "host", "pinned"],
                       [30, 25, 10, 10, 25])[0]
    unit = {"kind": kind, "for": round(3 + rng.expovariate(1 / 15), 2),
            "end": rng.choice(["delete", "delete", "slow", "succeed"])}
    if kind == "job":
        unit["size"] = rng.randint(2, 6)
    if kind == "pinned":
        unit["node"] = rng.randrange(NODES * len(FLEETS))
    unit["cores"] = rng.choice([0, 2, 4])
    unit["interleave"] = rng.random() < 0.5
    return unit


def cards_unit(rng):
    kind = rng.choices(["pair", "job", "service", "short", "files"],
                       [30, 15, 25, 15, 15])[0]
    unit = {"kind": kind, "for": round(5 + rng.expovariate(1 / 15), 2),
            "grace": rng.choice([None, None, 0])}
    if kind == "job":
        unit["size"] = 2
    if kind == "short":
        unit["runs"] = round(rng.uniform(0.5, 8), 1)
    return unit


def sim_unit(rng):
    return {"kind": "bind", "for": round(2 + rng.expovariate(1 / 12), 2),
            "cores": rng.choice([2, 4, 8]), "node": rng.randrange(1 << 16)}


WORK = {"cluster": cluster_unit, "cards": cards_unit, "sim": sim_unit}


def of_round(seed, number, seconds=ROUND):
    return {"seed": seed, "round": number, "seconds": seconds,
            "faults": faults(seed, number, seconds),
            "units": units(seed, number, seconds),
            "restart": random.Random(f"{seed}/{number}/restart").choice(
                ["kill", "term"])}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    print(json.dumps(of_round(int(sys.argv[1]), int(sys.argv[2])), indent=1))
