"""A CRI client of the standard library, to look at runtimes with other eyes
than Biga's: gRPC over HTTP/2 (RFC 9113), on a unix socket or over mutual
TLS, one connection per call.  Enough for lists; a refusal is told without
its reason.
"""
import socket
import ssl
import struct

from proc import HANGS

# RFC 9113, 6: types and flags of frames
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = \
    0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
REPLY_MAX = 16 << 20


class CriError(RuntimeError):
    """The runtime answered, but not with a reply."""


# --- protobuf ----------------------------------------------------------------
def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    """A message's bytes or text as field of that number."""
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(data):
    """(number, value) of each field of a message; values are int or bytes."""
    at = 0

    def read_varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = read_varint()
        if key & 7 == 0:
            yield key >> 3, read_varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or read_varint()
        yield key >> 3, data[at:at + size]
        at += size


def texts(data, **wanted):
    """{name: value} of fields by number; text, a number, or None."""
    got = dict.fromkeys(wanted)
    names = {number: name for name, number in wanted.items()}
    for number, value in fields(data):
        if number in names:
            got[names[number]] = value if isinstance(value, int) \
                else value.decode()
    return got


def pairs(data, number):
    """A map<string, string>."""
    return {p["key"] or "": p["value"] or "" for n, entry in fields(data)
            if n == number for p in [texts(entry, key=1, value=2)]}


# --- HTTP/2 ------------------------------------------------------------------
def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) \
        + struct.pack(">I", stream) + payload


def header(name, value):
    """RFC 7541, 6.2.2: a literal that nobody indexes, without Huffman."""
    out = b"\0"
    for text in (name.encode(), value.encode()):
        assert len(text) < 127
        out += bytes([len(text)]) + text
    return out


class Stream:
    """Stream 1 of a connection, and the windows that the other end gives."""

    def __init__(self, s, replies):
        self.s, self.replies = s, replies
        self.first = 65535  # of a stream, RFC 9113, 6.9.2
        self.windows = [65535, 65535]  # the connection's, the stream's
        self.got, self.ended = bytearray(), False

    def talk(self, body):
        """Send all of it; the data of the reply."""
        while not self.ended and len(self.got) < REPLY_MAX:
            n = min(len(body), 16384, *self.windows)
            if n > 0:
                self.s.sendall(frame(
                    DATA, END_STREAM if n == len(body) else 0, 1, body[:n]))
                self.windows = [w - n for w in self.windows]
                body = body[n:]
            else:
                self._take_frame()
        return bytes(self.got)

    def _take_frame(self):
        head = self.replies.read(9)
        if len(head) < 9:
            raise ConnectionError("the connection ended")
        kind, flags = head[3], head[4]
        payload = self.replies.read(head[0] << 16 | head[1] << 8 | head[2])
        if kind == DATA:
            self.got += payload
        elif kind == SETTINGS and not flags & ACK:
            for number, value in struct.iter_unpack(">HI", payload):
                if number == 4:
                    self.windows[1] += value - self.first
                    self.first = value
            self.s.sendall(frame(SETTINGS, ACK, 0))
        elif kind == WINDOW_UPDATE:
            of_stream = struct.unpack(">I", head[5:])[0] != 0
            self.windows[of_stream] += struct.unpack(">I", payload)[0]
        elif kind == PING and not flags & ACK:
            self.s.sendall(frame(PING, ACK, 0, payload))
        elif kind in (RST_STREAM, GOAWAY):
            raise CriError("the stream was reset")
        self.ended = kind in (DATA, HEADERS) and bool(flags & END_STREAM)


