"""Kinds that others bring: of the real names, enough to take objects of
them."""
from proc import HANGS, wait_for


def define(c, *kinds):
    """Each is (group, version, kind, plural)."""
    for group, version, kind, plural in kinds:
        c.apply([{
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural,
                          "singular": kind.lower()},
                "versions": [{
                    "name": version, "served": True, "storage": True,
                    "schema": {"openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True}}}]}}])
    c.kubectl("wait", "--for=condition=Established", "crd", "--all",
              f"--timeout={HANGS:.0f}s")
    # it is known as established before it is served
    for group, version, _, plural in kinds:
        wait_for(f"{plural} are served", lambda where=f"/apis/{group}/"
                 f"{version}/{plural}": c.api.call("GET", where))
