#!/usr/bin/env python3
"""A real node comes up, runs a pod, and leaves nothing when it ends."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import rig  # noqa: E402
import cards  # noqa: E402
import keeper  # noqa: E402
from check import Checks  # noqa: E402
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
        assert r.c.kubectl("logs", "one") == "begun\n"
    with t.check("crictl sees it by the kubelet's endpoint"):
        assert "one" in r.crictl("pods"), r.crictl("pods")
    with t.check("kube-scheduler, kubelet and containerd are real"):
        said = r.c.kubectl("get", "nodes", "-o", "wide")
        t.note(said)
        assert "containerd://" in said and "v1.37.1" in said


def test_gone(t, r, before):
    folder, cgroup = r.rack.folder, r.rack.cgroup
    namespaces = {os.stat(f"/proc/{r.rack.host.init.pid}/ns/mnt").st_ino}
    kubelet = r.kubelet.pid, start_time(r.kubelet.pid)
    r.stop()
    with t.check("nothing is left of it: no process, no control group, no "
                 "file"):
        assert start_time(kubelet[0]) != kubelet[1]
        assert not keeper.members(namespaces)
        left = [at for top in rig.cgroup_tops()
                for at in [os.path.join(top, cgroup)] if os.path.exists(at)]
        assert not left, left
        assert not os.path.exists(folder)
    with t.check("and the machine's settings are what they were"):
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
        t.finish()


main()
