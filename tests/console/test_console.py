#!/usr/bin/env python3
"""The console in a real browser: headless Chromium, driven by WebDriver, on a
fleet of a thousand simulated hosts.  Every page is clicked through, by mouse
and by keyboard, light and dark, wide and on a phone; axe-core looks at each;
nothing is asked of another server; and what tenants write is no markup."""
import json
import os
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import driver  # noqa: E402
from driver import Browser, wait_for  # noqa: E402
from sim_fleet import BUILD, Fleet, pod, see_bind, segment  # noqa: E402
from check import Checks, Skip  # noqa: E402

HOSTS = int(os.environ.get("BIGA_CONSOLE_HOSTS", "1000"))
AXE = f"{BUILD}/console/node_modules/axe-core/axe.min.js"
# What a tenant may try: in names, annotations, images, messages.  Without
# blanks, which some of these cannot have.
EVIL = "x\"><img/src=x/onerror=window.pwned=1><script>window.pwned=1" \
    "</script>"
PAGES = ["/", "/ui/nodes", "/ui/nodes/{node}", "/ui/leaves/leaf1",
         "/ui/cards/{node}/{card}", "/ui/jobs", "/ui/jobs/ml/train",
         "/ui/pending", "/ui/pods/ml/train-host-0", "/ui/pods/ml/huge-0",
         "/ui/events", "/ui/search?q=host", "/ui/replay", "/ui/login",
         "/ui/nodes/nobody"]


def shown(browser):
    """The page is there, and follows what changes."""
    browser.find("#live:not([hidden]):not(.lost), body.login, [data-still]")


def go(browser, fleet, path):
    """To a page of the fleet."""
    browser.get(fleet.base() + path)
    shown(browser)


def test_headers(t, fleet):
    with t.check("pages may run and load what this server gives, only"):
        for path in ("/", "/ui/nodes", "/ui/console.js", "/ui/login"):
            status, _ = fleet.call("read", "GET", path)
            assert status == 200, path
            policy = fleet.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy, policy
            assert "frame-ancestors 'none'" in policy, policy
            assert "unsafe" not in policy, policy
            assert fleet.headers["X-Content-Type-Options"] == "nosniff"
            assert fleet.headers["Referrer-Policy"] == "same-origin"
    with t.check("what has not changed is not sent again"):
        fleet.call("read", "GET", "/ui/nodes?fragment=1")
        etag = fleet.headers["ETag"]
        status, body = fleet.call("read", "GET", "/ui/nodes?fragment=1",
                                  headers={"If-None-Match": etag})
        assert (status, body) == (304, ""), (status, body)
    with t.check("an unknown page or parameter is refused"):
        for path, want in (("/ui/nodes/nobody", 404), ("/ui/nothing", 404),
                           ("/ui/cards/host0001/none", 404),
                           ("/ui/leaves/none", 404),
                           ("/ui/jobs/a/b", 404), ("/ui/pods/a/b", 404),
                           ("/ui/nodes?limit=0", 400),
                           ("/ui/nodes?status=odd", 400),
                           ("/ui/nodes?x=1", 400),
                           ("/ui/nodes?page=x", 400),
                           ("/ui/jobs?limit=1001", 400),
                           ("/?at=yesterday", 400),
                           ("/ui/events?kind=x", 400)):
            status, body = fleet.call("read", "GET", path)
            assert status == want, (path, status, body)


