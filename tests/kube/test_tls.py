#!/usr/bin/env python3
"""Who is let in, and certificates, authorities and tokens that change while
kube-scheduler schedules and others ask: nobody notices."""
import contextlib
import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import threading
import time

import fleet
import jobs
import pool
import shapes
from api import Api, kubeconfig, write_private
from check import Checks
from cluster import certs
from lab import SERVICE, Lab
from proc import wait_for
from test_cluster import TIMEOUT, is_late

NODES = 8
CLIENTS = 4
PODS = 80  # at least, that are bound under each load
LIVE = 200  # of those at a time: hosts have room for two loads
VERDICT = 10  # seconds for which it holds (extender/admit/review.h)
KEPT_FOR = 40  # requests on one connection, of those clients that keep them


# --- certificates of any lifetime --------------------------------------------

OPENSSL = """[ca]
default_ca = ours
[ours]
new_certs_dir = {dir}
database = {dir}/index
serial = {dir}/serial
policy = any
default_md = sha256
unique_subject = no
[any]
commonName = supplied
organizationName = optional
[client]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = clientAuth
"""


def openssl(*args):
    got = subprocess.run(["openssl", *args], capture_output=True, text=True,
                         check=False)
    assert got.returncode == 0, got.stderr


def dated(pki, name, cn, begins, ends):
    """pki/NAME.crt and .key of a client, valid from and until so many
    seconds from now, signed by pki/ca; the two files."""
    folder = os.path.join(pki, ".dated")
    os.makedirs(folder, exist_ok=True)
    for file, text in (("index", ""), ("config", OPENSSL.format(dir=folder)),
                       ("serial", os.urandom(16).hex())):
        with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
            f.write(text)
    crt, key = (os.path.join(pki, name + end) for end in (".crt", ".key"))
    csr = os.path.join(folder, name + ".csr")
    now = time.time()
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out",
            key)
    openssl("req", "-new", "-key", key, "-subj", "/CN=" + cn, "-out", csr)
    openssl("ca", "-batch", "-notext", "-config",
            os.path.join(folder, "config"), "-cert",
            os.path.join(pki, "ca.crt"), "-keyfile",
            os.path.join(pki, "ca.key"), "-extensions", "client", "-in", csr,
            "-out", crt, *[word for option, at in (("-startdate", begins),
                                                   ("-enddate", ends))
                           for word in (option, time.strftime(
                               "%Y%m%d%H%M%SZ", time.gmtime(now + at)))])
    return crt, key


def replace(source, target):
    """In one step, as a mounted Secret changes."""
    shutil.copy(source, target + ".new")
    os.rename(target + ".new", target)


def join(target, *sources):
    text = ""
    for source in sources:
        with open(source, encoding="utf-8") as f:
            text += f.read()
    write_private(target, text)


def serial(port):
    """Of the certificate that a listener shows to a new connection."""
    pem = ssl.get_server_certificate(("127.0.0.1", port))
    got = subprocess.run(["openssl", "x509", "-noout", "-serial"], input=pem,
                         capture_output=True, text=True, check=True)
    return got.stdout.strip()


# --- who is let in -----------------------------------------------------------

FILTER = {"Pod": jobs.host_pod("nobody"), "NodeNames": ["host1"]}


def asks(extender, kind, lab, cert=None):
    """Status and text of one request, with this certificate and key."""
    api = Api(extender.url(kind, True), **lab.ca(),
              **({"cert": cert[0], "key": cert[1]} if cert else {}))
    if kind == "scheduler":
        got = api.raw("POST", "/v1/scheduler/filter", FILTER)
    else:
        got = api.raw("GET", "/apis/resource.k8s.io/v1/resourceslices")
    return got[0], got[2].decode()


