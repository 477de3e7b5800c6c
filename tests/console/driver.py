"""A headless Chromium, driven by WebDriver over plain HTTP: Debian's chromium
and chromium-driver, and nothing but Python's standard library."""
import base64
import http.client
import json
import os
import re
import shutil
import subprocess
import tempfile
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                             "..", "kube"))
from network import own_network  # noqa: E402
from proc import HANGS, wait_for  # noqa: E402

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync",
         "--hide-scrollbars", "--force-color-profile=srgb"]
STARTS = 5
PATIENCE = 60  # seconds, on a machine that has nothing else to do
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c",
        "End": "\ue010", "Home": "\ue011", "Left": "\ue012", "Up": "\ue013",
        "Right": "\ue014", "Down": "\ue015"}


def lacks():
    """Why there can be no browser; None: there can."""
    for tool in ("chromium", "chromedriver"):
        if not shutil.which(tool):
            return f"there is no {tool}: scripts/setup --console"
    return None


def require():
    """Ends a test where there can be no browser: it is skipped.  Where there
    can be, it gets a network of its own, since a page that loads while an
    interface of the machine changes fails with ERR_NETWORK_CHANGED."""
    why = lacks()
    if why:
        print(why)
        sys.exit(77)
    try:
        own_network()
    except OSError as error:
        print(f"# in the network of the machine: {error.strerror}")


class Browser:
    """One window."""

    def __init__(self, flags=()):
        self.data = tempfile.mkdtemp(prefix="biga-chromium-")
        port = next(filter(None, (self.start() for _ in range(STARTS))), None)
        assert port, "chromedriver has not started"
        self.http = http.client.HTTPConnection("127.0.0.1", port,
                                               timeout=HANGS)
        options = {"args": FLAGS + list(flags) +
                   ["--user-data-dir=" + self.data],
                   "perfLoggingPrefs": {"enableNetwork": True,
                                        "enablePage": True}}
        answer = self.call("POST", "/session", {"capabilities": {
            "alwaysMatch": {
                "browserName": "chrome",
                "acceptInsecureCerts": True,
                "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
                "goog:chromeOptions": options}}})
        self.path = "/session/" + answer["sessionId"]
        self.ask("POST", "/timeouts", {"script": int(HANGS * 1000)})
        self.get("about:blank")
        self.requests()  # those of the first page are not ours

    def start(self):
        """The port of the driver; None: it has ended, since of the port that
        it chose another program had a half (IPv4, IPv6) meanwhile."""
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, bufsize=1)
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                return int(found.group(1))
        self.driver.wait()
        self.driver.stdout.close()
        return None

    def close(self):
        """The browser and its driver end, and what they kept goes."""
        try:
            self.ask("DELETE", "")
        except (OSError, RuntimeError, http.client.HTTPException):
            pass  # it has gone by itself
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        shutil.rmtree(self.data, ignore_errors=True)

    def call(self, method, path, body=None):
        """One request of the protocol."""
        data = json.dumps(body or {}) if method == "POST" else None
        self.http.request(method, path, data,
                          {"Content-Type": "application/json"})
        answer = self.http.getresponse()
        value = json.loads(answer.read())["value"]
        if answer.status != 200:
            raise RuntimeError(f"{value['error']}: {value['message']}")
        return value

    def ask(self, method, path, body=None):
        """The same of this window."""
        return self.call(method, self.path + path, body)

    # --- what a person does ---------------------------------------------

    def get(self, url):
        """Go there.  The driver does not say of all failures that there were
        some: the page is one of Chromium's own then."""
        self.ask("POST", "/url", {"url": url})
        if self.run("return location.protocol") == "chrome-error:":
            raise RuntimeError(f"{url}: {self.text('body')}")

    def url(self):
        """Where it is."""
        return self.ask("GET", "/url")

    def title(self):
        """Of the page."""
        return self.ask("GET", "/title")

    def find(self, css):
        """The first element, which may take a moment to be there."""
        def look():
            try:
                return self.ask("POST", "/element", {
                    "using": "css selector", "value": css})[ELEMENT]
            except RuntimeError as error:
                if "no such element" not in str(error):
                    raise
                return None
        return wait_for(css, look, PATIENCE)

    def click(self, css):
        """On the first such element; what was swapped meanwhile is found
        again."""
        wait_for("click on " + css, lambda: self.ask(
            "POST", f"/element/{self.find(css)}/click") is None, PATIENCE)

    def follow(self, css):
        """Click on what leads to another page, until that is there."""
        clicked = False

        def there():
            nonlocal clicked
            if self.run("return !window.left && "
                        "document.readyState === 'complete'"):
                return True
            if not clicked:
                self.ask("POST", f"/element/{self.find(css)}/click")
                clicked = True
            return False
        self.run("window.left = true")
        wait_for("the page behind " + css, there, PATIENCE)

    def fill(self, css, text):
        """Text into the first such element, or a file."""
        wait_for("text into " + css, lambda: self.ask(
            "POST", f"/element/{self.find(css)}/value",
            {"text": text}) is None, PATIENCE)

    def text(self, css="main"):
        """What is seen of it."""
        return self.run("return document.querySelector(arguments[0])"
                        "?.innerText ?? ''", css)

    def press(self, *keys):
        """Keys, by name or as text, wherever the focus is."""
        actions = []
        for key in keys:
            for letter in [KEYS[key]] if key in KEYS else key:
                actions += [{"type": "keyDown", "value": letter},
                            {"type": "keyUp", "value": letter}]
        self.ask("POST", "/actions", {"actions": [
            {"type": "key", "id": "keys", "actions": actions}]})

    # --- what a test asks ------------------------------------------------

    def run(self, script, *args):
        """The value that a script returns."""
        return self.ask("POST", "/execute/sync", {
            "script": script, "args": list(args)})

    def run_async(self, script, *args):
        """The value that a script gives to its last argument."""
        return self.ask("POST", "/execute/async", {
            "script": script, "args": list(args)})

    def cdp(self, command, **params):
        """A command of Chromium's own protocol."""
        return self.ask("POST", "/goog/cdp/execute", {
            "cmd": command, "params": params})

    def log(self, kind):
        """What was logged since the last time."""
        return self.ask("POST", "/se/log", {"type": kind})

    def requests(self):
        """URLs asked for since the last time."""
        urls = []
        for entry in self.log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                urls.append(message["params"]["request"]["url"])
        return urls

    def look(self, dark=False, width=1400, height=900, phone=False):
        """How it is looked at."""
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme",
             "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.cdp("Emulation.setDeviceMetricsOverride", width=width,
                 height=height, deviceScaleFactor=1, mobile=phone)
        self.cdp("Emulation.setTouchEmulationEnabled", enabled=phone)

    def screenshot(self, path):
        """What is seen, as PNG."""
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("GET", "/screenshot")))
