"""A small client of the Kubernetes API: JSON in, dictionaries out."""
import base64
import http.client
import json
import os
import socket
import ssl
import threading
import urllib.parse

from proc import HANGS

# the group and version under which each kind of object is found
GROUPS = {
    "bindings pods nodes namespaces events services secrets configmaps "
    "serviceaccounts podtemplates endpoints resourcequotas": "/api/v1",
    "resourceslices resourceclaims resourceclaimtemplates deviceclasses":
        "/apis/resource.k8s.io/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "jobs cronjobs": "/apis/batch/v1",
    "deployments replicasets daemonsets statefulsets": "/apis/apps/v1",
    "runtimeclasses": "/apis/node.k8s.io/v1",
    "priorityclasses": "/apis/scheduling.k8s.io/v1",
    "workloads podgroups": "/apis/scheduling.k8s.io/v1beta1",
    "endpointslices": "/apis/discovery.k8s.io/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
    "roles rolebindings clusterroles clusterrolebindings":
        "/apis/rbac.authorization.k8s.io/v1",
    "validatingadmissionpolicies validatingadmissionpolicybindings "
    "mutatingadmissionpolicies mutatingadmissionpolicybindings":
        "/apis/admissionregistration.k8s.io/v1",
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    "dpus": "/apis/provisioning.dpu.nvidia.com/v1alpha1",
    "dataprocessingunits": "/apis/config.openshift.io/v1",
    "tokenreviews": "/apis/authentication.k8s.io/v1",
    "subjectaccessreviews selfsubjectaccessreviews":
        "/apis/authorization.k8s.io/v1",
}
PREFIX = {name: prefix for names, prefix in GROUPS.items()
          for name in names.split()}

PATCHES = {"merge": "application/merge-patch+json",
           "strategic": "application/strategic-merge-patch+json",
           "json": "application/json-patch+json",
           "apply": "application/apply-patch+yaml"}


def path(kind, namespace=None, name=None, sub=None):
    """path("pods", "default", "a", "binding") and so on."""
    parts = [PREFIX[kind]]
    if namespace is not None:
        parts += ["namespaces", namespace]
    parts.append(kind)
    parts += [urllib.parse.quote(p) for p in (name, sub) if p is not None]
    return "/".join(parts)


class ApiError(Exception):
    def __init__(self, status, body):
        self.status = status
        self.body = body
        self.reason = body.get("reason", "") if isinstance(body, dict) else ""
        message = body.get("message") if isinstance(body, dict) else body
        super().__init__(f"{status} {self.reason}: {message}")


