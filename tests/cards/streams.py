"""Streams of pods as people have them, by HTTP and Kubernetes' WebSocket
protocol from the extender's read listener; and what a node tells the publish
listener of what its pods use.
"""
import base64
import hashlib
import http.client
import http.server
import json
import os
import socket
import ssl
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


# --- the extender's read listener ----------------------------------
class Refused(Exception):
    def __init__(self, status, text):
        super().__init__(f"{status}: {text}")
        self.status, self.text = status, text


class Text:
    """The body of an answer, as a socket's bytes."""

    def __init__(self, connection, answer):
        self.connection, self.answer = connection, answer

    def recv(self, size):
        return self.answer.read1(size)

    def rest(self, cut=False):
        """To its end, or to where it is cut off."""
        text, whole = b"", True
        try:
            while more := self.recv(1 << 16):
                text += more
        except (OSError, http.client.IncompleteRead):
            whole = False
        self.close()
        assert whole != cut, text
        return text

    def close(self):
        self.answer.close()
        self.connection.close()


def read_head(sock):
    """(status, {field: value}, bytes behind it) of an answer."""
    text = b""
    while b"\r\n\r\n" not in text:
        more = sock.recv(1 << 16)
        assert more, text
        text += more
    head, rest = text.split(b"\r\n\r\n", 1)
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), {
        k.lower(): v for k, v in (x.split(": ", 1) for x in lines)}, rest


class Door:
    """Streams of pods of namespace default, for whom this token is."""
    GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    def __init__(self, url, ca, token):
        self.at = urllib.parse.urlsplit(url)
        self.tls = ssl.create_default_context(cafile=ca)
        self.token = token

    def path(self, kind, name, more):
        pairs = [(k, str(x).lower() if isinstance(x, bool) else x)
                 for k, v in more.items()
                 for x in (v if isinstance(v, list) else [v])]
        return f"/v1/pods/default/{name}/{kind}?" + \
            urllib.parse.urlencode(pairs)

    def fields(self):
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def log(self, name, **more):
        """A Text."""
        c = http.client.HTTPSConnection(self.at.hostname, self.at.port,
                                        timeout=HANGS, context=self.tls)
        c.request("GET", self.path("log", name, more), headers=self.fields())
        answer = c.getresponse()
        if answer.status != 200:
            raise Refused(answer.status, answer.read().decode())
        return Text(c, answer)

    def text(self, name, **more):
        return self.log(name, **more).rest().decode()

    def open(self, kind, name, protocol="v5.channel.k8s.io", **more):
        key = base64.b64encode(os.urandom(16)).decode()
        sock = self.tls.wrap_socket(
            socket.create_connection((self.at.hostname, self.at.port), HANGS),
            server_hostname=self.at.hostname)
        head = {"Host": self.at.netloc, **self.fields(),
                "Connection": "Upgrade", "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key,
                "Sec-WebSocket-Protocol": protocol}
        sock.sendall((f"GET {self.path(kind, name, more)} HTTP/1.1\r\n" +
                      "".join(f"{k}: {v}\r\n" for k, v in head.items()) +
                      "\r\n").encode())
        status, fields, rest = read_head(sock)
        if status != 101:
            while len(rest) < int(fields["content-length"]):
                rest += sock.recv(1 << 16)
            raise Refused(status, rest.decode())
        wanted = base64.b64encode(hashlib.sha1(
            (key + self.GUID).encode()).digest()).decode()
        assert fields["sec-websocket-accept"] == wanted, fields
        assert fields["sec-websocket-protocol"] == protocol, fields
        return WebSocket(sock, rest)

    def exec(self, name, *command, **more):
        return self.open("exec", name, command=list(command),
                         **{"stdout": True, "stderr": True, **more})

    def forward(self, name, *ports):
        return self.open("portforward", name, "v4.channel.k8s.io",
                         ports=",".join(map(str, ports)))


# --- what a node tells ----------------------------------
class Front(http.server.ThreadingHTTPServer):
    """Stands before the publish listener at `upstream`, and keeps what nodes
    tell of their pods."""
    daemon_threads = True

    def __init__(self, upstream):
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream = urllib.parse.urlsplit(upstream).netloc
        self.lock = threading.Condition()
        self.statuses = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

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


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

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

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = pass_on

    def log_message(self, *_args):
        pass

