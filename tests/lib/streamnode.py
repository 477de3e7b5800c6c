"""A stand-in for a node's part of streams (docs/streams.md): it asks an
extender which are wanted, comes for them, and serves them on this machine:
exec runs the command here, port-forward connects to 127.0.0.1, attach echoes
until its input ends, and a log has as many lines as were asked for.

    streamnode.py --publish URL --node NAME [--ca F --cert F --key F]

It says "ready" once it has asked, and a line for each stream.  A container
named "missing" is not there; one named "vanish" is cut off in the middle.
"""
import argparse
import json
import socket
import ssl
import struct
import subprocess
import sys
import threading
import urllib.parse

import tlspair

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
BINARY, CLOSING = 2, 8


class Stream:
    """A connection to the extender after 101: frames of a server."""

    def __init__(self, node, path, upgrade=None):
        self.goodbye = True
        self.s = node.connect(lambda: self.goodbye)
        self.lock = threading.Lock()
        more = f"Connection: Upgrade\r\nUpgrade: {upgrade}\r\n" if upgrade \
            else "Connection: close\r\n"
        self.s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n".encode())
        self.rest = b""
        while b"\r\n\r\n" not in self.rest:
            self._more()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        self.status = int(head.split()[1])

    def _more(self):
        data = self.s.recv(65536)
        if not data:
            raise ConnectionError("the connection ended")
        self.rest += data

    def body(self):
        try:
            while True:
                self._more()
        except ConnectionError:
            return self.rest

    def take(self, size):
        while len(self.rest) < size:
            self._more()
        data, self.rest = self.rest[:size], self.rest[size:]
        return data

    def send(self, data):
        with self.lock:
            self.s.sendall(data)

    def line(self, status, error=None):
        said = {"status": status, **({"error": error} if error else {})}
        self.send(json.dumps(said).encode() + b"\n")

    def frame(self, channel, data, kind=BINARY):
        data = (bytes([channel]) if kind == BINARY else b"") + data
        size = len(data)
        head = struct.pack(">BB", 128 | kind, size) if size < 126 else \
            struct.pack(">BBH", 128 | kind, 126, size) if size < 65536 else \
            struct.pack(">BBQ", 128 | kind, 127, size)
        self.send(head + data)

    def message(self):
        """(channel, bytes) of the client's next; None when it closes."""
        first, size = self.take(2)
        size &= 127
        if size == 126:
            size, = struct.unpack(">H", self.take(2))
        elif size == 127:
            size, = struct.unpack(">Q", self.take(8))
        mask = self.take(4)
        data = self.take(size)
        data = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
        if first & 15 == CLOSING:
            return None
        return (data[0], data[1:]) if data else (STDIN, b"")

    def close(self):
        try:
            self.s.shutdown(socket.SHUT_WR)
            while self.s.recv(65536):
                pass
        except OSError:
            pass
        self.s.close()


def pump(pipe, stream, channel):
    while data := pipe.read1(65536):
        stream.frame(channel, data)


def feed(stream, pipe):
    """What the client sends, into the command."""
    try:
        while message := stream.message():
            channel, data = message
            if channel == CLOSE or (channel == STDIN and not data):
                break
            if channel == STDIN:
                pipe.write(data)
                pipe.flush()
    except (ConnectionError, OSError):
        pass
    try:
        pipe.close()
    except OSError:
        pass


def run(stream, order):
    """exec: a command of this machine."""
    try:
        p = subprocess.Popen(order["command"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as e:
        stream.line(400, str(e))
        return
    stream.line(200)
    outs = [threading.Thread(target=pump, args=(p.stdout, stream, STDOUT)),
            threading.Thread(target=pump, args=(p.stderr, stream, STDERR))]
    for t in outs:
        t.start()
    if order["stdin"]:
        threading.Thread(target=feed, args=(stream, p.stdin),
                         daemon=True).start()
    else:
        p.stdin.close()
    for t in outs:
        t.join()
    end(stream, p.wait())


def end(stream, code):
    """How a command has ended."""
    status = {"metadata": {}, "status": "Success"}
    if code:
        cause = {"reason": "ExitCode", "message": str(code)}
        status = {"metadata": {}, "status": "Failure",
                  "reason": "NonZeroExitCode",
                  "details": {"causes": [cause]}}
    stream.frame(ERROR, json.dumps(status).encode())
    stream.frame(0, struct.pack(">H", 1000), CLOSING)


def attach(stream, order):
    stream.line(200)
    while message := stream.message():
        channel, data = message
        if channel == CLOSE:
            end(stream, 0)
            return
        stream.frame(STDOUT, data)


def log(stream, order):
    stream.line(200)
    for i in range(order.get("tailLines", 3)):
        stream.send(f"line {i} of {order['name']}\n".encode())
    if order["follow"]:
        stream.s.recv(1)  # until the client has gone


def forward(stream, order):
    """Each port is two channels: its bytes, and what is wrong."""
    ports = order["ports"]
    to = [socket.create_connection(("127.0.0.1", p)) for p in ports]
    stream.line(200)
    for i, port in enumerate(ports):
        stream.frame(2 * i, struct.pack("<H", port))
        stream.frame(2 * i + 1, struct.pack("<H", port))

    def back(i):
        while data := to[i].recv(65536):
            stream.frame(2 * i, data)
        stream.frame(0, struct.pack(">H", 1000), CLOSING)
    for i in range(len(to)):
        threading.Thread(target=back, args=(i,), daemon=True).start()
    while message := stream.message():
        channel, data = message
        if channel == CLOSE:
            to[data[0] // 2].shutdown(socket.SHUT_WR)
        else:
            to[channel // 2].sendall(data)
    for s in to:
        s.close()


class Node:
    def __init__(self, args):
        self.name = args.node
        self.at = urllib.parse.urlsplit(args.publish)
        self.tls = None
        if self.at.scheme == "https":
            self.tls = ssl.create_default_context(cafile=args.ca)
            self.tls.load_cert_chain(args.cert, args.key)

    def connect(self, goodbye):
        s = socket.create_connection((self.at.hostname, self.at.port))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return tlspair.plain(self.tls.wrap_socket(
            s, server_hostname=self.at.hostname), goodbye) if self.tls else s

    def serve(self, order):
        path = f"/v1/nodes/{self.name}/streams/{order['id']}"
        stream = Stream(self, path, "biga-stream")
        print(order["kind"], order["namespace"], order["name"], stream.status,
              flush=True)
        if stream.status != 101:
            return
        container = order.get("container")
        try:
            if container == "missing":
                stream.line(404, "the pod has no container \"missing\"")
            elif container == "vanish":
                stream.line(200)
                stream.send(b"half")
                stream.goodbye = False
            else:
                {"exec": run, "attach": attach, "log": log,
                 "portforward": forward}[order["kind"]](stream, order)
        except (ConnectionError, OSError):
            pass
        stream.close()

    def ask(self, wait):
        answer = Stream(self, f"/v1/nodes/{self.name}/streams?wait={wait}")
        if answer.status != 200:
            sys.exit(f"the extender says {answer.status}: "
                     f"{answer.body().decode()}")
        for order in json.loads(answer.body())["streams"]:
            threading.Thread(target=self.serve, args=(order,),
                             daemon=True).start()

    def run(self):
        self.ask(0)  # once that is answered, the node is there
        print("ready", flush=True)
        while True:
            self.ask(30)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--publish", required=True)
    p.add_argument("--node", required=True)
    for name in ("--ca", "--cert", "--key"):
        p.add_argument(name)
    Node(p.parse_args()).run()


if __name__ == "__main__":
    main()
