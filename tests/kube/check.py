"""Named checks, printed as TAP like those of tests/lib/check.sh."""
import contextlib
import faulthandler
import signal
import sys
import time
import traceback

from proc import stalls


class Skip(Exception):
    """Raised inside a check that cannot be made; its text says why."""


class Checks:
    def __init__(self, on_failure=None):
        """on_failure: called after a failure, returns lines to print."""
        self.passed = self.failed = self.skipped = 0
        self.on_failure = on_failure
        self.began = time.monotonic()
        stalls.since(self.began)
        # so that a time limit outside still lets "finally" clean up
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        # which scripts/within sends to see where it hangs
        faulthandler.register(signal.SIGQUIT)

    def _say(self, line):
        print(line, flush=True)

    @contextlib.contextmanager
    def check(self, name):
        """with t.check("name"): what raises nothing has passed."""
        began = time.monotonic()
        number = self.passed + self.failed + self.skipped + 1
        try:
            yield
        except Skip as why:
            self.skipped += 1
            self._say(f"ok {number} - {name} # SKIP {why}")
        except Exception as error:
            self.failed += 1
            self._say(f"not ok {number} - {name}")
            for line in str(error).splitlines()[:40] or [repr(error)]:
                self._say(f"# {line}")
            for frame in traceback.extract_tb(error.__traceback__)[-4:]:
                self._say(f"#   {frame.filename}:{frame.lineno} "
                          f"{frame.line}")
            for line in (self.on_failure() if self.on_failure else []):
                self._say(f"# {line}")
        else:
            self.passed += 1
            took = time.monotonic() - began
            self._say(f"ok {number} - {name}"
                      + (f" ({took:.1f} s)" if took >= 0.1 else ""))

    def ok(self, true, name, detail=""):
        with self.check(name):
            assert true, detail or "is not so"
        return bool(true)

    def note(self, text):
        for line in str(text).splitlines():
            self._say(f"# {line}")

    def finish(self):
        """Print the sums and exit with 1 when a check failed."""
        self._say(f"# {time.monotonic() - self.began:.0f} s")
        self._say(f"{self.passed} passed, {self.failed} failed, "
                  f"{self.skipped} skipped")
        sys.exit(1 if self.failed else 0)
