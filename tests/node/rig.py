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

WAYS are the ways from the kubelet to containerd.
"""
import glob
import json
import os
import shutil
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "cards"))
import cards  # noqa: E402
import images  # noqa: E402
import keeper  # noqa: E402
import lab  # noqa: E402
import network  # noqa: E402
from cards import NODE, ROOT, run  # noqa: E402
from cri import Cri  # noqa: E402
from cluster import CONTROLLERS, Cluster, certs  # noqa: E402
from pods import Talk, is_ready  # noqa: E402
from proc import HANGS, Process, free_port, wait_for  # noqa: E402

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


def require(*ways, programs="kubelet"):
    """Ends a test where there can be no node, or not these ways: it is
    skipped.  Where there can be, it gets a network of its own, as
    cards.require() says.  programs: what it needs of binaries()."""
    reasons = [lacking()] + [WAYS[way].lacking() for way in ways if WAYS[way]]
    for why in filter(None, reasons):
        print(why)
        sys.exit(77)
    binaries(programs)
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


def write_cni(place, bridge, pods, gateway):
    """Pods of a place hang on a bridge there, and their ports can be the
    place's; what its containerd has to be told."""
    folder = place.path("cni")
    os.makedirs(folder, exist_ok=True)
    plugins = [{"type": "bridge", "bridge": bridge, "isGateway": True,
                "hairpinMode": True, "ipam": {
                    "type": "host-local", "dataDir": "/var/lib/cni",
                    "ranges": [[{"subnet": pods, "gateway": gateway}]],
                    "routes": [{"dst": "0.0.0.0/0"}]}},
               {"type": "portmap", "capabilities": {"portMappings": True}}]
    with open(os.path.join(folder, "10-biga.conflist"), "w",
              encoding="utf-8") as f:
        json.dump({"cniVersion": "0.4.0", "name": "biga",
                   "plugins": plugins}, f)
    plugin, binaries_at = ("io.containerd.grpc.v1.cri", f'bin_dir = "{CNI}"') \
        if config_version(place) == 2 else \
        ("io.containerd.cri.v1.runtime", f'bin_dirs = ["{CNI}"]')
    return (f'[plugins."{plugin}".cni]\n'
            f'  {binaries_at}\n  conf_dir = "{folder}"\n')


# --- the host and its runtime ------------------------------------------------
def config_version(place):
    """Of the host's containerd, which reads its own; that of a card is what
    deploy/card-setup writes."""
    return 3 if place is place.rack.host and place.bin else 2


class NodeHost(cards.Host):
    """A host whose containerd has a network for pods."""

    CONFIG = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  disable_tcp_service = true
  sandbox_image = "docker.io/library/biga-pause:{version}"
  stream_server_address = "127.0.0.1"
  netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "native"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
