"""Clusters that test files use one after the other: a control plane of its own
for each costs seconds of all processors.

    with pool.cluster() as c:
        c.start_scheduler()

Where $BIGA_KUBE_POOL names a folder, as tests/kube/pool sets it, a cluster
there that nobody uses is taken, or one is made.  Whoever takes one deletes
first what the one before has left.  Elsewhere it is a cluster of its own.
"""
import fcntl
import os
import shutil

from api import PREFIX, ApiError
from cluster import Cluster
from proc import Process, free_port, keep_port, wait_for

NAMESPACES = ("biga-system", "biga-nodes")
# what makes others goes first, and what others need last
FIRST = ("customresourcedefinitions", "deployments", "daemonsets",
         "statefulsets", "replicasets", "jobs", "cronjobs", "pods")
NEVER = ("bindings", "namespaces", "tokenreviews", "subjectaccessreviews",
         "selfsubjectaccessreviews", "workloads", "podgroups",
         "dpus", "dataprocessingunits")  # which go with their definitions
FEW = 8  # objects of a kind that are deleted one by one


def cluster():
    """A cluster without a scheduler, started: for `with`."""
    folder = os.environ.get("BIGA_KUBE_POOL")
    return Borrowed(folder) if folder else Own()


class Own(Cluster):
    def __enter__(self):
        return self.start()


def kinds():
    return [*FIRST, *(k for k in PREFIX if k not in FIRST)]


def there(api):
    """{(kind, namespace, name): object} of all that is in the cluster."""
    found = {}
    for kind in kinds():
        if kind in NEVER:
            continue
        for obj in api.list(kind):
            meta = obj["metadata"]
            found[(kind, meta.get("namespace"), meta["name"])] = obj
    return found


class Borrowed(Cluster):
    """A cluster of the pool, with a folder of its own for what the borrower
    writes and starts."""

    def __init__(self, pool):
        super().__init__()
        self.pool, self.lock, self.home = pool, None, None

    def __enter__(self):
        try:
            self._take()
            self._settle()
        except BaseException:
            self.__exit__(*[RuntimeError] * 3)
            raise
        return self

    def __exit__(self, kind, value, trace):
        if self.home:
            self._keep_logs()
        super().__exit__(kind, value, trace)
        if self.lock:
            self.lock.close()

    # --- which one ---------------------------------------------------------
    def _take(self):
        """Lock a cluster that nobody uses; make it when it is none yet."""
        for number in range(100):
            lock = open(os.path.join(self.pool, f"{number}.lock"), "ab")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                continue
            self.lock = lock
            break
        where = os.path.join(self.pool, str(number))
        self.home = self._sound(where) or self._make(where)

    @staticmethod
    def _sound(where):
        """The cluster there, if whoever had it has left it alive."""
        if not os.path.exists(os.path.join(where, "cluster.json")):
            return None
        home = Cluster.attach(where)
        parts = (home.etcd, home.apiserver, home.controller_manager)
        if not all(parts):
            home.stop()
            return None
        for part in parts:
            part.resume()  # whoever had it may have died while one stood
        home.wait_ready()
        return home

    @staticmethod
    def _make(where):
        old, Process.die_with_parent = Process.die_with_parent, False
        try:
            home = Cluster(where).start()
        finally:
            Process.die_with_parent = old
        for name in NAMESPACES:
            home.ensure_namespace(name)

        def begun():
            for name in NAMESPACES:
                home.api.get("serviceaccounts", name, "default")
                home.api.get("configmaps", name, "kube-root-ca.crt")
            return True
        wait_for("the new namespaces are whole", begun)
        with open(home.path("pristine"), "w", encoding="utf-8") as f:
            f.writelines(f"{kind} {namespace or '-'} {name}\n" for
                         kind, namespace, name in there(home.api))
        return home

    # --- as new ------------------------------------------------------------
    def _settle(self):
        """Move in: files of our own, and none of another's objects."""
        home = self.home
        self.bin, self.features = home.bin, {}
        for what, port in home.ports.items():
            if what != "scheduler":  # ours has its own
                keep_port(port)
        self.ports = {**home.ports, "scheduler": free_port()}
        self.etcd, self.apiserver = home.etcd, home.apiserver
        self.controller_manager = home.controller_manager
        for part in (self.etcd, self.apiserver, self.controller_manager):
            part.die_with_parent = False  # it is the pool's
        shutil.copytree(home.path("pki"), self.path("pki"))
        for name in os.listdir(home.folder):
            if name.endswith(".kubeconfig"):
                shutil.copy(home.path(name), self.path(name))
        os.makedirs(home.path("kubectl"), exist_ok=True)
        os.symlink(home.path("kubectl"), self.path("kubectl"))
        os.makedirs(self.path("log"))
        for name in os.listdir(home.path("log")):
            os.truncate(home.path("log", name), 0)
            os.symlink(home.path("log", name), self.path("log", name))
        shutil.copy(home.marker, self.marker)  # for Cluster.attach()
        self.clients = home.clients
        shutil.copy(home.ca, self.clients)
        self.api = self._admin()
        with open(home.path("pristine"), encoding="utf-8") as f:
            keep = {tuple(line.split()) for line in f}
        wait_for("the cluster is as new", lambda: self._clear(keep))

    def _clear(self, keep):
        """Delete what is not to be kept; whether there was nothing."""
        groups, kept = {}, set()
        for (kind, namespace, name), obj in there(self.api).items():
            if (kind, namespace or "-", name) in keep or \
                    (kind, namespace) == ("leases", "kube-system"):
                kept.add((kind, namespace))
            else:
                groups.setdefault((kind, namespace), []).append(obj)
        for (kind, namespace), objects in groups.items():
            if len(objects) > FEW and (kind, namespace) not in kept:
                self.api.delete_all(kind, namespace)
                continue
            for obj in objects:
                self._delete(kind, obj["metadata"])
        return not groups

    def _delete(self, kind, meta):
        where = kind, meta.get("namespace"), meta["name"]
        try:
            if meta.get("deletionTimestamp") and meta.get("finalizers"):
                self.api.patch(*where, {"metadata": {"finalizers": None}})
            self.api.delete(*where, gracePeriodSeconds=0)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    def _keep_logs(self):
        """Of the parts that others share, as they are now."""
        folder = self.path("log")
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            file = os.path.join(folder, name)
            if os.path.islink(file):
                shutil.copy(file, file + ".new")
                os.rename(file + ".new", file)
