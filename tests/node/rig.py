"""A real node: a control plane, a kubelet, the host's containerd with a
network for pods, and cards.

    rig.require()
    with Rig(n_cards=2) as r:
        r.start()
        r.c.kubectl("get", "nodes")

Everything is in one network namespace, a test's own, and in one folder; the
kubelet, what stands between it and containerd, and containerd share the
mount namespace of the host, because volumes are mounts there.  The cards are
those of tests/cards.  The keeper of tests/cards ends all of it, also when the
test is killed.

"""
import ctypes
import glob
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "cards"))
import cards  # noqa: E402
import images  # noqa: E402
import keeper  # noqa: E402
from cards import CLONE_NEWNET, NODE, ROOT, run  # noqa: E402
from cluster import CONTROLLERS, Cluster, certs  # noqa: E402
from pods import Talk, is_ready  # noqa: E402
from proc import Process, free_port, wait_for  # noqa: E402

CNI = "/usr/lib/cni"  # where Debian's containernetworking-plugins are
BRIDGE, PODS, ADDRESS = "biga0", "10.88.0.0/16", "10.88.0.1"
CGROUPS = "/sys/fs/cgroup"
BASE = images.BASE

# What the kubelet sets for the whole machine.  In the host's mount namespace
# files of its own lie above these, so that there is nothing to put back.
SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic",
           "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
           "kernel/keys/root_maxbytes")


def binaries(what):
    """The folder of programs that tests/kube/binaries builds; exits with 77
    where there is no Go."""
    got = subprocess.run([os.path.join(ROOT, "tests", "kube", "binaries"),
                          what], stdout=subprocess.PIPE, text=True,
                         check=False)
    if got.returncode:
        sys.exit(got.returncode)
    return got.stdout.strip()


def lacking():
    """Why there can be no node on this machine; None when there can."""
    why = cards.lacking() or images.lacking()
    if why:
        return why
    for program in ("iptables", "conntrack", "socat", "cc"):
        if not shutil.which(program):
            return f"there is no {program}: scripts/setup --node"
    if not os.path.exists(os.path.join(CNI, "bridge")):
        return f"there is no {CNI}/bridge: scripts/setup --node"
    if not cgroup_tops():
        return "there are no control groups that may be written to"
    return None


def require(*ways):
    """Ends a test where there can be no node, or not these ways: it is
    skipped.  Where there can be, it gets a network of its own, as
    cards.require() says."""
    reasons = [lacking()] + [WAYS[way].lacking() for way in ways if WAYS[way]]
    for why in filter(None, reasons):
        print(why)
        sys.exit(77)
    binaries("kubelet")
    cards.require()


def cgroup_tops():
    """The roots of all hierarchies that have controllers; version 2 has one
    alone."""
    if os.path.exists(f"{CGROUPS}/cgroup.controllers"):
        return [CGROUPS]
    tops = [os.path.dirname(p) for p in glob.glob(f"{CGROUPS}/*/tasks")]
    return [top for top in tops if os.access(top, os.W_OK)]


def make_cgroups(name):
    """A control group of that name in each hierarchy, for a kubelet that is
    not alone on its machine."""
    for top in cgroup_tops():
        path = os.path.join(top, name)
        if top == CGROUPS:
            with open(f"{top}/cgroup.subtree_control", "w",
                      encoding="ascii") as f:
                f.write("+cpu +cpuset +memory +pids +io")
        os.makedirs(path, exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):
            there = os.path.join(path, file)
            if top != CGROUPS and os.path.exists(there):
                shutil.copyfile(os.path.join(top, file), there)


# --- the host and its runtime ------------------------------------------------
class NodeHost(cards.Host):
    """A host whose containerd has a network for pods."""

    CONFIG = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  disable_tcp_service = true
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{cni}"
  conf_dir = "{conf}"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "native"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
"""

    def __init__(self, rack):
        super().__init__(rack)
        for folder in ("log", "cni", "sys"):
            os.makedirs(self.path(folder), exist_ok=True)

    def configuration(self):
        return self.CONFIG.format(pause=images.PAUSE, cni=CNI,
                                  conf=self.path("cni"))

    def write_cni(self):
        """Pods hang on a bridge of the host; their ports can be the
        host's."""
        plugins = [{"type": "bridge", "bridge": BRIDGE, "isGateway": True,
                    "hairpinMode": True, "ipam": {
                        "type": "host-local", "dataDir": "/var/lib/cni",
                        "ranges": [[{"subnet": PODS, "gateway": ADDRESS}]],
                        "routes": [{"dst": "0.0.0.0/0"}]}},
                   {"type": "portmap", "capabilities": {
                       "portMappings": True}}]
        with open(self.path("cni", "10-biga.conflist"), "w",
                  encoding="utf-8") as f:
            json.dump({"cniVersion": "0.4.0", "name": "biga",
                       "plugins": plugins}, f)

    def more_mounts(self):
        lines = [f"mount --bind {self.path('log')} /var/log"]
        for name in SYSCTLS:
            real, own = "/proc/sys/" + name, self.path(
                "sys", name.replace("/", "."))
            if os.path.exists(real):
                lines.append(f"cat {real} >{own} && mount --bind {own} {real}")
        # volumes are mounted here and seen in containers, and back
        return [*lines, "mount --make-rshared /"]


class NodeRack(cards.Rack):
    """A rack whose places pull from one registry."""

    def __init__(self, n, folder=None, stays=False):
        super().__init__(n, folder, stays, host=NodeHost)
        self.registry_port = free_port()
        self.cgroup = self.tag
        self.record["cgroups"] = [self.cgroup]
        self.record["folders"] = [self.kube()]

    def kube(self, *parts):
        """The folder of the control plane."""
        return os.path.join(self.folder, "kube", *parts)

    def more_configuration(self, place):
        address = getattr(place, "host_address", "127.0.0.1")
        where = os.path.join(self.folder, place.name, "certs.d")
        os.makedirs(os.path.join(where, "_default"), exist_ok=True)
        with open(os.path.join(where, "_default", "hosts.toml"), "w",
                  encoding="utf-8") as f:
            f.write(f'server = "http://{address}:{self.registry_port}"\n')
        return ('[plugins."io.containerd.grpc.v1.cri".registry]\n'
                f'  config_path = "{where}"\n')


# --- the control plane ------------------------------------------------
class NodeCluster(Cluster):
    """A control plane that can call kubelets."""

    NAME = "apiserver-kubelet-client"

    def _make_pki(self):
        super()._make_pki()
        self.client_cert(self.NAME, "kube-" + self.NAME, ["system:masters"])
        certs("server", self.path("pki"), "kubelet", "--san", ADDRESS,
              "--san", NODE)

    def start_for_nodes(self, **more):
        """As start(), with what real nodes need of it."""
        cert = self.path("pki", self.NAME)
        return self.start(apiserver_args=[
            f"--kubelet-client-certificate={cert}.crt",
            f"--kubelet-client-key={cert}.key",
            "--kubelet-certificate-authority=" + self.ca,
            "--kubelet-preferred-address-types=InternalIP"],
            controllers=[*CONTROLLERS, "node-lifecycle", "taint-eviction"],
            **more)
