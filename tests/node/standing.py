"""A pair that stands while parts of its node are replaced: what is done with
it by kubectl, and what holds of it all the time."""
import os
import re

from cards import NODE
from place import OnCard, Place
from pods import SAY, WAIT, held, sh, status_of
from proc import wait_for
from served import endpoints, raw
from verbs import fetch

PAIR = "standing"
COUNT = "mkdir /tmp/w; echo hello >/tmp/w/index.html; touch /tmp/well; " \
    "httpd -p 8080 -h /tmp/w; n=0; until [ -e /tmp/quiet ]; do " \
    f"{SAY}; sleep 0.1; done; exec sleep 1000000"
LINE = re.compile(r"line (\d+)\n")


class Standing:
    """One pod of the pair, at its Place."""

    def __init__(self, p):
        self.p, self.r, self.k = p, p.r, p.k
        self.name = p.name(PAIR)
        self.uid = self.ids = None
        self.n_new = 0

    # --- coming ----------------------------------------------------------
    def objects(self):
        quick = {"periodSeconds": 1, "timeoutSeconds": 60}
        main = sh(COUNT, ports=[{"name": "web", "containerPort": 8080}],
                  resources={"limits": {"biga.dev/card": "1"}},
                  readinessProbe={"exec": {"command": [
                      "test", "-e", "/tmp/well"]}, "failureThreshold": 1,
                      **quick},
                  livenessProbe={"tcpSocket": {"port": "web"}, **quick},
                  volumeMounts=[{"name": "words", "mountPath": "/words"}])
        spec = {"terminationGracePeriodSeconds": 2, "containers": [main],
                "volumes": [{"name": "words", "configMap": {
                    "name": self.name}}]}
        role = "host"
        if self.p.biga:
            role, spec["runtimeClassName"] = "xpu", "xpu"
            spec["hostNetwork"] = True  # of the card
            main["resources"]["limits"].update({
                "biga.dev/card-cores": "2", "biga.dev/card-memory-mib": "256"})
        meta = {"name": self.name, "namespace": "default"}
        return [
            self.words("0"),
            {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {
                "selector": {"app": self.name},
                "ports": [{"port": 80, "targetPort": 8080}]}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {
                **meta, "labels": {"app": self.name, "biga.dev/role": role,
                                   "biga.dev/job": PAIR}}, "spec": spec}]

    def words(self, word):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": self.name, "namespace": "default"},
            "data": {"word": word}}

    def begin(self):
        found = self.p.ready(self.name)
        assert self.p.here(found), found["status"]
        self.uid = found["metadata"]["uid"]
        self.ids = self.containers(found)

    @property
    def where(self):
        """The runtime that has it."""
        return self.p.card_of(self.r.pod(self.name)) if self.p.biga \
            else self.r.rack.host

    # --- what holds ------------------------------------------------------
    @staticmethod
    def containers(found):
        return [(c["containerID"], c["restartCount"])
                for c in found["status"]["containerStatuses"]]

    def same(self):
        """It has not been started again, and there is no second."""
        found = self.r.pod(self.name)
        assert self.containers(found) == self.ids, found["status"]
        assert "running" in status_of(found)["state"], found["status"]
        made = [s for s in self.where.local().sandboxes()
                if s["uid"] == self.uid]
        assert len(made) == 1 and made[0]["ready"], made
        self.lines()

    def lines(self):
        """How many its log has; each is there once and in order."""
        with open(self.log_file(), encoding="utf-8") as f:
            text = f.read()
        text = text[:text.rfind("\n") + 1]  # one may be on its way
        for n, line in enumerate(text.splitlines(), 1):
            assert line.endswith(f" stdout F line {n}"), (n, line)
        return text.count("\n")

    def goes_on(self):
        """Its log does."""
        had = self.lines()
        wait_for("its log goes on", lambda: self.lines() > had)

    def log_file(self):
        """The kubelet's own."""
        return self.r.rack.host.path(
            "log", "pods", f"default_{self.name}_{self.uid}", "main", "0.log")

    def own_log(self):
        """That of its runtime."""
        if not self.p.biga:
            return self.log_file()
        return self.where.seen("var/lib/biga/pods", self.uid, "logs",
                               "main-0.log")

    def held(self):
        """While its runtime ends, see there."""
        return held(self.where, self.r.pod(self.name), self.own_log())

    def end(self):
        """It says no more, and its log is the card's own to the last byte;
        what was copied long ago is a hole there."""
        self.p.execute(self.name, "touch", "/tmp/quiet")
        wait_for("it is quiet", lambda: "sleep 1000000" in self.p.execute(
            self.name, "ps", "-o", "args"))
        own = self.own_log()

        def equal():
            with open(own, "rb") as a, open(self.log_file(), "rb") as b:
                own_text, got = a.read(), b.read()
            text = own_text.lstrip(b"\0")
            assert len(got) == len(own_text) and got.endswith(text), (
                len(got), len(own_text))
            return text
        if self.p.biga:
            assert wait_for("the kubelet's log is the card's", equal)
        self.lines()

    # --- verbs: each is tried after each restart --------
    def shown(self):
        """get -o wide, describe"""
        found = self.r.pod(self.name)

        def ready():  # a kubelet that was restarted probes it first
            said = self.k("get", "pod", self.name, "-o", "wide")
            for word in (found["status"]["podIP"], NODE):
                assert word in said, said
            return "1/1" in said
        wait_for(self.name + " is shown as ready", ready)
        assert f"{self.ids[0][0]}" in self.k("describe", "pod", self.name)

    def logs(self):
        """logs, logs -f"""
        assert LINE.fullmatch(self.k("logs", self.name, "--tail=1"))
        follow = self.r.talk("logs", "-f", self.name, "--tail=1")
        first = wait_for("a line", lambda: LINE.match(follow.text))
        follow.wait_text(f"line {int(first[1]) + 2}\n")
        follow.end()

    def execute(self):
        """exec"""
        got = self.k("exec", self.name, "--", "sh", "-c",
                     "echo out; echo err >&2; exit 7", check=False)
        assert got.stdout == "out\n" and "err\n" in got.stderr, got
        assert got.returncode == 7, got

    def feed(self):
        """exec -i"""
        text = "".join(f"{n:07d}\n" for n in range(10000))
        got = self.k("exec", "-i", self.name, "--", "wc", "-c", stdin=text)
        assert got == f"{len(text)}\n", got

    def attach(self):
        """attach"""
        talk = self.r.talk("attach", self.name)
        first = wait_for("a line", lambda: LINE.search(talk.text))
        talk.wait_text(f"line {int(first[1]) + 2}\n")
        talk.end()

    def forward(self):
        """port-forward"""
        talk = self.r.talk("port-forward", self.name, ":8080")
        talk.wait_text("Forwarding from 127.0.0.1:")
        port = re.search(r"127\.0\.0\.1:(\d+)", talk.text).group(1)
        assert fetch("127.0.0.1", port) == "hello\n"
        talk.end()

    def copy(self):
        """cp"""
        there, back = (self.r.rack.host.path(f"{f}-{self.name}")
                       for f in ("there", "back"))
        with open(there, "wb") as f:
            f.write(os.urandom(1 << 20))
        self.k("cp", there, f"{self.name}:/tmp/file")
        self.k("cp", f"{self.name}:/tmp/file", back)
        with open(there, "rb") as a, open(back, "rb") as b:
            assert a.read() == b.read()

    def numbers(self):
        """what top reads"""
        def told():
            line = next(line for line in raw(self.p, "metrics/resource").split(
                "\n") if line.startswith("container_memory_working_set_bytes")
                and f'pod="{self.name}"' in line)
            assert float(line.split("}")[1].split()[0]) > 0, line
            return True
        wait_for("it is there", told)

    def service(self):
        """probes, Service"""
        address = self.r.c.api.get("services", "default",
                                   self.name)["spec"]["clusterIP"]

        def is_ready(ready):
            assert status_of(self.r.pod(self.name))["ready"] is ready
            assert list(endpoints(self.p, self.name).values()) == [ready]
            return True
        wait_for("it is ready", lambda: is_ready(True))
        assert wait_for("it answers", lambda: fetch(address, 80)) == "hello\n"
        self.p.execute(self.name, "rm", "/tmp/well")
        wait_for("it is not ready", lambda: is_ready(False))
        self.p.execute(self.name, "touch", "/tmp/well")
        wait_for("it is ready", lambda: is_ready(True))

    def config(self):
        """ConfigMap"""
        word = os.urandom(4).hex()
        self.r.c.apply([self.words(word)])
        wait_for("it reads that", lambda: self.p.execute(
            self.name, "cat", "/words/word") == word)

    def new(self):
        """a new pod, attach -i, delete"""
        self.n_new += 1
        name = self.p.up(f"new{self.n_new}", sh(
            "exec 3<&0; (while read l <&3; do echo heard $l; done) & " + WAIT,
            stdin=True), terminationGracePeriodSeconds=60)
        assert self.p.here(self.r.pod(name))
        talk = self.r.talk("attach", "-i", name)
        talk.write("me\n")
        talk.wait_text("heard me\n")
        follow = self.r.talk("logs", "-f", name)
        follow.wait_text("heard me\n")
        talk.end()
        self.p.gone(name)
        assert follow.wait() == 0
        assert follow.log.endswith("heard me\ntold\n"), follow.text

    VERBS = (new, service, config,  # the longest first
             shown, logs, execute, feed, attach, forward, copy, numbers)


def begin(r):
    """Both, ready."""
    both = Standing(Place(r)), Standing(OnCard(r))
    r.c.apply([obj for one in both for obj in one.objects()])
    for one in both:
        one.begin()
    return both