def strangers(t, lab, extender, kind):
    """Nobody gets anything from a listener without a sound certificate."""
    pki, who = lab.pki(), "system:kube-scheduler"
    foreign = lab.pki("foreign")
    if not os.path.exists(foreign):
        certs("ca", foreign, "--cn", "biga-test")  # the same name
        certs("client", foreign, "scheduler", "--cn", who)
        certs("server", pki, "not-a-client", "--cn", who, "--san",
              "localhost")
    day = 24 * 3600
    cases = {
        "no certificate": (None, "a client certificate is needed"),
        "an expired one": (dated(pki, "expired", who, -2 * day, -day),
                           "has expired"),
        "one that is not valid yet": (dated(pki, "early", who, day, 2 * day),
                                      "is not valid yet"),
        "one of another authority": ([os.path.join(foreign, "scheduler" + end)
                                      for end in (".crt", ".key")],
                                     "is of no authority"),
        "a server's": ((lab.pki("not-a-client.crt"),
                        lab.pki("not-a-client.key")), "not meant for clients"),
    }
    for name, (cert, want) in cases.items():
        with t.check(f"{kind} listener: {name} gets nothing but the reason"):
            status, text = asks(extender, kind, lab, cert)
            assert status == 403 and want in text, (status, text)
            assert not re.search("NodeNames|items", text), text
    with t.check(f"{kind} listener: no TLS gets nothing"):
        try:
            status, _, text = Api(extender.url(kind), timeout=5).raw(
                "GET", "/apis")
        except (OSError, http.client.HTTPException):
            return
        raise AssertionError(f"{status} {text}")


def refusals(t, c, lab, extender):
    strangers(t, lab, extender, "scheduler")
    with t.check("scheduler listener: a node's certificate is refused"):
        cert = lab.client_cert("host1", "system:node:host1")
        status, text = asks(extender, "scheduler", lab, cert)
        assert status == 403 and "no name of a scheduler" in text, text
    with t.check("scheduler listener: kube-scheduler's is let in"):
        cert = lab.pki("scheduler.crt"), lab.pki("scheduler.key")
        status, text = asks(extender, "scheduler", lab, cert)
        assert status == 200 and "NodeNames" in text, text

    embedded = fleet.Extender(
        c.folder, "embedded", "--tls-cert=" + lab.pki("extender.crt"),
        "--tls-key=" + lab.pki("extender.key"),
        "--client-ca=" + lab.pki("ca.crt"))
    embedded.start()
    try:
        embedded.wait_up(**lab.ca())
        strangers(t, lab, embedded, "publish")
        with t.check("publish listener: a node writes its own slice alone"):
            write_slices(lab, embedded)
    finally:
        embedded.stop()


def write_slices(lab, extender):
    def put(cert, node):
        obj = shapes.slices(node, "--hostfile", "dell-xe9680-bf3")[0]
        api = Api(extender.url("publish", True), **lab.ca(), cert=cert[0],
                  key=cert[1])
        got = api.raw("PUT", "/apis/resource.k8s.io/v1/resourceslices/"
                      + obj["metadata"]["name"], obj)
        return got[0], got[2].decode()
    mine = lab.pki("host1.crt"), lab.pki("host1.key")
    status, text = put(mine, "host2")
    assert status == 403 and "host1" in text, (status, text)
    status, text = put((lab.pki("scheduler.crt"), lab.pki("scheduler.key")),
                       "host1")
    assert status == 403 and "no node" in text, (status, text)
    status, text = put(mine, "host1")
    assert status in (200, 201), (status, text)


# --- tokens ------------------------------------------------------------------

def get(lab, extender, token=None, where="/v1/nodes", method="GET"):
    status, headers, text = Api(
        extender.url("read", True), token=token, **lab.ca()).raw(method, where)
    return status, text.decode(), headers


def judged(*args, **more):
    """The same where there is an API server, however slow it is."""
    def said():
        got = get(*args, **more)
        return got if got[0] != 503 else None
    return wait_for("the token is reviewed", said, every=0.2)


def account(lab, name, *roles):
    api = lab.c.api
    api.create("serviceaccounts", {"metadata": {
        "name": name, "namespace": "default"}})
    for role in roles:
        lab.bind(f"system:serviceaccount:default:{name}", role, cluster=True)
    return api.token_request("default", name)