class Cri:
    """unix: a socket's path; or address (host, port), with an SSLContext."""

    def __init__(self, unix=None, address=None, tls=None, timeout=HANGS):
        self.unix, self.address, self.tls = unix, address, tls
        self.timeout = timeout

    def _connect(self):
        if self.unix:
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(self.timeout)
            s.connect(self.unix)
            return s
        s = socket.create_connection(self.address, self.timeout)
        return self.tls.wrap_socket(s, server_hostname=self.address[0]) \
            if self.tls else s

    def call(self, method, request=b"", service="RuntimeService"):
        """The reply; of several in a stream the first."""
        return next(self.messages(method, request, service))

    def messages(self, method, request=b"", service="RuntimeService"):
        """Each message of the reply."""
        path = f"/runtime.v1.{service}/{method}"
        heads = b"".join(header(*h) for h in (
            (":method", "POST"), (":scheme", "http"), (":path", path),
            (":authority", "localhost"), ("te", "trailers"),
            ("content-type", "application/grpc")))
        wide = struct.pack(">HI", 4, REPLY_MAX)  # SETTINGS_INITIAL_WINDOW_SIZE
        body = b"\0" + struct.pack(">I", len(request)) + request
        with self._connect() as s, s.makefile("rb") as replies:
            s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                      + frame(SETTINGS, 0, 0, wide)
                      + frame(WINDOW_UPDATE, 0, 0,
                              struct.pack(">I", REPLY_MAX))
                      + frame(HEADERS, END_HEADERS, 1, heads))
            reply = Stream(s, replies).talk(body)
        if len(reply) < 5:
            raise CriError(f"{method}: refused")
        while reply:
            end = 5 + struct.unpack(">I", reply[1:5])[0]
            yield reply[5:end]
            reply = reply[end:]

    # --- what is there --------------------------------------------------------
    def version(self):
        """{runtime, version, api}"""
        return texts(self.call("Version"), runtime=2, version=3, api=4)

    def sandboxes(self):
        """[{id, name, namespace, uid, attempt, ready, labels}]"""
        found = []
        for number, item in fields(self.call("ListPodSandbox")):
            if number != 1:
                continue
            meta = next((v for n, v in fields(item) if n == 2), b"")
            what = texts(meta, name=1, uid=2, namespace=3, attempt=4)
            top = dict(fields(item))
            found.append({**what, "attempt": what["attempt"] or 0,
                          "id": top[1].decode(), "ready": not top.get(3, 0),
                          "labels": pairs(item, 5)})
        return found

    def containers(self):
        """[{id, sandbox, name, attempt, image, state, labels}]; state 0
        created, 1 running, 2 exited, 3 unknown."""
        found = []
        for number, item in fields(self.call("ListContainers")):
            if number != 1:
                continue
            top = dict(fields(item))
            meta = texts(top.get(3, b""), name=1, attempt=2)
            found.append({"id": top[1].decode(), "sandbox": top[2].decode(),
                          "name": meta["name"],
                          "attempt": meta["attempt"] or 0,
                          "image": texts(top.get(4, b""), i=1)["i"],
                          "state": top.get(6, 0), "labels": pairs(item, 8)})
        return found

    def images(self):
        """The names of all images."""
        return {tag.decode() for number, item in fields(
                    self.call("ListImages", service="ImageService"))
                if number == 1 for n, tag in fields(item) if n == 2}


    # --- a pod ----------------------------------------------------------------
    def run_pod(self, name, labels=None, attempt=0):
        """A sandbox in the network of the place; (id, its configuration)."""
        host_network = field(1, varint(1 << 3) + varint(2))
        config = field(1, field(1, name) + field(2, "uid-" + name)
                       + field(3, "test") + varint(4 << 3) + varint(attempt)) \
            + field(3, f"/var/lib/biga/log/{name}") \
            + b"".join(field(6, field(1, k) + field(2, v))
                       for k, v in (labels or {}).items()) \
            + field(8, field(2, host_network))
        made = texts(self.call("RunPodSandbox", field(1, config)), id=1)
        return made["id"], config

    def run_container(self, sandbox, name, image, args=(), mounts=(),
                      may_mount=False):
        """Create and start one in a sandbox of run_pod(); its id.  mounts:
        (path in it, path of the place).  may_mount: what it mounts below
        these is seen in the place."""
        # Mount.propagation 2 is both ways; LinuxContainerConfig is field 15
        both = varint(5 << 3) + varint(2) if may_mount else b""
        rights = field(15, field(2, field(1, field(1, "SYS_ADMIN")))) \
            if may_mount else b""
        config = field(1, field(1, name)) + field(2, field(1, image)) \
            + b"".join(field(4, a) for a in args) \
            + b"".join(field(7, field(1, there) + field(2, here) + both)
                       for there, here in mounts) \
            + field(11, name + ".log") + rights
        made = texts(self.call(
            "CreateContainer", field(1, sandbox[0]) + field(2, config)
            + field(3, sandbox[1])), id=1)["id"]
        self.call("StartContainer", field(1, made))
        return made

    def exec(self, container, *argv):
        """(exit status, output, errors) of a command in a container."""
        got = dict(fields(self.call(
            "ExecSync", field(1, container)
            + b"".join(field(2, a) for a in argv)
            + varint(3 << 3) + varint(int(HANGS)))))
        return got.get(3, 0), got.get(1, b""), got.get(2, b"")

    def remove_pod(self, sandbox):
        self.call("StopPodSandbox", field(1, sandbox))
        self.call("RemovePodSandbox", field(1, sandbox))


def client_tls(ca, cert=None, key=None):
    """An SSLContext as a node has it: its certificate, its authority."""
    context = ssl.create_default_context(cafile=ca)
    context.set_alpn_protocols(["h2"])
    if cert:
        context.load_cert_chain(cert, key)
    return context
