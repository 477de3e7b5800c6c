"""Volumes of a pod on a card while the kubelet changes them, and when the pod
is gone."""
import base64
import json
import os
import statistics
import time

from api import path
from mounts import TOKEN, config_map, mounted, secret
from pods import WAIT, sh
from proc import wait_for

CHANGES, BURST = 100, 10
# Both keys belong to one revision, whole, whenever somebody looks: in the
# folder that ..data is at that time.
WATCH = """
while :; do
    cd /cm/..data && a=$(md5sum <a) b=$(md5sum <b) n=$(head -n 1 a)
    t=$(cat /token/token)
    case $t in *.*.*) ;; *) echo "no token: $t";; esac
    [ -z "$a" ] || [ -z "$b" ] || [ "$a" = "$b" ] || [ ! -e a ] ||
        [ ! -e b ] || echo torn
    [ "$n" = "$had" ] || [ -z "$n" ] || echo "n $n"
    had=$n
done 2>/dev/null"""


def revision(n):
    return f"{n}\n" * 5000


class Both:
    """A volume of a pod in the kubelet's folder and on the card."""

    def __init__(self, r, p, pod, volume, memory):
        found = r.pod(pod)
        uid, card = found["metadata"]["uid"], p.card_of(found)
        self.home = os.path.join(
            "/proc", str(r.rack.host.init.pid), "root/var/lib/kubelet/pods",
            uid, volume)
        self.card = card.memory(uid, volume) if memory else \
            os.path.join(card.store(), "pods", uid, volume)

    def late(self, file, true):
        """Until the kubelet's file is so, and then the card's; how many
        seconds are between."""
        for folder in (self.home, self.card):
            began = time.monotonic()
            wait_for(f"{folder}/{file}", lambda f=folder: true(
                read(os.path.join(f, file))), every=0.005)
        return time.monotonic() - began


def read(name):
    with open(name, encoding="utf-8") as f:
        return f.read()


def change(r, name, n):
    """The ConfigMap, and the pod: the kubelet looks at its volumes then."""
    r.c.api.call("PATCH", path("configmaps", "default", "changes"),
                 {"data": dict.fromkeys("ab", revision(n))},
                 "application/merge-patch+json")
    r.c.api.call("PATCH", path("pods", "default", name),
                 {"metadata": {"annotations": {"n": str(n)}}},
                 "application/merge-patch+json")


def test_changes(t, r, p):
    r.c.apply([config_map("changes", **dict.fromkeys("ab", revision(0)))])
    name = p.up("changes", sh(WATCH, volumeMounts=mounted(
        cm="/cm", token="/token")), volumes=[
            {"name": "cm", "configMap": {"name": "changes"}}, TOKEN])
    both = Both(r, p, name, "volumes/kubernetes.io~configmap/cm", False)
    with t.check(f"a ConfigMap changes {CHANGES} times: its last state comes "
                 "each time"):
        late = []
        for n in range(1, CHANGES + 1):
            change(r, name, n)
            if n % BURST == 0:
                late.append(both.late("a", lambda s, n=n: s == revision(n)))
        t.note(f"late behind the kubelet: median "
               f"{statistics.median(late):.2f} s, worst {max(late):.2f} s")
    return name


def claims(text):
    return json.loads(base64.urlsafe_b64decode(text.split(".")[1] + "==="))


def test_token(t, r, p, name):
    both = Both(r, p, name, "volumes/kubernetes.io~projected/token", True)
    with t.check("a token that rotates: a kubelet that is new asks for a new "
                 "one"):
        before = read(os.path.join(both.card, "token"))
        r.kubelet.stop()
        r.start_kubelet()
        late = both.late("token", lambda s: s != before)
        after = p.execute(name, "cat", "/token/token")
        assert claims(after)["jti"] != claims(before)["jti"]
        assert claims(after)["iat"] >= claims(before)["iat"]
        assert after == read(os.path.join(both.home, "token"))
        t.note(f"late behind the kubelet: {late:.2f} s")
        r.wait_ready()
    with t.check("whoever looked in the pod saw whole revisions, one behind "
                 "the other, and a token at any time"):
        change(r, name, CHANGES + 1)
        seen = wait_for("it has seen the last", lambda: ends(
            p.k("logs", name), f"n {CHANGES + 1}\n")).splitlines()
        numbers = [int(line.split()[1]) for line in seen
                   if line.startswith("n ")]
        assert len(numbers) == len(seen), seen
        assert numbers == sorted(set(numbers)), numbers
        t.note(f"it saw {len(numbers)} revisions of {CHANGES + 2}")
        p.gone(name, "--grace-period=1")