def tokens(t, c, lab, extender):
    reader = account(lab, "reader-1", "biga-reader")
    nobody = account(lab, "nobody")
    operator = account(lab, "operator", "biga-operator")
    with t.check("read listener: no token is 401, health needs none"):
        status, text, headers = get(lab, extender)
        assert status == 401 and headers["WWW-Authenticate"], (status, text)
        assert judged(lab, extender, where="/readyz")[0] == 200
        for wrong in ("wrong", reader[:-4] + "AAAA", ""):
            status, text, _ = judged(lab, extender, wrong)
            assert status == 401, (wrong[:8], status, text)
    with t.check("a token without biga-reader is 403, with it 200"):
        status, text, _ = judged(lab, extender, nobody)
        assert status == 403 and "may not get /v1/nodes" in text, text
        assert judged(lab, extender, reader)[0] == 200
    with t.check("only biga-operator deletes allocations"):
        where = "/v1/allocations/default/none"
        for token in (None, nobody, reader):
            status, text, _ = judged(lab, extender, token, where, "DELETE")
            assert status == (403 if token else 401), (status, text)
        assert judged(lab, extender, operator, where, "DELETE")[0] == 404
        assert judged(lab, extender, operator)[0] == 403, "it may not read"
    with t.check("a right that is taken away is soon gone"):
        binding = "test-system:serviceaccount:default:reader-1-biga-reader"
        c.api.delete("clusterrolebindings", None, binding)
        began = time.monotonic()
        wait_for("it is refused", lambda: get(lab, extender, reader)[0] ==
                 403, every=0.2)
        t.note(f"after {time.monotonic() - began:.1f} s")
        lab.bind("system:serviceaccount:default:reader-1", "biga-reader",
                 cluster=True)
        wait_for("it is let in", lambda: get(lab, extender, reader)[0] == 200,
                 every=0.2)
    with t.check("without an API server verdicts hold, and then it is 503"):
        without_api_server(c, lab, extender, reader, t)


def without_api_server(c, lab, extender, reader, t):
    """Nobody is let in for longer than a verdict holds, nobody new at all,
    and nobody is told that the token is wrong."""
    fresh = c.api.token_request("default", "reader-1")
    # no verdict of before is as young
    reader = c.api.token_request("default", "reader-1")
    asked = time.monotonic()
    assert judged(lab, extender, reader)[0] == 200
    c.apiserver.pause()
    try:
        began = time.monotonic()
        assert get(lab, extender, reader)[0] == 200 or \
            time.monotonic() - asked > VERDICT, "its verdict is known"
        status, text, _ = get(lab, extender, fresh)
        assert status == 503 and "could not be reviewed" in text, text
        status, text, _ = get(lab, extender)
        assert status == 401, "that needs no API server"
        wait_for("it is asked anew", lambda: get(lab, extender, reader)[0] ==
                 503, every=0.2)
        t.note(f"a verdict held for {time.monotonic() - began:.1f} s")
    finally:
        c.apiserver.resume()
    wait_for("all is as before", lambda: get(lab, extender, reader)[0] == 200
             and get(lab, extender, fresh)[0] == 200, every=0.2)


# --- load --------------------------------------------------------------------

class Client(threading.Thread):
    """Asks filter over and over, on kept connections or new ones; a request
    that fails is not repeated."""

    def __init__(self, load, kept):
        super().__init__(daemon=True)
        self.load, self.kept = load, kept
        self.good, self.bad, self.connections = 0, [], 0

    def connect(self):
        lab = self.load.lab
        context = ssl.create_default_context(cafile=lab.pki("ca.crt"))
        try:
            context.load_cert_chain(lab.pki("client.pem"))
        except ssl.SSLError:
            # it is opened twice, for the certificate and for its key, and
            # another may have taken its place between
            context.load_cert_chain(lab.pki("client.pem"))
        self.connections += 1
        return http.client.HTTPSConnection(
            "127.0.0.1", self.load.port, timeout=60, context=context)

    def run(self):
        body = json.dumps(FILTER)
        while not self.load.stopping.is_set():
            try:
                connection = self.connect()
                for _ in range(KEPT_FOR if self.kept else 1):
                    connection.request("POST", "/v1/scheduler/filter", body, {
                        "Content-Type": "application/json"})
                    answer = connection.getresponse()
                    text = answer.read().decode()
                    if answer.status == 200 and not json.loads(text)["Error"]:
                        self.good += 1
                    else:
                        self.bad.append(f"{answer.status} {text[:200]}")
                    if self.load.stopping.wait(0.02):
                        break
                connection.close()
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.bad.append(repr(error))
                self.load.stopping.wait(0.2)


