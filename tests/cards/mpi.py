"""An image with this machine's Open MPI and busybox, for pods in which mpirun
starts ranks, and what calls mpirun.
"""
import glob
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile

import fleet
from cards import add_file, machine_arch
from proc import HANGS

IMAGE = "openmpi:test"
BUSYBOX = "/bin/busybox"
APPLETS = ("sh", "base64", "cat", "echo", "env", "false", "grep", "head",
           "kill", "ls", "mkfifo", "mktemp", "ps", "rm", "sed", "seq",
           "sleep", "sort", "true", "wc")


def lacking():
    """Why there is no Open MPI here; None when there is one."""
    if not shutil.which("mpirun") or not shutil.which("orted"):
        return "there is no mpirun: apt-get install openmpi-bin"
    said = subprocess.run(["mpirun", "--version"], stdout=subprocess.PIPE,
                          text=True, check=False).stdout
    return None if "Open MPI" in said else "mpirun is not Open MPI's"


def libraries(program):
    """Paths of all that the loader brings to a program or library."""
    said = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True,
                          check=False).stdout
    words = [word for line in said.splitlines() for word in line.split()]
    return {word for word in words if word.startswith("/")}


def files(more):
    """{path there: path here}, with more of them"""
    found = {path for pattern in (
        "/usr/lib/*/openmpi/lib/openmpi3/*.so", "/usr/lib/*/pmix2/lib/pmix/*",
        "/usr/share/openmpi/*", "/etc/openmpi/*", "/usr/bin/orted")
        for path in glob.glob(pattern) if os.path.isfile(path)}
    for path in list(found):
        if path.endswith(".so") or path == "/usr/bin/orted":
            found |= libraries(path)
    return {"/bin/busybox": BUSYBOX, **{path: path for path in found},
            **more}


def layer(more):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        def entry(path, **more):
            info = tarfile.TarInfo(path.lstrip("/"))
            info.mode = 0o755
            for key, value in more.items():
                setattr(info, key, value)
            return info
        for folder in ("tmp", "root", "proc", "dev", "sys"):
            tar.addfile(entry(folder, type=tarfile.DIRTYPE, mode=0o1777))
        for there, here in sorted(files(more).items()):
            with open(here, "rb") as f:
                data = f.read()
            tar.addfile(entry(there, size=len(data)), io.BytesIO(data))
        for name in APPLETS:
            tar.addfile(entry("bin/" + name, type=tarfile.SYMTYPE,
                              linkname="busybox"))
        passwd = b"root:x:0:0:root:/root:/bin/sh\n"
        tar.addfile(entry("etc/passwd", size=len(passwd)),
                    io.BytesIO(passwd))
    return made.getvalue()


def image(path, more=None):
    """Write it, as `ctr images import` takes it.  more: {path there: path
    here} of other programs."""
    data = layer(more or {})
    config = json.dumps({
        "architecture": machine_arch(), "os": "linux",
        "config": {"Env": ["PATH=/usr/bin:/bin", "HOME=/root"]},
        "rootfs": {"type": "layers", "diff_ids": [
            "sha256:" + hashlib.sha256(data).hexdigest()]}}).encode()
    name = hashlib.sha256(config).hexdigest() + ".json"
    with tarfile.open(path, "w") as archive:
        add_file(archive, "manifest.json", json.dumps([{
            "Config": name, "RepoTags": ["docker.io/library/" + IMAGE],
            "Layers": ["layer.tar"]}]).encode())
        add_file(archive, name, config)
        add_file(archive, "layer.tar", data)
    return path


class Shell:
    """What is called here, with the environment of Biga and of Open MPI, for
    a job."""

    def __init__(self, node, job):
        self.node = node
        self.env = {**os.environ, **node.env(), "BIGA_JOB": job,
                    "OMPI_ALLOW_RUN_AS_ROOT": "1",
                    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                    # as schema/maps.md has it, and tests/e2e/maps.sh
                    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
                    "OMPI_MCA_routed": "direct",
                    "OMPI_MCA_rtc_hwloc_vmhole": "none",
                    "OMPI_MCA_plm_rsh_agent": fleet.program("biga")
                    + " rsh : false",
                    "TMPDIR": node.rack.folder}

    def start(self, *argv, **more):
        more = {"stdin": subprocess.DEVNULL, **more}
        return subprocess.Popen(argv, env=self.env, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **more)

    def run(self, *argv, text=None):
        """(status, what it wrote, what it complained)"""
        begun = self.start(*argv, **(
            {} if text is None else {"stdin": subprocess.PIPE}))
        try:
            out, err = begun.communicate(text, HANGS)
        finally:
            begun.kill()
        return begun.returncode, out, err.decode()

    def rsh(self, *argv, text=None):
        return self.run(fleet.program("biga"), "rsh", *argv, text=text)
