"""Biga on a rack of cards: an extender with a state of its own and the
advertiser of the host, which runs pods on the cards; pods for them, and what
must hold of the cards whatever happened.
"""
import http.client
import json
import os
import socket
import subprocess
import urllib.parse

import cards
import fleet
from api import ApiError
from proc import HANGS, wait_for

# --- pods ---------------------------------------------------------------------
def container(args, image="busybox:static", limits=None, **more):
    return {"name": "main", "image": image, "command": list(args),
            "imagePullPolicy": "IfNotPresent",
            "resources": {"limits": limits or {}}, **more}


def pod(name, role, limits, args=("sleep", "100000"), job=None, **more):
    """A Pod in namespace default.  job: (name, pair, size); more: labels,
    annotations, and members of its spec."""
    labels = {"biga.dev/role": role, **more.pop("labels", {})}
    annotations = more.pop("annotations", {})
    if job:
        labels |= {"biga.dev/job": job[0], "biga.dev/pair": str(job[1])}
        annotations = {"biga.dev/size": str(job[2]), **annotations}
    image = more.pop("image", "busybox:static")
    made = more.pop("container", {})
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default",
                         "labels": labels, "annotations": annotations},
            "spec": {"terminationGracePeriodSeconds": 1,
                     "containers": [container(args, image, {
                         k: str(v) for k, v in limits.items()}, **made)],
                     **more}}


def pair(name, n=0, size=1, args=("sleep", "100000"), **xpu):
    """The host pod and the xPU pod of a pair of a job."""
    job = (name, n, size)
    return [pod(f"{name}-{n}", "host", {"biga.dev/card": 1}, args, job),
            pod(f"{name}-{n}-xpu", "xpu",
                {"biga.dev/card": 1, "biga.dev/card-cores": 2,
                 "biga.dev/card-memory-mib": 256}, args, job, **xpu)]


def service(name, cores=8, memory=64, **more):
    """A service; of 8 cores it has a card for itself."""
    return pod(name, "service", {"biga.dev/card": 1,
                                 "biga.dev/card-cores": cores,
                                 "biga.dev/card-memory-mib": memory},
               **more)


def job(name, size, **xpu):
    return [p for n in range(size) for p in pair(name, n, size, **xpu)]