def test_clicks(t, fleet, browser):
    with t.check("the fleet: leaf, node and card, by clicks"):
        go(browser, fleet, "/")
        cells = browser.run("return document.querySelectorAll('a.cell')"
                            ".length")
        assert cells == HOSTS, cells
        browser.follow(".leaf h3 a")
        browser.find(".rows tbody th a")
        assert "/ui/leaves/leaf1" in browser.url(), browser.url()
        browser.follow(".rows tbody th a")
        browser.find("h2")
        assert "/ui/nodes/host" in browser.url(), browser.url()
        browser.follow(".path a:last-child")
        browser.follow("a[href^='/ui/nodes/']:not(nav a)")
        browser.find("dl.facts")
    with t.check("a node draws who has what, and leads to its card"):
        browser.follow("nav a[href='/ui/jobs']")
        browser.follow("a[href='/ui/jobs/ml/train']")
        browser.follow(".cell.mine")
        assert "train-host-" in browser.run(
            "return document.querySelector('.biga-drawing').textContent")
        assert browser.run("return document.querySelector('.drawing rect')"
                           ".getBoundingClientRect().width > 0")
        browser.follow(".rows th a[href^='/ui/cards/']")
        browser.find(".command")
        assert "biga drain host" in browser.text(), browser.text()
    with t.check("a node has bars of the cores and memory of its NUMA nodes"):
        node = fleet.place(pod("greedy", namespace="ml", memory="3Gi"))
        go(browser, fleet, f"/ui/nodes/{node}")
        facts = browser.text("dl.facts").replace("\n", " ")
        bars = re.findall(r"Memory of NUMA \d (\d+)/(\d+) GiB free", facts)
        assert sorted(int(b) - int(a) for a, b in bars) == [0, 3], facts
        assert re.search(r"CPUs of NUMA 1 \d+/\d+ free", facts), facts
    with t.check("nodes in pages, and by name"):
        browser.follow("nav a[href='/ui/nodes']")
        for path, first, n in (("/ui/nodes", 1, 100),
                               ("/ui/nodes?page=2&limit=300", 301, 300),
                               ("/ui/nodes?page=2&name=00", 101, 90)):
            rows = re.findall(r'<tr aria-rowindex="(\d+)"><th scope="row"',
                              fleet.call("read", "GET", path)[1])
            if "name" not in path:
                assert len(rows) == n, (path, rows)
            assert int(rows[0]) == first + 1, (path, rows)
        assert 'rel="prev"' in fleet.call("read", "GET",
                                          "/ui/nodes?page=99")[1]
        browser.fill("input[name=name]", "host0042")
        browser.follow(".filter button")
        wait_for("one node", lambda: len(browser.run(
            "return [...document.querySelectorAll('tbody tr')]"
            ".map((x) => x.innerText)")) == 1)
    with t.check("a job: its pairs, a pod of it, and its maps"):
        browser.follow("nav a[href='/ui/jobs']")
        browser.follow("a[href='/ui/jobs/ml/train']")
        text = browser.text()
        assert "PIX" in text and "train-xpu-31" in text, text
        rank = browser.run_async(
            "const done = arguments[0]; fetch(document.querySelector("
            "'.maps a').href).then((x) => x.text()).then(done)")
        assert "host" in rank, rank
        browser.follow("a[href='/ui/pods/ml/train-host-0']")
        browser.find("a.log")
        assert "PIX" in browser.text() or "PHB" in browser.text()
    with t.check("pending: why, and changes as commands"):
        browser.follow("nav a[href='/ui/pending']")
        assert "<br>" not in browser.text(), browser.text()
        browser.follow("a[href='/ui/pods/ml/huge-0']")
        browser.find(".changes .command")
        assert "kubectl" in browser.text(".changes"), browser.text()
        assert "no card" in browser.text(), browser.text()
    with t.check("search finds nodes, cards, jobs and pods"):
        for word, link in (("host0007", "/ui/nodes/host0007"),
                           ("leaf3", "/ui/leaves/leaf3"),
                           ("train", "/ui/jobs/ml/train"),
                           ("train-host-3", "/ui/pods/ml/train-host-3"),
                           ("huge-0", "/ui/pods/ml/huge-0"),
                           ("0000:1a:00", "/ui/cards/")):
            shown(browser)  # keys before that are lost
            browser.press("/", word)
            wait_for("what was typed", lambda w=word: browser.run(
                "return document.getElementById('q').value") == w)
            browser.press("Enter")
            # what was found before may have that link, too
            wait_for("its answer",
                     lambda w=word: f"“{w}”" in browser.text())
            browser.find(f".found a[href^='{link}']")


