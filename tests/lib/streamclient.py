"""A client of streams of pods (docs/streams.md): what the WebSocket at a URL
sends on its channels 1 and 2 is printed, standard input is sent to it, and the
exit status is the command's.

    streamclient.py URL [--ca F] [--token T] [--protocol P] [--forward]

With --forward the channels are those of a port-forward: 0, without its port.
An answer that is no 101 is printed, and the exit status is 3.
"""
import argparse
import base64
import json
import os
import socket
import ssl
import struct
import sys
import threading
import urllib.parse

import tlspair


class Client:
    def __init__(self, args):
        at = urllib.parse.urlsplit(args.url)
        s = socket.create_connection((at.hostname, at.port))
        if at.scheme == "https":
            s = tlspair.plain(
                ssl.create_default_context(cafile=args.ca).wrap_socket(
                    s, server_hostname=at.hostname))
        self.s, self.rest = s, b""
        token = f"Authorization: Bearer {args.token}\r\n" if args.token else ""
        key = base64.b64encode(os.urandom(16)).decode()
        s.sendall((f"GET {at.path}?{at.query} HTTP/1.1\r\nHost: {at.hostname}"
                   f"\r\n{token}Connection: Upgrade\r\nUpgrade: websocket\r\n"
                   f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
                   f"Sec-WebSocket-Protocol: {args.protocol}\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.rest:
            self._more()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        self.head = head.decode()

    def _more(self):
        data = self.s.recv(65536)
        if not data:
            raise ConnectionError("the stream was cut off")
        self.rest += data

    def take(self, size):
        while len(self.rest) < size:
            self._more()
        data, self.rest = self.rest[:size], self.rest[size:]
        return data

    def send(self, channel, data):
        data, mask = bytes([channel]) + data, os.urandom(4)
        head = struct.pack(">BB", 130, 128 | len(data)) if len(data) < 126 \
            else struct.pack(">BBH", 130, 254, len(data))
        self.s.sendall(head + mask + bytes(b ^ mask[i % 4]
                                           for i, b in enumerate(data)))

    def frame(self):
        first, size = self.take(2)
        if size == 126:
            size, = struct.unpack(">H", self.take(2))
        elif size == 127:
            size, = struct.unpack(">Q", self.take(8))
        return first & 15, self.take(size)

    def pass_input(self, v5):
        try:
            while data := sys.stdin.buffer.read1(60000):
                self.send(0, data)
            if v5:
                self.send(255, b"\0")
        except OSError:
            pass  # it has ended


def main():
    p = argparse.ArgumentParser()
    p.add_argument("url")
    p.add_argument("--ca")
    p.add_argument("--token")
    p.add_argument("--protocol", default="v5.channel.k8s.io")
    p.add_argument("--forward", action="store_true")
    args = p.parse_args()
    c = Client(args)
    if not c.head.startswith("HTTP/1.1 101"):
        length = int(c.head.lower().split("content-length: ")[1].split()[0])
        print(c.head.split("\r\n")[0], c.take(length).decode())
        return 3
    v5 = args.protocol.startswith("v5") and not args.forward
    threading.Thread(target=c.pass_input, args=(v5,), daemon=True).start()
    code, skip = 1, 2 if args.forward else 0
    while True:
        kind, data = c.frame()
        if kind == 8:
            return 0 if args.forward else code
        channel, data = data[0], data[1:]
        if args.forward and channel == 0:
            sys.stdout.buffer.write(data[skip:])
            skip = 0
        elif channel in (1, 2) and not args.forward:
            (sys.stdout, sys.stderr)[channel - 1].buffer.write(data)
        elif channel == 3:
            status = json.loads(data)
            code = 0 if status["status"] == "Success" else \
                int(status["details"]["causes"][0]["message"])
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    result = main()
    sys.stdout.flush()
    os._exit(result)  # a thread may still wait for input