class Load:
    """kube-scheduler binds pods, clients ask, somebody reads."""

    def __init__(self, lab, extender, stem):
        self.lab, self.api = lab, lab.c.api
        self.extender, self.port = extender, extender.ports["scheduler"]
        self.stem, self.made, self.ended = stem, 0, 0
        self.stopping = threading.Event()
        self.clients = [Client(self, i % 2 == 0) for i in range(CLIENTS)]
        self.errors, self.mark = 0, len(extender.text())

    def __enter__(self):
        self.feeder = threading.Thread(target=self.feed, daemon=True)
        self.feeder.start()
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in (self.feeder, *self.clients):
            thread.join(30)

    def feed(self):
        """About ten pods a second; of too many the oldest ends, so that
        there is room however long the load lasts."""
        while not self.stopping.wait(0.08):
            if self.made - self.ended >= LIVE:
                self.end_oldest()
                continue
            self.api.create("pods", jobs.host_pod(
                f"{self.stem}{self.made}", gpus=0, cpu=1, cores=1,
                memory_mib=64))
            self.made += 1

    def end_oldest(self):
        """Once it is bound."""
        name = f"{self.stem}{self.ended}"
        if self.api.get("pods", "default", name)["spec"].get("nodeName"):
            self.api.delete("pods", "default", name, gracePeriodSeconds=0)
            self.ended += 1

    def go_round(self, n=12):
        """Until so many pods more are bound, and every client has connected
        anew and been answered."""
        bound, was = self.bound(), [(c.good, c.connections)
                                    for c in self.clients]
        wait_for("pods are bound on and on",
                 lambda: self.bound() >= bound + n, every=0.2)
        wait_for("clients connect anew", lambda: all(
            c.good > good and c.connections > connections
            for c, (good, connections) in zip(self.clients, was)), every=0.1)

    def bound(self):
        """How many have been."""
        return self.ended + sum(1 for name in fleet.bound(self.api)
                                if name.startswith(self.stem))

    def note_errors(self):
        """Those of the kube-scheduler that runs; before it ends."""
        text = self.lab.c.scheduler_metrics()
        self.errors += sum(float(n) for n in re.findall(
            r'^scheduler_schedule_attempts_total\{[^}]*result="error"[^}]*\} '
            r"(\S+)$", text, re.M))

    def judge(self, t):
        """After the end: all was well."""
        self.note_errors()
        fleet.wait_bound(self.api, [
            f"{self.stem}{i}" for i in range(self.ended, self.made)])
        good = sum(c.good for c in self.clients)
        bad = [text for c in self.clients for text in c.bad]
        t.note(f"{self.made} pods bound; {good} requests over "
               f"{sum(c.connections for c in self.clients)} connections")
        assert not bad, f"{len(bad)} requests failed: {bad[:3]}"
        self.judge_log(t, self.extender.text()[self.mark:])

    def judge_log(self, t, text):
        """A leader that a busy machine lets wait may lose the Lease and a
        bind; but for nothing else than time."""
        failed = re.findall("event=bind .*result=(?!bound|repeated).*", text)
        lost = re.findall("event=not-leading .*", text)
        other = [line for line in failed if not is_late(line)]
        assert not other, f"{len(other)} binds failed: {other[:3]}"
        refused = [line for line in re.findall("event=election .*", text)
                   if not TIMEOUT.search(line)]
        assert not refused, refused[:3]
        if lost or failed:
            t.note(f"{len(lost)} times the Lease was not renewed in time, "
                   f"{len(failed)} binds were late")
        else:
            assert not self.errors, f"{self.errors} errors of kube-scheduler"


