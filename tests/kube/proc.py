"""Programs in the background that several scripts can find again.

Each has a log and a file with its pid and its start time, so that whoever
stops it later ends this process and never another that got its number.
"""
import fcntl
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HANGS = 300.0  # seconds after which what is waited for will not come any more


class Ended(RuntimeError):
    """A program that is needed does not run any more."""


def patience():
    """How many times longer things may take than where processors are to
    spare: as many programs as want each, and at least $BIGA_PATIENCE, which
    says that other tests run beside these."""
    return max(1.0, float(os.environ.get("BIGA_PATIENCE") or 1),
               os.getloadavg()[0] / (os.cpu_count() or 1))


class Stalls:
    """When this machine, or this program on it, stood still."""

    EVERY, LATE = 0.1, 0.3  # seconds: of a look, and what is no stall yet

    def __init__(self):
        self.seen = []  # (when it ended, how long it was)
        self.thread = None

    def _run(self):
        last = time.monotonic()
        while True:
            time.sleep(self.EVERY)
            now = time.monotonic()
            if now - last > self.EVERY + self.LATE:
                self.seen.append((now, now - last - self.EVERY))
            last = now

    def since(self, when):
        """Seconds since then, or the first call, that nobody could use."""
        if not self.thread:
            self.thread = threading.Thread(target=self._run, daemon=True)
            self.thread.start()
        return sum(took for ended, took in list(self.seen) if ended > when)


stalls = Stalls()


def limit(seconds, began):
    """How long what began then and should take so many seconds may take."""
    return seconds * patience() + stalls.since(began)


def wait_for(what, true, timeout=HANGS, every=0.05):
    """The first true value of true(); TimeoutError after timeout seconds, if
    they are fewer than HANGS longer on a busy machine, see limit().  The time
    only ends a test that hangs: how long something takes is not judged by it.

    An exception of true() counts as false and is told at the end; Ended is
    not waited out.
    """
    began = time.monotonic()
    last = None
    while True:
        try:
            value = true()
            if value:
                return value
            last = None
        except Ended:
            raise
        except Exception as error:  # what is waited for may not be there yet
            last = error
        most = timeout if timeout >= HANGS else limit(timeout, began)
        if time.monotonic() >= began + most:
            why = f": {last}" if last else ""
            raise TimeoutError(f"{what}: not within "
                               f"{time.monotonic() - began:.0f} s{why}")
        time.sleep(every)


_given = {}  # port: the lock that keeps it for this process
PORTS = os.path.join(tempfile.gettempdir(), f"biga-ports-{os.getuid()}")