def test_lists(t, fleet, browser):
    def rows():
        """How many rows the document has, the focused one, and the last."""
        return browser.run(
            "const x = [...document.querySelectorAll('tbody tr:not(.room)')];"
            "return [x.length, document.activeElement.closest('tr')"
            "?.ariaRowIndex, Number(x.at(-1)?.ariaRowIndex)]")

    def at(index):
        wait_for(f"row {index}", lambda: rows()[1] == str(index))
    with t.check("a long list has the rows that are near, and all in its bar"):
        go(browser, fleet, "/ui/nodes?limit=20")
        wait_for("rows", lambda: 20 < rows()[0] < 150)
        assert browser.run("return document.querySelector('table')"
                           ".ariaRowCount") == str(HOSTS + 1)
        tall = browser.run("return document.querySelector('table')"
                           ".offsetHeight")
        assert tall > HOSTS * 20, tall
        browser.run("scrollTo(0, document.body.scrollHeight)")
        wait_for("the last row", lambda: rows()[2] == HOSTS + 1)
        wait_for("rows dropped", lambda: rows()[0] < 150)
    with t.check("keys go from row to row, to the last and to the first"):
        browser.run("scrollTo(0, 0)")
        wait_for("the first row", lambda: browser.run(
            "return document.querySelector('tbody:first-of-type a')"
            "?.innerText") == "host0001")
        browser.run("document.querySelector('tbody a').focus()")
        for i in range(3, 48):
            browser.press("Down")
            at(i)
        browser.press("End")
        at(HOSTS + 1)
        browser.press("Up")
        at(HOSTS)
    with t.check("a change is seen there, and the list stays where it is"):
        digits = len(str(HOSTS))
        wanted = pod("at-the-end", namespace="ml", gpus=0)
        name = fleet.filter(wanted, [f"host{HOSTS - i:0{digits}d}"
                                     for i in range(9)])[0]
        browser.run(
            "[...document.querySelectorAll('tbody a')].find((x) => "
            "x.innerText === arguments[0]).focus()", name)
        there = browser.run("return scrollY")
        status, answer = fleet.call(
            "scheduler", "POST", "/v1/scheduler/bind",
            {"PodName": "at-the-end", "PodNamespace": "ml", "Node": name,
             "PodUID": wanted["metadata"]["uid"]})
        assert status == 200 and not answer.get("Error"), answer
        wait_for("its pod", lambda: browser.run(
            "return document.activeElement.closest('tr').cells[5].innerText"
            ) == "1")
        assert abs(browser.run("return scrollY") - there) < 50
        assert browser.run("return document.activeElement.innerText") == name
        browser.press("Home")
        at(2)
    with t.check("the focus stays in its row, on links that others have, too"):
        go(browser, fleet, "/ui/nodes?limit=20")
        row = browser.run_async(
            "const done = arguments[0]; document.querySelectorAll("
            "\"tbody a[href='/ui/leaves/leaf1']\")[4].focus();"
            "list.pages[0].tag = ''; listLoad(list.pages[0]).then(() => done("
            "document.activeElement.closest('tr')?.ariaRowIndex))")
        assert row == "6", row
    with t.check("a page of a list leads to those beside it"):
        go(browser, fleet, "/ui/nodes?page=3&limit=20")
        wait_for("its rows", lambda: browser.run(
            "const r = [...document.querySelectorAll('tbody a')].find((x) => "
            "x.innerText === 'host0041')?.getBoundingClientRect();"
            "return r && r.top >= 0 && r.top < innerHeight"))
        browser.run("scrollTo(0, 0)")
        wait_for("the first", lambda: "host0001" in browser.text())
    with t.check("a job's pairs, and events, are such lists"):
        go(browser, fleet, "/ui/jobs/ml/train?limit=4")
        wait_for("all pairs", lambda: browser.run(
            "scrollBy(0, 200); return document.body.innerText")
            .count("train-xpu-31"))
        go(browser, fleet, "/ui/events?limit=10")
        browser.run("document.querySelector('tbody a').focus()")
        for i in range(3, 34):
            browser.press("Down")
            at(i)
        wait_for("the 90th", lambda: browser.run(
            "scrollBy(0, 200); return [...document.querySelectorAll("
            "'tr[aria-rowindex=\"91\"] a')].map((x) => x.focus()).length"))
        wait_for("the first dropped", lambda: not browser.run(
            "return document.querySelector('tr[aria-rowindex=\"2\"]')"))
        browser.press("Home")
        at(2)
    with t.check("events that come meanwhile leave none out"):
        first = "list.pages[0].body.rows[0].textContent"
        go(browser, fleet, "/ui/events?limit=10")
        was = browser.run(f"scrollTo(0, 200); return {first}")
        wait_for("the first dropped", lambda: browser.run(
            "scrollBy(0, 200); return !list.pages[0].here"))
        assert fleet.place(pod("one-more", namespace="ml", gpus=0))
        wait_for("its event", lambda: "one-more" in json.dumps(fleet.call(
            "read", "GET", "/v1/events?namespace=ml&order=desc&limit=20")))
        now = browser.run_async(
            "const done = arguments[0]; listLoad(list.pages[0]).then(() => "
            f"done({first}))")
        assert now == was, (was, now)