def start_scheduler(lab, url):
    """One that waits as long as a busy machine makes it."""
    lab.c.start_scheduler(lab.c.scheduler_config(
        [lab.scheduler_part(url, httpTimeout="60s")], 100))


def new_files(lab, pki, name):
    """Certificate and key of that authority come into force, as name."""
    for end in (".key", ".crt"):
        replace(os.path.join(pki, "next" + end), lab.pki(name + end))
        os.unlink(os.path.join(pki, "next" + end))


def renew_server(lab, pki, load):
    was = serial(load.port)
    certs("server", pki, "next", "--san", SERVICE, "--san", "localhost",
          "--san", "127.0.0.1")
    new_files(lab, pki, "extender")
    wait_for("new connections see it", lambda: serial(load.port) != was,
             every=0.1)
    load.go_round()


def renew_client(lab, pki, name):
    certs("client", pki, "next", "--cn", "system:kube-scheduler")
    new_files(lab, pki, name)


def join_client(lab):
    """Both in one file, so that no client takes halves of two."""
    join(lab.pki("client.pem"), lab.pki("client.crt"), lab.pki("client.key"))


def judged_by(load, n):
    """The extender has taken its files for the nth time since."""
    wait_for("the extender has taken it", lambda: load.extender.text().count(
        "event=tls ") >= n, every=0.1)


def rotate_files(t, lab, load):
    old, new = lab.pki("first"), lab.pki("second")
    os.makedirs(old)
    for end in (".crt", ".key"):
        shutil.copy(lab.pki("ca" + end), os.path.join(old, "ca" + end))
    certs("ca", new, "--cn", "biga-test-second")
    cas = [os.path.join(pki, "ca.crt") for pki in (old, new)]
    with t.check("the server's certificate is replaced under load"):
        renew_server(lab, old, load)
    with t.check("two authorities hold, clients change to the new one"):
        n = load.extender.text().count("event=tls ")
        join(lab.pki("ca.crt"), *cas)
        judged_by(load, n + 1)
        load.go_round()
        renew_client(lab, new, "client")
        join_client(lab)
        load.go_round()
    with t.check("kube-scheduler, which reads its files once, is restarted"):
        renew_client(lab, new, "scheduler")
        load.note_errors()
        start_scheduler(lab, load.extender.url("scheduler", True))
        load.go_round()
    with t.check("the server's certificate is of the new authority, too"):
        renew_server(lab, new, load)
    with t.check("only the new authority is left"):
        n = load.extender.text().count("event=tls ")
        replace(cas[1], lab.pki("ca.crt"))
        judged_by(load, n + 1)
        load.go_round()
        certs("client", old, "late", "--cn", "system:kube-scheduler")
        status, text = asks(load.extender, "scheduler", lab, [
            os.path.join(old, "late" + end) for end in (".crt", ".key")])
        assert status == 403 and "is of no authority" in text, text


def token_file(lab, name):
    """Its kubeconfig names a file with a token that holds as long as Node
    NAME is there."""
    api, c = lab.c.api, lab.c
    file, config = c.path(name + ".token"), c.path(name + ".kubeconfig")
    new_token(api, file, "token-1")
    with open(config, encoding="utf-8") as f:
        text = f.read()
    text = re.sub("    token: .*", "    tokenFile: " + json.dumps(file), text)
    write_private(config, text)
    return file


def new_token(api, file, node):
    """It is of a Node, and ends when that is deleted; nothing is to run
    there."""
    obj = fleet.node(node)
    obj["spec"] = {"unschedulable": True}
    api.create("nodes", obj)
    write_private(file, api.token_request(
        "biga-system", "biga-extender", node=node) + "\n")


