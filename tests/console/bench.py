#!/usr/bin/env python3
"""How soon the console shows a fleet of a thousand hosts, and a bind: at most
a second for each, or exit status 1."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import driver  # noqa: E402
from driver import Browser, wait_for  # noqa: E402
from sim_fleet import Fleet, pod, see_bind  # noqa: E402

LIMIT_MS = 1000
PAINTS, BINDS = 10, 6


def paints(browser, fleet):
    """Milliseconds from asking for the fleet to its first content."""
    for _ in range(PAINTS):
        browser.get(fleet.base() + "/")
        yield wait_for("paint", lambda: browser.run(
            "return performance.getEntriesByName('first-contentful-paint')"
            "[0]?.startTime"))


def main():
    why = driver.lacks()
    if why:
        sys.exit(why)
    fleet, browser = Fleet(1000), Browser()
    try:
        fleet.publish()
        fleet.furnish()
        browser.look()
        took = {"first paint": list(paints(browser, fleet)), "bind seen": []}
        for i in range(BINDS):
            took["bind seen"].append(see_bind(browser, fleet, f"bind-{i}")[1])
            fleet.free = fleet.filter(
                pod(f"next-{i}", namespace="ml", gpus=0))[-1]
    finally:
        browser.close()
        fleet.close()
    for what, times in took.items():
        times.sort()
        print(f"{what}: {times[len(times) // 2]:.0f} ms, at most "
              f"{times[-1]:.0f} ms of {len(times)}")
    sys.exit(max(map(max, took.values())) > LIMIT_MS)


main()