class Api:
    """One user of one API server; each thread has its own connection."""

    def __init__(self, server, ca=None, cert=None, key=None, token=None,
                 timeout=HANGS):
        url = urllib.parse.urlsplit(server)
        self.server, self.host, self.port = server, url.hostname, url.port
        self.tls = url.scheme == "https"
        self.token, self.timeout = token, timeout
        self._local = threading.local()
        self._context = None
        if self.tls:
            self._context = ssl.create_default_context(cafile=ca)
            if cert:
                self._context.load_cert_chain(cert, key)

    def as_token(self, token, ca):
        """The same server for another user."""
        return Api(self.server, ca=ca, token=token, timeout=self.timeout)

    def connection(self, timeout=None):
        """A new connection, the caller's own."""
        timeout = timeout or self.timeout
        if self.tls:
            return http.client.HTTPSConnection(
                self.host, self.port, timeout=timeout, context=self._context)
        return http.client.HTTPConnection(self.host, self.port,
                                          timeout=timeout)

    def headers(self, content_type="application/json"):
        headers = {"Accept": "application/json",
                   "Content-Type": content_type}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        return headers

    def raw(self, method, where, body=None, content_type="application/json"):
        """Status, headers and bytes of one request.

        A kept connection that the server has closed meanwhile is opened
        again; what a new connection does is what it does.
        """
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body)
        connection = getattr(self._local, "connection", None)
        kept = connection is not None
        while True:
            if connection is None:
                connection = self.connection()
            try:
                if connection.sock is None:
                    connection.connect()
                    connection.sock.setsockopt(socket.IPPROTO_TCP,
                                               socket.TCP_NODELAY, 1)
                connection.request(method, where, data,
                                   self.headers(content_type))
                answer = connection.getresponse()
                content = answer.read()
                self._local.connection = connection
                return answer.status, answer.headers, content
            except (OSError, http.client.HTTPException):
                connection.close()
                self._local.connection = connection = None
                if not kept:
                    raise
                kept = False

    def call(self, method, where, body=None, content_type="application/json"):
        """The answer's object; ApiError unless it is 2xx."""
        status, headers, content = self.raw(method, where, body, content_type)
        text = content.decode("utf-8", "replace")
        if "json" in headers.get("Content-Type", ""):
            answer = json.loads(text)
        else:
            answer = text
        if not 200 <= status < 300:
            raise ApiError(status, answer)
        return answer

    def get(self, kind, namespace=None, name=None, sub=None):
        return self.call("GET", path(kind, namespace, name, sub))

    def maybe(self, kind, namespace=None, name=None):
        """The object, or None when there is none."""
        try:
            return self.get(kind, namespace, name)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, kind, namespace=None, **query):
        """All objects; query: labelSelector, fieldSelector."""
        where = path(kind, namespace)
        return self._pages(where, query)["items"]

    def list_with_version(self, kind, namespace=None, **query):
        got = self._pages(path(kind, namespace), query)
        return got["items"], got["metadata"]["resourceVersion"]

    def _pages(self, where, query):
        if query:
            where += "?" + urllib.parse.urlencode(query)
        return self.call("GET", where)

    def create(self, kind, obj, sub=None, **query):
        """POST an object; its namespace is in its metadata."""
        meta = obj.get("metadata", {})
        where = path(kind, meta.get("namespace"),
                     meta["name"] if sub else None, sub)
        if query:
            where += "?" + urllib.parse.urlencode(query)
        return self.call("POST", where, obj)

    def update(self, kind, obj, sub=None):
        meta = obj["metadata"]
        return self.call(
            "PUT", path(kind, meta.get("namespace"), meta["name"], sub), obj)

    def patch(self, kind, namespace, name, change, how="merge", sub=None,
              **query):
        where = path(kind, namespace, name, sub)
        if query:
            where += "?" + urllib.parse.urlencode(query)
        return self.call("PATCH", where, change, PATCHES[how])

    def delete(self, kind, namespace=None, name=None, missing_ok=False,
               **options):
        """options: gracePeriodSeconds, propagationPolicy, preconditions."""
        try:
            return self.call("DELETE", path(kind, namespace, name),
                             {"kind": "DeleteOptions", "apiVersion": "v1",
                              **options})
        except ApiError as error:
            if not (missing_ok and error.status == 404):
                raise
            return None

    def delete_all(self, kind, namespace=None, **query):
        where = path(kind, namespace)
        if query:
            where += "?" + urllib.parse.urlencode(query)
        return self.call("DELETE", where,
                         {"kind": "DeleteOptions", "apiVersion": "v1",
                          "gracePeriodSeconds": 0})

    def watch(self, kind, namespace=None, timeout=30.0, **query):
        """Events ("ADDED", object) of one watch until timeout seconds of
        silence or the server's end."""
        query["watch"] = "true"
        where = path(kind, namespace) + "?" + urllib.parse.urlencode(query)
        connection = self.connection(timeout)
        try:
            connection.request("GET", where, headers=self.headers())
            answer = connection.getresponse()
            if answer.status != 200:
                raise ApiError(answer.status,
                               answer.read().decode("utf-8", "replace"))
            while True:
                try:
                    line = answer.readline()
                except (TimeoutError, OSError, http.client.HTTPException):
                    return
                if not line:
                    return
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            connection.close()

    def token_request(self, namespace, account, node=None, seconds=3600):
        """A token of a service account, bound to a node when one is named."""
        spec = {"expirationSeconds": seconds}
        if node:
            uid = self.get("nodes", None, node)["metadata"]["uid"]
            spec["boundObjectRef"] = {"kind": "Node", "apiVersion": "v1",
                                      "name": node, "uid": uid}
        answer = self.call(
            "POST", path("serviceaccounts", namespace, account, "token"),
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
             "spec": spec})
        return answer["status"]["token"]


def kubeconfig(server, ca, user, cert=None, key=None, token=None,
               embed=False):
    """The text of a kubeconfig: files by name, or with what they hold."""
    def field(name, file):
        if not embed:
            return {name: file}
        with open(file, "rb") as f:
            data = base64.b64encode(f.read()).decode()
        return {name + "-data": data}

    who = {}
    if cert:
        who.update(field("client-certificate", cert))
        who.update(field("client-key", key))
    if token:
        who["token"] = token
    cluster = {"server": server, **field("certificate-authority", ca)}
    quoted = json.dumps

    def lines(entries):
        return "".join(f"    {k}: {quoted(v)}\n" for k, v in entries.items())

    return ("apiVersion: v1\nkind: Config\n"
            "clusters:\n- name: biga\n  cluster:\n" + lines(cluster)
            + f"users:\n- name: {quoted(user)}\n  user:\n" + lines(who)
            + "contexts:\n- name: biga\n  context:\n    cluster: biga\n"
            + f"    user: {quoted(user)}\ncurrent-context: biga\n")


def write_private(file, text):
    """Write a file that its owner alone can read."""
    handle = os.open(file + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
                     0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(file + ".new", file)
    return file
