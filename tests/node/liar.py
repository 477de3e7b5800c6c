"""A card that does not tell the truth: what stands before its containerd, with
the card's own certificate, and changes what that answers.

Answers are changed where they lie, to others of the same length: ids to other
ids, states to other states.  Nothing is changed in what the card is asked.
"""
import re
import select
import socket
import socketserver
import ssl
import struct
import threading

from cards import certs
from cri import DATA
from proc import free_port

ID = re.compile(rb"[0-9a-f]{64}")
STATES = (3, 6)  # where a status and an item of a list have it
RUNNING, EXITED = 1, 2


def read_varint(data, at):
    """(its value, where it ends)"""
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields_at(data):
    """(number, kind, where its value begins, where it ends)"""
    at = 0
    while at < len(data):
        key, begin = read_varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            at = read_varint(data, begin)[1]
        elif kind == 2:
            size, begin = read_varint(data, begin)
            at = begin + size
        else:
            at = begin + {1: 8, 5: 4}[kind]
        yield number, kind, begin, at


class Lies:
    """What is told instead.  ids: {id: another}; ended: running containers
    are told as ended."""

    def __init__(self):
        self.ids, self.ended = {}, False

    def answer(self, message):
        """The same length."""
        if self.ended:
            message = self._ended(bytearray(message))
        if self.ids:
            message = ID.sub(lambda m: self.ids.get(
                m.group().decode(), m.group().decode()).encode(), message)
        return bytes(message)

    @staticmethod
    def _ended(message):
        """Of a list of containers, or the status of one."""
        try:
            for number, kind, begin, end in fields_at(message):
                item = message[begin:end]
                if number == 1 and kind == 2 and ID.match(item, 2):
                    for n, k, at, _ in fields_at(item):
                        if n in STATES and k == 0 and item[at] == RUNNING:
                            message[begin + at] = EXITED
        except (IndexError, KeyError):
            pass  # it is neither
        return message


class Liar(socketserver.ThreadingTCPServer):
    """What the node calls instead of a card; before the rack starts.  Its own
    certificate is made when it begins."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, card):
        self.card, self.lies, self.own = card, Lies(), None
        super().__init__(("127.0.0.1", free_port()), None)
        card.endpoint = "tcp://{}:{}".format(*self.server_address)
        card.rack.card_file()  # again

    def begin(self):
        rack = self.card.rack
        certs("card", rack.pki(), "liar", "--san", self.server_address[0])
        self.own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.own.load_cert_chain(rack.pki("liar.crt"), rack.pki("liar.key"))
        self.own.load_verify_locations(rack.pki("ca.crt"))
        self.own.verify_mode = ssl.CERT_REQUIRED
        self.own.set_alpn_protocols(["h2"])
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def finish_request(self, request, client_address):
        try:
            with self.own.wrap_socket(request, server_side=True) as near, \
                    socket.socket(socket.AF_UNIX) as far:
                far.connect(self.card.socket)
                near.setblocking(False)
                self._talk(near, far)
        except OSError:
            pass  # one of the two has gone

    def _talk(self, near, far):
        """Until one of the two ends it."""
        got, out, begun, ends = bytearray(), bytearray(), {}, False
        while not ends or out:
            readable, _, _ = select.select(
                [near, far], [near] if out else [], [],
                0 if near.pending() else None)
            try:
                data = near.recv(1 << 16)
                far.sendall(data)
                ends = ends or not data
            except ssl.SSLWantReadError:
                pass
            if far in readable and not ends:
                data = far.recv(1 << 16)
                got += data
                ends = not data
                out += self._answers(got, begun)
            try:
                del out[:near.send(out) if out else 0]
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                pass

    def _answers(self, got, begun):
        """The whole frames, taken out of it; a message that is in one frame
        is changed.  begun: {stream: size of the message that comes next},
        where its five bytes of gRPC came by themselves."""
        out = b""
        while len(got) >= 9:
            size = got[0] << 16 | got[1] << 8 | got[2]
            if len(got) < 9 + size:
                break
            head, payload = bytes(got[:9]), bytes(got[9:9 + size])
            del got[:9 + size]
            if head[3] == DATA:
                payload = self._message(head[5:], payload, begun)
            out += head + payload
        return out

    def _message(self, stream, payload, begun):
        size = len(payload)
        if begun.pop(stream, None) == size:
            return self.lies.answer(payload)
        if size < 5:
            return payload
        told = struct.unpack(">I", payload[1:5])[0]
        if size == 5:
            begun[stream] = told
        return payload[:5] + (self.lies.answer(payload[5:])
                              if told == size - 5 else payload[5:])
