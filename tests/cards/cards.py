"""A host and its cards, each a containerd of its own.

    with Rack() as rack:
        rack.start()
        rack.cards[0].cri().version()

A card has a network namespace, a wire to the host, /var/lib, /dev/shm and
/run/containerd of its own, and answers the host over mutual TLS with what
deploy/card-setup and deploy/certs.sh make.  The host has a containerd with a
unix socket, in the network of the script, and a /dev/shm of its own.  A test
has a network of its own, see require(): racks do not disturb one another.
Nothing of a rack is left when it ends, see keeper.py.
"""
import concurrent.futures
import errno
import hashlib
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "kube"))
import keeper  # noqa: E402
from cri import Cri, client_tls  # noqa: E402
from network import own_network  # noqa: E402
from proc import HANGS, Process, start_time, wait_for  # noqa: E402

BUILD = os.path.join(ROOT, os.environ.get("BIGA_BUILD", "build"))
PORT = 7443
# PCI addresses of the cards beside GPUs in this host description
SHAPE = "dell-xe9680-bf3"
PCI = ("0000:1a:00.0", "0000:3c:00.0", "0000:4d:00.0", "0000:5e:00.0",
       "0000:9c:00.0", "0000:bc:00.0", "0000:cc:00.0", "0000:dc:00.0")
NODE = "host0"
# what every containerd without CNI says when it starts
USUAL = ("devmapper", "cni config", "cleaning up after shim", "StopContainer")


def run(*argv, **more):
    """A command that must succeed; what it printed."""
    done = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, argv))}: status "
                           f"{done.returncode}: {done.stdout.strip()}")
    return done.stdout


def certs(*args):
    return run(os.path.join(ROOT, "deploy", "certs.sh"), *args)


def version():
    return run(os.path.join(BUILD, "biga-card"), "version").split()[1]


