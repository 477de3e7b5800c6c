#!/usr/bin/env python3
"""The images that pods and critest ask for, made of the machine's static
busybox, as a registry has them.

    images.py DIR

DIR/blobs/sha256/… and DIR/tags.json, {name: {tag: digest of a manifest}};
registry.py serves them.  The same programs give the same bytes.
"""
import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile

BUSYBOX = "/bin/busybox"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"

# what pods of tests are made of; any name of a registry leads to ours
BASE = "biga.test/busybox:full"
PAUSE = "registry.k8s.io/pause:3.9"  # that critest pulls

E2E, CRI = "registry.k8s.io/e2e-test-images/", "gcr.io/k8s-staging-cri-tools/"

PASSWD = """root:x:0:0:root:/root:/bin/sh
default-user:x:1000:1000::/home:/bin/sh
www-data:x:33:33:www-data:/var/www:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/false
"""
GROUP = """root:x:0:
www-data:x:33:
default-user:x:1000:
group-defined-in-image:x:50000:default-user
nogroup:x:65534:
"""

# Debian's busybox has no pgrep
PGREP = """#!/bin/sh
for d in /proc/[0-9]*; do
    case $(cat "$d/comm" 2>/dev/null) in
    *"$1"*) echo "${d#/proc/}"; found=1 ;;
    esac
done
[ -n "$found" ]
"""

# nor ipcs; identifiers are in the second column
IPCS = """#!/bin/sh
cat /proc/sysvipc/shm
"""

# A web server as critest knows nginx: by its name, by its file of its
# process id, and by the words that its first argument has; and httpd, which
# says its name.
NGINX = """#!/bin/sh
echo httpd
echo $$ >/var/run/nginx.pid
httpd -f -p "$2" -h /www &
trap 'kill $!; exit 0' TERM INT QUIT
wait
"""

# Who it is after it was executed: what no-new-privileges decides.
NNP = """#include <stdio.h>
#include <unistd.h>
int main(void)
{
    printf("Effective uid: %d\\n", (int)geteuid());
    return 0;
}
"""


def lacking():
    """Why images cannot be made here; None when they can."""
    if not os.path.exists(BUSYBOX):
        return f"there is no {BUSYBOX}: scripts/setup --node"
    return None


def arch():
    names = {"x86_64": "amd64", "aarch64": "arm64"}
    return names.get(os.uname().machine, os.uname().machine)


def compiled(source):
    """The bytes of a static program."""
    with tempfile.TemporaryDirectory() as folder:
        c, program = (os.path.join(folder, n) for n in ("nnp.c", "nnp"))
        with open(c, "w", encoding="utf-8") as f:
            f.write(source)
        subprocess.run(["cc", "-static", "-Os", "-s", "-o", program, c],
                       check=True)
        with open(program, "rb") as f:
            return f.read()


class Layer:
    """A file system of an image; times and owners are fixed."""

    def __init__(self):
        self.bytes = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w",
                                format=tarfile.USTAR_FORMAT)

    def _entry(self, name, mode):
        info = tarfile.TarInfo(name)
        info.mode = mode
        return info

    def folder(self, name, mode=0o755):
        info = self._entry(name, mode)
        info.type = tarfile.DIRTYPE
        self.tar.addfile(info)

    def file(self, name, data, mode=0o644):
        data = data.encode() if isinstance(data, str) else data
        info = self._entry(name, mode)
        info.size = len(data)
        self.tar.addfile(info, io.BytesIO(data))

    def link(self, name, to):
        """Another name of that file."""
        info = self._entry(name, 0o755)
        info.type, info.linkname = tarfile.LNKTYPE, to
        self.tar.addfile(info)

    def done(self):
        self.tar.close()
        return self.bytes.getvalue()


def base_layer():
    """busybox with all its applets, users, and places to write to."""
    layer = Layer()
    for name in ("bin", "etc", "home", "lib", "proc", "sbin", "sys", "usr",
                 "usr/bin", "usr/sbin", "var", "var/log", "var/run",
                 "var/www", "www", "root"):
        layer.folder(name)
    layer.folder("tmp", 0o1777)
    with open(BUSYBOX, "rb") as f:
        layer.file("bin/busybox", f.read(), 0o755)
    names = subprocess.run([BUSYBOX, "--list"], stdout=subprocess.PIPE,
                           text=True, check=True).stdout.split()
    for name in sorted(set(names) - {"busybox"}):
        layer.link("bin/" + name, "bin/busybox")
    layer.file("bin/pgrep", PGREP, 0o755)
    layer.file("bin/ipcs", IPCS, 0o755)
    layer.file("etc/passwd", PASSWD)
    layer.file("etc/group", GROUP)
    layer.file("www/index.html", "<h1>Welcome</h1>\n")
    return layer.done()


