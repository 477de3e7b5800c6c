#!/usr/bin/env python3
"""Ends what a rack of cards has left, whatever ended the rack itself.

    keeper.py RECORD < pipe

Runs beside a rack in a session of its own, waits until the other end of its
standard input is closed, by an orderly end as by kill -9, and then undoes all
that the record names: processes, network namespaces, cgroups and files.  A
record whose rack and keeper are both gone is undone by the next rack.

Processes are found by their namespaces.  One without a name is held open here
(lines "PID" on the pipe), for its number is another's once it has ended.
"""
import fcntl
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "kube"))
import proc  # noqa: E402

RECORDS = "/run/biga-test-cards"


def write_record(path, record):
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(record, f)
    os.rename(path + ".new", path)


def read_record(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def processes():
    """{pid: (parent, network namespace, mount namespace)}"""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8",
                      errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
            if fields[0] not in "ZX":
                found[int(name)] = (
                    int(fields[1]), os.stat(f"/proc/{name}/ns/net").st_ino,
                    os.stat(f"/proc/{name}/ns/mnt").st_ino)
        except OSError:
            continue  # it has ended
    return found


def members(namespaces):
    """Pids of the processes in one of these namespaces, and of all that
    descend from them."""
    there = processes()
    found = {pid for pid, (_, net, mnt) in there.items()
             if net in namespaces or mnt in namespaces}
    while True:
        more = {pid for pid, (parent, _, _) in there.items()
                if parent in found} - found
        if not more:
            return found - {os.getpid()}
        found |= more


def kill_all(namespaces):
    """Kill them until none is left; whether that is so."""
    end = time.monotonic() + proc.HANGS
    while pids := members(namespaces):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if time.monotonic() > end:
            print(f"keeper: {sorted(pids)} do not end", file=sys.stderr)
            return False
        time.sleep(0.02)
    return True


def container_ids(folder):
    """What containers of the places of this folder were called."""
    return {os.path.basename(path) for pattern in (
                "*/run/io.containerd.runtime.v2.task/k8s.io/*",
                "*/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/*",
                "*/lib/containerd/io.containerd.grpc.v1.cri/containers/*")
            for path in glob.glob(os.path.join(folder, pattern))}


def remove_cgroups(ids):
    """The control groups that were named after these containers."""
    if not ids:
        return
    for at, folders, _ in os.walk("/sys/fs/cgroup", topdown=False):
        for name in folders:
            if name in ids:
                try:
                    os.rmdir(os.path.join(at, name))
                except OSError as error:
                    print(f"keeper: {at}/{name}: {error.strerror}",
                          file=sys.stderr)


def remove_cgroup_trees(names):
    """Control groups below the root with all that is in them, in each
    hierarchy."""
    tops = ["/sys/fs/cgroup", *glob.glob("/sys/fs/cgroup/*/")]
    for tree in (os.path.join(top, name) for top in tops for name in names):
        for at, _, _ in os.walk(tree, topdown=False):
            try:
                os.rmdir(at)
            except OSError as error:
                print(f"keeper: {at}: {error.strerror}", file=sys.stderr)


class Held:
    """Namespaces that keep their numbers while this has them open."""

    def __init__(self):
        self.files = []

    def hold(self, path):
        try:
            self.files.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            pass  # it is gone, and so are its processes

    def of_record(self, record):
        for name in record["netns"]:
            self.hold(f"/run/netns/{name}")
        for pid, start in record["holders"]:
            if proc.start_time(pid) == start:
                self.hold(f"/proc/{pid}/ns/mnt")

    def numbers(self):
        # never our own, whatever is asked for
        return {os.fstat(f).st_ino for f in self.files} \
            - {os.stat("/proc/self/ns/net").st_ino,
               os.stat("/proc/self/ns/mnt").st_ino}

    def close(self):
        while self.files:
            os.close(self.files.pop())


def undo(path, held=None, record=None):
    """Undo a record, and forget it."""
    record = read_record(path) or record
    if not record:
        return
    folder, held = record["folder"], held or Held()
    held.of_record(record)
    for at in (folder, *record.get("folders", ())):
        for process in proc.running_in(at):
            process.kill()
    kill_all(held.numbers())
    held.close()  # mounts end with the last who sees them
    remove_cgroups(container_ids(folder))
    remove_cgroup_trees(record.get("cgroups", ()))
    for name in record["wires"]:
        # with its namespace it would go too, but some time later
        subprocess.run(["ip", "link", "del", name], check=False,
                       stderr=subprocess.DEVNULL)
    for name in record["netns"]:
        if os.path.exists(f"/run/netns/{name}"):
            subprocess.run(["ip", "netns", "del", name], check=False)
    if record.get("keep_logs"):
        for name in ("*/lib", "*/run", "*/etcd", "registry"):
            for place in glob.glob(os.path.join(folder, name)):
                shutil.rmtree(place, ignore_errors=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    if record.get("keep_logs") or not os.path.exists(folder):
        if os.path.exists(path):
            os.unlink(path)
    else:
        print(f"keeper: {folder} cannot be removed", file=sys.stderr)


def sweep(records=RECORDS):
    """Undo what racks have left whose keepers were killed too; one script at
    a time."""
    os.makedirs(records, mode=0o700, exist_ok=True)
    with open(os.path.join(records, "sweep.lock"), "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for path in glob.glob(os.path.join(records, "*.json")):
            record = read_record(path)
            if record and not record.get("stays") and not any(
                    proc.start_time(pid) == start
                    for pid, start in record["owners"]):
                undo(path)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    held, record = Held(), read_record(sys.argv[1])
    with os.fdopen(0, encoding="utf-8") as pipe:
        for line in pipe:
            record = read_record(sys.argv[1]) or record
            if line.strip().isdecimal():
                held.hold(f"/proc/{line.strip()}/ns/mnt")
    undo(sys.argv[1], held, record)


if __name__ == "__main__":
    main()