def ends(text, end):
    return text if text.endswith(end) else ""


def test_part(t, r, p):
    with t.check("what a container puts in the place of its subPath leads it "
                 "nowhere"):
        name = p.up("part", sh(
            "while [ ! -e /part/end ]; do sleep 0.1; done; "
            "rm -r /whole/a; ln -s / /whole/a; exit 1", volumeMounts=[
                {"name": "d", "mountPath": "/whole"},
                {"name": "d", "mountPath": "/part", "subPath": "a/b"}]),
            volumes=[{"name": "d", "emptyDir": {}}])
        card = p.card_of(r.pod(name))

        def refused():
            # this may end with the container that it ends
            p.k("exec", name, "--", "touch", "/part/end", check=False)
            return "at 'a'" in p.k(
                "get", "events", "-o", "jsonpath={.items[*].message}",
                "--field-selector", f"involvedObject.name={name}")
        wait_for("it is refused", refused)
        assert not os.path.exists(card.seen("b"))
        p.gone(name)


# --- what is left -------------------------------------------------------------
def places(card):
    """All that is a card's own: its disk, its memory, its runtime's folder,
    what it logs."""
    return [card.seen(folder) for folder in (
        "var/lib", "dev/shm", "run/containerd")] + [
            os.path.join(card.rack.folder, "log", card.name + ".log")]


def having(tops, word):
    """Files there that have it."""
    files = [os.path.join(at, n) for top in tops
             for at, _, names in os.walk(top) for n in names]
    files += [top for top in tops if os.path.isfile(top)]
    return [name for name in files if has(name, word.encode())]


def named(card, uid):
    """Files and folders of a pod there."""
    return [n for top in (card.store(), card.memory())
            for at, folders, files in os.walk(top)
            for n in folders + files if uid in os.path.join(at, n)]


def has(name, word):
    try:
        if not os.path.isfile(name) or os.path.islink(name):
            return False
        with open(name, "rb") as f:
            rest = b""
            while data := f.read(1 << 20):
                if word in rest + data:
                    return True
                rest = data[-len(word):]
    except OSError:
        pass  # it has gone
    return False


def test_secret(t, r, p):
    word = os.urandom(16).hex()
    r.c.apply([secret("gone", s=word)])
    name = p.up("secret", sh(
        WAIT, volumeMounts=[
            *mounted(sec="/sec", both="/both", memory="/memory"),
            {"name": "memory", "mountPath": "/part", "subPath": "a"},
            {"name": "sec", "mountPath": "/one", "subPath": "s"}]),
        volumes=[
            {"name": "sec", "secret": {"secretName": "gone"}},
            {"name": "both", "projected": {"sources": [
                {"secret": {"name": "gone"}}]}},
            {"name": "memory", "emptyDir": {"medium": "Memory",
                                            "sizeLimit": "2Mi"}}])
    found = r.pod(name)
    card, uid = p.card_of(found), found["metadata"]["uid"]
    with t.check("a Secret is in the card's memory alone"):
        assert p.sh(name, "cp /sec/s /memory/s; cat /both/s /one") == 2 * word
        disk, memory, *rest = places(card)
        assert len(having([memory], word)) >= 3, having([memory], word)
        assert named(card, uid)
        assert not having([disk, *rest], word), having([disk, *rest], word)
    with t.check("and nowhere on it when its pod is gone, nor is a mount or a "
                 "folder of the pod"):
        p.gone(name)
        wait_for("no folder is there", lambda: not named(card, uid))
        assert not having(places(card), word), having(places(card), word)
        with open(f"/proc/{card.init.pid}/mountinfo", encoding="utf-8") as f:
            mounts = [line for line in f if uid in line]
        assert not mounts, mounts


def test_updates(t, r, p):
    test_token(t, r, p, test_changes(t, r, p))
    test_part(t, r, p)
    test_secret(t, r, p)
