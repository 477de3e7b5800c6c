#!/usr/bin/env python3
"""What deploy/ has for Prometheus and Grafana, held against a real Prometheus,
the extender at $BIGA_SERVER, and an advertiser and a biga-cri of its own.  TAP
lines."""
import contextlib
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/kube"))
from proc import free_port  # noqa: E402

FOLDER = os.path.join(ROOT, "deploy/kustomize/components/monitoring")
TESTS = os.path.join(ROOT, "tests/e2e/alerts.yaml")
HANGS = 300
SERVER = os.environ["BIGA_SERVER"]


class Tap:
    n = 0

    def ok(self, faults, name):
        self.n += 1
        print(f"{'not ok' if faults else 'ok'} {self.n} - {name}", flush=True)
        for line in faults:
            print(f"# {line}")


def get(url, pki=None):
    """pki: as of advertiser()."""
    context = None
    if pki:
        context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
        context.load_cert_chain(f"{pki}/prometheus.crt",
                                f"{pki}/prometheus.key")
    with urllib.request.urlopen(url, timeout=HANGS,
                                context=context) as answer:
        return answer.read().decode()


def promtool(*args, text=None):
    """The lines that it said, when it found something."""
    got = subprocess.run(["promtool", *args], input=text, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         check=False)
    return got.stdout.splitlines() if got.returncode else []


def rules():
    """The file of rules in the PrometheusRule."""
    with open(os.path.join(FOLDER, "prometheusrule.yaml"),
              encoding="utf-8") as f:
        lines = f.read().split("\nspec:\n")[1].splitlines()
    return "\n".join(line[2:] for line in lines) + "\n"


def queries():
    """Of the dashboard: its panel, its query."""
    with open(os.path.join(FOLDER, "dashboard.json"), encoding="utf-8") as f:
        board = json.load(f)
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def dashboard_faults():
    """What Grafana would not show as it is meant."""
    with open(os.path.join(FOLDER, "dashboard.json"), encoding="utf-8") as f:
        board = json.load(f)
    ids = [p["id"] for p in board["panels"]]
    if len(set(ids)) != len(ids):
        yield "two panels have one id"
    taken = {}
    for p in board["panels"]:
        at = p["gridPos"]
        if at["x"] + at["w"] > 24:
            yield f"{p['title']}: is wider than the page"
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                if (x, y) in taken:
                    yield f"{p['title']}: lies on {taken[x, y]}"
                    return
                taken[x, y] = p["title"]
        if p["type"] != "row" and not p.get("targets"):
            yield f"{p['title']}: has no query"
    for name in ("title", "uid", "schemaVersion", "templating"):
        if not board.get(name):
            yield f"there is no {name}"


def known_metrics(text):
    """Names of samples that the program can write."""
    names = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M):
        names |= {name + s for s in ("_bucket", "_sum", "_count")} \
            if kind == "histogram" else {name}
    return names


def named(query):
    text = re.sub(r'"[^"]*"', "", query)
    return set(re.findall(r"\b(?:biga|process)_[a-z_]+", text))


@contextlib.contextmanager
def running(argv, log):
    with open(log, "w", encoding="utf-8") as file:
        process = subprocess.Popen(argv, stdout=file, stderr=file)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def program(name):
    return os.path.join(ROOT, os.environ.get("BUILD", "build"), name)


@contextlib.contextmanager
def router(folder):
    """A biga-cri whose home is not there yet."""
    at, state = f"127.0.0.1:{free_port()}", os.path.join(folder, "cri")
    os.mkdir(state, 0o700)
    with running([program("biga-cri"), "--node", "monitored",
                  "--listen", f"unix://{state}/cri.sock",
                  "--home", f"unix://{folder}/no-home.sock",
                  "--state", state, "--kubelet-dir", f"{state}/kubelet",
                  "--pod-logs", f"{state}/logs", "--metrics-listen", at],
                 os.path.join(folder, "cri.log")) as process:
        until(lambda: process.poll() is not None or
              get(f"http://{at}/metrics"), "biga-cri told its metrics")
        yield {"at": at, "pki": None}