def rotate_token(t, lab, load, file):
    api = lab.c.api
    with open(file, encoding="utf-8") as f:
        old = api.as_token(f.read().strip(), lab.c.ca)
    with t.check("the service account's token is replaced under load"):
        new_token(api, file, "token-2")
        load.go_round()
        api.delete("nodes", None, "token-1")
        wait_for("the old one is nobody's", lambda: old.raw(
            "GET", "/api/v1/nodes?limit=1")[0] == 401, every=0.2)
        load.go_round(24)


def may_do_the_same(lab, user):
    """As the extender's service account."""
    for role, where in (("biga-extender", None),
                        ("biga-extender-election", "biga-system"),
                        ("biga-extender-heartbeats", "biga-nodes")):
        lab.bind(user, role, cluster=where is None, namespace=where)


def known(lab, file):
    """Whether the API server knows whose certificate it is."""
    return Api(lab.c.server, lab.c.ca, file, file).raw(
        "GET", "/api/v1/nodes?limit=1")[0] != 401


def certificate(lab, name, user):
    """Its kubeconfig names a certificate of an authority of its own, which
    the API server knows besides the usual one; the file has its key, too, so
    that both are replaced at once."""
    c, other = lab.c, lab.c.path("pki", "other")
    certs("ca", other, "--cn", "biga-test-other")
    certs("client", other, name, "--cn", user)
    join(c.clients, c.ca, os.path.join(other, "ca.crt"))
    file = c.path("pki", name + ".pem")
    join(file, *[os.path.join(other, name + end) for end in (".crt", ".key")])
    write_private(c.path(name + ".kubeconfig"),
                  kubeconfig(c.server, c.ca, user, cert=file, key=file))
    wait_for("the API server knows it", lambda: known(lab, file))
    return file


def rotate_certificate(t, lab, load, file, user):
    c = lab.c
    with t.check("the API server's client is another certificate's"):
        old = shutil.copy(file, file + ".old")
        load.go_round()
        join(file, *c.client_cert("renewed", user))
        join(c.clients, c.ca)
        wait_for("the old one is nobody's", lambda: not known(lab, old))
        load.go_round(24)


@contextlib.contextmanager
def loaded(t, lab, extender, stem):
    """Under load; in the end all must have been well."""
    load = Load(lab, extender, stem)
    with load:
        yield load
        wait_for("pods are made", lambda: load.made >= PODS)
    with t.check(f"no request and no bind has failed meanwhile ({stem})"):
        load.judge(t)


def main():
    with pool.cluster() as c:
        t = Checks(c.log_ends)
        lab = Lab(c)
        lab.install()
        lab.client_cert("client", "system:kube-scheduler")
        join_client(lab)
        fleet.add_nodes(c.api, fleet.names("host", NODES), cpu=224)
        one = lab.extender("one", start=False)
        file = token_file(lab, "one")
        one.start()
        one.wait_up(**lab.ca())
        lab.advertise(NODES, "host", "--fleet-shapes=dell-xe9680-bf3")
        lab.wait_slices(NODES)
        lab.leader()
        refusals(t, c, lab, one)
        tokens(t, c, lab, one)

        lab.leader()  # again: it was without an API server for long
        start_scheduler(lab, one.url("scheduler", True))
        with loaded(t, lab, one, "a-") as load:
            load.go_round()
            rotate_files(t, lab, load)
            rotate_token(t, lab, load, file)

        lab.allow_changes()  # to more than the service account
        user = "biga-extender-by-certificate"
        two = lab.extender("two", start=False)
        may_do_the_same(lab, user)
        one.stop()
        file = certificate(lab, "two", user)
        two.start()
        lab.leader()
        start_scheduler(lab, two.url("scheduler", True))
        with loaded(t, lab, two, "b-") as load:
            rotate_certificate(t, lab, load, file, user)
        with t.check("allocations are what pods say"):
            reader = lab.read_api(two, lab.reader())

            def right():
                bad = jobs.audit(c.api, reader)
                assert not bad, bad[:5]
                return True
            wait_for("the audit finds nothing", right, every=0.3)
        t.finish()


if __name__ == "__main__":
    main()