class Local(http.client.HTTPConnection):
    """HTTP on a unix socket."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


# --- the programs -----------------------------------------------------------
class Node:
    """Biga for the node of a rack.  build: the folder of another
    biga-advertiser."""

    def __init__(self, rack, host_runtime=True, build=None):
        self.rack = rack
        self.state = os.path.join(rack.folder, "actuator")
        self.extender = fleet.Extender(
            rack.folder, "extender", "--state",
            os.path.join(rack.folder, "state"))
        args = ["--hostfile", rack.host_file(), "--node", cards.NODE,
                "--card-file", rack.card_file(),
                "--actuate", self.state,
                "--server", self.extender.url("publish")]
        self.advertiser = fleet.Advertiser(rack.folder, "advertiser", *args)
        if build:
            self.advertiser.argv[0] = os.path.join(build, "biga-advertiser")
        if host_runtime and rack.host:
            # where /var/lib is the same as for the host's containerd
            self.advertiser.argv = [
                *rack.host.enter(), *self.advertiser.argv,
                "--host-runtime", rack.host.endpoint]

    def start(self):
        self.extender.start()
        self.extender.wait_up()
        self.advertiser.start()
        self.wait_capacity(len(self.rack.cards))
        return self

    def stop(self):
        self.advertiser.stop()
        self.extender.stop()

    def env(self):
        return {"BIGA_SERVER": self.extender.url("read"),
                "BIGA_SOCKET": os.path.join(self.state, "actuator.sock")}

    # --- what it says --------------------------------------------------
    def call(self, method, path, body=None):
        return self.extender.api().call(method, path, body)

    def biga(self, *args, text=None, ok=True):
        """What `biga ARGS` prints; with ok it must succeed."""
        done = subprocess.run(
            [fleet.program("biga"), *args], input=text, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            env={**os.environ, **self.env()})
        assert not ok or done.returncode == 0, \
            f"biga {' '.join(args)}: status {done.returncode}: {done.stdout}"
        return done.stdout

    def capacity(self):
        """{card id} of those that filter may choose now."""
        found = self.call("GET", "/v1/nodes/" + cards.NODE)["cardList"]
        return {card["id"] for card in found if card["healthy"]}

    def wait_capacity(self, n):
        return wait_for(f"{n} cards can be chosen",
                        lambda: len(self.capacity()) == n)

    def local(self, method, path, body=None):
        """What the actuator's own socket answers."""
        connection = Local(os.path.join(self.state, "actuator.sock"), HANGS)
        try:
            connection.request(
                method, path, None if body is None else json.dumps(body),
                {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status}: {text!r}")
        return json.loads(text) if text else None

    def health(self, card):
        """(health, reason) of a card as the advertiser has it."""
        found = self.local("GET", "/v1/cards")["items"]
        return next((c["health"], c["reason"]) for c in found
                    if c["name"] == card.id)

    def wait_health(self, card, health):
        """Until it is in that health; its reason."""
        def reached():
            now, reason = self.health(card)
            assert now == health, f"is {now}: {reason}"
            return reason or True
        return wait_for(f"{card.name} is {health}", reached)

    def apply(self, pods):
        """As `biga apply` of a file; YAML reads JSON too."""
        documents = "\n---\n".join(json.dumps(p, indent=1) for p in pods)
        path = os.path.join(self.rack.folder, "apply.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(documents)
        return self.biga("apply", path)

    def delete(self, name, namespace="default", grace=None):
        query = "" if grace is None else f"?grace={grace}"
        return self.call("DELETE", f"/v1/pods/{namespace}/"
                         + urllib.parse.quote(name) + query)

    def delete_all(self, names):
        """One after the other; an xPU pod may have gone with its host pod."""
        for name in names:
            try:
                self.delete(name)
            except ApiError as error:
                if error.status != 404:
                    raise

    def pods(self):
        """{name: what the extender says of it}"""
        return {p["name"]: p for p in self.call("GET", "/v1/pods")["items"]}

    def place_of(self, name):
        """The card that a pod is on."""
        ids = [c["id"] for c in self.pods()[name]["cards"]]
        return next(c for c in self.rack.cards if c.id in ids)

    def states(self, names=None):
        return {name: p.get("state") for name, p in self.pods().items()
                if names is None or name in names}

    def wait_state(self, names, state):
        """Until all these pods are in that state."""
        names = set(names)

        def reached():
            there = self.states(names)
            late = {n: there.get(n) for n in names if there.get(n) != state}
            if late:
                found = self.pods()
                why = [f"{n}: {s}: {found.get(n, {}).get('reason')} "
                       f"{found.get(n, {}).get('message')}"
                       for n, s in sorted(late.items())]
                raise AssertionError("; ".join(why[:4]))
            return True
        wait_for(f"{len(names)} pods are {state}", reached)

    def wait_gone(self, names):
        wait_for(f"{len(set(names))} pods are gone",
                 lambda: not self.states(set(names)))

    # --- what must hold -------------------------------------------------
    def sandboxes(self):
        """[(place, sandbox)] of ours on all places that can be asked."""
        return [(place, s) for place in self.rack.places if not place.frozen
                for s in place.local().sandboxes()
                if "biga.dev/pod-uid" in s["labels"]]

    def sandboxes_of_pods(self):
        return [(place, s) for place, s in self.sandboxes()
                if not is_helper(s)]

    def check_once(self):
        """No pod has two live sandboxes."""
        live = {}
        for place, s in self.sandboxes_of_pods():
            uid = s["labels"]["biga.dev/pod-uid"]
            assert not s["ready"] or uid not in live, (live[uid], place, s)
            if s["ready"]:
                live[uid] = (place, s)
        return True

    def check_cards(self):
        """One live sandbox for each pod that runs, none for others, and
        nothing of what is gone; what is the helper's own is left out, and
        what is on a card that is frozen."""
        wanted = {p["uid"]: p for p in self.pods().values()
                  if p.get("state") in ("running", "creating", "pulling",
                                        "preparing", "stopping")}
        live = {}
        for place, s in self.sandboxes_of_pods():
            uid = s["labels"]["biga.dev/pod-uid"]
            assert uid in wanted, f"{place.name}: nobody wants {s}"
            if s["ready"]:
                assert uid not in live, \
                    f"{wanted[uid]['name']} runs twice: {live[uid]}, {s}"
                live[uid] = s
        frozen = {c.id for c in self.rack.cards if c.frozen}
        running = {u for u, p in wanted.items() if p["state"] == "running"
                   and not frozen & {c["id"] for c in p["cards"]}}
        lacking = [wanted[u]["name"] for u in running - live.keys()]
        assert not lacking, f"{lacking} are said to run and do not"
        return True

    def wait_clean(self):
        wait_for("cards have what they should have", self.check_cards,
                 every=0.25)

    def picture(self):
        """The state of all pods and what runs for them, without what is new
        each time."""
        places = {s["labels"]["biga.dev/pod-uid"]: place.name
                  for place, s in self.sandboxes_of_pods() if s["ready"]}
        return {name: (p.get("state"), places.get(p["uid"]))
                for name, p in sorted(self.pods().items())}


def is_helper(sandbox):
    """Whether it is the pod of biga-card, which no user asked for."""
    return sandbox["labels"].get("biga.dev/pod-uid", "").startswith(
        "biga-helper-")
