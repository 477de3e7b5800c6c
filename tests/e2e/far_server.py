#!/usr/bin/env python3
"""A stand-in for the extender's streams of pods (schema/openapi.yaml): what is
run "in a pod" is run here, its ports are this machine's.  Prints its port."""
import base64
import contextlib
import fcntl
import hashlib
import http.server
import json
import os
import pty
import select
import socket
import socketserver
import struct
import subprocess
import sys
import termios
import threading
import urllib.parse

MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
STREAMS = {"container", "stdin", "stdout", "stderr", "tty"}
PARAMETERS = {
    "log": {"container", "follow", "previous", "timestamps", "tailLines",
            "sinceSeconds", "sinceTime", "limitBytes"},
    "exec": STREAMS | {"command"},
    "attach": STREAMS,
    "portforward": {"ports"},
}
LOG = ["one", "two \x1b[31mred", "three"]


def frame(data):
    n = len(data)
    head = bytes([0x82, n]) if n < 126 else \
        bytes([0x82, 126]) + struct.pack(">H", n) if n < 65536 else \
        bytes([0x82, 127]) + struct.pack(">Q", n)
    return head + data


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def finish(self):
        # a thread that reads has close() wait until the client has gone
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
        super().finish()

    def refuse(self, status, text):
        body = json.dumps({"error": text}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def upgrade(self, protocol):
        if protocol not in self.headers["Sec-WebSocket-Protocol"]:
            self.refuse(400, "Sec-WebSocket-Protocol")
            return False
        key = self.headers["Sec-WebSocket-Key"] + MAGIC
        digest = hashlib.sha1(key.encode()).digest()
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", "websocket")
        self.send_header("Sec-WebSocket-Accept",
                         base64.b64encode(digest).decode())
        self.send_header("Sec-WebSocket-Protocol", protocol)
        self.end_headers()
        self.close_connection = True
        self.lock = threading.Lock()
        return True

    def send(self, data):
        with self.lock:
            self.connection.sendall(frame(data))

    def messages(self):
        with contextlib.suppress(OSError, ValueError):  # we have ended
            yield from self.frames()

    def frames(self):
        read = self.rfile.read
        while True:
            head = read(2)
            if len(head) < 2 or head[0] & 15 == 8:
                return
            n = head[1] & 127
            if n == 126:
                n, = struct.unpack(">H", read(2))
            elif n == 127:
                n, = struct.unpack(">Q", read(8))
            mask, data = read(4), read(n)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
            if head[0] & 15 == 2:
                yield data

    # --- what is asked -------------------------------------------------------

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query, keep_blank_values=True)
        parts = url.path.split("/")[2:]
        if parts[0] == "jobs":
            self.answer({"namespace": parts[1], "name": parts[2],
                         "pairList": [{"members": [
                             {"role": "host", "name": "p-0"},
                             {"role": "xpu", "name": "p-0-xpu"}]}]})
        elif parts == ["pods"] and query.get("namespace") == ["other"]:
            self.answer({})  # as other servers may
        elif parts == ["pods"]:
            self.answer({"items": [
                {"namespace": "default", "name": n, "labels": {"app": n}}
                for n in ("p-0", "p-1")]})
        elif parts[2] == "p-o":
            self.refuse(404, "there is no pod default/p-o")
        elif len(parts) == 3:
            self.answer({"namespace": parts[1], "name": parts[2]})
        elif parts[2] == "away":
            self.refuse(503, "node n1 is away since 2026-01-02T03:04:05Z")
        elif parts[2] in ("at-once", "over-at-once"):
            self.at_once(parts[2] == "over-at-once")
        elif unknown := set(query) - PARAMETERS[parts[3]]:
            self.refuse(400, f"unknown query parameter {unknown}")
        else:
            getattr(self, parts[3])(query)

    def at_once(self, over):
        """All that a command says, and the end, arrive together."""
        cork = socket.IPPROTO_TCP, socket.TCP_CORK
        self.connection.setsockopt(*cork, 1)
        if self.upgrade("v5.channel.k8s.io"):
            self.send(b"\x01hello\n")
            self.send(b'\x03{"status":"Success"}')
        if over:
            self.connection.shutdown(socket.SHUT_WR)
        self.connection.setsockopt(*cork, 0)
        self.rfile.read()  # until the client has gone

    def log(self, query):
        lines = LOG[-int(query.get("tailLines", ["99"])[0]):]
        text = "".join(line + "\n" for line in lines)
        if "sinceTime" in query:
            text += f"since {query['sinceTime'][0]}\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Connection", "close")
        self.end_headers()
        limit = int(query.get("limitBytes", [str(1 << 40)])[0])
        self.wfile.write(text.encode()[:limit])
        self.close_connection = True

    def exec(self, query):
        if not self.upgrade("v5.channel.k8s.io"):
            return
        tty = query["tty"] == ["true"]
        ours, theirs = pty.openpty() if tty else (None, None)
        pipe = subprocess.PIPE
        p = subprocess.Popen(
            query["command"], start_new_session=True,
            stdin=theirs or (pipe if query["stdin"] == ["true"] else
                             subprocess.DEVNULL),
            stdout=theirs or pipe, stderr=theirs or pipe)
        if tty:
            os.close(theirs)
        to = os.fdopen(os.dup(ours), "wb", 0) if tty else p.stdin
        reader = threading.Thread(target=self.feed, args=(to, ours),
                                  daemon=True)
        reader.start()
        files = {ours: 1} if tty else {p.stdout.fileno(): 1,
                                       p.stderr.fileno(): 2}
        while files:
            for fd in select.select(list(files), [], [])[0]:
                try:
                    data = os.read(fd, 65536)
                except OSError:  # a terminal that nobody has any more
                    data = b""
                if data:
                    self.send(bytes([files[fd]]) + data)
                else:
                    del files[fd]
        code = p.wait()
        status = {"status": "Success"} if code == 0 else {
            "status": "Failure", "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode",
                                    "message": str(code)}]}}
        self.send(b"\x03" + json.dumps(status).encode())

    def feed(self, to, terminal):
        for data in self.messages():
            try:
                if data[0] == 0:
                    to.write(data[1:])
                    to.flush()
                elif data[0] == 4 and terminal is not None:
                    size = json.loads(data[1:])
                    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack(
                        "HHHH", size["Height"], size["Width"], 0, 0))
                elif data == b"\xff\x00":
                    to.close()
            except (OSError, ValueError):
                pass

    def portforward(self, query):
        if not self.upgrade("v4.channel.k8s.io"):
            return
        port = int(query["ports"][0])
        for channel in (0, 1):
            self.send(bytes([channel]) + struct.pack("<H", port))
        try:
            to = socket.create_connection(("127.0.0.1", port))
        except OSError as error:
            self.send(b"\x01" + str(error).encode())
            return
        threading.Thread(target=self.pass_on, args=(to,), daemon=True).start()
        while data := to.recv(65536):
            self.send(b"\x00" + data)

    def pass_on(self, to):
        with contextlib.suppress(OSError):
            for data in self.messages():
                if data == b"\xff\x00":
                    to.shutdown(socket.SHUT_WR)
                else:
                    to.sendall(data[1:])


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        if not isinstance(sys.exc_info()[1], OSError):  # the client has gone
            super().handle_error(request, address)


server = Server(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()  # until who started us ends
