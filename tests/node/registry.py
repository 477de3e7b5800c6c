#!/usr/bin/env python3
"""A registry of images that can be pulled from, and nothing else: what
images.py made, by the OCI distribution protocol.

    registry.py DIR PORT

Every registry's images are looked for here under their path alone: a runtime
calls it as the mirror of all.  Those below private/ are for USER alone.
"""
import base64
import json
import os
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USER, PASSWORD = "biga", "of the tests"
PATH = re.compile(r"/v2/(.+)/(manifests|blobs)/([A-Za-z0-9_.:-]+)")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder = None

    def _answer(self, status, data=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _may(self):
        said = self.headers.get("Authorization", "")
        return said == "Basic " + base64.b64encode(
            f"{USER}:{PASSWORD}".encode()).decode()

    def _digest(self, name, reference):
        """Of a tag; None when there is none."""
        if DIGEST.fullmatch(reference):
            return reference
        with open(os.path.join(self.folder, "tags.json"),
                  encoding="utf-8") as f:
            return json.load(f).get(name, {}).get(reference)

    def _read(self, digest):
        try:
            with open(os.path.join(self.folder, "blobs",
                                   *digest.split(":")), "rb") as f:
                return f.read()
        except FileNotFoundError:
            return None

    def do_GET(self):
        where = self.path.partition("?")[0]
        if where == "/v2/":
            self._answer(200)
            return
        parts = PATH.fullmatch(where)
        if not parts:
            self._answer(404)
            return
        name, kind, reference = parts.groups()
        if name.startswith("private/") and not self._may():
            self._answer(401, WWW_Authenticate='Basic realm="tests"')
            return
        digest = self._digest(name, reference)
        data = digest and self._read(digest)
        if not data:
            self._answer(404)
            return
        told = json.loads(data)["mediaType"] if kind == "manifests" \
            else "application/octet-stream"
        self._answer(200, data, Content_Type=told,
                     Docker_Content_Digest=digest)

    do_HEAD = do_GET


class Server(ThreadingHTTPServer):
    daemon_threads = True


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    Handler.folder = sys.argv[1]
    Server(("0.0.0.0", int(sys.argv[2])), Handler).serve_forever()


if __name__ == "__main__":
    main()
