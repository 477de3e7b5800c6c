"""A stream to a container over WebSocket (RFC 6455), where a message's first
byte says of which channel it is: as kubectl exec opens it at an API server,
and from a runtime.
"""
import base64
import json
import os
import socket
import struct
import urllib.parse

from cri import field, texts, varint

STDIN, STDOUT, STDERR, ERROR, CLOSE = 0, 1, 2, 3, 255


class WebSocket:
    """exec -i on a connection; protocol: v4.channel.k8s.io, or v5, which can
    tell the end of the input."""

    def __init__(self, s, host, target, protocol="v5.channel.k8s.io"):
        self.s, self.rest = s, b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.s.sendall((
            f"GET {target} HTTP/1.1\r\nHost: {host}\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
            f"Sec-WebSocket-Protocol: {protocol}\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.rest:
            self._more()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 "), head + self.rest
        self.out, self.error = b"", None

    def _more(self):
        data = self.s.recv(65536)
        if not data:
            raise ConnectionError("the connection ended")
        self.rest += data

    def _take(self, size):
        while len(self.rest) < size:
            self._more()
        data, self.rest = self.rest[:size], self.rest[size:]
        return data

    def _frame(self):
        """(what it is, its bytes)"""
        first, size = self._take(2)
        if size == 126:
            size, = struct.unpack(">H", self._take(2))
        elif size == 127:
            size, = struct.unpack(">Q", self._take(8))
        return first & 15, self._take(size)

    def _send(self, kind, data):
        mask, size = os.urandom(4), len(data)
        head = struct.pack(">BB", 128 | kind, 128 | size) if size < 126 else \
            struct.pack(">BBH", 128 | kind, 254, size) if size < 65536 else \
            struct.pack(">BBQ", 128 | kind, 255, size)
        long = (mask * (size // 4 + 1))[:size]
        hidden = int.from_bytes(data, "big") ^ int.from_bytes(long, "big")
        self.s.sendall(head + mask + hidden.to_bytes(size, "big"))

    def write(self, data):
        self._send(2, bytes([STDIN]) + data)

    def close_input(self):
        self._send(2, bytes([CLOSE, STDIN]))

    def _turn(self):
        kind, data = self._frame()
        if kind == 8:
            raise ConnectionError(f"it was closed: {data!r}")
        if kind == 9:
            self._send(10, data)
        elif data and data[0] in (STDOUT, STDERR):
            self.out += data[1:]
        elif data and data[0] == ERROR and data[1:]:
            self.error = json.loads(data[1:])

    def read(self, size):
        """So many bytes of what it says."""
        while len(self.out) < size:
            self._turn()
        data, self.out = self.out[:size], self.out[size:]
        return data

    def wait(self):
        """Until it has ended; the Status that it ended with, None without."""
        try:
            while True:
                self._turn()
        except ConnectionError:
            self.s.close()
        return self.error

    def cut(self):
        """As when whoever has it is killed."""
        self.s.close()


def by_api(api, pod, *argv):
    """A command in a pod's container "main", by the API server."""
    query = urllib.parse.urlencode(
        [("container", "main"), ("stdin", 1), ("stdout", 1), ("stderr", 1)] +
        [("command", arg) for arg in argv])
    connection = api.connection(600)
    connection.connect()
    return WebSocket(connection.sock, api.host,
                     f"/api/v1/namespaces/default/pods/{pod}/exec?{query}")


def by_runtime(cri, container, *argv):
    """A command in a container, as a kubelet asks its runtime."""
    on = varint(1)
    url = urllib.parse.urlsplit(texts(cri.call(
        "Exec", field(1, container) + b"".join(field(2, a) for a in argv)
        + b"".join(varint(n << 3) + on for n in (4, 5, 6))), url=1)["url"])
    s = socket.create_connection((url.hostname, url.port), 600)
    return WebSocket(s, url.netloc, url.path, "v4.channel.k8s.io")
