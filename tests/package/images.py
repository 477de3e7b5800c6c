#!/usr/bin/env python3
"""images.py DIR: the archives NAME_VERSION.oci.tar of `make images` in DIR:
they are what OCI says, hold what they say, and run."""
import glob
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cards"),
                os.path.join(HERE, "..", "kube")]
import cards  # noqa: E402
from check import Checks, Skip  # noqa: E402
from proc import free_port, wait_for  # noqa: E402
from spdx import Bill  # noqa: E402

OCI = "application/vnd.oci.image."
MACHINES = {"amd64": 62, "arm64": 183}
# what each image is for, and says when it is asked
PROGRAMS = {"biga": "usr/bin/biga", "biga-extender": "usr/bin/biga-extender",
            "biga-advertiser": "usr/bin/biga-advertiser",
            "biga-card": "biga-card"}


class Layout:
    """An archive in the layout of OCI, unpacked."""

    def __init__(self, archive, folder):
        self.folder = folder
        with tarfile.open(archive) as tar:
            tar.extractall(folder)
        self.index = self.read("index.json")

    def read(self, *parts):
        with open(os.path.join(self.folder, *parts), encoding="utf-8") as f:
            return json.load(f)

    def blob(self, descriptor, kind):
        """The bytes that a descriptor is of."""
        assert descriptor["mediaType"] == OCI + kind, descriptor
        algorithm, digest = descriptor["digest"].split(":")
        with open(os.path.join(self.folder, "blobs", algorithm, digest),
                  "rb") as f:
            data = f.read()
        assert hashlib.new(algorithm, data).hexdigest() == digest, digest
        assert len(data) == descriptor["size"], descriptor
        return data

    def names(self):
        return [m["annotations"]["io.containerd.image.name"]
                for m in self.index["manifests"]]

    def images(self):
        """(architecture, config, layer as it was before compression)"""
        index = json.loads(self.blob(self.index["manifests"][0],
                                     "index.v1+json"))
        for one in index["manifests"]:
            manifest = json.loads(self.blob(one, "manifest.v1+json"))
            config = json.loads(self.blob(manifest["config"],
                                          "config.v1+json"))
            layer = gzip.decompress(self.blob(manifest["layers"][0],
                                              "layer.v1.tar+gzip"))
            digest = "sha256:" + hashlib.sha256(layer).hexdigest()
            assert config["rootfs"]["diff_ids"] == [digest], config
            assert config["architecture"] == one["platform"]["architecture"]
            yield config["architecture"], config, layer


def says(program, arch, root):
    """What a program says of itself; of another machine's, by qemu"""
    argv = [os.path.join(root, program)]
    if arch != cards.machine_arch():
        emulator = {"arm64": "qemu-aarch64-static",
                    "amd64": "qemu-x86_64-static"}[arch]
        if not shutil.which(emulator):
            raise Skip(f"there is no {emulator}: scripts/setup --package")
        argv[:0] = [emulator, "-L", root]
    elif program != "biga-card":  # with the libraries of the image alone
        argv[:0] = ["chroot", root] if os.geteuid() == 0 else []
        argv[-1] = "/" + program if argv[:-1] else argv[-1]
    argv.append("version" if program == "biga-card" else "--version")
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_layout(t, name, archive, folder):
    layout = Layout(archive, os.path.join(folder, "layout"))
    program = PROGRAMS[name]
    with t.check(f"{name} has its name, and blobs are what they are called"):
        assert f"docker.io/library/{name}:{cards.version()}" in \
            layout.names(), layout.names()
        images = list(layout.images())
    foreign = "arm64" if cards.machine_arch() == "amd64" else "amd64"
    with t.check(f"{name} is there for two architectures"):
        if [arch for arch, _, _ in images] == [cards.machine_arch()]:
            raise Skip(f"no compiler or libraries of {foreign}: "
                       "scripts/setup --package")
        assert {arch for arch, _, _ in images} == set(MACHINES)
    for arch, config, layer in images:
        root = os.path.join(folder, arch)
        with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
            tar.extractall(root)
        with t.check(f"{name} of {arch} starts what is in it"):
            entry = config["config"]["Entrypoint"][0]
            assert entry == "/" + program, entry
            with open(root + entry, "rb") as f:
                machine = int.from_bytes(f.read(20)[18:], "little")
            assert machine == MACHINES[arch], machine
        with t.check(f"{name} of {arch} runs"):
            said = says(program, arch, root)
            assert said.split() == [name, cards.version()], said
        with t.check(f"{name} of {arch} has its bill of materials"):
            bill = Bill(os.path.join(
                root, "usr/share/doc", name, name + ".spdx.json"))
            assert not bill.check(), bill.check()
            assert arch in bill.document["name"]


class Cluster:
    """Containers of the images, on a containerd of their own."""

    def __init__(self, rack):
        self.place = rack.host
        self.n = 0

    def argv(self, image, *args, options=()):
        self.n += 1
        return ["run", "--net-host", "--snapshotter", "native", *options,
                f"docker.io/library/{image}:{cards.version()}",
                f"{image}-{self.n}", "/" + PROGRAMS[image], *args]

    def run(self, image, *args):
        return self.place.ctr(*self.argv(image, *args, options=["--rm"]))

    def start(self, image, *args):
        self.place.ctr(*self.argv(image, *args, options=["--detach"]))


def test_run(t, rack, archives):
    there = Cluster(rack)
    with t.check("a containerd takes the archives"):
        rack.start()
        rack.host.load(*archives)
        names = there.place.ctr("images", "ls", "-q").split()
        for name in [*PROGRAMS, "biga-pause"]:
            assert f"docker.io/library/{name}:{cards.version()}" in names, \
                names
    if t.failed:
        return
    with t.check("what is for a card runs there"):
        said = there.run("biga-card", "version")
        assert said.split() == ["biga-card", cards.version()], said
    read, publish, scheduler = (f"127.0.0.1:{free_port()}" for _ in range(3))
    with t.check("an extender, an advertiser and the command work together, "
                 "each from its image"):
        there.start("biga-extender", "--state", "/tmp/state", "--read-listen",
                    read, "--publish-listen", publish, "--scheduler-listen",
                    scheduler)
        there.start("biga-advertiser", "--fleet", "2", "--server",
                    f"http://{publish}")

        def nodes():
            said = there.run("biga", "--server", f"http://{read}", "nodes")
            assert said.count(" ready ") == 2, said
            return said
        t.note(wait_for("hosts are shown", nodes))


def main():
    archives = sorted(glob.glob(os.path.join(
        os.path.abspath(sys.argv[1]), f"*_{cards.version()}.oci.tar")))
    why = cards.lacking()
    if not why:
        cards.own_network()
    rack = None if why else cards.Rack(n=0)
    t = Checks(on_failure=rack and rack.tail)
    t.ok(len(archives) == len(PROGRAMS), "there is one of each", archives)
    for archive in archives:
        name = os.path.basename(archive).split("_")[0]
        with tempfile.TemporaryDirectory() as folder:
            test_layout(t, name, archive, folder)
    if why:
        with t.check("images run"):
            raise Skip(why)
    else:
        with rack:
            test_run(t, rack, archives)
    t.finish()


if __name__ == "__main__":
    main()
