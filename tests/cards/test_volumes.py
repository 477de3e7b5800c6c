#!/usr/bin/env python3
"""Volumes of a kubelet on a card: a real containerd, biga-card in it, and the
router's volume_sync on this side (volumes.c).  The kubelet's folders are made
here as a kubelet makes them.
"""
import os
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cards  # noqa: E402
from check import Checks  # noqa: E402
from network import CLONE_NEWNS, unshare  # noqa: E402
from proc import wait_for  # noqa: E402

WORD = "nobody-may-see-this-0123456789"
UPDATES = 100


def write(path, text, mode=0o644):
    """In the same inode, as a kubelet writes single files."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


class Pod:
    """The kubelet's folder of a pod."""
    n = 0

    def __init__(self, root, uid):
        self.uid, self.top = uid, os.path.join(root, "pods", uid)
        write(self.path("etc-hosts"), "127.0.0.1 localhost\n")
        write(self.path("containers/main/1a2b"), "", 0o666)

    def path(self, below):
        return os.path.join(self.top, below)

    def volume(self, plugin, name):
        return self.path(f"volumes/kubernetes.io~{plugin}/{name}")

    def update(self, plugin, name, mode=0o644, **files):
        """As AtomicWriter does it; the volume's folder."""
        top = self.volume(plugin, name)
        link, new = os.path.join(top, "..data"), f"..2026_{Pod.n:09}"
        Pod.n += 1
        before = os.readlink(link) if os.path.lexists(link) else None
        for key, text in files.items():
            write(os.path.join(top, new, key), text, mode)
        os.symlink(new, link + "_tmp")
        os.rename(link + "_tmp", link)
        for key in files:
            if not os.path.lexists(os.path.join(top, key)):
                os.symlink(f"..data/{key}", os.path.join(top, key))
        for key in os.listdir(top):
            if not key.startswith("..") and key not in files:
                os.unlink(os.path.join(top, key))
        if before:
            shutil.rmtree(os.path.join(top, before))
        return top

    def empty(self, name, size=None):
        """An emptyDir; size: in memory, of so many bytes."""
        top = self.volume("empty-dir", name)
        os.makedirs(top)
        if size:
            cards.run("mount", "-t", "tmpfs", "-o", f"size={size}", "none", top)
        os.chmod(top, 0o777)
        return top

    def end(self):
        for name in os.listdir(os.path.dirname(self.volume("empty-dir", ""))) \
                if os.path.isdir(self.volume("empty-dir", "")) else ():
            subprocess.run(["umount", self.volume("empty-dir", name)],
                           stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.top)


