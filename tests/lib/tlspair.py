"""A TLS connection as a plain socket, for programs whose threads read and write
it at the same time, which ssl's objects do not allow: one thread carries its
bytes to and from a pair of sockets.
"""
import select
import socket
import ssl
import threading

WAITS = 1 << 16


def _receive(s, size):
    """Bytes, b"" at the end, None when there are none now."""
    try:
        return s.recv(size)
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
        return None
    except OSError:
        return b""


def _send(s, data):
    """What is left of it; None: the other side has gone."""
    try:
        return data[s.send(data):] if data else data
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
        return data
    except OSError:
        return None


def _carry(tls, own, goodbye):
    tls.setblocking(False)
    own.setblocking(False)
    to_tls = to_own = b""
    reads = {tls, own}
    while to_tls or to_own or own in reads:
        want = [s for s in reads
                if len(to_own if s is tls else to_tls) < WAITS]
        ready = tls in want and tls.pending()
        select.select(want, ([tls] if to_tls else []) +
                      ([own] if to_own else []), [], 0 if ready else None)
        if tls in want and (data := _receive(tls, WAITS)) is not None:
            to_own += data
            if not data:
                break
        if own in want and (data := _receive(own, WAITS)) is not None:
            to_tls += data
            if not data:
                reads.discard(own)
        to_own, to_tls = _send(own, to_own), _send(tls, to_tls)
        if to_own is None or to_tls is None:
            break
    own.setblocking(True)
    if to_own:
        try:
            own.sendall(to_own)
        except OSError:
            pass
    try:
        if goodbye():
            tls.settimeout(5)
            tls = tls.unwrap()
    except (OSError, ValueError):
        pass
    tls.close()
    own.close()


def plain(tls, goodbye=lambda: True):
    """The socket; without a goodbye at its end the connection is just cut."""
    mine, its = socket.socketpair()
    threading.Thread(target=_carry, args=(tls, its, goodbye),
                     daemon=True).start()
    return mine