"""
    CONFIG_3 = """version = 3
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "native"
  use_local_image_pull = true
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "docker.io/library/biga-pause:{version}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = {restrict}
  cdi_spec_dirs = ["{cdi}"]
  netns_mounts_under_state_dir = true
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
"""

    def __init__(self, rack):
        super().__init__(rack)
        for folder in ("log", "sys"):
            os.makedirs(self.path(folder), exist_ok=True)

    def configuration(self):
        if config_version(self) == 2:
            return super().configuration()
        return self.CONFIG_3.format(
            version=cards.version(), cdi=self.path("cdi"),
            restrict=str(not cards.may_lower_oom()).lower())

    def more_mounts(self):
        lines = [f"mount --bind {self.path('log')} /var/log"]
        for name in SYSCTLS:
            real, own = "/proc/sys/" + name, self.path(
                "sys", name.replace("/", "."))
            if os.path.exists(real):
                lines.append(f"cat {real} >{own} && mount --bind {own} {real}")
        return lines


class NodeRack(cards.Rack):
    """A rack whose places pull from one registry.  card_pods: whether cards
    have a network for pods of their own."""

    def __init__(self, n, folder=None, stays=False, card_pods=False):
        super().__init__(n, folder, stays, host=NodeHost)
        self.card_pods = card_pods
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
            # containerd 1.6 wants a table here, whatever it says
            url = f"http://{address}:{self.registry_port}"
            f.write(f'server = "{url}"\n[host."{url}"]\n'
                    '  capabilities = ["pull", "resolve"]\n')
        plugin = {2: "io.containerd.grpc.v1.cri",
                  3: "io.containerd.cri.v1.images"}[config_version(place)]
        text = (f'[plugins."{plugin}".registry]\n'
                f'  config_path = "{where}"\n')
        if place is self.host:
            text += write_cni(place, BRIDGE, PODS, ADDRESS)
        elif self.card_pods:
            pods = f"10.89.{place.index}"
            text += write_cni(place, "pods0", pods + ".0/24", pods + ".1")
            # the host finds them by the card's address
            run("ip", "route", "add", pods + ".0/24", "via", place.address)
        return text


# --- the control plane ------------------------------------------------
class NodeCluster(Cluster):
    """A control plane that can call kubelets."""

    NAME = "apiserver-kubelet-client"

    def _make_pki(self):
        super()._make_pki()
        self.client_cert(self.NAME, "kube-" + self.NAME, ["system:masters"])
        certs("server", self.path("pki"), "kubelet", "--san", ADDRESS,
              "--san", NODE)

    def _controllers(self, features, names):
        found = super()._controllers(features, names)
        # what the kubelet itself says counts, however late
        found.argv.append("--node-monitor-grace-period=10m")
        return found

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


# --- ways ------------------------------------------------
class Router:
    """biga-cri between the kubelet and all runtimes.  settings: more of
    them, by name; None: without that one."""

    PROGRAM = os.path.join(cards.BUILD, "biga-cri")

    @classmethod
    def lacking(cls):
        if not os.access(cls.PROGRAM, os.X_OK):
            return f"there is no {os.path.relpath(cls.PROGRAM, ROOT)}"
        return None

    def __init__(self, rig, **settings):
        self.rig = rig
        host = rig.rack.host
        self.socket = host.path("run", "biga-cri.sock")
        self.settings = {
            "listen": f"unix://{self.socket}",
            "home": host.endpoint,
            "state": host.path("biga-cri"),
            "card-file": rig.rack.card_file(),
            "node": NODE,
            "allow": "SYS_PTRACE",  # for kubectl debug --profile=general
            **settings}
        self.process = None

    def start(self):
        path = self.rig.rack.host.path("biga-cri.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(f"{name} = {value}\n"
                         for name, value in self.settings.items()
                         if value is not None)
        if self.process is None:
            self.process = self.rig.on_host(
                "biga-cri", [self.PROGRAM, "--config", path])
        self.process.start()
        wait_for("biga-cri answers", lambda: self.process.alive() and
                 Cri(unix=self.socket).version())
        return self

    @property
    def endpoint(self):
        return f"unix://{self.socket}"

    def stop(self):
        if self.process:
            self.process.stop()


# What the kubelet dials: containerd itself (None), or what the class starts.
WAYS = {"direct": None, "router": Router}


# --- all of it ------------------------------------------------
class Rig:
    """A node.  way: one of WAYS.  kubelet: members of its configuration that
    are not as ours.  card_pods: cards have a network for pods of their own.
    stays: it is left to run when the script ends.  versions: what of
    binaries() is the "kubelet", and the containerd of "host" and "cards",
    where these are others than usual."""

    def __init__(self, n_cards=0, way="direct", folder=None, stays=False,
                 kubelet=None, card_pods=False, say=None, versions=None):
        self.rack = NodeRack(n_cards, folder, stays, card_pods)
        self.c = NodeCluster(self.rack.kube())
        self.say = say or (lambda text: None)
        self.changes = kubelet or {}
        self.versions = {"kubelet": "kubelet", **(versions or {})}
        for place in self.rack.places:
            what = "host" if place is self.rack.host else "cards"
            if what in self.versions:
                place.bin = binaries(self.versions[what])
        self.way = WAYS[way](self) if WAYS[way] else None
        self.kubelet = self.proxy = self.registry = self.biga = None

    # --- coming and going ------------------------------------------------
    def __enter__(self):
        return self

    def __exit__(self, kind, value, _):
        good = kind is None or (kind is SystemExit and value.code in (0, 77))
        self.stop(keep=not good)

    def stop(self, keep=False):
        """Nothing of it is left when this returns, but logs if they are to
        be kept."""
        if keep or os.environ.get("BIGA_KEEP"):
            self.rack.keep_logs()
            print(f"# logs are in {self.rack.folder}", flush=True)
        self.rack.stop()

    def start(self):
        """All of it, the node ready."""
        self.start_runtimes()
        self.c.say = self.say
        self.c.start_for_nodes()
        self.c.start_scheduler()
        self.start_kubelet()
        self.wait_ready()
        self.say("the node is ready")
        return self

    def start_runtimes(self):
        """What the kubelet dials, and all behind it, without a cluster."""
        make_cgroups(self.rack.cgroup)
        self._add_bridge()
        self.rack.start()
        for card in self.rack.cards:  # answers to pods of the host
            run(*card.enter_network(), "ip", "route", "add", PODS, "via",
                card.host_address)
        self.say(f"a host and {len(self.rack.cards)} cards are there")
        self.registry = Process(self.rack.folder, "registry", [
            sys.executable, "-B", os.path.join(HERE, "registry.py"),
            images.make(os.path.join(self.rack.folder, "registry")),
            self.rack.registry_port]).start()
        wait_for("the registry answers", self._registry_answers)
        if self.way:
            self.way.start()
        return self

    def _registry_answers(self):
        self.registry.alive()
        socket.create_connection(
            ("127.0.0.1", self.rack.registry_port)).close()
        return True

    @staticmethod
    def _add_bridge():
        """Of pods; its address is the node's."""
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        run("ip", "addr", "add", ADDRESS + "/" + PODS.split("/")[1], "dev",
            BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        # to Services, for kube-proxy to lead elsewhere
        run("ip", "route", "add", "10.0.0.0/24", "dev", BRIDGE)
        with open("/proc/sys/net/ipv4/ip_forward", "w",
                  encoding="ascii") as f:
            f.write("1")

    # --- programs --------------------------------------------------------
    def on_host(self, name, argv):
        """A program where the host's mounts are seen; not started yet."""
        return Process(self.rack.folder, name,
                       [*self.rack.host.enter(), *argv])

    @property
    def endpoint(self):
        """What the kubelet dials."""
        return self.way.endpoint if self.way else self.rack.host.endpoint

    def kubelet_config(self):
        """Its KubeletConfiguration: nothing that takes effect later than
        need be, nothing that depends on how full this machine is."""
        pki = self.c.path("pki", "kubelet")
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": ADDRESS, "healthzBindAddress": ADDRESS,
            "authentication": {
                "anonymous": {"enabled": False}, "webhook": {"enabled": True},
                "x509": {"clientCAFile": self.c.ca}},
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": pki + ".crt", "tlsPrivateKeyFile": pki + ".key",
            "containerRuntimeEndpoint": self.endpoint,
            "cgroupDriver": "cgroupfs", "cgroupRoot": "/" + self.rack.cgroup,
            "failCgroupV1": False, "failSwapOn": False,
            "clusterDomain": "cluster.local", "clusterDNS": ["10.0.0.10"],
            "volumePluginDir": "/var/lib/kubelet/plugins-exec",
            "oomScoreAdj": -999 if cards.may_lower_oom() else 0,
            "evictionHard": {"memory.available": "1Mi",
                             "nodefs.available": "1Mi"},
            "imageGCHighThresholdPercent": 100,
            "serializeImagePulls": False, "syncFrequency": "5s",
            "nodeStatusUpdateFrequency": "2s", **self.changes}

    def start_kubelet(self):
        """It runs when this returns; wait_ready() is for the node."""
        if self.kubelet is None:
            config = self.rack.host.path("kubelet.json")
            with open(config, "w", encoding="utf-8") as f:
                json.dump(self.kubelet_config(), f, indent=1)
            self.kubelet = self.on_host("kubelet", [
                os.path.join(binaries(self.versions["kubelet"]), "kubelet"),
                "--config=" + config, "--hostname-override=" + NODE,
                "--kubeconfig=" + self.c.kubeconfig(
                    "node-" + NODE, "system:node:" + NODE, ["system:nodes"]),
                "--node-ip=" + ADDRESS, "--v=2"])
        self.kubelet.start()
        return self.kubelet

    def start_proxy(self):
        """kube-proxy, which makes Services reachable from this network."""
        config = self.rack.host.path("proxy.json")
        with open(config, "w", encoding="utf-8") as f:
            json.dump({
                "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
                "kind": "KubeProxyConfiguration", "mode": "iptables",
                "clientConnection": {"kubeconfig": self.c.kubeconfig(
                    "proxy", "system:kube-proxy")},
                "hostnameOverride": NODE, "clusterCIDR": PODS,
                # these are the whole machine's
                "conntrack": {"maxPerCore": 0, "min": 0}}, f)
        self.proxy = self.on_host("kube-proxy", [
            os.path.join(binaries("kubelet"), "kube-proxy"),
            "--config=" + config]).start()
        return self.proxy

    def start_biga(self):
        """Biga in the cluster, which places pods on this node's cards."""
        self.biga = lab.Lab(self.c).install()
        self.biga.extender()
        health = [f"--card-health={self.way.settings['state']}"
                  "/health/cards.json"] if self.way else []
        self.biga.advertiser(
            NODE, "--hostfile", self.rack.host_file(), "--card-file",
            self.rack.card_file(), *health)
        self.biga.wait_slices(1)
        self.biga.start_service()
        self.biga.leader()
        self.c.scheduler.stop()
        self.biga.start_scheduler()
        self.say("Biga places pods on it")
        return self.biga

    def biga_env(self):
        """What `biga` has to know to ask it."""
        if not self.biga:
            return {}
        return {"BIGA_SERVER": self.biga.url("read"),
                "BIGA_CA": self.biga.pki("ca.crt"),
                "BIGA_TOKEN_FILE": self.biga.write_reader_token()}

    def run_biga(self, *args):
        """What `biga` prints."""
        return run(os.path.join(cards.BUILD, "biga"), *args,
                   env={**os.environ, **self.biga_env()})

    # --- what it says ---------------------------------------------------------
    def condition(self, kind="Ready"):
        """(status, message) of a condition of the node."""
        found = self.c.api.get("nodes", None, NODE)["status"]["conditions"]
        return next((c["status"], c["message"]) for c in found
                    if c["type"] == kind)

    def wait_ready(self):
        """Until pods can be scheduled to it."""
        def ready():
            self.kubelet.alive()
            status, message = self.condition()
            assert status == "True", message
            taints = self.c.api.get("nodes", None, NODE)["spec"].get("taints")
            assert not taints, taints
            return True
        return wait_for("the node is ready", ready)

    def pod(self, name):
        return self.c.api.get("pods", "default", name)

    def ready_pod(self, name):
        """The Pod; raises when it is not ready."""
        found = self.pod(name)
        return is_ready(found) and found

    def talk(self, *args, terminal=False):
        """kubectl with these arguments, in the background."""
        return Talk([os.path.join(self.c.bin, "kubectl"), "--kubeconfig",
                     self.c.path("admin.kubeconfig"), *args], terminal)

    def crictl_argv(self, endpoint=None):
        """What crictl of an endpoint, by default the way's, begins with."""
        config = self.rack.host.path("crictl.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"runtime-endpoint: {endpoint or self.endpoint}\n"
                    f"image-endpoint: {endpoint or self.endpoint}\n"
                    # of each call; its own is 2 s
                    f"timeout: {HANGS:.0f}\n")
        return [*self.rack.host.enter(), os.path.join(
            binaries("cri"), "crictl"), "--config", config]

    def crictl(self, *args, endpoint=None):
        """What crictl prints."""
        return run(*self.crictl_argv(endpoint), *args)

    def tail(self):
        """The ends of all logs, for a check that failed."""
        log = self.kubelet.text().splitlines() if self.kubelet else []
        bad = [line[:400] for line in log if line.startswith("E")]
        return [*(f"kubelet: {line}" for line in bad[-8:]),
                *self.rack.tail(), *self.c.log_ends(3)]


def own_network(name):
    """A network namespace with a name, which this script is in from here on:
    for what stays when the script has ended."""
    run("ip", "netns", "add", name)
    network.enter(f"/run/netns/{name}")
    network.loopback_up()


def undo(folder):
    """End what stays in a folder; whether there was anything."""
    for path in glob.glob(os.path.join(keeper.RECORDS, "*.json")):
        record = keeper.read_record(path)
        if record and record["folder"] == folder:
            keeper.undo(path)
            return True
    return False
