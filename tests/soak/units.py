"""Pods of the plan that come and go together."""
import threading

import node as biga_node


class Unit:
    """Pods of the plan that come and go together."""

    def __init__(self, what, pods):
        self.what, self.pods = what, pods
        self.id, self.kind = what["id"], what["kind"]
        self.lock = threading.Lock()
        self.over = threading.Event()  # it is to end
        self.acked = self.deleted = False
        self.node = None  # of a bind
        self.uid = None

    def names(self):
        return [p["metadata"]["name"] for p in self.pods]


def make(what):
    """The pods of a unit."""
    name, kind = what["id"], what["kind"]
    if kind == "pair":
        return biga_node.pair(name)
    if kind == "job":
        return biga_node.job(name, what["size"])
    if kind == "service":
        return [biga_node.service(name, cores=1)]
    if kind == "short":
        return [biga_node.service(name, cores=1, restartPolicy="Never",
                                  args=["sleep", str(what["runs"])])]
    return [biga_node.service(
        name, cores=1, volumes=[{"name": "e", "emptyDir": {}}],
        container={"volumeMounts": [{"name": "e", "mountPath": "/e"}]})]