class Router:
    """volume_sync of one card, by lines."""

    def __init__(self, card, helper, root):
        self.process = subprocess.Popen(
            [os.path.join(cards.BUILD, "judges", "volumes"), card.endpoint,
             card.rack.pki("ca.crt"), card.rack.pki(f"{cards.NODE}.crt"),
             card.rack.pki(f"{cards.NODE}.key"), helper, root],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        assert said, f"volumes ended: {self.process.poll()}"
        return said.rstrip("\n")

    def do(self, *words):
        said = self.ask(*words)
        assert said.split(" ")[0] == "ok", f"{words}: {said}"
        return said.split(" ")[1:]

    def refused(self, *words):
        said = self.ask(*words)
        assert said.startswith("error "), f"{words}: {said}"
        return said[6:]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.stdin.close()
        assert self.process.wait() == 0, "volumes did not end well"


def image(card, name):
    return next(i for i in card.local().images() if f"/{name}:" in i)


class Rig:
    """A card with its helper, and the router for it."""

    def __init__(self, card, root):
        self.card, self.root = card, root
        self.cri = card.local()
        # as a system with systemd has all of it; containerd finds the /dev/shm
        # that is below the card's own first
        for path in ("/var/lib", "/dev"):
            cards.run(*card.enter(), "mount", "--make-rshared", path)
        self.helper = self.run_helper("helper", True)
        self.router = Router(card, self.helper, root)
        self.n = 0

    def run_helper(self, name, may_mount):
        sandbox = self.cri.run_pod(name)
        return self.cri.run_container(
            sandbox, name, image(self.card, "biga-card"),
            ("wait",),
            (("/var/lib/biga", "/var/lib/biga"), ("/memory", "/dev/shm/biga")),
            may_mount)

    def run(self, pod, mounts):
        """A container with these mounts of the home; (its sandbox, its id)."""
        here = list(mounts.values())
        there = self.router.do("prepare", pod.uid, *here)
        self.n += 1
        sandbox = self.cri.run_pod(f"pod{self.n}")
        container = self.cri.run_container(
            sandbox, "main", image(self.card, "busybox"),
            ("sleep", "100000"), list(zip(mounts, there)))
        return sandbox, container

    def sh(self, container, script):
        status, out, err = self.cri.exec(container, "sh", "-c", script)
        assert status == 0, (status, err)
        return out.decode()

    def there(self, path):
        """A path of the card, from here."""
        return os.path.join("/proc", str(self.card.init.pid), "root",
                            path.lstrip("/"))


def contains(top, word):
    """Files below with that word in them."""
    found = []
    for at, _, names in os.walk(top):
        for name in names:
            try:
                if os.path.islink(os.path.join(at, name)):
                    continue
                with open(os.path.join(at, name), "rb") as f:
                    if word.encode() in f.read():
                        found.append(os.path.join(at, name))
            except OSError:
                pass
    return found


def test_updates(t, rig):
    pod = Pod(rig.root, "updates")
    top = pod.update("configmap", "c", a="0", b="0")
    _, main = rig.run(pod, {"/c": top})
    script = ("while [ \"$(cat /c/a)\" != %d ]; do "
              "( cd -P /c/..data && a=$(cat a) && b=$(cat b) && "
              "[ \"$a\" != \"$b\" ] && echo torn $a $b ); n=1; done "
              "2>/dev/null; cat /c/a /c/b" % UPDATES)
    with t.check(f"a ConfigMap is replaced {UPDATES} times, each time whole"):
        reader = subprocess.Popen(
            [*rig.card.enter(), "ctr", "-n", "k8s.io", "tasks", "exec",
             "--exec-id", "reader", main, "sh", "-c", script],
            stdout=subprocess.PIPE, text=True)
        for n in range(1, UPDATES + 1):
            pod.update("configmap", "c", a=str(n), b=str(n))
            if n % 10 == 0:  # these are seen, those between may be passed over
                wait_for(f"update {n} is there", lambda n=n: rig.sh(
                    main, "cat /c/a").strip() == str(n))
        assert reader.communicate()[0] == f"{UPDATES}{UPDATES}"
    with t.check("keys come and go"):
        began = time.monotonic()
        pod.update("configmap", "c", b="new", d="more")
        wait_for("it has the key", lambda: rig.sh(
            main, "cat /c/b /c/d; ls /c") == "newmoreb\nd\n")
        t.note(f"seen {time.monotonic() - began:.2f} s after the update")

        def left():
            found = os.listdir(rig.there(
                f"/var/lib/biga/pods/{pod.uid}/volumes/"
                "kubernetes.io~configmap/c"))
            assert len(found) == 4, found
            return True
        wait_for("what it was before is gone", left)
    return pod


def test_secrets(t, rig):
    pod = Pod(rig.root, "secrets")
    secret = pod.update("secret", "s", 0o400, key=WORD + "-s")
    token = pod.update("projected", "kube-api-access", 0o600,
                       token=WORD + "-0")
    sandbox, main = rig.run(pod, {"/s": secret, "/t": token})
    with t.check("a token that rotates is followed"):
        for n in range(1, 6):
            pod.update("projected", "kube-api-access", 0o600,
                       token=f"{WORD}-{n}")
            wait_for(f"token {n} is there", lambda n=n: rig.sh(
                main, "cat /t/token") == f"{WORD}-{n}")
        assert rig.sh(main, "stat -c %a /s/key /t/token -L") == "400\n600\n"
    with t.check("secrets are in memory alone"):
        assert rig.sh(main, "cat /s/key") == WORD + "-s"
        assert not contains(rig.card.store(), WORD)

        def alone():
            found = contains(rig.card.memory(), WORD)
            assert len(found) == 2, found
            return True
        # a new token is seen before the one that it replaces is removed
        wait_for("each is there once", alone)
        assert os.stat(rig.card.memory(pod.uid)).st_mode & 0o777 == 0o700
    with t.check("a killed router leaves nothing, and the next one goes on"):
        rig.router.kill()
        rig.router = Router(rig.card, rig.helper, rig.root)
        pod.update("projected", "kube-api-access", 0o600, token=WORD + "-x")
        rig.router.do("adopt", pod.uid, secret, token)
        wait_for("the token is there", lambda: rig.sh(
            main, "cat /t/token") == WORD + "-x")
    with t.check("they are gone with their pod"):
        rig.cri.remove_pod(sandbox[0])
        rig.router.do("forget", pod.uid)
        pod.end()
        rig.router.do("settle")
        assert not os.path.exists(rig.card.memory(pod.uid))
        assert not contains(rig.card.memory(), WORD)
        assert pod.uid not in os.listdir(rig.there("/var/lib/biga/pods"))


def test_files(t, rig):
    pod = Pod(rig.root, "files")
    hosts, log = pod.path("etc-hosts"), pod.path("containers/main/1a2b")
    top = pod.update("configmap", "c", key="of the configMap")
    part = pod.path("volume-subpaths/c/main/0")
    shutil.copy(os.path.join(top, "key"), write(part, "") or part)
    _, main = rig.run(pod, {"/etc/hosts": hosts, "/dev/termination-log": log,
                            "/key": part})
    with t.check("a single file changes in its inode"):
        inode = rig.sh(main, "stat -c %i /etc/hosts")
        write(hosts, "10.1.2.3 another\n")
        wait_for("it has changed", lambda: rig.sh(
            main, "cat /etc/hosts") == "10.1.2.3 another\n")
        assert rig.sh(main, "stat -c %i /etc/hosts") == inode
        write(hosts, "x\n")
        wait_for("it is short", lambda: rig.sh(
            main, "cat /etc/hosts") == "x\n")
    with t.check("a subPath is a file"):
        assert rig.sh(main, "cat /key") == "of the configMap"
    with t.check("the termination message comes back"):
        rig.sh(main, "printf 'it is over' >/dev/termination-log")
        rig.router.do("collect", pod.uid, log)
        with open(log, encoding="utf-8") as f:
            assert f.read() == "it is over"
        rig.sh(main, "yes | head -c 1000000 >/dev/termination-log")
        rig.router.do("collect", pod.uid, log)
        assert os.path.getsize(log) == 4096
    with t.check("paths of the card are told as those of the kubelet"):
        there = rig.router.do("prepare", pod.uid, hosts)[0]
        assert rig.router.ask("home", pod.uid, there) == hosts


def test_empty(t, rig):
    pod = Pod(rig.root, "empty")
    disk, memory = pod.empty("d"), pod.empty("m", 1 << 20)
    sandbox, main = rig.run(pod, {"/d": disk, "/m": memory})
    with t.check("an emptyDir is the card's, and stays while its pod does"):
        rig.sh(main, "echo mine >/d/x; echo mine >/m/x; chmod 711 /d")
        assert os.listdir(disk) == []
        _, other = rig.run(pod, {"/d": disk, "/m": memory})
        assert rig.sh(other, "cat /d/x /m/x; stat -c %a /d") == \
            "mine\nmine\n711\n"
    with t.check("one in memory is a tmpfs with its limit"):
        said = rig.sh(main, "df -k /m | tail -1; "
                      "head -c 2000000 /dev/zero >/m/big; stat -c %s /m/big")
        assert re.match(r"tmpfs\s+1024\s", said), said
        assert int(said.split()[-1]) < 1 << 20, said
    with t.check("both go with the pod"):
        mounts = rig.there("/proc/self/mountinfo")
        rig.cri.remove_pod(sandbox[0])
        for c in rig.cri.sandboxes():
            if c["uid"] == f"uid-pod{rig.n}":
                rig.cri.remove_pod(c["id"])
        rig.router.do("forget", pod.uid)
        pod.end()
        rig.router.do("settle")
        assert not os.path.exists(rig.card.memory(pod.uid))
        del mounts
        with open(f"/proc/{rig.card.init.pid}/mountinfo",
                  encoding="utf-8") as f:
            assert pod.uid not in f.read()


def test_refused(t, rig):
    pod, other = Pod(rig.root, "refused"), Pod(rig.root, "other")
    theirs = other.update("secret", "s", key=WORD)
    mine = pod.update("secret", "s", key="mine")
    with t.check("what is another's, or nobody's, is refused by name"):
        for path, word in (
                (theirs, "another pod"), ("/etc", "hostPath"),
                (pod.path("../other/etc-hosts"), ".."),
                ("/opt/../etc", ".."), ("/opt/./x", "."),
                (os.path.join(rig.root, "pki"), "kubelet's own"),
                (pod.volume("csi", "v"), "kubernetes.io~csi")):
            said = rig.router.refused("prepare", pod.uid, path)
            assert word in said, (path, said)
        assert rig.router.do("prepare", pod.uid, "/opt/x") == ["/opt/x"]
    with t.check("a subPath of an emptyDir is refused"):
        pod.empty("e")
        os.makedirs(pod.path("volume-subpaths/e/main/0"))
        assert "emptyDir" in rig.router.refused(
            "prepare", pod.uid, pod.path("volume-subpaths/e/main/0"))
    with t.check("links that lead out are refused, here"):
        evil = os.path.join(mine, "evil")
        for target in ("/etc/shadow", "../../../../other/etc-hosts"):
            os.symlink(target, evil)
            said = rig.router.refused("prepare", pod.uid, mine)
            assert "evil" in said, said
            os.unlink(evil)
        os.rename(mine, mine + "-away")
        os.symlink("/etc", mine)
        rig.router.refused("prepare", pod.uid, mine)
        os.unlink(mine)
        os.rename(mine + "-away", mine)
    with t.check("and there"):
        there = rig.router.do("prepare", pod.uid, mine)[0]
        shutil.rmtree(rig.there(there))
        os.symlink("/var/lib/out", rig.there(there))
        os.makedirs(rig.there("/var/lib/out"))
        rig.router.do("prepare", pod.uid, mine)
        assert os.listdir(rig.there("/var/lib/out")) == []
        above = os.path.dirname(rig.there(there))
        shutil.rmtree(above)
        os.symlink("/var/lib/out", above)
        rig.router.refused("prepare", pod.uid, mine)
        assert os.listdir(rig.there("/var/lib/out")) == []
        os.unlink(above)
    with t.check("a volume that no remote can have is refused before"):
        rig.router.do("check", pod.uid)
        os.makedirs(pod.volume("csi", "pvc-1/mount"))
        said = rig.router.refused("check", pod.uid)
        assert "pvc-1" in said and "kubernetes.io/csi" in said, said


def test_without_rights(t, rig):
    """A helper that may not mount, as it was before."""
    pod = Pod(rig.root, "plain")
    rig.router.stop()
    plain = rig.run_helper("plain-helper", False)
    rig.router = Router(rig.card, plain, rig.root)
    memory = pod.empty("m", 1 << 20)
    with t.check("where nobody may mount, Memory has no limit"):
        _, main = rig.run(pod, {"/m": memory})
        rig.sh(main, "echo x >/m/x")
        assert rig.sh(main, "stat -f -c %T /m") == "tmpfs\n"
        assert os.listdir(rig.there(rig.router.do(
            "prepare", pod.uid, memory)[0])) == ["x"]
    pod.end()


def main():
    cards.require()
    unshare(CLONE_NEWNS)
    cards.run("mount", "--make-rprivate", "/")
    rack = cards.Rack(1, host=False)
    t = Checks(on_failure=rack.tail)
    with rack:
        rack.start()
        rig = Rig(rack.cards[0], os.path.join(rack.folder, "kubelet"))
        try:
            test_updates(t, rig)
            test_secrets(t, rig)
            test_files(t, rig)
            test_empty(t, rig)
            test_refused(t, rig)
            test_without_rights(t, rig)
            rig.router.stop()
        finally:
            rig.router.kill()
    t.finish()


main()
