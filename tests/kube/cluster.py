"""A real control plane on loopback: etcd, kube-apiserver,
kube-controller-manager and kube-scheduler, with TLS and RBAC.

    with cluster.Cluster() as c:        # a folder that goes away
        c.start()
        c.start_scheduler(c.scheduler_config())
        c.api.list("nodes")

All it writes is in one folder: pki/, *.kubeconfig, etcd/, log/, run/.
etcd runs without fsync: fast, and as good as a crash of the machine away
from a loss that no test can mean.
"""
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile

from api import Api, ApiError, kubeconfig, write_private
from proc import Process, free_port, running_in, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CERTS = os.path.join(ROOT, "deploy", "certs.sh")

# Without those that need a cloud, storage or a kubelet.  node-lifecycle and
# taint-eviction would take fake nodes for dead ones.
CONTROLLERS = """
    clusterrole-aggregation cronjob daemonset deployment disruption endpoints
    endpointslice garbage-collector job namespace pod-garbage-collector
    replicaset replicationcontroller resourceclaim resourcequota
    root-ca-certificate-publisher serviceaccount serviceaccount-token
    statefulset ttl-after-finished validatingadmissionpolicy-status
    device-taint-eviction podgroup-protection
""".split()

# information and warnings of Kubernetes and of etcd
QUIET = re.compile(r'[IW]\d{4} |\{"level":"(info|warn)"')


def binaries():
    """The folder of the programs; builds them when it is not there."""
    got = subprocess.run([os.path.join(HERE, "binaries")],
                         stdout=subprocess.PIPE, text=True, check=False)
    if got.returncode:
        sys.exit(got.returncode)
    return got.stdout.strip()


def certs(*args):
    got = subprocess.run([CERTS, *args], capture_output=True, text=True,
                         check=False)
    if got.returncode:
        raise RuntimeError("certs.sh " + " ".join(args) + ": " + got.stderr)


def gates(pairs):
    return ",".join(f"{name}={'true' if on else 'false'}"
                    for name, on in sorted(pairs.items()))


