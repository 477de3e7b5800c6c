"""Streams of pods, without Biga: the client's side of Kubernetes' WebSocket
protocol, and a stand-in of the extender's publish listener, which hands out
orders and takes what a node brings for them; everything else it passes on.
"""
import http.client
import http.server
import json
import os
import secrets
import struct
import threading
import urllib.parse

from proc import HANGS

STDIN, STDOUT, STDERR, END, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255


class WebSocket:
    """Frames of a client on a socket, behind the handshake; `first` was read
    with that."""

    def __init__(self, sock, first=b""):
        self.sock, self.got = sock, first
        self.sock.settimeout(HANGS)

    def frame(self, kind, data):
        mask = os.urandom(4)
        size = len(data)
        head = struct.pack("!BB", 0x80 | kind, 0x80 | size) if size < 126 \
            else struct.pack("!BBH", 0x80 | kind, 0x80 | 126, size) \
            if size < 65536 \
            else struct.pack("!BBQ", 0x80 | kind, 0x80 | 127, size)
        whole = int.from_bytes(data, "big") ^ int.from_bytes(
            (mask * (size // 4 + 1))[:size], "big")
        self.sock.sendall(head + mask + whole.to_bytes(size, "big"))

    def send(self, channel, data):
        self.frame(2, bytes([channel]) + data)

    def end_input(self):
        self.send(CLOSE, bytes([STDIN]))

    def need(self, n):
        """n bytes; None: the connection ended."""
        while len(self.got) < n:
            more = self.sock.recv(1 << 16)
            if not more:
                return None
            self.got += more
        piece, self.got = self.got[:n], self.got[n:]
        return piece

    def recv(self):
        """(channel, bytes) of the next message; None: it was closed."""
        while True:
            head = self.need(2)
            if head is None:
                return None
            kind, size = head[0] & 15, head[1]
            assert head[0] & 0x80 and size < 128, head
            if size >= 126:
                size = int.from_bytes(self.need(2 if size == 126 else 8),
                                      "big")
            data = self.need(size)
            if data is None or kind == 8:
                return None
            if kind == 2 and data:
                return data[0], data[1:]

    def channels(self):
        """{channel: all bytes} until it was closed."""
        all_ = {}
        while message := self.recv():
            channel, data = message
            all_[channel] = all_.get(channel, b"") + data
        return all_

    def until(self, channel, wanted):
        """What came on a channel up to `wanted`."""
        text = b""
        while wanted not in text:
            message = self.recv()
            assert message, f"closed before {wanted}: {text}"
            if message[0] == channel:
                text += message[1]
        return text

    def close(self):
        self.sock.close()


def exit_code(status):
    """Of what channel END says."""
    status = json.loads(status)
    if status["status"] == "Success":
        return 0
    causes = status.get("details", {}).get("causes", [])
    codes = [c["message"] for c in causes if c.get("reason") == "ExitCode"]
    return int(codes[0]) if codes else status["message"]


def ran(ws, text=None):
    """(exit code or why not, stdout, stderr) of a command."""
    if text is not None:
        ws.send(STDIN, text)
        ws.end_input()
    got = ws.channels()
    return exit_code(got[END]), got.get(STDOUT, b""), got.get(STDERR, b"")


# --- the extender's side of a node ---------------------------------------------
class Front(http.server.ThreadingHTTPServer):
    """Listens in the place of the publish listener at `upstream`."""
    daemon_threads = True

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream = urllib.parse.urlsplit(upstream).netloc
        self.lock = threading.Condition()
        self.orders, self.brought, self.statuses = {}, {}, []
        self.taken = set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def shutdown_request(self, request):
        """A connection that a test has taken goes on."""
        if request in self.taken:
            request.close()
        else:
            super().shutdown_request(request)

    def handle_error(self, request, client_address):
        """A client that goes away is none."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def wait_status(self, wanted, since=0):
        """The first status that the node has told, or will tell, behind the
        first `since`, for which that is true."""
        with self.lock:
            found = []
            assert self.lock.wait_for(lambda: found.extend(
                s for s in self.statuses[since:] if wanted(s)) or found, HANGS)
            return found[0]

    def order(self, kind, name, **more):
        """What the node brings: (status line, socket, bytes behind it)."""
        id_ = secrets.token_hex(16)
        with self.lock:
            self.orders[id_] = {"id": id_, "kind": kind,
                                "namespace": "default", "name": name,
                                **more}
            self.lock.notify_all()
            assert self.lock.wait_for(lambda: id_ in self.brought, HANGS)
            sock = self.brought.pop(id_)
        text = b""
        while b"\n" not in text:
            more = sock.recv(1 << 16)
            assert more, text
            text += more
        line, rest = text.split(b"\n", 1)
        return json.loads(line), sock, rest

    def open(self, kind, name, **more):
        line, sock, rest = self.order(kind, name, **more)
        assert line == {"status": 200}, line
        return WebSocket(sock, rest)

    def exec(self, name, *command, **more):
        return self.open("exec", name, command=list(command),
                         **{"stdout": True, "stderr": True, **more})

    def log(self, name, **more):
        """All of it, as text."""
        line, sock, rest = self.order("log", name, **more)
        assert line == {"status": 200}, line
        sock.settimeout(HANGS)
        while piece := sock.recv(1 << 16):
            rest += piece
        sock.close()
        return rest.decode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        parts = url.path.split("/")
        if parts[4:] == ["streams"]:
            self.tell(float(urllib.parse.parse_qs(url.query)["wait"][0]))
        elif parts[4:5] == ["streams"]:
            self.take(parts[5])
        else:
            self.pass_on()

    def tell(self, wait):
        front = self.server
        with front.lock:
            front.lock.wait_for(lambda: front.orders, wait)
            body = json.dumps({"streams": list(front.orders.values())})
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def take(self, id_):
        front = self.server
        with front.lock:
            order = front.orders.pop(id_, None)
        if not order:
            self.send_error(404)
            return
        assert self.headers["Upgrade"] == "biga-stream", self.headers
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", "biga-stream")
        self.end_headers()
        self.wfile.flush()
        # what is left of the connection is the test's
        sock = self.connection.dup()
        self.close_connection = True
        front.taken.add(self.connection)
        with front.lock:
            front.brought[id_] = sock
            front.lock.notify_all()

    def pass_on(self):
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        if self.path.endswith("/status"):
            with self.server.lock:
                self.server.statuses.append(json.loads(body))
                self.server.lock.notify_all()
        up = http.client.HTTPConnection(self.server.upstream, timeout=HANGS)
        try:
            up.request(self.command, self.path, body or None,
                       {k: v for k, v in self.headers.items()
                        if k not in ("Host", "Content-Length")})
            answer = up.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            self.close_connection = True
            return
        finally:
            up.close()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name not in ("Connection", "Transfer-Encoding",
                            "Content-Length", "Date", "Server"):
                self.send_header(name, value)
        if answer.status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_PUT = do_DELETE = do_PATCH = pass_on

    def log_message(self, *_args):
        pass