def one_file(name, data, mode):
    layer = Layer()
    layer.file(name, data, mode)
    return layer.done()


class Store:
    """Blobs and tags of a registry, in a folder."""

    def __init__(self, folder):
        self.folder, self.tags = folder, {}
        os.makedirs(os.path.join(folder, "blobs", "sha256"), exist_ok=True)

    def blob(self, data, kind):
        """Its descriptor."""
        digest = hashlib.sha256(data).hexdigest()
        with open(os.path.join(self.folder, "blobs", "sha256", digest),
                  "wb") as f:
            f.write(data)
        return {"mediaType": kind, "digest": "sha256:" + digest,
                "size": len(data)}

    def image(self, layers, names, **config):
        """An image of these layers under all these names; config: as in an
        image's: Cmd, User and so on."""
        config = {"architecture": arch(), "os": "linux",
                  "created": "1970-01-01T00:00:00Z",
                  "config": {"Env": ["PATH=/bin:/usr/bin:/sbin:/usr/sbin"],
                             **config},
                  "rootfs": {"type": "layers", "diff_ids": [
                      "sha256:" + hashlib.sha256(data).hexdigest()
                      for data in layers]}}
        manifest = {
            "schemaVersion": 2, "mediaType": MANIFEST,
            "config": self.blob(json.dumps(config).encode(), CONFIG),
            "layers": [self.blob(gzip.compress(data, 6, mtime=0), LAYER)
                       for data in layers]}
        made = self.blob(json.dumps(manifest).encode(), MANIFEST)
        for name in names:
            name = name.partition("/")[2]  # without its registry
            path, _, tag = name.partition(":")
            self.tags.setdefault(path, {})[tag or "latest"] = made["digest"]

    def close(self):
        path = os.path.join(self.folder, "tags.json")
        with open(path + ".new", "w", encoding="utf-8") as f:
            json.dump(self.tags, f, indent=1)
        os.rename(path + ".new", path)


# what critest makes containers of; the rest it pulls and removes
OF_CONTAINERS = (
    E2E + "busybox:1.29-2", E2E + "nginx:1.14-2", E2E + "httpd:2.4.39-4",
    E2E + "nonewprivs:1.3", CRI + "hostnet-nginx-" + arch(),
    CRI + "test-image-predefined-group", CRI + "test-image-tag:test")


def for_critest(store, base):
    """The images that critest's sources name."""
    nginx = one_file("usr/sbin/nginx", NGINX, 0o755)
    web = ["/usr/sbin/nginx", "master process"]
    store.image([base, nginx], [E2E + "nginx:1.14-2", E2E + "httpd:2.4.39-4"],
                Cmd=[*web, "80"])
    store.image([base, nginx], [CRI + "hostnet-nginx-" + arch()],
                Cmd=[*web, "12003"])
    store.image([base, one_file("nnp", compiled(NNP), 0o4755)],
                [E2E + "nonewprivs:1.3"], User="1000", Entrypoint=["/nnp"])
    store.image([base], [CRI + "test-image-predefined-group"], User="1000",
                Cmd=["sh"])
    for name, user in (("uid", "1002"), ("username", "www-data"),
                       ("uid-group", "1003:1003"),
                       ("username-group", "www-data:www-data")):
        store.image([base], [CRI + "test-image-user-" + name], User=user)
    for name in ("latest", "1:latest", "2:latest", "3:latest", "tag:test",
                 "tag:all"):
        name = "test-image-" + name
        store.image([base, one_file("name", name, 0o644)], [CRI + name],
                    Cmd=["sh"])
    store.image([base, one_file("name", "tags", 0o644)],
                [f"{CRI}test-image-tags:{n}" for n in (1, 2, 3)], Cmd=["sh"])


# what deploy/examples/job.yaml runs: ends when it is told to, and goes on
SOLVER = """#!/bin/sh
trap 'exit 1' TERM
until [ -e /done ]; do sleep 0.2; done
echo solved
"""
WORKER = "#!/bin/sh\ntrap 'exit 0' TERM\nwhile :; do sleep 1 & wait $!; done\n"


def for_examples(store, base):
    for name, program in (("solver", SOLVER), ("ucc-worker", WORKER)):
        store.image([base, one_file("bin/" + name, program, 0o755)],
                    [f"registry.example.org/{name}:1"], Cmd=["/bin/" + name])


def make(folder):
    """All of them."""
    store, base = Store(folder), base_layer()
    store.image([base], [
        BASE, "biga.test/private/busybox:full",
        E2E + "busybox:1.29-2"], Cmd=["sh"])
    store.image([base, one_file("bin/pause", "#!/bin/sh\nexec sleep 2147483647"
                                "\n", 0o755)], [PAUSE], Cmd=["/bin/pause"])
    for_critest(store, base)
    for_examples(store, base)
    store.close()
    return folder


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    make(sys.argv[1])