def lacking():
    """Why there can be no cards on this machine; None when there can."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces and containers"
    for program in ("containerd", "containerd-shim-runc-v2", "ctr", "runc",
                    "ip", "nsenter", "unshare", "openssl"):
        if not shutil.which(program):
            return f"there is no {program}: scripts/setup --cards"
    if not os.path.exists("/bin/busybox"):
        return "there is no /bin/busybox: scripts/setup --cards"
    if not any(os.access(path, os.W_OK) for path in (
            "/sys/fs/cgroup/memory", "/sys/fs/cgroup/cgroup.procs")):
        return "there are no control groups that may be written to"
    name = f"biga-t-{os.getpid()}-try"
    try:
        run("ip", "netns", "add", name)
        run("ip", "netns", "del", name)
        run("unshare", "--mount", "--propagation", "private", "true")
    except RuntimeError as error:
        return f"no namespaces here: {error}"
    return None


def require():
    """Ends a test where there can be no cards: it is skipped.  Where there
    can be, it gets a network of its own."""
    why = lacking()
    if why:
        print(why)
        sys.exit(77)
    own_network()


def may_lower_oom():
    """Whether sandboxes may be spared by the kernel when memory is short, as
    containerd wants it; that needs CAP_SYS_RESOURCE."""
    with open("/proc/self/status", encoding="utf-8") as f:
        effective = next(line for line in f if line.startswith("CapEff"))
    return bool(int(effective.split()[1], 16) & 1 << 24)


def foreign_image(archive, path, arch, tag):
    """An image of one layer under another name, as if it was for another
    architecture: its programs too."""
    def change(config, layer):
        config["architecture"] = arch
        return foreign_layer(io.BytesIO(layer), arch)
    return other_image(archive, path, tag, change)


def user_image(archive, path, user, tag):
    """An image of one layer under another name, with that USER."""
    def change(config, layer):
        config.setdefault("config", {})["User"] = user
        return layer
    return other_image(archive, path, tag, change)


def other_image(archive, path, tag, change):
    with tarfile.open(archive) as old, tarfile.open(path, "w") as new:
        manifest = json.load(old.extractfile("manifest.json"))[0]
        config = json.load(old.extractfile(manifest["Config"]))
        layer = change(config, old.extractfile(manifest["Layers"][0]).read())
        config["rootfs"]["diff_ids"] = [
            "sha256:" + hashlib.sha256(layer).hexdigest()]
        config = json.dumps(config).encode()
        name = hashlib.sha256(config).hexdigest() + ".json"
        add_file(new, "manifest.json", json.dumps([{
            "Config": name, "RepoTags": [tag],
            "Layers": ["layer.tar"]}]).encode())
        add_file(new, name, config)
        add_file(new, "layer.tar", layer)
    return path


def foreign_layer(file, arch):
    """The layer with another e_machine in the ELF headers of programs."""
    made = io.BytesIO()
    with tarfile.open(fileobj=file) as old, \
            tarfile.open(fileobj=made, mode="w") as new:
        for info in old:
            data = old.extractfile(info).read() if info.isfile() else b""
            if data.startswith(b"\x7fELF"):
                machine = {"amd64": 62, "arm64": 183}[arch]
                data = data[:18] + machine.to_bytes(2, "little") + data[20:]
            new.addfile(info, io.BytesIO(data))
    return made.getvalue()


def add_file(archive, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def machine_arch():
    names = {"x86_64": "amd64", "aarch64": "arm64"}
    return names.get(os.uname().machine, os.uname().machine)


# --- one place ----------------------------------------------------------------
class Place:
    """A containerd and what is around it: FOLDER/NAME/…"""

    def __init__(self, rack, name):
        self.rack, self.name = rack, name
        self.init = self.containerd = None
        self.frozen = False
        self.disk_mib = None  # the size of its disk, in memory; None: ours
        self.bin = None  # where its containerd is; None: the machine's
        for folder in ("lib", "run", "pki"):
            os.makedirs(self.path(folder), exist_ok=True)

    def path(self, *parts):
        return os.path.join(self.rack.folder, self.name, *parts)

    @property
    def socket(self):
        return self.path("run", "containerd.sock")

    def enter(self):
        """What goes before a command that runs there."""
        return ["nsenter", f"--mount=/proc/{self.init.pid}/ns/mnt"]

    def _start_init(self):
        """Somebody who holds the place's mounts, for containerd may end."""
        ready = self.path("ready")
        disk = f"mount --bind {self.path('lib')} /var/lib && " \
            if self.disk_mib is None else \
            f"mount -t tmpfs -o size={self.disk_mib}m none /var/lib && "
        script = (disk +
                  "mount -t tmpfs none /dev/shm && mkdir -p /run/containerd && "
                  f"mount --bind {self.path('run')} /run/containerd && "
                  + "".join(line + " && " for line in self.more_mounts()) +
                  # as systemd has it: what one mounts others can see
                  "mount --make-rshared / && "
                  f"touch {ready} && exec sleep infinity")
        self.init = Process(self.rack.folder, self.name + "-init", [
            *self.enter_network(), "unshare", "--mount", "--propagation",
            "private", "sh", "-c", script]).start()
        wait_for(f"{self.name} is there", lambda: self.init.alive() and
                 os.path.exists(ready))
        self.rack.hold(self.init.pid)

    def more_mounts(self):
        """Commands of a shell that mount what else is its own."""
        return []

    def enter_network(self):
        return []

    def configure(self):
        """What its containerd reads; adapted to what this machine allows."""
        text = self.configuration() + self.rack.more_configuration(self)
        if not may_lower_oom():
            text = text.replace("disable_tcp_service", "restrict_oom_score_adj"
                                " = true\n  disable_tcp_service")
        with open(self.path("config.toml"), "w", encoding="utf-8") as f:
            f.write(text)

    def start(self):
        """Its containerd, answering."""
        if self.init is None:
            self._start_init()
        if self.containerd is None:
            self.containerd = Process(
                self.rack.folder, self.name,
                [*self.enter(), *self.enter_network(), "containerd", "-c",
                 self.path("config.toml")], {"PATH": os.pathsep.join(
                     filter(None, (self.bin, os.environ["PATH"])))})
        self.containerd.start()
        return self

    def wait_local(self):
        """Until it answers on its own socket."""
        wait_for(f"{self.name} answers", lambda: self.containerd.alive() and
                 self.local().version())
        return self

    def wait_up(self):
        return self.wait_local()

    def local(self, timeout=HANGS):
        """Its CRI by unix socket, whatever its network does."""
        return Cri(unix=self.socket, timeout=timeout)

    def ctr(self, *args):
        return run(*self.enter(), "ctr", "-n", "k8s.io", *args)

    def load(self, *files):
        for file in files:
            self.ctr("images", "import", "--snapshotter", "native", file)

    # --- what is there ---------------------------------------------------
    def objects(self):
        """(sandboxes, containers), also while nobody answers by network."""
        cri = self.local()
        return cri.sandboxes(), cri.containers()

    def seen(self, *parts):
        """The path here of something there."""
        return os.path.join("/proc", str(self.init.pid), "root", *parts)

    def store(self):
        """Where files of pods are, there."""
        return self.seen("var/lib/biga")

    def memory(self, *parts):
        """Where files of pods in memory are, there."""
        return self.seen("dev/shm/biga", *parts)

    def files(self):
        top = self.store()
        return sorted(os.path.relpath(os.path.join(at, name), top)
                      for at, folders, names in os.walk(top)
                      for name in folders + names)

    # --- faults ----------------------------------------------------------
    def freeze(self):
        self.frozen = True
        self.containerd.pause()

    def thaw(self):
        self.containerd.resume()
        self.frozen = False

    def kill(self):
        """kill -9; its pods go on."""
        self.containerd.kill()

    def restart(self):
        self.containerd.kill()
        return self.start()


    def fill_disk(self, leave_kib=0):
        """Fill its disk up to the last KiB; of one with a size only."""
        top = self.seen("var/lib")
        free = os.statvfs(top)
        size = free.f_bavail * free.f_bsize - leave_kib * 1024
        try:
            with open(os.path.join(top, "filler"), "wb") as f:
                f.write(bytes(max(0, size)))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise  # else others have written meanwhile

    def clear_disk(self):
        os.unlink(self.seen("var/lib/filler"))


