"""Every host whose topology we can print as ResourceSlices."""
import copy
import glob
import json
import os
import subprocess
import tarfile

from cluster import ROOT
from fleet import program

BOOT = "00000000-0000-4000-8000-000000000001"


def data_dir():
    """Where topologies are that this repository does not carry, or None."""
    found = os.environ.get("BIGA_DATA") or os.path.join(
        os.path.dirname(ROOT), "shared", "data")
    return found if os.path.isdir(found) else None


def slices(node, *how):
    """The ResourceSlices that biga-advertiser would publish."""
    got = subprocess.run(
        [program("biga-advertiser"), "--node", node, "--boot-id", BOOT,
         "--print", "slices", *how], capture_output=True, text=True,
        check=False)
    if got.returncode:
        raise RuntimeError(f"biga-advertiser {' '.join(how)}: {got.stderr}")
    return json.loads(got.stdout)["items"]


def timeless(spec):
    """Without the times that the API server gives taints."""
    spec = copy.deepcopy(spec)
    for device in spec.get("devices", ()):
        for taint in device.get("taints", ()):
            assert taint.pop("timeAdded"), taint
    return spec


def shipped():
    """{name: arguments} of the hosts that are compiled in."""
    files = glob.glob(os.path.join(ROOT, "advertiser", "hosts", "*.host"))
    names = sorted(os.path.basename(f)[:-5] for f in files)
    return {name: ["--hostfile", name] for name in names}


def crowded(file, n_nics):
    """A host file with this many NICs, more than one slice can list."""
    lines = ["package 0", "  numa 0 cpus=64 memory=256GiB"]
    for i in range(n_nics):
        bus = 16 + i // 16
        if i % 16 == 0:
            lines.append(f"    root 0000:{bus:02x}")
        lines.append(f"      nic 0000:{bus:02x}:{i % 16:02x}.0 id=15b3:1021 "
                     f"interface=eth{i}")
    lines += ["package 1", "  numa 1 cpus=64 memory=256GiB",
              "    root 0000:80", "      bridge 0000:80:01.0",
              "        card 0000:81:00.0 id=15b3:a2dc functions=8 cores=16 "
              "memory=32GiB serial={node}-card0"]
    with open(file, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return ["--hostfile", file]


FOUR_NUMA_GPUS = 16  # and as many cards


def four_numa(file):
    """A host file of four NUMA nodes in two packages; each has two PCIe
    roots, and below each of these is one switch with two GPUs and two
    cards."""
    lines = []
    for numa in range(4):
        if numa % 2 == 0:
            lines.append(f"package {numa // 2}")
        lines.append(f"  numa {numa} cpus=64 memory=256GiB")
        for root in (2 * numa, 2 * numa + 1):
            bus = 16 * (root + 1)
            lines += [f"    root 0000:{bus:02x}",
                      f"      bridge 0000:{bus:02x}:01.0",
                      f"        bridge 0000:{bus + 1:02x}:00.0"]
            for port in range(4):
                at = f"0000:{bus + 3 + port:02x}:00.0"
                number = 2 * root + port % 2
                lines += [
                    f"          bridge 0000:{bus + 2:02x}:{port:02x}.0",
                    f"            gpu {at} id=10de:2330" if port < 2 else
                    f"            card {at} id=15b3:a2dc cores=16 "
                    f"memory=32GiB serial={{node}}-{number}"]
    lines += [f"distance {a} {b} {12 if a // 2 == b // 2 else 32}"
              for a in range(4) for b in range(a + 1, 4)]
    with open(file, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return file


def measured(folder):
    """{name: arguments} of real machines' files; trees go below folder."""
    data = data_dir()
    found = {}
    for file in sorted(glob.glob(os.path.join(data, "hosts*", "*.xml"))):
        found[os.path.basename(file)[:-4]] = ["--topology", file]
    for file in sorted(glob.glob(os.path.join(data, "sysfs", "*.tar.bz2"))):
        name = os.path.basename(file)[:-8]
        with tarfile.open(file) as tar:
            tar.extractall(os.path.join(folder, name))
        inside = os.path.join(folder, name, name)
        found[name] = ["--fsroot", inside if os.path.isdir(inside)
                       else os.path.join(folder, name)]
    return found