def test_time(t, fleet, browser):
    with t.check("a time that was left open is now, and stays fresh"):
        go(browser, fleet, "/?at=")
        assert not browser.run("return busy()")
    with t.check("events lead to what they are of"):
        go(browser, fleet, "/ui/events")
        wait_for("an event", lambda: "Bound" in browser.text() or
                 browser.ask("POST", "/refresh"))
        browser.follow("a[href^='/ui/jobs/ml/train'], "
                       "a[href^='/ui/pods/ml/train-']")
        browser.find("h1")
    with t.check("a slider shows the fleet as it was"):
        go(browser, fleet, "/")
        browser.run("const m = document.getElementById('moment');"
                    "m.value = -600; m.dispatchEvent(new Event('input'))")
        browser.find("main .then")
        assert "at=" in browser.url(), browser.url()
        wait_for("the answer", lambda: not browser.run("return going"))
        browser.run(
            "window.asked = 0; const ask = fetch; fetch = (...x) => {"
            "window.asked++; return ask(...x); };"
            "const m = document.getElementById('moment');"
            "for (let i = -500; i < -100; i++) {"
            "m.value = i; m.dispatchEvent(new Event('input')); }")
        wait_for("the answers", lambda: not browser.run("return going"))
        asked = browser.run("return window.asked")
        assert asked == 2, f"{asked} questions for one move"
        browser.click("#now")
        wait_for("now", lambda: not browser.run(
            "return document.querySelector('main .then')"))
        assert "at=" not in browser.url(), browser.url()
    with t.check("a node, card, job and pod as they were a moment ago"):
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for path, text in (("/ui/nodes/{node}", "train-host"),
                           ("/ui/cards/{node}/{card}", "Who had what"),
                           ("/ui/jobs/ml/train", "train-host-0"),
                           ("/ui/pods/ml/train-host-0", "since")):
            path = path.format(node=fleet.node,
                               card=fleet.card) + f"?at={at}"
            wait_for(path, lambda p=path, x=text: x in fleet.call(
                "read", "GET", p)[1])


