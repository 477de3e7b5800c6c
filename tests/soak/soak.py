#!/usr/bin/env python3
"""Seeded faults over all of Biga at once, for as long as asked: a cluster
with three replicas, and an embedded extender with real containerds as cards,
while pods and jobs come and go.  All that is seen is written to
history.jsonl, and verdict.py judges it.

    soak.py [cluster|cards]…

$SOAK_SECONDS (60), $SOAK_SEED (random), $SOAK_DIR (build/soak/SEED): how
long, which faults and work, and where the history goes.

A round is a minute of faults and work, then everything is healed, and all
has to come to rest as it should be.
"""
import concurrent.futures
import heapq
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("cards", "kube"):
    sys.path.insert(1, os.path.join(os.path.dirname(HERE), folder))
import cards  # noqa: E402
import plan  # noqa: E402

from cardside import CardSide  # noqa: E402
from clusterside import ClusterSide  # noqa: E402
from proc import patience, stalls  # noqa: E402
from record import History  # noqa: E402

SECONDS = float(os.environ.get("SOAK_SECONDS") or 60)
SEED = int(os.environ.get("SOAK_SEED") or
           random.SystemRandom().randrange(1 << 32))
BUILD = os.path.join(cards.ROOT, os.environ.get("BIGA_BUILD", "build"))
FOLDER = os.path.abspath(os.environ.get("SOAK_DIR") or
                         os.path.join(BUILD, "soak", str(SEED)))
REST = 180.0      # seconds that all may take to come to rest; on a busy
BUSY = 3.0        # machine so many times as many, at most
TELL = 20.0       # seconds between two words of what it waits for
TICK = 0.05
SAMPLES = 5.0     # seconds between two looks at sizes
WORKERS = 12


class Unquiet(Exception):
    """It did not come to rest."""


class Soak:
    def __init__(self, sides, history):
        self.sides, self.history = sides, history
        self.pool = concurrent.futures.ThreadPoolExecutor(WORKERS)
        self.jobs = []
        self.n = self.sampled = 0
        self.leaving = []  # heap of (chaos time, id, side, unit)
        self.began = time.monotonic()

    def say(self, text):
        print(f"{time.monotonic() - self.began:7.1f} s  {text}", flush=True)

    # --- a round ------------------------------------------------------------
    def side_of(self, target):
        for side in self.sides:
            if target in side.targets or target in getattr(
                    side, "roles", ()):
                return side
        return None

    def events(self, what):
        """(at, order, call) of a round, the soonest first."""
        found = []
        for unit in what["units"]:
            side = next((s for s in self.sides if unit["world"] in s.worlds),
                        None)
            if side:
                found.append((unit["at"], len(found), self._come, side, unit))
        for fault in what["faults"]:
            side = self.side_of(fault["target"])
            if side:
                self.n += 1
                fault["n"] = self.n
                found.append((fault["at"], len(found), self._break, side,
                              fault))
        heapq.heapify(found)
        return found

    def _come(self, side, what, _):
        unit = side.add(what)
        self.history.write("unit", **{k: v for k, v in what.items()
                                      if k != "at"})
        self.jobs.append(self.pool.submit(side.create, unit))
        heapq.heappush(self.leaving, (
            self.chaos + what["at"] + what["for"], unit.id, side, unit))

    def _break(self, side, fault, heap):
        target = side.target(fault["target"])
        if target is None or not target.begin(fault):
            self.history.write("skipped", target=fault["target"],
                               kind=fault["kind"], n=fault["n"])
            return
        heapq.heappush(heap, (fault["at"] + fault["for"], 10000 + fault["n"],
                              self._heal, side, (target, fault)))

    def _heal(self, _, what, __):
        target, fault = what
        if target.fault is fault:
            target.heal()

    def tick(self, calm=False):
        for side in self.sides:
            side.look()
        if time.monotonic() >= self.sampled + SAMPLES:
            self.sampled = time.monotonic()
            self.sample(calm)

    def sample(self, calm):
        for side in self.sides:
            side.sample(calm)

    def round(self, number):
        what = plan.of_round(SEED, number, min(plan.ROUND, SECONDS / 2))
        self.chaos = number * plan.ROUND
        self.history.write("round", number=number, faults=len(what["faults"]),
                           units=len(what["units"]))
        heap, start = self.events(what), time.monotonic()
        while heap or time.monotonic() < start + what["seconds"]:
            now = time.monotonic() - start
            while heap and heap[0][0] <= now:
                at, order, call, side, more = heapq.heappop(heap)
                call(side, more, heap)
                now = time.monotonic() - start
            self._leave(now)
            self.tick()
            time.sleep(TICK)
        for side in self.sides:
            side.heal()
        self.history.write("all-healed", round=number)
        self.rest(number, "round")
        self.compare(number, what["restart"])

    def _leave(self, now):
        while self.leaving and self.leaving[0][0] <= self.chaos + now:
            _, _, side, unit = heapq.heappop(self.leaving)
            self.jobs.append(self.pool.submit(side.remove, unit))

    # --- rest ---------------------------------------------------------------
    def wait_jobs(self, until):
        """Until each call that was under way has been answered."""
        while True:
            self.jobs = [j for j in self.jobs if not j.done() or j.result()]
            if not self.jobs:
                return
            if until():
                raise Unquiet(f"{len(self.jobs)} calls are not answered")
            self.tick()
            time.sleep(TICK)

    def rest(self, number, when):
        """Until nothing is wrong any more, on each side."""
        began = time.monotonic()

        def late():
            busy = min(BUSY, patience())
            return time.monotonic() > began + REST * busy + \
                stalls.since(began)
        try:
            self.wait_jobs(late)
            for side in self.sides:
                self._until_right(side, late)
                self.history.write(
                    "rest", side=side.name, round=number, when=when,
                    took=round(time.monotonic() - began, 2),
                    **side.snapshot())
        except Unquiet as error:
            self.history.write("no-rest", round=number, when=when,
                               text=str(error)[:4000])
            raise
        self.say(f"round {number}: at rest {time.monotonic() - began:.1f} s "
                 f"after the last fault ({when})")

    def _until_right(self, side, late):
        told = time.monotonic() + TELL
        while True:
            for other in self.sides:
                other.heal()  # what is owed
            bad = side.wrong()
            if not bad:
                return
            if late():
                raise Unquiet(f"{side.name}: " + "; ".join(bad[:20]))
            if time.monotonic() > told:
                told += TELL
                self.say(f"{side.name} is not at rest yet: "
                         + "; ".join(bad[:3])[:400])
            self.tick()
            time.sleep(0.3)

    def compare(self, number, how):
        """Answers before a restart and after it."""
        self.sample(True)
        for side in self.sides:
            before = side.answers()
            side.restart(how)
            self.rest(number, f"{side.name} restarted")
            after = side.answers()
            self.history.write("compare", side=side.name, round=number,
                               how=how, before=before, after=after)

    def end(self):
        """All units go; nothing is left; the programs end well."""
        for side in self.sides:
            side.clear()
        self.rest(-1, "all deleted")
        self.sample(True)
        for side in self.sides:
            side.finish()

    def run(self):
        number = 0
        while number == 0 or time.monotonic() < self.began + SECONDS:
            self.round(number)
            number += 1
        self.end()


