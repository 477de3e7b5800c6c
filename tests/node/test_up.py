#!/usr/bin/env python3
"""A real node comes up, runs a pod, and leaves nothing when it ends."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
import cards  # noqa: E402
import keeper  # noqa: E402
from check import Checks  # noqa: E402
from place import Place  # noqa: E402
from pods import pod, sh  # noqa: E402
from proc import start_time, wait_for  # noqa: E402


def machine():
    """What the kubelet would change of the whole machine."""
    found = {}
    for name in rig.SYSCTLS:
        with open("/proc/sys/" + name, encoding="ascii") as f:
            found[name] = f.read()
    return found


def test_pod(t, r):
    with t.check("a pod runs, with an address of the pods' network"):
        r.c.apply([pod("one", sh("echo begun; exec sleep 100000"))])
        found = wait_for("it is ready", lambda: r.ready_pod("one"))
        assert found["status"]["podIP"].startswith("10.88."), found["status"]
        assert found["spec"]["nodeName"] == cards.NODE
        Place(r).said("one", "begun\n")
    with t.check("crictl sees it by the kubelet's endpoint"):
        assert "one" in r.crictl("pods"), r.crictl("pods")
    with t.check("kube-scheduler, kubelet and containerd are real"):
        said = r.c.kubectl("get", "nodes", "-o", "wide")
        t.note(said)
        assert "containerd://" in said and "v1.37.1" in said


def cgroups(name):
    return [path for top in rig.cgroup_tops()
            for path in [os.path.join(top, name)] if os.path.exists(path)]


def test_gone(t, r, before):
    folder, cgroup = r.rack.folder, r.rack.cgroup
    namespaces = {os.stat(f"/proc/{r.rack.host.init.pid}/ns/mnt").st_ino}
    kubelet = r.kubelet.pid, start_time(r.kubelet.pid)
    r.stop()
    with t.check("nothing is left of it: no process, no control group, no "
                 "file"):
        assert start_time(kubelet[0]) != kubelet[1]
        assert not keeper.members(namespaces)
        assert not cgroups(cgroup), cgroups(cgroup)
        assert not os.path.exists(folder)
    with t.check("and the machine's settings are what they were"):
        assert machine() == before, (machine(), before)


def test_killed(t, before):
    """One whose script is killed."""
    script = ("import sys, time; sys.path.insert(0, sys.argv[1]); "
              "import rig; from pods import pod, sh; rig.require(); "
              "r = rig.Rig(1).start(); "
              "r.c.apply([pod('one', sh('sleep 100000'))]); "
              "rig.wait_for('it runs', lambda: r.ready_pod('one')); "
              "print(r.rack.folder, r.rack.cgroup, r.rack.host.init.pid, "
              "flush=True); time.sleep(999)")
    with t.check("a node whose script is killed leaves nothing"):
        child = subprocess.Popen(
            [sys.executable, "-B", "-c", script, rig.HERE],
            stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
            env={k: v for k, v in os.environ.items() if k != "BIGA_KEEP"})
        words = child.stdout.readline().split()
        assert len(words) == 3, "it did not start"
        held = keeper.Held()
        held.hold(f"/proc/{words[2]}/ns/mnt")
        assert len(keeper.members(held.numbers())) > 3, "nothing runs"
        child.kill()
        child.wait()
        wait_for("its files are gone", lambda: not os.path.exists(words[0]))
        assert not keeper.members(held.numbers())
        held.close()
        assert not cgroups(words[1]), cgroups(words[1])
        assert machine() == before, (machine(), before)


def main():
    rig.require()
    before = machine()
    with rig.Rig(n_cards=1) as r:
        t = Checks(on_failure=r.tail)
        with t.check("the node is ready"):
            r.start()
        if not t.failed:
            test_pod(t, r)
        with t.check("the kubelet has what it wanted to set"):
            with open(r.rack.host.seen("proc/sys/vm/overcommit_memory"),
                      encoding="ascii") as f:
                assert f.read().strip() == "1"
            assert machine() == before
        if not t.failed:
            test_gone(t, r, before)
            test_killed(t, before)
        t.finish()


main()