def test_past(t, fleet, browser):
    with t.check("lists and leaves as they were"):
        stuck = pod("stuck", namespace="lab", cards=16)
        del stuck["metadata"]["uid"], stuck["status"]
        status, answer = fleet.call("read", "POST", "/v1/pods", {
            "apiVersion": "v1", "kind": "Pod", **stuck})
        assert status == 200, answer

        def told(reason):
            """When that was told of it."""
            items = fleet.call("read", "GET", "/v1/events?namespace=lab")[1][
                "items"]
            return next((x["time"] for x in items if x["reason"] == reason),
                        None)
        at = wait_for("a refusal", lambda: told("Refused"))
        fleet.call("read", "DELETE", "/v1/pods/lab/stuck")
        wait_for("its end", lambda: told("Ended"))
        for path, text in (("/ui/nodes", f'aria-rowcount="{HOSTS + 1}"'),
                           ("/ui/nodes?name=host0042&status=ready",
                            'aria-rowcount="2"'),
                           ("/ui/leaves/leaf2", 'aria-rowcount="17"'),
                           ("/ui/jobs", '<td class="n">64</td>'),
                           ("/ui/pending", "fits none of"),
                           ("/ui/events", ">lab/stuck<")):
            path += ("&" if "?" in path else "?") + "at=" + at
            status, page = fleet.call("read", "GET", path)
            assert status == 200 and text in page, (path, page)
        assert "lab/stuck" not in fleet.call("read", "GET", "/ui/pending")[1]

    def jobs():
        """Where the link of the bar leads that is not followed."""
        return browser.run(
            "const a = [...document.querySelectorAll('nav a')].find((x) => "
            "x.innerText === 'Jobs'); addEventListener('click', (e) => "
            "e.preventDefault(), {once: true}); a.click(); return a.href")
    with t.check("their slider leads there, and links stay there"):
        go(browser, fleet, f"/ui/nodes?limit=20&at={at}")
        browser.run("scrollTo(0, document.body.scrollHeight)")
        wait_for("the last", lambda: f"host{HOSTS}" in browser.text())
        browser.follow("nav a[href='/ui/pending']")
        assert "lab/stuck" in browser.run(
            "return document.querySelector('tbody a').href")
        assert "/ui/jobs?at=" in jobs(), jobs()
        browser.click("#now")
        wait_for("now", lambda: not browser.run(
            "return document.querySelector('main .then')"))
        assert jobs().endswith("/ui/jobs"), jobs()
        assert "stuck" not in browser.text(), browser.text()
        browser.run("const m = document.getElementById('moment');"
                    "m.value = -1; m.dispatchEvent(new Event('input'))")
        browser.find("main .then")


