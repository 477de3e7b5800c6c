"""A /dev of a place's own, with nodes that stand for its devices, and a /sys of
a host that was never built.
"""
import os

PLAIN = {"null": "1 3", "zero": "1 5", "full": "1 7", "random": "1 8",
         "urandom": "1 9", "tty": "5 0", "ptmx": "5 2"}


def own_dev(place, nodes, more=()):
    """Commands that give the place a /dev of its own; nodes: {name:
    "MAJOR MINOR"}, more: commands there before it is in place."""
    top = place.path("dev")
    folders = sorted({os.path.dirname(name) for name in nodes} - {""})
    return [f"mkdir -p {top}", f"mount -t tmpfs -o mode=755 none {top}",
            f"mkdir -p {top}/pts {top}/shm",
            *(f"mkdir -p {top}/{folder}" for folder in folders),
            *(f"mknod -m 666 {top}/{name} c {number}"
              for name, number in {**PLAIN, **nodes}.items()),
            *(f"cd {top} && {line} && cd /" for line in more),
            f"mount --rbind /dev/pts {top}/pts",
            f"mount --rbind /dev/shm {top}/shm", f"mount --rbind {top} /dev"]


class Sys:
    """FOLDER/sys, and what else hwloc reads: two CPUs and PCI functions."""

    def __init__(self, folder):
        self.folder = folder
        cpu, node = "sys/devices/system/cpu/", "sys/devices/system/node/"
        for name in ("online", "possible", "present"):
            self.write(cpu + name, "0-1\n")
        for n in range(2):
            for name, text in {"physical_package_id": 0, "core_id": n,
                               "package_cpus": 3, "core_siblings": 3,
                               "core_cpus": 1 << n,
                               "thread_siblings": 1 << n}.items():
                self.write(f"{cpu}cpu{n}/topology/{name}", f"{text}\n")
        self.write(node + "online", "0\n")
        self.write(node + "node0/cpumap", "3\n")
        self.write(node + "node0/distance", "10\n")
        self.write(node + "node0/meminfo", "Node 0 MemTotal: 1048576 kB\n")
        self.write("proc/meminfo", "MemTotal: 1048576 kB\n")

    def write(self, path, text):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(text if isinstance(text, bytes) else text.encode())

    def link(self, path, target):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)

    def function(self, pci, ids, kind, physfn=None, number=0):
        """A PCI function; ids: vendor and device, kind: its class."""
        vendor, device = ids
        at = f"sys/devices/pci0000:00/{pci}/"
        config = bytearray(64)
        config[0:2] = vendor.to_bytes(2, "little")
        config[2:4] = device.to_bytes(2, "little")
        config[10:12] = kind.to_bytes(2, "little")
        self.write(at + "config", bytes(config))
        for name, text in {"vendor": f"{vendor:#06x}",
                           "device": f"{device:#06x}",
                           "class": f"{kind << 8:#08x}", "revision": "0x00",
                           "subsystem_vendor": "0x0000",
                           "subsystem_device": "0x0000",
                           "local_cpus": "3", "numa_node": "0"}.items():
            self.write(at + name, text + "\n")
        self.link(f"sys/bus/pci/devices/{pci}",
                  f"../../../devices/pci0000:00/{pci}")
        if physfn:
            self.link(at + "physfn", f"../{physfn}")
            self.link(f"sys/devices/pci0000:00/{physfn}/virtfn{number}",
                      f"../{pci}")

    def rdma(self, pci, name, verbs, number):
        """An RDMA device of a function; number: "MAJOR MINOR"."""
        at = f"sys/devices/pci0000:00/{pci}/"
        self.write(f"{at}infiniband/{name}/node_type", "1: CA\n")
        self.link(f"{at}infiniband/{name}/device", "../..")
        self.write(f"{at}infiniband_verbs/{verbs}/dev",
                   number.replace(" ", ":") + "\n")
        self.link(f"sys/class/infiniband/{name}",
                  f"../../devices/pci0000:00/{pci}/infiniband/{name}")

    def render(self, pci, name, number):
        self.write(f"sys/devices/pci0000:00/{pci}/drm/{name}/dev",
                   number.replace(" ", ":") + "\n")
