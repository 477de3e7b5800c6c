"""A wire between a client and a server that can be cut, and lose a reply."""
import asyncio
import threading

from proc import free_port

HANDSHAKE = 4  # turns of TLS 1.3, the client's twice; then one begins to ask


class Proxy:
    """127.0.0.1:port leads to host:to, until cut() and after restore(); in
    a thread of its own."""

    def __init__(self, to, host="127.0.0.1"):
        self.to, self.host, self.port = to, host, free_port()
        self.whole, self.writers = True, set()
        self.refused = 0  # connections since it was cut
        self.hungry = 0  # the size of requests whose reply is to be lost
        self.bites = False  # the connection is lost with it
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self._do(asyncio.start_server(self._connection, "127.0.0.1",
                                      self.port))

    def _do(self, what):
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(60)

    async def _connection(self, reader, writer):
        if not self.whole:
            self.refused += 1
            writer.transport.abort()
            return
        try:
            there = await asyncio.open_connection(self.host, self.to)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, there[1]}
        self.writers |= both
        lost = {"reply": False, "turns": 0, "request": False}
        await asyncio.gather(self._pump(reader, there[1], lost, True),
                             self._pump(there[0], writer, lost, False))
        self.writers -= both

    async def _pump(self, reader, writer, lost, request):
        try:
            while data := await reader.read(1 << 16):
                lost["turns"] += lost["request"] != request
                lost["request"] = request
                if request and 0 < self.hungry <= len(data) and \
                        lost["turns"] > HANDSHAKE:
                    self.hungry, lost["reply"] = 0, True
                if lost["reply"] and not request:
                    if self.bites:
                        writer.transport.abort()
                        return
                    continue
                writer.write(data)
                await writer.drain()
            writer.close()
        except OSError:
            writer.transport.abort()

    async def _set(self, whole):
        self.whole, self.refused = whole, 0
        cut = 0 if whole else len(self.writers) // 2
        for writer in set() if whole else set(self.writers):
            writer.transport.abort()
        return cut

    def cut(self):
        """Reset all connections, and every new one; how many there were."""
        return self._do(self._set(False))

    def swallow(self, size, bites=False):
        """The next request over TLS of that size or more that is not a
        connection's first arrives; what is answered to it does not, nor
        anything else on that connection, which stands still, or ends."""
        self.hungry, self.bites = size, bites

    def restore(self):
        self._do(self._set(True))
