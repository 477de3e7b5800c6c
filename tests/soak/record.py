"""What a soak saw, as JSON lines: one event each, with the time of the
monotonic clock ("t") and what it is ("e"); the rest is the event's own.
verdict.py reads them.
"""
import json
import struct
import threading
import time

DAY = 86400
# Certificates hold from the moment they are made: so that a clock can go
# back, those of the programs are ahead of the machine's from the start.
AHEAD = 2 * DAY


class History:
    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        self.counts = {}
        self.file = open(path, "a", encoding="utf-8", buffering=1)

    def write(self, event, t=None, **more):
        """t: when it was seen, by default now."""
        with self.lock:
            if self.file.closed:
                return
            self.counts[event] = self.counts.get(event, 0) + 1
            now = time.monotonic() if t is None else t
            self.file.write(json.dumps(
                {"t": round(now, 4), "e": event, **more},
                separators=(",", ":")) + "\n")

    def close(self):
        with self.lock:
            self.file.close()


class Changes:
    """Writes what it is told only when that is news."""

    def __init__(self, history, event, key):
        self.history, self.event, self.key = history, event, key
        self.last = {}

    def see(self, key, t=None, **more):
        if self.last.get(key) != more:
            self.last[key] = more
            self.history.write(self.event, t, **{self.key: key}, **more)

    def keep_only(self, keys):
        """Forget all others; which these were."""
        gone = self.last.keys() - keys
        for key in gone:
            del self.last[key]
        return gone


def read(path):
    events = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            try:
                events.append(json.loads(line))
            except ValueError:
                pass  # the last one, of a soak that was killed
    return events


def short(a):
    """What of an allocation is compared."""
    return {key: a[key] for key in ("pod", "node", "cards", "gpus", "need",
                                    "number") if key in a}


class Wall:
    """The wall clock of one process, see wall.c."""

    def __init__(self, library, path):
        self.library, self.path = library, path
        self.set(0)

    def set(self, seconds):
        """So far from where it is usually."""
        with open(self.path, "r+b" if self._there() else "wb") as f:
            f.write(struct.pack("q", (AHEAD + seconds) * 10 ** 9))

    def _there(self):
        try:
            with open(self.path, "rb"):
                return True
        except FileNotFoundError:
            return False

    def env(self):
        return {"LD_PRELOAD": self.library, "BIGA_SOAK_WALL": self.path}
