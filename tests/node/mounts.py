"""What pods are given, tried with kubectl at a Place: volumes, environment,
names, images, limits."""
import base64
import json

import registry
from api import path
from pods import WAIT, sh
from proc import wait_for

MANY = 20  # changes of one ConfigMap


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default"}, "data": data}


def secret(name, kind="Opaque", **data):
    return {"apiVersion": "v1", "kind": "Secret", "type": kind,
            "metadata": {"name": name, "namespace": "default"},
            "stringData": data}


def mounted(**paths):
    return [{"name": name, "mountPath": at} for name, at in paths.items()]


TOKEN = {"name": "token", "projected": {"sources": [
    {"serviceAccountToken": {"path": "token", "expirationSeconds": 600,
                             "audience": "somebody"}},
    {"configMap": {"name": "kube-root-ca.crt"}},
    {"downwardAPI": {"items": [
        {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}}


def test_volumes(t, p):
    p.r.c.apply([config_map(p.name("cm"), a="1", b="2"),
                 secret(p.name("sec"), s="hidden")])
    name = p.up(
        "vols", sh(
            WAIT, volumeMounts=[
                *mounted(cm="/cm", sec="/sec", token="/token", down="/down",
                         empty="/empty", memory="/memory"),
                {"name": "cm", "mountPath": "/one/b", "subPath": "b"},
                {"name": "empty", "mountPath": "/part", "subPath": "in/it"},
                {"name": "memory", "mountPath": "/mpart", "subPath": "it"}],
            env=[{"name": "A", "valueFrom": {"configMapKeyRef": {
                      "name": p.name("cm"), "key": "a"}}},
                 {"name": "S", "valueFrom": {"secretKeyRef": {
                     "name": p.name("sec"), "key": "s"}}},
                 {"name": "IP", "valueFrom": {"fieldRef": {
                     "fieldPath": "status.podIP"}}}]),
        labels={"app": p.name("vols"), "color": "red"},
        volumes=[
            {"name": "cm", "configMap": {"name": p.name("cm")}},
            {"name": "sec", "secret": {"secretName": p.name("sec"),
                                       "defaultMode": 0o400}},
            TOKEN,
            {"name": "down", "downwardAPI": {"items": [
                {"path": "labels", "fieldRef": {
                    "fieldPath": "metadata.labels"}}]}},
            {"name": "empty", "emptyDir": {}},
            {"name": "memory", "emptyDir": {"medium": "Memory",
                                            "sizeLimit": "2Mi"}}])
    test_given(t, p, name)
    test_changes(t, p, name)
    p.gone(name)


def test_given(t, p, name):
    with t.check("configMap, secret, downwardAPI, subPath and environment"):
        assert p.sh(name, "cat /cm/a /cm/b /one/b") == "122"
        assert p.sh(name, "cat /sec/s; stat -Lc %a /sec/s") == "hidden400\n"
        assert 'color="red"' in p.execute(name, "cat", "/down/labels")
        said = p.sh(name, "echo $A $S $IP").split()
        assert said == ["1", "hidden",
                        p.r.pod(name)["status"]["podIP"]], said
    with t.check("projected: a token, a certificate, a name"):
        token = p.execute(name, "cat", "/token/token").split(".")
        claims = json.loads(base64.urlsafe_b64decode(token[1] + "==="))
        assert claims["aud"] == ["somebody"], claims
        assert claims["kubernetes.io"]["pod"]["name"] == name, claims
        said = p.sh(name, "cat /token/name; head -n 1 /token/ca.crt")
        assert said == name + "-----BEGIN CERTIFICATE-----\n", said
    with t.check("emptyDir, also in memory and then with a limit"):
        p.sh(name, "echo x >/empty/x; echo y >/memory/y")
        assert p.sh(name, "cat /empty/x >/part/x; cat /memory/y >/mpart/y; "
                    "cat /empty/in/it/x /memory/it/y") == "x\ny\n"
        assert "tmpfs" in p.sh(name, "grep ' /memory ' /proc/mounts")
        got = p.k("exec", name, "--", "dd", "if=/dev/zero", "bs=1M",
                  "count=4", "of=/memory/z", check=False)
        assert got.returncode and "No space" in got.stderr, got
    with t.check("nothing of a secret lies on a disk"):
        assert "tmpfs" in p.sh(name, "grep ' /sec ' /proc/mounts")
        assert "tmpfs" in p.sh(name, "grep ' /token ' /proc/mounts")


def test_changes(t, p, name):
    with t.check("a ConfigMap's change arrives, whole: both keys or none"):
        script = "while :; do d=$(readlink /cm/..data); a=$(cat /cm/$d/a) " \
            "b=$(cat /cm/$d/b); [ \"$a\" = 1 ] || [ -z \"$a\" ] || " \
            "[ -z \"$b\" ] || [ \"$a\" = \"$b\" ] || echo torn $a $b; " \
            f"[ \"$a\" = {MANY} ] && exit 0; done 2>/dev/null"
        watch = p.r.talk("exec", name, "--", "sh", "-c", script)
        for n in range(2, MANY + 1):
            p.r.c.api.call("PATCH", path("configmaps", "default",
                                         p.name("cm")),
                           {"data": {"a": str(n), "b": str(n)}},
                           "application/merge-patch+json")
        assert watch.wait() == 0, watch.text
        assert "torn" not in watch.text, watch.text
        assert p.sh(name, "cat /one/b") == "2", "a subPath stays as it was"
    with t.check("a label that changes is seen by downwardAPI"):
        p.k("label", "--overwrite", "pod", name, "color=blue")
        wait_for("it arrives", lambda: 'color="blue"' in p.execute(
            name, "cat", "/down/labels"))


def test_missing(t, p):
    with t.check("a volume that is not there yet holds the pod back"):
        name = p.apply("lacks", sh(WAIT, volumeMounts=mounted(cm="/cm")),
                       volumes=[{"name": "cm", "configMap": {
                           "name": p.name("later")}}])
        p.event(name, "FailedMount", "not found")
        p.r.c.apply([config_map(p.name("later"), a="1")])
        p.ready(name)
        p.gone(name)


def test_names(t, p):
    with t.check("hostname, /etc/hosts and resolv.conf"):
        name = p.up("names", sh(WAIT), dnsConfig={"searches": ["a.test"]},
                    hostAliases=[{"ip": "192.0.2.1",
                                  "hostnames": ["alias.test"]}])
        address = p.r.pod(name)["status"]["podIP"]
        assert p.execute(name, "hostname") == p.hostname(name) + "\n"
        hosts = p.execute(name, "cat", "/etc/hosts")
        assert address in hosts and "alias.test" in hosts, hosts
        resolv = p.execute(name, "cat", "/etc/resolv.conf")
        assert "10.0.0.10" in resolv and "a.test" in resolv, resolv
        p.gone(name)


def test_rights(t, p):
    with t.check("user, groups, a read-only root, no new privileges"):
        name = p.up("rights", sh(
            WAIT, securityContext={
                "runAsUser": 1000, "runAsGroup": 3000,
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]}}),
            securityContext={"supplementalGroups": [4000]})
        # 50000: that the image says, of this user
        said = p.sh(name, "id -u; id -G").split()
        assert sorted(said) == ["1000", "3000", "4000", "50000"], said
        got = p.k("exec", name, "--", "touch", "/tmp/x", check=False)
        assert "Read-only" in got.stderr, got
        status = p.execute(name, "grep", "-E", "NoNewPrivs|CapEff",
                           "/proc/self/status")
        assert status.split() == ["CapEff:", "0" * 16, "NoNewPrivs:", "1"], \
            status
        p.gone(name)


def test_images(t, p):
    with t.check("an image that is not there is named"):
        name = p.apply("noimage", sh(WAIT, image="biga.test/none:1"))
        p.event(name, "Failed", "biga.test/none:1")
        wait_for("kubectl says so", lambda: "ImagePull" in p.k(
            "get", "pod", name))
        p.gone(name)
    with t.check("one that needs a password is pulled with the pod's, and "
                 "not without"):
        image = "biga.test/private/busybox:full"
        name = p.apply("denied", sh(WAIT, image=image,
                                    imagePullPolicy="Always"))
        p.event(name, "Failed")
        p.gone(name)
        login = base64.b64encode(f"{registry.USER}:{registry.PASSWORD}"
                                 .encode()).decode()
        p.r.c.apply([secret(p.name("login"), "kubernetes.io/dockerconfigjson",
                            **{".dockerconfigjson": json.dumps(
                                {"auths": {"biga.test": {"auth": login}}})})])
        name = p.up("private", sh(WAIT, image=image,
                                  imagePullPolicy="Always"),
                    imagePullSecrets=[{"name": p.name("login")}])
        p.event(name, "Pulled", "pulled")
        p.gone(name)


ALL = (test_volumes, test_missing, test_names, test_rights, test_images)
