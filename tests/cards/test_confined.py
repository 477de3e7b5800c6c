#!/usr/bin/env python3
"""The advertiser within what its systemd unit forbids: nothing to write to but
its own folder, the unit's capabilities and umask.  Host pods run all the same,
and leave nothing.
"""
import configparser
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
import fleet  # noqa: E402
import node as biga_node  # noqa: E402
from check import Checks, Skip  # noqa: E402
from node import pair  # noqa: E402
from proc import wait_for  # noqa: E402

UNITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                     "deploy", "systemd")
UNIT = "biga-advertiser.service"
DROP_INS = ("host-runtime", "prepare")

# whose it is, and what it left: root without capabilities could not remove it
WORK = ("cat /config/text && mkdir -m 700 /empty/own && echo x >/empty/own/x &&"
        " chmod 1777 /empty/own && mkdir -m 700 /memory/own && id -u &&"
        " exec sleep 100000")


def unit():
    """{name: value} of the unit and its drop-in for host pods."""
    found = {}
    for name in (UNIT, "biga-advertiser-host-runtime.conf"):
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.optionxform = str
        with open(os.path.join(UNITS, name), encoding="utf-8") as f:
            parser.read_file(f)
        found |= dict(parser["Service"])
    return found


def confine(node):
    """The advertiser as the unit would have it; its own folder is the one that
    it may write to."""
    said = unit()
    assert said["ProtectSystem"] == "strict", said
    caps = ["+" + c.removeprefix("CAP_").lower()
            for c in said["CapabilityBoundingSet"].split()]
    os.makedirs(node.state, mode=0o700)
    at = node.advertiser.argv.index(fleet.program("biga-advertiser"))
    script = ("mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro / && "
              "mount -o remount,bind,ro /var/lib && ! touch /var/lib/x && "
              "umask " + said["UMask"] + " && shift && exec \"$@\"")
    node.advertiser.argv[at:at] = [
        "unshare", "--mount", "sh", "-c", script, "-", node.state, "setpriv",
        "--bounding-set", ",".join(["-all", *caps])]


def test_unit(t):
    with t.check("systemd takes the unit with its drop-ins"):
        if not shutil.which("systemd-analyze"):
            raise Skip("systemd-analyze is not there")
        with tempfile.TemporaryDirectory() as folder:
            drop_ins = os.path.join(folder, UNIT + ".d")
            os.mkdir(drop_ins)
            with open(os.path.join(UNITS, UNIT), encoding="utf-8") as f:
                text = f.read()
            with open(os.path.join(folder, UNIT), "w", encoding="utf-8") as f:
                f.write(text.replace("/usr/local/bin/biga-advertiser",
                                     fleet.program("biga-advertiser")))
            for name in DROP_INS:
                shutil.copy(
                    os.path.join(UNITS, f"biga-advertiser-{name}.conf"),
                    os.path.join(drop_ins, name + ".conf"))
            done = subprocess.run(
                ["systemd-analyze", "verify", "--man=no",
                 os.path.join(folder, UNIT)], text=True, check=False,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            ours = [line for line in done.stdout.splitlines()
                    if "biga" in line]
            assert not ours, ours


def host_pod():
    """A pair whose host pod has a file, and a folder of its own."""
    host, xpu = pair("solo")
    host["spec"]["containers"][0] |= {
        "command": ["sh", "-c", WORK],
        "securityContext": {"runAsUser": 1000, "runAsGroup": 1000},
        "volumeMounts": [{"name": "c", "mountPath": "/config"},
                         {"name": "e", "mountPath": "/empty"},
                         {"name": "m", "mountPath": "/memory"}]}
    host["spec"]["volumes"] = [
        {"name": "c", "configMap": {"name": "said"}},
        {"name": "e", "emptyDir": {}},
        {"name": "m", "emptyDir": {"medium": "Memory"}}]
    return [{"apiVersion": "v1", "kind": "ConfigMap",
             "metadata": {"name": "said", "namespace": "default"},
             "data": {"text": "hello\n"}}, host, xpu]


def test_host_pod(t, node):
    names = ["solo-0", "solo-0-xpu"]
    with t.check("a host pod of another user runs, with its files and log"):
        node.apply(host_pod())
        node.wait_state(names, "running")

        def done():
            log = node.biga("logs", "solo-0")
            assert log == "hello\n1000\n", log
            return True
        wait_for("it has said all", done)
        uid = node.pods()["solo-0"]["uid"]
        assert os.path.exists(node.rack.host.memory(uid))
    with t.check("and everything of it is removed"):
        node.delete_all(names)
        node.wait_gone(names)
        left = [f for f in node.rack.host.files() if f.count("/") > 1]
        assert not left, left
        assert not os.path.exists(node.rack.host.memory(uid))


def main():
    cards.require()
    with cards.Rack(1) as rack:
        t = Checks(on_failure=rack.tail)
        test_unit(t)
        with t.check("Biga runs within its unit"):
            rack.start()
            node = biga_node.Node(rack)
            confine(node)
            node.start()
        if not t.failed:
            test_host_pod(t, node)
            node.stop()
    t.finish()


main()
