"""A network that a test has to itself."""
import ctypes
import errno
import fcntl
import os
import socket
import struct

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = (
    0x00020000, 0x10000000, 0x40000000)  # linux/sched.h
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1  # linux/sockios.h, if.h


def call(name, *args):
    """A function of libc that Python has from 3.12 on alone."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*args) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def unshare(flags):
    """As os.unshare()."""
    call("unshare", flags)


def enter(path):
    """The network namespace that has this handle."""
    with open(path, "rb") as handle:
        call("setns", handle.fileno(), CLONE_NEWNET)


def own_user_and_network():
    """What somebody who is not root may have: root of a namespace, as whom
    he does what he may do anyway."""
    ids = {"uid": os.geteuid(), "gid": os.getegid()}
    unshare(CLONE_NEWUSER | CLONE_NEWNET)
    with open("/proc/self/setgroups", "w", encoding="ascii") as file:
        file.write("deny")
    for kind, number in ids.items():
        with open(f"/proc/self/{kind}_map", "w", encoding="ascii") as file:
            file.write(f"0 {number} 1")


def own_network():
    """No address, port or change of interfaces of this process and of what it
    starts is in another's way from now on.  Before any thread begins.
    OSError: there can be none here."""
    try:
        unshare(CLONE_NEWNET)
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
        own_user_and_network()
    loopback_up()


def loopback_up():
    """It is down in a network namespace that is new."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        name = b"lo".ljust(16, b"\0")
        was = fcntl.ioctl(sock, SIOCGIFFLAGS, name + bytes(24))
        flags, = struct.unpack_from("H", was, 16)
        fcntl.ioctl(sock, SIOCSIFFLAGS,
                    name + struct.pack("H22x", flags | IFF_UP))