def command():
    return (f"SOAK_SECONDS={SECONDS:g} SOAK_SEED={SEED} make soak"
            + (f" SOAK_ARGS='{' '.join(sys.argv[1:])}'" if sys.argv[1:]
               else ""))


def library():
    """wall.so, see wall.c."""
    path = os.path.join(BUILD, "soak", "wall.so")
    source = os.path.join(HERE, "wall.c")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.exists(path) or \
            os.path.getmtime(path) < os.path.getmtime(source):
        cards.run(os.environ.get("CC", "gcc").split()[-1], "-shared", "-fPIC",
                  "-O2", "-D_GNU_SOURCE", "-o", path + ".new", source, "-ldl")
        os.rename(path + ".new", path)
    return path


def blow(wanted, history):
    """The soak itself."""
    sides, whole = [], False
    soak = Soak(sides, history)
    try:
        for kind in (ClusterSide, CardSide):
            if kind.name in wanted:
                side = kind(history, library(), os.path.join(FOLDER, "side"))
                sides.append(side)
                side.start()
                soak.say(f"{side.name} is up")
        soak.began = time.monotonic()
        history.write("begin", seed=SEED, seconds=SECONDS,
                      wall=time.time() - time.monotonic(), sides=wanted)
        soak.run()
        whole = True
    except Unquiet as error:
        soak.say(f"it does not come to rest: {error}")
    except Exception as error:  # the history is judged in any case
        traceback.print_exc()
        history.write("broken", text=f"{type(error).__name__}: {error}"[:500])
    finally:
        for side in sides:
            side.ending.set()
        soak.pool.shutdown(wait=False, cancel_futures=True)
        for side in reversed(sides):
            side.save_logs(os.path.join(FOLDER, "log"))
            side.stop()
        history.write("end", load=os.getloadavg(), whole=whole)
        history.close()


def main():
    wanted = sys.argv[1:] or ["cluster", "cards"]
    if set(wanted) - {"cluster", "cards"}:
        sys.exit(__doc__.strip())
    if "cards" in wanted:
        cards.require()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for part in ("side", "log"):  # of the last run with this seed
        shutil.rmtree(os.path.join(FOLDER, part), ignore_errors=True)
    os.makedirs(FOLDER, exist_ok=True)
    path = os.path.join(FOLDER, "history.jsonl")
    if os.path.exists(path):
        os.unlink(path)
    stalls.since(0)
    print(f"soak: {SECONDS:g} s, seed {SEED}; to repeat it: {command()}",
          flush=True)
    blow(wanted, History(path))
    status = subprocess.run([sys.executable, "-B",
                             os.path.join(HERE, "verdict.py"), path],
                            check=False).returncode
    if status:
        print(f"soak: seed {SEED} found something; the history is {path}; "
              f"to repeat it: {command()}", flush=True)
    else:
        print(f"soak: seed {SEED}: nothing found; the history is {path}",
              flush=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
