#!/usr/bin/env python3
"""What a Service does for several replicas: one address that leads to those
that are ready.

    service.py PORT,PORT READY-URL=PORT,PORT…

Each PORT of its own leads to the one at the same place of a replica, all on
127.0.0.1.

Asks every READY-URL four times a second, without looking at certificates, and
hands new connections to a replica that said 200.  One that says nothing in time
is what it was, three times: as with a kubelet's probes.  Established ones stay
where they are, as with kube-proxy.  With none ready a connection is refused.
"""
import asyncio
import functools
import http.client
import ssl
import sys
import urllib.error
import urllib.request

EVERY = 0.25
SILENT = 3  # times


class Service:
    def __init__(self, replicas):
        self.replicas = replicas  # [(url, ports)]
        self.ready = []
        self.silent = {url: 0 for url, _ in replicas}
        self.next = 0
        self.context = ssl.create_default_context()
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE

    def _ask(self, url):
        """Whether it is ready; None when it says nothing."""
        try:
            with urllib.request.urlopen(url, timeout=1,
                                        context=self.context) as answer:
                return answer.status == 200
        except TimeoutError:
            return None
        except urllib.error.URLError as error:
            return None if isinstance(error.reason, TimeoutError) else False
        except (OSError, ValueError, http.client.HTTPException):
            return False

    def _is_ready(self, url, said):
        was = any(url == other for other, _ in self.ready)
        self.silent[url] = self.silent[url] + 1 if said is None else 0
        return said or said is None and was and self.silent[url] < SILENT

    async def look(self):
        loop = asyncio.get_running_loop()
        while True:
            said = await asyncio.gather(*[
                loop.run_in_executor(None, self._ask, url)
                for url, _ in self.replicas])
            ready = [r for r, yes in zip(self.replicas, said)
                     if self._is_ready(r[0], yes)]
            if ready != self.ready:
                print("ready:", " ".join(url for url, _ in ready) or "none",
                      flush=True)
            self.ready = ready
            await asyncio.sleep(EVERY)

    async def connection(self, place, reader, writer):
        if not self.ready:
            writer.transport.abort()
            return
        self.next += 1
        _, ports = self.ready[self.next % len(self.ready)]
        try:
            to = await asyncio.open_connection("127.0.0.1", ports[place])
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(pump(reader, to[1]), pump(to[0], writer))


async def pump(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()
    except OSError:
        writer.transport.abort()  # let the other side see a reset, too


def ports_of(text):
    return [int(port) for port in text.split(",")]


async def main():
    replicas = []
    for word in sys.argv[2:]:
        url, _, ports = word.rpartition("=")
        replicas.append((url, ports_of(ports)))
    service = Service(replicas)
    for place, port in enumerate(ports_of(sys.argv[1])):
        await asyncio.start_server(
            functools.partial(service.connection, place), "127.0.0.1", port)
    await service.look()


if len(sys.argv) < 3:
    sys.exit(__doc__)
asyncio.run(main())
