"""What others have of pods at a Place: Services, numbers."""
import json

import cards
from pods import WAIT, sh
from proc import wait_for
from verbs import WEB, fetch


def endpoints(p, name):
    """{address: ready} of a Service."""
    return {e["addresses"][0]: e["conditions"].get("ready")
            for s in p.r.c.api.list(
                "endpointslices", "default",
                labelSelector=f"kubernetes.io/service-name={name}")
            for e in s["endpoints"] or ()}


def test_service(t, p):
    name = p.name("svc")
    p.r.c.apply([{
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"serves": name},
                 "ports": [{"port": 80, "targetPort": "web"}]}}])
    pods = [p.up(f"serve{n}", sh(
        WEB, ports=[{"name": "web", "containerPort": 8080}],
        readinessProbe={"httpGet": {"port": "web", "path": "/"},
                        "periodSeconds": 1, "failureThreshold": 1}),
        labels={"serves": name}) for n in range(p.servers)]
    addresses = {p.r.pod(pod)["status"]["podIP"] for pod in pods}
    with t.check("a Service has its pods' addresses"):
        wait_for("they are there", lambda: endpoints(p, name) ==
                 dict.fromkeys(addresses, True))
        for address in addresses:
            assert fetch(address, 8080).startswith("hello from")
    with t.check("kube-proxy leads its own address to them"):
        address = p.r.c.api.get("services", "default",
                                name)["spec"]["clusterIP"]
        heard = set()

        def all_heard():
            heard.add(fetch(address, 80).split()[-1])
            assert heard == set(map(p.hostname, pods)), heard
            return True
        wait_for("each has answered", all_heard)
    with t.check("one that is not ready is taken out, one that is gone too"):
        p.sh(pods[0], "rm /tmp/w/index.html")
        gone = p.r.pod(pods[0])["status"]["podIP"]
        wait_for("it is out", lambda: endpoints(p, name).get(gone) is False)
        p.k("delete", "pod", *pods)
        wait_for("none is there", lambda: not endpoints(p, name))
        p.k("delete", "service", name)


def raw(p, where):
    return p.k("get", "--raw", f"/api/v1/nodes/{cards.NODE}/proxy/{where}")


def test_numbers(t, p):
    name = p.up("busy", sh("while :; do :; done & dd if=/dev/zero of=/dev/shm/"
                           "x bs=1M count=8; " + WAIT))
    with t.check("the summary API has what a pod uses"):
        def used():
            found = next(one for one in json.loads(
                raw(p, "stats/summary"))["pods"]
                if one["podRef"]["name"] == name)
            main = found["containers"][0]
            assert main["cpu"]["usageNanoCores"] > 0, main
            assert main["memory"]["workingSetBytes"] > 8 << 20, main
            return found
        t.note(json.dumps(wait_for("it is there", used))[:200])
    with t.check("and so has the endpoint that metrics-server reads"):
        def told():
            line = next(line for line in raw(p, "metrics/resource").split("\n")
                        if line.startswith("container_cpu_usage_seconds_total")
                        and f'pod="{name}"' in line)
            assert float(line.split("}")[1].split()[0]) > 0, line
            return True
        wait_for("it is there", told)
    p.gone(name, "--grace-period=1")


ALL = (test_service, test_numbers)
