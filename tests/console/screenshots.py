#!/usr/bin/env python3
"""The pictures of docs/console.md: screenshots FOLDER."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import driver  # noqa: E402
from driver import Browser  # noqa: E402
from sim_fleet import Fleet, pod  # noqa: E402

SHOTS = [("fleet", "/", {}), ("node", "/ui/nodes/{node}", {"height": 760}),
         ("job", "/ui/jobs/ml/train", {"height": 560}),
         ("pending", "/ui/pods/ml/huge-0", {"height": 420}),
         ("dark", "/", {"dark": True, "height": 420}),
         ("phone", "/", {"phone": True, "width": 390, "height": 700})]


def busy(fleet):
    """Jobs of all sizes, and pods alone."""
    for i, size in enumerate((24, 16, 40, 8, 32, 12)):
        fleet.place_job(f"job-{i}", size, "hpc")
    for i in range(220):
        fleet.place(pod(f"alone-{i}", namespace="web", gpus=i % 2))


def main():
    folder = sys.argv[1]
    why = driver.lacks()
    if why:
        sys.exit(why)
    fleet, browser = Fleet(1000), Browser()
    try:
        fleet.publish()
        fleet.furnish()
        busy(fleet)
        for name, path, how in SHOTS:
            browser.look(**{"width": 1280, "height": 640, **how})
            browser.get(fleet.base() + path.format(node=fleet.node))
            browser.find("#live:not([hidden]):not(.lost)")
            browser.screenshot(f"{folder}/console-{name}.png")
            print(f"{folder}/console-{name}.png")
    finally:
        browser.close()
        fleet.close()


main()