class Card(Place):
    def __init__(self, rack, index):
        super().__init__(rack, f"card{index}")
        self.index, self.pci = index, PCI[index]
        self.id = "card-" + self.pci[:-2].replace(":", "-")
        self.netns = f"{rack.tag}-{index}"
        self.wire = f"bt{os.getpid()}n{index}"
        net = rack.network + 4 * index
        self.host_address, self.address = (
            f"198.{18 + (net + i >> 16)}.{net + i >> 8 & 255}.{net + i & 255}"
            for i in (1, 2))
        # may be changed before Biga starts: who is called, and what it has
        # by the words of schema/hostfile.md
        self.endpoint, self.shape = f"tcp://{self.address}:{PORT}", {}


    def enter_network(self):
        return ["nsenter", f"--net=/run/netns/{self.netns}"]

    def plug(self):
        """Its namespace, and a wire between it and the host."""
        run("ip", "netns", "add", self.netns)
        run("ip", "link", "add", self.wire, "type", "veth", "peer", "name",
            "eth0", "netns", self.netns)
        run("ip", "addr", "add", f"{self.host_address}/30", "dev", self.wire)
        run("ip", "link", "set", self.wire, "up")
        inside = ["ip", "-n", self.netns]
        run(*inside, "addr", "add", f"{self.address}/30", "dev", "eth0")
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "link", "set", "eth0", "up")

    def make_keys(self, address=None, **more):
        """A certificate for it from the rack's authority, in place.  more:
        days, or pki, a folder with another authority."""
        pki = more.get("pki", self.rack.pki())
        name = f"{self.name}-{random.randrange(1 << 32):08x}"
        days = ["--days", str(more["days"])] if "days" in more else []
        certs("card", pki, name, "--san", address or self.address, *days)
        for kind in ("crt", "key"):
            os.replace(os.path.join(pki, f"{name}.{kind}"),
                       self.path("pki", f"card.{kind}"))
        shutil.copy(self.rack.pki("ca.crt"), self.path("pki", "ca.crt"))
        return self

    def configuration(self):
        return run(os.path.join(ROOT, "deploy", "card-setup"), "--address",
                   f"{self.address}:{PORT}", "--tls", self.path("pki"),
                   "--snapshotter", "native")

    def tls(self, name=NODE):
        return client_tls(self.rack.pki("ca.crt"),
                          self.rack.pki(f"{name}.crt"),
                          self.rack.pki(f"{name}.key"))

    def cri(self, timeout=HANGS, tls=None):
        """Its CRI as the node calls it."""
        return Cri(address=(self.address, PORT), tls=tls or self.tls(),
                   timeout=timeout)

    def wait_up(self):
        super().wait_up()
        wait_for(f"{self.name} answers the host", lambda:
                 self.containerd.alive() and self.cri().version())
        return self

    # --- faults ----------------------------------------------------------
    def members(self):
        """All its processes, containerd and pods."""
        held = keeper.Held()
        held.hold(f"/run/netns/{self.netns}")
        try:
            return keeper.members(held.numbers())
        finally:
            held.close()

    def pods_running(self):
        """How many processes of containers run there, whoever knows."""
        own = {self.init.pid, self.containerd.pid}
        n = 0
        for pid in self.members() - own:
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
                    n += not f.read().startswith("containerd")
            except OSError:
                pass
        return n

    def power_cut(self):
        """As when its power fails: all processes end at once.  What it kept
        in memory, and its mounts, are gone."""
        held = keeper.Held()
        held.hold(f"/run/netns/{self.netns}")
        keeper.kill_all(held.numbers())
        held.close()
        for p in (self.init, self.containerd):
            p.kill()
        self.init = self.containerd = None
        shutil.rmtree(self.path("run"))
        os.makedirs(self.path("run"))
        os.unlink(self.path("ready"))

    def link(self, up):
        # its end: without the host's, its address would be looked for
        # wherever the host's default route leads
        run("ip", "-n", self.netns, "link", "set", "eth0",
            "up" if up else "down")

    def silent(self, yes):
        """The other way to be cut off: packets vanish, no link goes down."""
        run("ip", "-n", self.netns, "route", "add" if yes else "del",
            "blackhole", f"{self.host_address}/32")