class Cluster:
    def __init__(self, folder=None, say=None):
        """folder: made when missing; a temporary one when None."""
        self.temporary = folder is None
        self.folder = os.path.abspath(
            folder or tempfile.mkdtemp(prefix="biga-kube-"))
        self.say = say or (lambda text: None)
        self.bin = None
        self.api = None
        self.ports = {}
        self.features = {}
        # the authorities of the API server's clients, which it reads again
        # when they change
        self.clients = self.path("pki", "clients.crt")
        self.processes = []
        self.etcd = self.apiserver = None
        self.controller_manager = self.scheduler = None

    # --- coming and going --------------------------------------------------
    def __enter__(self):
        return self

    def __exit__(self, kind, value, _):
        self.stop()
        if self.temporary:
            good = kind is None or (kind is SystemExit and
                                    value.code in (0, 77))
            if not good or os.environ.get("BIGA_KEEP"):
                shutil.rmtree(self.path("etcd"), ignore_errors=True)
                print(f"# logs are in {self.folder}/log", flush=True)
            else:
                shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def marker(self):
        return os.path.join(self.folder, "cluster.json")

    @classmethod
    def attach(cls, folder):
        """The cluster that another script started in this folder."""
        self = cls(folder)
        with open(self.marker, encoding="utf-8") as f:
            state = json.load(f)
        self.bin, self.ports = state["bin"], state["ports"]
        for name in ("etcd", "apiserver", "controller_manager", "scheduler"):
            found = Process(self.folder, name.replace("_", "-"))
            if found.running:
                found.argv = found.state()["argv"]
                setattr(self, name, found)
        self.api = self._admin()
        return self

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def _pki(self, *parts):
        return self.path("pki", *parts)

    @property
    def server(self):
        return f"https://127.0.0.1:{self.ports['apiserver']}"

    @property
    def ca(self):
        return self._pki("ca.crt")

    def process(self, name, argv, env=None):
        """A program of this cluster, ended with it; not started yet."""
        if argv[0].startswith(self.bin):
            env = {"GOGC": "200", **(env or {})}  # memory instead of time
        found = Process(self.folder, name, argv, env)
        self.processes.append(found)
        return found

    def _claim_folder(self):
        """A folder of an ended cluster is used again, any other is not."""
        os.makedirs(self.folder, exist_ok=True)
        if os.path.exists(self.marker):
            if running_in(self.folder):
                raise SystemExit(f"{self.folder}: a cluster runs there; "
                                 f"tests/kube/down {self.folder} ends it")
            for name in os.listdir(self.folder):
                whole = self.path(name)
                if os.path.isdir(whole):
                    shutil.rmtree(whole)
                else:
                    os.unlink(whole)
        elif os.listdir(self.folder):
            raise SystemExit(f"{self.folder}: has files that are not a "
                             "cluster's; give an empty folder")

    def start(self, feature_gates=None, runtime_config=None,
              apiserver_args=(), controllers=None):
        """etcd, kube-apiserver and kube-controller-manager, ready.

        feature_gates: {"GenericWorkload": True}, for all of them.
        runtime_config: {"scheduling.k8s.io/v1beta1": True}.
        controllers: names without "-controller"; [] starts none.
        """
        self.bin = binaries()
        self._claim_folder()
        try:
            self._start(feature_gates or {}, runtime_config or {},
                        apiserver_args,
                        CONTROLLERS if controllers is None else controllers)
        except BaseException:
            self.stop()
            raise
        return self

    def _start(self, features, runtime, more, controllers):
        names = ("etcd", "etcd-peer", "apiserver", "scheduler")
        self.ports = {name: free_port() for name in names}
        with open(self.marker, "w", encoding="utf-8") as f:
            json.dump({"bin": self.bin, "ports": self.ports,
                       "features": features}, f)
        self.features = features
        self._make_pki()
        self.say("keys and certificates are made")
        self.etcd = self._etcd().start()
        self.apiserver = self._apiserver(features, runtime, more).start()
        self.api = self._admin()
        self.wait_ready()
        self.say(f"kube-apiserver is ready at {self.server}")
        if controllers:
            self.controller_manager = self._controllers(
                features, controllers).start()
            wait_for("the service account of new pods",
                     lambda: self.controller_manager.alive() and
                     self.api.get("serviceaccounts", "default", "default"))
            self.say("controllers run")

    def stop(self):
        """End what runs in the folder, the youngest first; etcd is last."""
        for process in running_in(self.folder):
            # the API server waits for watchers, etcd for the API server
            process.stop()

    # --- who is who ---------------------------------------------------------
    def _make_pki(self):
        pki = self._pki()
        certs("ca", pki, "--cn", "biga-test-kubernetes")
        shutil.copy(self.ca, self.clients)
        certs("server", pki, "apiserver", "--san", "127.0.0.1", "--san",
              "localhost", "--san", "kubernetes.default.svc", "--san",
              "10.0.0.1")
        certs("pair", pki, "sa")
        certs("ca", self._pki("front"), "--cn", "biga-test-front")
        # etcd has its own: any certificate of its authority is root there
        etcd = self._pki("etcd")
        certs("ca", etcd, "--cn", "biga-test-etcd")
        certs("server", etcd, "server", "--san", "127.0.0.1")
        certs("client", etcd, "client", "--cn", "kube-apiserver")
        self.kubeconfig("admin", "admin", ["system:masters"], embed=True)
        for name in ("controller-manager", "scheduler"):
            self.kubeconfig(name, f"system:kube-{name}")

    def client_cert(self, name, cn, orgs=(), days=None):
        """(certificate, key) of a client of the API server."""
        crt, key = self._pki(name + ".crt"), self._pki(name + ".key")
        if not os.path.exists(crt):
            certs("client", self._pki(), name, "--cn", cn,
                  *[a for org in orgs for a in ("--org", org)],
                  *(["--days", str(days)] if days is not None else []))
        return crt, key

    def kubeconfig(self, name, cn, orgs=(), embed=False):
        """NAME.kubeconfig for a user with a client certificate."""
        crt, key = self.client_cert(name, cn, orgs)
        return write_private(
            self.path(name + ".kubeconfig"),
            kubeconfig(self.server, self.ca, cn, cert=crt, key=key,
                       embed=embed))

    def kubeconfig_token(self, name, token):
        """NAME.kubeconfig for a user with a token."""
        return write_private(
            self.path(name + ".kubeconfig"),
            kubeconfig(self.server, self.ca, name, token=token))

    def account_kubeconfig(self, namespace, account, node=None, name=None):
        """A kubeconfig of a service account, bound to a node if named."""
        token = self.api.token_request(namespace, account, node)
        return self.kubeconfig_token(
            name or f"{account}{'.' + node if node else ''}", token)

    def node_kubeconfig(self, node, group="biga:advertisers"):
        """A kubeconfig of the user system:node:NODE in this group."""
        return self.kubeconfig("node-" + node, "system:node:" + node,
                               [group])

    def _admin(self):
        crt, key = self.client_cert("admin", "admin", ["system:masters"])
        return Api(self.server, self.ca, crt, key)

    def user(self, name, cn, orgs=()):
        """An Api for a user with a client certificate."""
        crt, key = self.client_cert(name, cn, orgs)
        return Api(self.server, self.ca, crt, key)

    # --- programs -----------------------------------------------------------
    def _program(self, name):
        return os.path.join(self.bin, name)

    def _etcd(self):
        url = f"https://127.0.0.1:{self.ports['etcd']}"
        peer = f"http://127.0.0.1:{self.ports['etcd-peer']}"
        os.makedirs(self.path("etcd"), mode=0o700, exist_ok=True)
        return self.process("etcd", [
            self._program("etcd"), "--data-dir", self.path("etcd"),
            "--listen-client-urls", url, "--advertise-client-urls", url,
            "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer,
            "--initial-cluster", f"default={peer}",
            "--cert-file", self._pki("etcd", "server.crt"),
            "--key-file", self._pki("etcd", "server.key"),
            "--trusted-ca-file", self._pki("etcd", "ca.crt"),
            "--client-cert-auth", "--unsafe-no-fsync",
            "--quota-backend-bytes", str(4 << 30), "--log-level", "warn"])

    def _apiserver(self, features, runtime, more):
        pki = self._pki
        argv = [
            self._program("kube-apiserver"),
            f"--etcd-servers=https://127.0.0.1:{self.ports['etcd']}",
            "--etcd-cafile=" + pki("etcd", "ca.crt"),
            "--etcd-certfile=" + pki("etcd", "client.crt"),
            "--etcd-keyfile=" + pki("etcd", "client.key"),
            "--bind-address=127.0.0.1",
            f"--secure-port={self.ports['apiserver']}",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--tls-cert-file=" + pki("apiserver.crt"),
            "--tls-private-key-file=" + pki("apiserver.key"),
            "--client-ca-file=" + self.clients,
            # of nobody: but schedulers complain without one
            "--requestheader-client-ca-file=" + pki("front", "ca.crt"),
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=" + pki("sa.pub"),
            "--service-account-signing-key-file=" + pki("sa.key"),
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            # or it waits a minute for those who watch when it ends
            "--shutdown-watch-termination-grace-period=1s",
            "--allow-privileged=true", "--profiling=false"]
        if features:
            argv.append("--feature-gates=" + gates(features))
        if runtime:
            argv.append("--runtime-config=" + gates(runtime))
        return self.process("apiserver", argv + list(more))

    def _controllers(self, features, names):
        config = self.path("controller-manager.kubeconfig")
        argv = [
            self._program("kube-controller-manager"),
            "--kubeconfig=" + config, "--leader-elect=false",
            "--secure-port=0", "--use-service-account-credentials=true",
            "--service-account-private-key-file=" + self._pki("sa.key"),
            "--root-ca-file=" + self.ca,
            "--kube-api-qps=300", "--kube-api-burst=600",
            "--controllers=" + ",".join(n + "-controller" for n in names)]
        if features:
            argv.append("--feature-gates=" + gates(features))
        return self.process("controller-manager", argv)

    def scheduler_config(self, extenders=(), percentage=None, profiles=None,
                         qps=None, **more):
        """A KubeSchedulerConfiguration, to be changed and started with.

        extenders: as in the file, urlPrefix and so on.
        qps: calls per second to the API server; its default is 50.
        """
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {
                "kubeconfig": self.path("scheduler.kubeconfig")},
            "extenders": list(extenders), **more}
        if qps:
            config["clientConnection"].update(qps=qps, burst=qps * 2)
        if percentage is not None:
            config["percentageOfNodesToScore"] = percentage
        if profiles:
            config["profiles"] = profiles
        return config

    def start_scheduler(self, config=None, args=()):
        """kube-scheduler with this configuration, ready.

        Ends the one before, if any.  Its metrics: scheduler_metrics().
        """
        file = write_private(
            self.path("scheduler.yaml"),
            json.dumps(config or self.scheduler_config(), indent=2) + "\n")
        # as deploy/README.md says
        return self._run_scheduler(["--config=" + file, *args], {
            "HTTP2_READ_IDLE_TIMEOUT_SECONDS": "3",
            "HTTP2_PING_TIMEOUT_SECONDS": "2"})

    def start_stock_scheduler(self, qps=None, args=()):
        """kube-scheduler as it is where nobody may configure it: no --config,
        no environment; ready.

        Ends the one before, if any.  It does not elect a leader, so that it
        works at once after a kill.  qps: as in scheduler_config().
        """
        more = [f"--kube-api-qps={qps}", f"--kube-api-burst={qps * 2}"] \
            if qps else []
        return self._run_scheduler([
            "--kubeconfig=" + self.path("scheduler.kubeconfig"),
            "--leader-elect=false", *more, *args])

    def _run_scheduler(self, args, env=None):
        if self.scheduler is not None:
            self.scheduler.stop()
        user = self.path("scheduler.kubeconfig")
        argv = [
            self._program("kube-scheduler"), *args,
            "--authentication-kubeconfig=" + user,
            "--authorization-kubeconfig=" + user,
            "--bind-address=127.0.0.1",
            f"--secure-port={self.ports['scheduler']}",
            "--cert-dir=" + self._pki("scheduler")]
        if self.features:
            argv.append("--feature-gates=" + gates(self.features))
        self.scheduler = self.process("scheduler", argv, env=env).start()
        wait_for("kube-scheduler is ready", self._scheduler_ready)
        return self.scheduler

    def _scheduler_call(self, where):
        crt, key = self.client_cert("admin", "admin", ["system:masters"])
        api = Api(f"https://127.0.0.1:{self.ports['scheduler']}", self.ca,
                  crt, key)
        # it signs its certificate itself
        api._context.check_hostname = False
        api._context.verify_mode = ssl.CERT_NONE
        return api.call("GET", where)

    def _scheduler_ready(self):
        return self.scheduler.alive() and self._scheduler_call("/readyz")

    def scheduler_metrics(self):
        return self._scheduler_call("/metrics")

    def tried(self, n):
        """That kube-scheduler has n pods that wait, each tried and put aside
        until something happens, and nothing to do; raises otherwise."""
        queues = {name: int(float(count)) for name, count in re.findall(
            r'^scheduler_pending_pods\{queue="(\w+)"\} (\S+)',
            self.scheduler_metrics(), re.M)}
        aside = queues.pop("unschedulable") + queues.pop("gated")
        assert aside == n and not any(queues.values()), \
            f"{aside} are put aside; {queues}"
        return True

    def wait_tried(self, n):
        wait_for(f"{n} pods are tried and put aside", lambda: self.tried(n),
                 every=0.1)

    def wait_ready(self):
        """Until the API server answers /readyz with ok."""
        return wait_for(
            "kube-apiserver is ready", lambda: self.etcd.alive() and
            self.apiserver.alive() and self.api.call("GET", "/readyz"))

    def kubectl(self, *args, stdin=None, check=True, config="admin"):
        """Run kubectl; its standard output, or with check=False all of
        subprocess's result."""
        got = subprocess.run(
            [self._program("kubectl"), "--kubeconfig",
             self.path(config + ".kubeconfig"),
             "--cache-dir", self.path("kubectl"), *args],
            input=stdin, capture_output=True, text=True, check=False)
        if not check:
            return got
        if got.returncode:
            raise RuntimeError(f"kubectl {' '.join(args)}: {got.stderr}")
        return got.stdout

    def apply(self, objects):
        """kubectl apply of objects or of a text of YAML."""
        if not isinstance(objects, str):
            objects = json.dumps({"apiVersion": "v1", "kind": "List",
                                  "items": list(objects)})
        return self.kubectl("apply", "-f", "-", stdin=objects)

    def ensure_namespace(self, name):
        try:
            self.api.create("namespaces", {"metadata": {"name": name}})
        except ApiError as error:
            if error.status != 409:
                raise

    def log_ends(self, lines=6):
        """The last lines of all logs, for a failed check; of Kubernetes'
        own only its errors."""
        found = []
        folder = self.path("log")
        for name in sorted(os.listdir(folder) if os.path.isdir(folder)
                           else []):
            with open(os.path.join(folder, name), encoding="utf-8",
                      errors="replace") as f:
                said = [line for line in f.read().splitlines()
                        if not QUIET.match(line)]
            found += [f"{name}: {line[:300]}" for line in said[-lines:]]
        return found
