#!/usr/bin/env python3
"""Logging in to the console with a token, in a real browser, with TLS and
without: who has none gets a page that asks for one, and no data."""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import driver  # noqa: E402
from driver import Browser  # noqa: E402
from sim_fleet import Fleet  # noqa: E402
from check import Checks  # noqa: E402

TOKEN = "a-token-of-this-test-0123456789"


def certificates(folder):
    """A server's, for https://127.0.0.1."""
    for args in (["ca", folder],
                 ["server", folder, "extender", "--san", "127.0.0.1"]):
        subprocess.run(["deploy/certs.sh", *args], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return ["--tls-cert", f"{folder}/extender.crt", "--tls-key",
            f"{folder}/extender.key", "--client-ca", f"{folder}/ca.crt"]


def log_in(browser, token):
    browser.fill("#token", token)
    browser.click("form button")


def test_login(t, browser, folder, secure):
    tokens = f"{folder}/tokens"
    with open(tokens, "w", encoding="utf-8") as file:
        file.write(f"{TOKEN},somebody\n")
    options = ["--read-tokens", tokens]
    if secure:
        options += certificates(f"{folder}/pki")
    how = "with TLS" if secure else "without TLS"
    fleet = Fleet(4, *options)
    base = fleet.base("https" if secure else "http")
    try:
        with t.check(f"{how}, no page without a token, but one that asks"):
            for path in ("/", "/ui/nodes", "/ui/jobs", "/ui/events"):
                browser.get(base + path)
                assert browser.find("#token")
                assert "Pods placed" not in browser.text("body")
        with t.check(f"{how}, a wrong token gets a line, and no data"):
            log_in(browser, "not-a-token-of-anybody-at-all")
            browser.find("[role=alert]")
            assert "nobody's" in browser.text("[role=alert]")
            assert not browser.run("return document.querySelector('nav')")
        with t.check(f"{how}, the right one leads to the page that was asked"):
            page = base + "/ui/nodes?name=host"
            browser.get(page)
            log_in(browser, TOKEN)
            browser.find("nav")
            assert browser.url() == page, browser.url()
            browser.find("#live:not([hidden])")
            name = "__Host-biga" if secure else "biga"
            cookie = next(x for x in browser.ask("GET", "/cookie")
                          if x["name"] == name)
            assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
            assert cookie["secure"] == secure and "expiry" not in cookie
            assert TOKEN not in browser.run("return document.cookie + "
                                            "document.documentElement."
                                            "outerHTML")
        with t.check(f"{how}, pages of elsewhere get nothing for the cookie"):
            status = browser.run_async(
                "const done = arguments[0]; fetch('/v1/allocations/a/b', "
                "{method: 'DELETE'}).then((x) => done(x.status))")
            assert status == 403, status
        with t.check(f"{how}, who has logged out is asked again"):
            browser.click("form[action='/ui/logout'] button")
            browser.find("#token")
            browser.get(base + "/ui/nodes")
            browser.find("#token")
        if not secure:
            test_cookie(t, fleet)
    finally:
        fleet.close()


def test_cookie(t, fleet):
    cookie = {"Cookie": f"biga={TOKEN}"}
    cases = [("/v1/nodes", {}, 200),
             ("/v1/nodes", {"Sec-Fetch-Site": "same-origin"}, 200),
             ("/v1/nodes", {"Sec-Fetch-Site": "none"}, 200),
             ("/v1/nodes", {"Sec-Fetch-Site": "same-site"}, 403),
             ("/v1/nodes", {"Sec-Fetch-Site": "cross-site"}, 403)]
    with t.check("a cookie is for pages of this server, and to read"):
        for path, headers, want in cases:
            status, body = fleet.call("read", "GET", path,
                                      headers=cookie | headers)
            assert status == want, (path, headers, status, body)
    with t.check("nobody logs another one in from elsewhere"):
        status, _ = fleet.call("read", "POST", "/ui/login",
                               headers={"Origin": "http://evil"})
        assert status == 403, status


def main():
    driver.require()
    t, browser = Checks(), Browser()
    try:
        for secure in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                test_login(t, browser, folder, secure)
    finally:
        browser.close()
    t.finish()


main()