def certificates(pki):
    """Of an advertiser and of Prometheus, as deploy/ makes them."""
    for args in (("ca", pki), ("server", pki, "advertiser", "--san",
                               "127.0.0.1"),
                 ("client", pki, "prometheus", "--cn", "prometheus")):
        subprocess.run([os.path.join(ROOT, "deploy/certs.sh"), *args],
                       check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def advertiser(folder):
    """One of a described host, with places for pods; where its metrics are,
    for who has a certificate.  It publishes nothing: that is no publish
    listener."""
    at, pki = f"127.0.0.1:{free_port()}", os.path.join(folder, "pki")
    certificates(pki)
    with running([program("biga-advertiser"), "--node", "monitored",
                  "--hostfile", "dell-r7525-2bf2", "--interval", "0s",
                  "--server", SERVER,
                  "--actuate", os.path.join(folder, "actuator"),
                  "--host-runtime", f"unix://{folder}/no-runtime.sock",
                  "--metrics-listen", at,
                  "--metrics-cert", f"{pki}/advertiser.crt",
                  "--metrics-key", f"{pki}/advertiser.key",
                  "--metrics-client-ca", f"{pki}/ca.crt"],
                 os.path.join(folder, "advertiser.log")) as process:
        until(lambda: process.poll() is not None or
              get(f"https://{at}/metrics", pki), "it told its metrics")
        yield {"at": at, "pki": pki}


@contextlib.contextmanager
def prometheus(folder, hosts):
    """One that scrapes these each second; its address."""
    at, jobs = f"127.0.0.1:{free_port()}", []
    for name, host in hosts.items():
        job = {"job_name": f"biga-{name}",
               "static_configs": [{"targets": [host["at"]]}]}
        if host["pki"]:
            job |= {"scheme": "https", "tls_config": {
                "ca_file": f"{host['pki']}/ca.crt",
                "cert_file": f"{host['pki']}/prometheus.crt",
                "key_file": f"{host['pki']}/prometheus.key"}}
        jobs.append(job)
    with open(os.path.join(folder, "prometheus.yml"), "w",
              encoding="utf-8") as f:
        json.dump({"global": {"scrape_interval": "1s",
                              "evaluation_interval": "1s"},
                   "rule_files": ["rules.yml"], "scrape_configs": jobs}, f)
    with running(["prometheus", f"--config.file={folder}/prometheus.yml",
                  f"--storage.tsdb.path={folder}/data",
                  f"--web.listen-address={at}"], os.path.join(folder, "log")):
        yield f"http://{at}"


def ask(base, path, **query):
    text = get(f"{base}/api/v1/{path}?{urllib.parse.urlencode(query)}")
    return json.loads(text)["data"]


def until(true, what):
    limit = time.monotonic() + HANGS
    while time.monotonic() < limit:
        try:
            if true():
                return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit(f"Bail out! hung until {what}")


def against_prometheus(tap, folder, known, hosts):
    with prometheus(folder, hosts) as base:
        until(lambda: len(ask(base, "query", query="up == 1")["result"]) ==
              len(hosts), "all were scraped")
        faults = []
        for title, query in queries():
            faults += [f"{title}: no metric {name}"
                       for name in sorted(named(query) - known)]
            try:
                ask(base, "query", query=query)
            except OSError as error:
                faults.append(f"{title}: {query}: {error}")
        tap.ok(faults, "each query of the dashboard is answered")
        shown = [q for _, q in queries() if ask(base, "query", query=q)
                 ["result"]]
        tap.ok([] if len(shown) > 10 else [f"only {shown}"],
               f"{len(shown)} of {len(list(queries()))} have something to "
               "show of a demo")

        def judged():
            groups = ask(base, "rules")["groups"]
            return [r for g in groups for r in g["rules"]
                    if r["health"] != "unknown"]
        until(judged, "rules were evaluated")
        tap.ok([f"{r['name']}: {r.get('lastError')}" for r in judged()
                if r["health"] != "ok"], "each alert is evaluated")


def judge(tap, folder, hosts):
    known = set()
    for name, host in hosts.items():
        text = get(f"http{'s' if host['pki'] else ''}://{host['at']}/metrics",
                   host["pki"])
        known |= known_metrics(text)
        tap.ok(promtool("check", "metrics", text=text),
               f"promtool check metrics of the {name}")
        tap.ok([f"no {x}" for x in (f"biga_{name}_build_info",
                                    "process_cpu_seconds_total",
                                    "process_resident_memory_bytes",
                                    "process_open_fds")
                if x not in known_metrics(text)],
               f"the {name} tells of its build and its process")
    tap.ok(list(dashboard_faults()), "the dashboard is whole")
    alerts = set(re.findall(r"alert: (\w+)", rules()))
    with open(TESTS, encoding="utf-8") as f:
        tested = set(re.findall(r'alertname="(\w+)"', f.read()))
    tap.ok(sorted(alerts ^ tested), "each alert has a test")
    tap.ok(sorted(set().union(*map(named, re.findall(
        r"expr: (?:>-\n)?((?:.*\n)+?) +(?:for|labels):", rules()))) - known),
        "each metric of an alert is there")
    with open(os.path.join(folder, "rules.yml"), "w", encoding="utf-8") as f:
        f.write(rules())
    with open(TESTS, encoding="utf-8") as f, \
            open(os.path.join(folder, "tests.yml"), "w",
                 encoding="utf-8") as to:
        to.write("rule_files: [rules.yml]\n" + f.read())
    tap.ok(promtool("check", "rules", f"{folder}/rules.yml"),
           "promtool check rules")
    tap.ok(promtool("test", "rules", f"{folder}/tests.yml"),
           "alerts come when they have to, and not before")
    against_prometheus(tap, folder, known, hosts)


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder, \
            advertiser(folder) as node, router(folder) as cri:
        judge(tap, folder, {
            "extender": {"at": urllib.parse.urlsplit(SERVER).netloc,
                         "pki": None},
            "advertiser": node, "cri": cri})


main()