def test_replay(t, fleet, browser):
    report = f"{fleet.dir}/report.json"
    subprocess.run([f"{BUILD}/biga", "replay", "--hosts", "16", "--fabric",
                    "leaf=8", "--generate", "mpi:jobs=10", "--json", report],
                   check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    with t.check("a replay's report opens"):
        go(browser, fleet, "/ui/replay")
        browser.fill("#report", report)
        browser.find("#replayed svg.stack")
        assert "most-allocated" in browser.text("#replayed")
    with t.check("a file that is none is told, and its text is no markup"):
        with open(report, encoding="utf-8") as file:
            bad = json.load(file)
        bad["results"][0]["policy"] = EVIL
        for name, data in (("evil.json", json.dumps(bad)), ("no.json", "{"),
                           ("odd.json", '{"results": 7}')):
            path = f"{fleet.dir}/{name}"
            with open(path, "w", encoding="utf-8") as file:
                file.write(data)
            go(browser, fleet, "/ui/replay")
            browser.fill("#report", path)
            browser.find("#replayed > *")
            assert not browser.run("return window.pwned")
            text = browser.text("#replayed")
            assert ("onerror" in text) == (name == "evil.json"), text
            assert ("results:" in text) == (name == "odd.json"), text


def test_keyboard(t, fleet, browser):
    def focus(what="?.outerHTML"):
        return browser.run(f"return document.activeElement{what}")
    with t.check("the first key leads past the bar"):
        go(browser, fleet, "/")
        browser.press("Tab")
        assert "skip" in focus(), focus()
        browser.press("Enter")
        wait_for("the content", lambda: focus(".id") == "main")
    with t.check("one cell is in the order of Tab, arrows lead on"):
        assert browser.run("return document.querySelectorAll('a.cell:not("
                           "[tabindex=\"-1\"])').length") == 1
        browser.run("document.querySelector('a.cell').focus()")
        first = focus(".pathname")
        browser.press("Right")
        second = focus(".pathname")
        browser.press("Down")
        third = focus(".pathname")
        browser.press("Up", "Left")
        assert focus(".pathname") == first != second != third
        browser.press("End")
        last = focus(".pathname")
        browser.press("Enter")
        wait_for("its page", lambda: last in browser.url())
    with t.check("/ is the search, Escape leaves it"):
        shown(browser)  # keys before that are lost
        browser.press("/")
        assert focus(".id") == "q", focus()
        browser.press("Escape")
        assert focus(".id") == "main", focus()
    with t.check("arrows go from row to row"):
        go(browser, fleet, "/ui/nodes")
        browser.run("document.querySelector('tbody a').focus()")
        browser.press("Down", "Down", "Up")
        assert focus(".pathname").endswith("2"), focus()


def test_looks(t, fleet, browser):
    def back():
        return browser.run("return getComputedStyle(document.body)"
                           ".backgroundColor")
    with t.check("dark is dark"):
        browser.look()
        go(browser, fleet, "/")
        light = back()
        browser.look(dark=True)
        dark = back()
        assert sum(map(int, light[4:-1].split(","))) > 600, light
        assert sum(map(int, dark[4:-1].split(","))) < 150, dark
    with t.check("on a phone nothing is wider than the screen"):
        browser.look(phone=True, width=390, height=844)
        for path in PAGES:
            go(browser, fleet, path.format(node=fleet.node, card=fleet.card))
            wide = browser.run("return document.documentElement.scrollWidth")
            assert wide <= 390, (path, wide)
    browser.look()


def test_axe(t, fleet, browser):
    with t.check("axe-core finds nothing serious"):
        if not os.path.exists(AXE):
            raise Skip("there is no axe-core: scripts/setup --console")
        with open(AXE, encoding="utf-8") as file:
            axe = file.read()
        bad = []
        for dark in (False, True):
            browser.look(dark=dark)
            for path in PAGES:
                go(browser, fleet,
                   path.format(node=fleet.node, card=fleet.card))
                # by the driver, which no policy of the page holds back
                browser.run(axe)
                found = browser.run_async(
                    "const done = arguments[0]; axe.run().then((x) => done("
                    "x.violations.map((v) => [v.impact, v.id, v.nodes[0].html,"
                    " v.nodes[0].failureSummary])))")
                bad += [(path, dark, *x) for x in found
                        if x[0] in ("serious", "critical")]
        browser.look()
        assert not bad, bad


def refuse_names(t, fleet):
    """No page is ever given these."""
    pods = {"metadata.name": pod(EVIL, "host", None),
            "metadata.namespace": pod("p", "host", None, namespace=EVIL),
            "biga.dev/job": pod("p", "host", EVIL)}
    with t.check("a pod, namespace or job has no name that is markup"):
        for part, wanted in pods.items():
            status, answer = fleet.call(
                "scheduler", "POST", "/v1/scheduler/filter",
                {"Pod": wanted, "NodeNames": [fleet.free]})
            assert status == 200 and part in answer["Error"], answer
            assert not answer["NodeNames"], answer
            status, answer = fleet.call("read", "POST", "/v1/pods",
                                        {"kind": "Pod", **wanted})
            assert status == 400 and part in answer["error"], answer


def applied(name):
    """A Pod with markup wherever a text may be any."""
    wanted = pod(name, "xpu", f"{name}-job", namespace="evil")
    wanted["metadata"]["annotations"] |= {"note": EVIL}
    wanted["spec"]["containers"][0] |= {"image": EVIL, "command": [EVIL],
                                        "env": [{"name": "A", "value": EVIL}]}
    return {"kind": "Pod", **wanted}


def write_evil(fleet):
    """All that tenants can have written is there; pages, and how often at
    least it is to be read on each."""
    fleet.publish_runner("runner")
    for name in ("runs", "failed"):
        status, answer = fleet.call("read", "POST", "/v1/pods", applied(name))
        assert status == 200, answer
        wait_for(name, lambda path=f"/v1/allocations/evil/{name}":
                 fleet.call("read", "GET", path)[0] == 200)
    # what a container wrote as it ended, and its runtime of its image
    said = {"ran": True, "reason": EVIL, "message": EVIL, "containers": [
        {"name": "c", "state": "exited", "exitCode": 1, "reason": EVIL}]}
    fleet.report("runner", {"evil/runs": {"state": "running", **said},
                            "evil/failed": {"state": "failed", **said}})
    status, answer = fleet.call(
        "read", "POST", f"/v1/cards/{fleet.node}/{fleet.card}/drain",
        {"reason": EVIL})
    assert status == 200, answer
    # kube-scheduler asks about one that breaks its contract
    _, answer = fleet.call(
        "scheduler", "POST", "/v1/scheduler/filter",
        {"Pod": pod("odd", "host", "odd", 0, 2, namespace="evil", annotations={
            "biga.dev/align": EVIL}), "NodeNames": [fleet.free]})
    assert "biga.dev/align" in answer["Error"], answer
    return {"/ui/jobs": 2, "/ui/pending": 1, "/ui/events": 3,
            "/ui/pods/evil/runs": 2, "/ui/pods/evil/failed": 2,
            "/ui/pods/evil/odd": 1, "/ui/jobs/evil/runs-job": 2,
            "/ui/jobs/evil/failed-job": 2, f"/ui/nodes/{fleet.node}": 1,
            f"/ui/cards/{fleet.node}/{fleet.card}": 1,
            f"/ui/search?q={segment(EVIL)}": 1}


def test_injection(t, fleet, browser):
    refuse_names(t, fleet)
    evil = segment(EVIL)
    with t.check("what tenants can write is there to be read"):
        pages = write_evil(fleet)
        for path, times in pages.items():
            wait_for(path, lambda p=path, n=times: fleet.call(
                "read", "GET", p)[1].count("&lt;img/src=x/onerror=") >= n)
    with t.check("and is no markup"):
        for path in [*pages, "/", "/ui/nodes", "/ui/nodes/runner",
                     "/ui/leaves/leaf1", "/ui/search?q=evil",
                     f"/ui/pods/evil/{evil}", f"/ui/jobs/evil/{evil}",
                     f"/ui/pods/{evil}/p", f"/ui/nodes/{evil}",
                     f"/ui/leaves/{evil}", f"/ui/cards/{evil}/{evil}",
                     f"/ui/nodes?name={evil}", f"/ui/events?node={evil}",
                     f"/ui/events?job={evil}", f"/?at={evil}"]:
            browser.get(fleet.base() + path)
            browser.find("h1")
            bad = browser.run(
                "return window.pwned || [...document.querySelectorAll("
                "'img, main script')].map((x) => x.outerHTML).join()")
            assert not bad, (path, bad)
            if path in pages:
                assert "onerror=" in browser.text("main"), path
    with t.check("no policy was ever in the way"):
        said = [x for x in browser.log("browser")
                if "Content Security Policy" in x["message"]]
        assert not said, said


def test_fresh(t, fleet, browser):
    with t.check("an allocation is seen after its bind"):
        bound, seen = see_bind(browser, fleet, "soon-seen")
        t.note(f"bound in {bound:.0f} ms, seen {seen:.0f} ms after that")
    with t.check("whoever types or marks is not interrupted"):
        go(browser, fleet, "/ui/nodes?name=host")
        browser.run("document.querySelector('input[name=name]').focus();"
                    "document.querySelector('table').kept = true")
        fleet.place(pod("another", namespace="ml"))
        go_on = browser.run_async(
            "const done = arguments[0]; const c = new EventSource("
            "'/v1/changes'); c.addEventListener('change', () => {c.close();"
            "done(document.querySelector('table').kept)})")
        assert go_on


def test_origins(t, fleet, browser):
    with t.check("nothing is asked of another server"):
        urls = browser.requests()
        assert len(urls) > 100, urls
        other = [x for x in urls if not x.startswith(
            (fleet.base() + "/", "data:", "about:"))]
        assert not other, other[:5]


def main():
    driver.require()
    fleet = Fleet(HOSTS)
    t = Checks(on_failure=lambda: fleet.log().splitlines()[-5:])
    fleet.note = t.note
    browser = Browser()
    try:
        fleet.publish()
        fleet.furnish()
        browser.look()
        test_headers(t, fleet)
        for test in (test_clicks, test_lists, test_time, test_past,
                     test_replay, test_keyboard, test_looks, test_axe,
                     test_fresh, test_injection, test_origins):
            test(t, fleet, browser)
    finally:
        browser.close()
        fleet.close()
    t.finish()


main()