class Host(Place):
    CONFIG = """version = 2
[plugins."io.containerd.grpc.v1.cri"]
  disable_tcp_service = true
  sandbox_image = "docker.io/library/biga-pause:{version}"
  stream_server_address = "127.0.0.1"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "native"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
"""

    def __init__(self, rack):
        super().__init__(rack, "host")

    def store(self):
        return os.path.join(self.rack.folder, "actuator")

    @property
    def endpoint(self):
        return f"unix://{self.socket}"

    def configuration(self):
        return self.CONFIG.format(version=version())


# --- all of them ------------------------------------------------------------
class Rack:
    """A host with n cards.  stays: it is left to run when the script ends.
    host: its class, or whether there is one at all."""

    def __init__(self, n=8, folder=None, stays=False, host=True):
        assert n <= len(PCI)
        self.tag = f"biga-t-{os.getpid()}"
        self.stays = stays
        if folder:
            os.makedirs(folder, exist_ok=True)
        self.folder = folder or tempfile.mkdtemp(prefix="biga-cards-")
        os.chmod(self.folder, 0o700)
        self.network = self._free_network()
        self.record = {
            "folder": self.folder, "stays": stays, "netns": [], "holders": [],
            "owners": [[os.getpid(), start_time(os.getpid())]],
            "keep_logs": bool(os.environ.get("BIGA_KEEP"))}
        self.record_path = os.path.join(keeper.RECORDS, self.tag + ".json")
        self.lock = threading.Lock()
        self.keeper = None
        self.host = (Host if host is True else host)(self) if host else None
        self.cards = [Card(self, i) for i in range(n)]
        self.record["netns"] = [c.netns for c in self.cards]
        self.record["wires"] = [c.wire for c in self.cards]

    @staticmethod
    def _free_network():
        """The first of 64 addresses of 198.18.0.0/15 (RFC 2544) of which
        this machine has none."""
        used = run("ip", "-o", "-4", "addr")
        while True:
            net = random.randrange(1 << 11) << 6
            if f" 198.{18 + (net >> 16)}.{net >> 8 & 255}." not in used:
                return net

    def pki(self, *parts):
        return os.path.join(self.folder, "pki", *parts)

    def more_configuration(self, place):
        """What the configuration of a place's containerd ends with."""
        return ""

    @property
    def places(self):
        return ([self.host] if self.host else []) + self.cards

    def _write_record(self):
        os.makedirs(keeper.RECORDS, mode=0o700, exist_ok=True)
        keeper.write_record(self.record_path, self.record)

    def keep_logs(self):
        """Logs stay when the rack ends."""
        with self.lock:
            self.record["keep_logs"] = True
            self._write_record()

    def hold(self, pid):
        with self.lock:
            self.record["holders"].append([pid, start_time(pid)])
            self._write_record()
            if self.keeper:
                self.keeper.stdin.write(f"{pid}\n")
                self.keeper.stdin.flush()

    def _start_keeper(self):
        with open(os.path.join(self.folder, "keeper.log"), "ab") as log:
            self.keeper = subprocess.Popen(
                [sys.executable, "-B", os.path.join(HERE, "keeper.py"),
                 self.record_path], stdin=subprocess.PIPE, stdout=log,
                stderr=log, text=True, start_new_session=True)
        pid = self.keeper.pid
        self.record["owners"].append([pid, start_time(pid)])

    def start(self, images=("biga-card", "busybox")):
        """All of them, answering, with these images."""
        keeper.sweep()
        self._write_record()
        if not self.stays:
            self._start_keeper()
            self._write_record()
        else:
            Process.die_with_parent = False
        run(os.path.join(ROOT, "deploy", "images"), "--out",
            os.path.join(self.folder, "images"), "--card",
            os.path.join(BUILD, "biga-card"), "--busybox",
            *(["--allreduce", os.path.join(BUILD, "allreduce")]
              if "allreduce" in images else []))
        certs("ca", self.pki(), "--cn", "cards of " + NODE)
        certs("node", self.pki(), NODE)
        for card in self.cards:
            card.plug()
            card.make_keys()
        # processes die with the thread that starts them: only this one does
        for place in self.places:
            place.configure()
            place.start()
        files = [os.path.join(self.folder, "images", f"{name}.tar")
                 for name in images]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(self._prepare, p, files)
                         for p in self.places]:
                done.result()
        return self

    @staticmethod
    def _prepare(place, files):
        place.wait_up()
        place.load(*files)

    def join_cards(self):
        """They reach one another, over the host; in a network of its own."""
        with open("/proc/sys/net/ipv4/ip_forward", "w",
                  encoding="ascii") as f:
            f.write("1")
        for card in self.cards:
            run(*card.enter_network(), "ip", "route", "replace",
                "default", "via", card.host_address)

    def card_file(self):
        """What the advertiser is told of the cards: the file's path."""
        tls = {"ca": self.pki("ca.crt"), "cert": self.pki(f"{NODE}.crt"),
               "key": self.pki(f"{NODE}.key")}
        return self._write("cards.json", json.dumps({"cards": [
            {"match": {"pci": c.pci}, "endpoint": c.endpoint, "tls": tls}
            for c in self.cards]}, indent=1))

    def host_file(self):
        """What the host looks like: SHAPE with these cards alone."""
        lines = []
        with open(os.path.join(ROOT, "advertiser", "hosts", SHAPE + ".host"),
                  encoding="utf-8") as f:
            for line in f:
                card = next((c for c in self.cards
                             if f" card {c.pci} " in line), None)
                if card:
                    words = {"arch": machine_arch(), **card.shape}
                    for key, value in words.items():
                        line = re.sub(rf" {key}=\S+", "", line.rstrip()) \
                            + f" {key}={value}\n"
                if card or " card " not in line:
                    lines.append(line)
        return self._write("host0.host", "".join(lines))

    def _write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(path + ".new", path)
        return path

    def stop(self):
        """Nothing of it is left when this returns."""
        if self.keeper:
            self.keeper.stdin.close()
            self.keeper.wait(HANGS)
            self.keeper = None
        else:
            keeper.undo(self.record_path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def tail(self):
        """The ends of all logs, for a check that failed."""
        lines = []
        folder = os.path.join(self.folder, "log")
        for name in sorted(os.listdir(folder)) \
                if os.path.isdir(folder) else []:
            with open(os.path.join(folder, name), encoding="utf-8",
                      errors="replace") as f:
                said = [line.rstrip()[:400] for line in f
                        if "level=info" not in line
                        and not any(word in line for word in USUAL)]
            lines += [f"{name}: {line}" for line in said[-4:]]
        return lines
