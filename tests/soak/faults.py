"""What can happen to a program or a card, begun and healed; all of it is
written down.  Processes die with the thread that starts them, so this is for
the main thread alone."""
import errno
import os
import time
from http.client import HTTPException

from node import Local
from proc import start_time

KUBERNETES = ("apiserver", "etcd", "scheduler", "controller-manager")


def usage(pid):
    """Resident KiB, open files, threads of a process."""
    found = {}
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        for line in f:
            if line.startswith(("VmRSS:", "Threads:")):
                found[line.split(":")[0]] = int(line.split()[1])
    return (found.get("VmRSS", 0), len(os.listdir(f"/proc/{pid}/fd")),
            found.get("Threads", 0))


def fill(path):
    """A file that takes all room there is, whoever else writes."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while os.write(handle, bytes(1 << 20)) > 0:
            pass
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    finally:
        os.close(handle)


class Target:
    """One that faults come upon, one at a time."""

    def __init__(self, history, name):
        self.history, self.name = history, name
        self.fault, self.began = None, 0.0

    def begin(self, fault):
        """Whether it could begin: not while another is there."""
        if self.fault:
            return False
        self.fault, self.began = fault, time.monotonic()
        self.history.write("fault", target=self.name, asked=fault["target"],
                           kind=fault["kind"], n=fault["n"],
                           **{k: fault[k] for k in (
                               "by", "monotonic", "size", "node")
                              if k in fault})
        getattr(self, "begin_" + fault["kind"].replace("-", "_"))(fault)
        return True

    def heal(self):
        """End the fault; the target is as it should be from now on, or on
        its way there."""
        fault = self.fault
        if not fault:
            return
        name = "heal_" + fault["kind"].replace("-", "_")
        getattr(self, name, lambda fault: None)(fault)
        self.fault = None
        self.history.write("healed", target=self.name, kind=fault["kind"],
                           n=fault["n"])

    def look(self):
        """Called often: whether all is as this wants it."""


class Program(Target):
    """wall: its clock; proxy: its wire; disk: the folder that can be full,
    as seen from here."""

    def __init__(self, history, process, wall=None, proxy=None, disk=None,
                 prefix=(), others=()):
        super().__init__(history, process.name)
        self.process, self.wall, self.proxy = process, wall, proxy
        self.disk, self.others = disk, {p.name: p for p in others}
        self.base = [a for a in process.argv[len(prefix):]]
        self.prefix = list(prefix)
        self.wanted = process.running  # whether it should run
        self.ours = process.name not in KUBERNETES

    def start(self, time_shift=()):
        self.process.argv = [*self.prefix, *time_shift, *self.base]
        self.process.start()
        self.wanted = True
        self.history.write("started", name=self.name, pid=self.process.pid)

    def kill(self):
        self.wanted = False
        self.process.kill()
        self.history.write("ended", name=self.name, how="kill")

    def finish(self, timeout=120.0, told=False):
        """After a SIGTERM, or with one, for a second one would end it at
        once: it ends by itself, and well."""
        began = self.began if self.fault else time.monotonic()
        self.wanted = False
        clean = self.process.stop(timeout, told)
        self.history.write("ended", name=self.name, how="term",
                           clean=clean, status=self.process.exit_status(),
                           ours=self.ours,
                           took=round(time.monotonic() - began, 2))

    # --- faults ------------------------------------------------------------
    def begin_kill(self, _):
        self.kill()

    def heal_kill(self, _):
        self.start()

    def begin_term(self, _):
        self.wanted = False
        self.process.send(15)

    def heal_term(self, _):
        self.finish(told=True)
        self.start()

    def begin_freeze(self, _):
        self.process.pause()

    def heal_freeze(self, _):
        self.process.resume()

    def begin_clock(self, fault):
        self.wall.set(fault["by"])

    def heal_clock(self, _):
        self.wall.set(0)

    def begin_reboot(self, _):
        self.kill()

    def heal_reboot(self, fault):
        """As after a boot of its host: the monotonic clock begins anew."""
        with open("/proc/uptime", encoding="utf-8") as f:
            up = float(f.read().split()[0])
        by = str(int(fault["monotonic"] - up))
        self.start(["unshare", "--time", "--monotonic", by, "--boottime",
                    by])

    def begin_cut(self, _):
        self.proxy.cut()

    def heal_cut(self, _):
        self.proxy.restore()

    def begin_swallow(self, fault):
        self.proxy.swallow(fault["size"])

    def heal_swallow(self, _):
        self.proxy.swallow(0)

    def begin_full(self, _):
        fill(os.path.join(self.disk, "filler"))

    def heal_full(self, _):
        os.unlink(os.path.join(self.disk, "filler"))

    # --- what is beside it ---------------------------------------------------
    def begin_etcd_freeze(self, _):
        self.others["etcd"].pause()

    def heal_etcd_freeze(self, _):
        self.others["etcd"].resume()

    def begin_etcd_kill(self, _):
        self.others["etcd"].kill()

    def heal_etcd_kill(self, _):
        self.others["etcd"].start()
        if not self.process.running:
            self.start()

    def look(self):
        if not self.wanted or self.process.running:
            return
        if self.fault and self.fault["kind"] == "etcd-kill":
            return  # it may end without
        status = self.process.exit_status()
        self.history.write("died", name=self.name, status=status,
                           ours=self.ours, log=[
                               line[:300] for line in
                               self.process.text().splitlines()[-5:]])
        self.start()

    def sample(self, calm):
        pid = self.process.pid
        try:
            rss, files, threads = usage(pid)
        except (OSError, TypeError):
            return  # it has just ended
        self.history.write("size", name=self.name, pid=pid, calm=calm,
                           start=start_time(pid), rss=rss, files=files,
                           threads=threads)


class CardTarget(Target):
    """A card of a rack."""

    def __init__(self, history, card, node):
        super().__init__(history, card.name)
        self.card, self.node = card, node

    def _process(self):
        return self.card.containerd

    def look(self):
        if self.fault and self.fault["kind"] in ("kill", "power"):
            return
        if self._process() and not self._process().running:
            self.history.write("died", name=self.name, ours=False,
                               status=self._process().exit_status(), log=[])
            self.card.start()

    def begin_freeze(self, _):
        self.card.freeze()

    def heal_freeze(self, _):
        self.card.thaw()

    def begin_kill(self, _):
        self.card.kill()

    def heal_kill(self, _):
        self.card.start()

    def begin_link(self, _):
        self.card.link(False)

    def heal_link(self, _):
        self.card.link(True)

    def begin_silent(self, _):
        self.card.silent(True)

    def heal_silent(self, _):
        self.card.silent(False)

    def begin_flap(self, _):
        self.up, self.turn = False, time.monotonic()
        self.card.link(False)

    def flap(self):
        """Called often: once in half a second the link changes."""
        if self.fault and self.fault["kind"] == "flap" and \
                time.monotonic() >= self.turn + 0.5:
            self.up, self.turn = not self.up, time.monotonic()
            self.card.link(self.up)

    def heal_flap(self, _):
        self.card.link(True)

    def begin_power(self, _):
        self.card.power_cut()

    def heal_power(self, _):
        self.card.start()

    def begin_full(self, _):
        fill(self.card.seen("var/lib/filler"))

    def heal_full(self, _):
        self.card.clear_disk()

    def _drain(self, how):
        """Whether its advertiser has taken it."""
        where = Local(os.path.join(self.node.state, "actuator.sock"), 2)
        try:
            where.request("POST", f"/v1/cards/{self.card.id}/{how}")
            taken = where.getresponse().status < 300
        except (OSError, HTTPException):
            taken = False  # it is away
        finally:
            where.close()
        if taken:
            self.history.write("drain", card=self.card.id,
                               on=how == "drain")
        return taken

    def begin_drain(self, _):
        self._drain("drain")

    def heal_drain(self, _):
        self.owed = True
        self.undrain()

    owed = False

    def undrain(self):
        """Again until somebody hears it; the advertiser may be away."""
        if self.owed and self._drain("undrain"):
            self.owed = False