def free_port():
    """A free port of 127.0.0.1, below those that the kernel hands out.  It is
    this process's as long as that lives, so that what it starts there can end
    and come back while other tests look for ports."""
    os.makedirs(PORTS, mode=0o700, exist_ok=True)
    while True:
        port = random.randrange(20000, 32000)
        if port in _given:
            continue
        lock = open(os.path.join(PORTS, str(port)), "ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as s:
                s.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
            continue
        _given[port] = lock
        return port


def keep_port(port):
    """Of a program that another process has started: as free_port()."""
    if port not in _given:
        os.makedirs(PORTS, mode=0o700, exist_ok=True)
        lock = open(os.path.join(PORTS, str(port)), "ab")
        fcntl.flock(lock, fcntl.LOCK_EX)
        _given[port] = lock


def start_time(pid):
    """When the process began, in ticks; None when it is gone or a zombie.

    One that is a zombie by its first thread alone still has its sockets.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    n_threads = int(fields[17])
    return None if fields[0] in "ZX" and n_threads <= 1 else int(fields[19])


class Process:
    """A program, named NAME: FOLDER/log/NAME.log, FOLDER/run/NAME.json."""

    # Whether programs end with the script that started them.  This follows
    # the thread that starts them: start them in the main one.
    die_with_parent = True

    def __init__(self, folder, name, argv=(), env=None):
        self.folder, self.name = folder, name
        self.argv, self.env = [str(a) for a in argv], env or {}
        self.log = os.path.join(folder, "log", name + ".log")
        self.file = os.path.join(folder, "run", name + ".json")
        self._child = None
        self._where = None  # (modification time, content) of the file

    def state(self):
        """What its file says of it: pid, start, argv; None without one."""
        try:
            with open(self.file, encoding="utf-8") as f:
                return json.load(f)
        except FileNotFoundError:
            return None

    @property
    def pid(self):
        """The process's number while it runs, else None."""
        if self._child is not None:
            self._child.poll()  # or it stays a zombie
        state = self.state()
        # one that had ended before its start could be read has none
        if state and state["start"] is not None and \
                start_time(state["pid"]) == state["start"]:
            return state["pid"]
        return None

    @property
    def running(self):
        return self.pid is not None

    @property
    def started(self):
        state = self.state()
        return state["start"] or 0 if state else 0

    def start(self, *more):
        """Start it with its arguments, and these added to them for good."""
        assert not self.running, f"{self.name} runs already"
        self.argv += [str(a) for a in more]
        for path in (self.log, self.file):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(self.log, "ab") as log:
            # not by a function of ours between fork and exec: that may hang
            # when another thread held a lock
            dies = ["setpriv", "--pdeathsig", "KILL"] \
                if self.die_with_parent else []
            self._child = subprocess.Popen(
                dies + self.argv, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env={**os.environ, **self.env}, cwd=self.folder,
                start_new_session=True)
        pid = self._child.pid
        with open(self.file[:-5] + ".pid", "w", encoding="utf-8") as f:
            f.write(f"{pid}\n")  # for people; it may be another's by now
        state = {"pid": pid, "start": start_time(pid), "argv": self.argv}
        with open(self.file + ".new", "w", encoding="utf-8") as f:
            json.dump(state, f)
        os.rename(self.file + ".new", self.file)
        return self

    def send(self, number):
        pid = self.pid
        if pid is None:
            raise ProcessLookupError(f"{self.name} does not run")
        os.kill(pid, number)

    def _states(self):
        """Of its threads: "T" stands still."""
        folder = f"/proc/{self.pid}/task"
        try:
            for thread in os.listdir(folder):
                with open(f"{folder}/{thread}/stat", encoding="utf-8") as f:
                    yield f.read().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            pass  # one has ended meanwhile

    def pause(self):
        """It stands still when this returns; on a busy machine its threads
        go on for a while after the signal."""
        self.send(signal.SIGSTOP)
        wait_for(f"{self.name} stands still",
                 lambda: set(self._states()) <= set("TZX"), every=0.002)

    def resume(self):
        self.send(signal.SIGCONT)

    def _gone(self, timeout):
        """Wait until the process has ended with all its threads."""
        pid = self.pid
        if pid is None:
            return
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            if not self.running:  # the number may be another's by now
                return
            if not select.select([handle], [], [], timeout)[0]:
                raise TimeoutError(f"{self.name} ends: not within "
                                   f"{timeout:.0f} s")
        finally:
            os.close(handle)
        wait_for(f"{self.name} ends", lambda: not self.running)

    def kill(self):
        """End it as kill -9 does, and wait until it is gone."""
        try:
            self.send(signal.SIGKILL)
            self._gone(HANGS)
        except ProcessLookupError:
            pass
        self._forget()

    def stop(self, timeout=60.0, told=False):
        """End it as SIGTERM does, unless it was told to; after timeout seconds
        as kill -9 does.

        Returns whether it ended by itself.
        """
        clean = True
        if self.running:
            try:
                if not told:
                    self.send(signal.SIGTERM)
                self.send(signal.SIGCONT)  # a paused one would not hear it
            except ProcessLookupError:
                pass  # gone already
            try:
                self._gone(timeout)
            except TimeoutError:
                clean = False
                print(f"{self.name}: does not end on SIGTERM, killed",
                      file=sys.stderr)
                self.kill()
        self._forget()
        return clean

    def _forget(self):
        for file in (self.file, self.file[:-5] + ".pid"):
            try:
                os.unlink(file)
            except FileNotFoundError:
                pass

    def restart(self):
        self.stop()
        return self.start()

    def exit_status(self):
        """Of a program that this script started and that has ended."""
        return self._child.poll() if self._child is not None else None

    def text(self):
        """All that it logged."""
        try:
            with open(self.log, encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def alive(self):
        """Raise when it has ended: nothing is worth waiting for then."""
        if not self.running:
            raise Ended(f"{self.name} has ended, status "
                        f"{self.exit_status()}; the end of {self.log}:\n"
                        + "\n".join(self.text().splitlines()[-15:]))
        return True


def running_in(folder):
    """All processes of a folder that run, the youngest first."""
    run = os.path.join(folder, "run")
    names = [f[:-5] for f in os.listdir(run) if f.endswith(".json")] \
        if os.path.isdir(run) else []
    found = [p for p in (Process(folder, n) for n in names) if p.running]
    return sorted(found, key=lambda p: p.started, reverse=True)
