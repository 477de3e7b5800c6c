"""A wire between a client and a server of this machine that can be cut."""
import asyncio
import threading

from proc import free_port


class Proxy:
    """127.0.0.1:port leads to 127.0.0.1:to, until cut() and after
    restore(); in a thread of its own."""

    def __init__(self, to):
        self.to, self.port = to, free_port()
        self.whole, self.writers = True, set()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self._do(asyncio.start_server(self._connection, "127.0.0.1",
                                      self.port))

    def _do(self, what):
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(10)

    async def _connection(self, reader, writer):
        if not self.whole:
            writer.transport.abort()
            return
        try:
            there = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, there[1]}
        self.writers |= both
        await asyncio.gather(self._pump(reader, there[1]),
                             self._pump(there[0], writer))
        self.writers -= both

    @staticmethod
    async def _pump(reader, writer):
        try:
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
            writer.close()
        except OSError:
            writer.transport.abort()

    async def _set(self, whole):
        self.whole = whole
        cut = 0 if whole else len(self.writers) // 2
        for writer in set() if whole else set(self.writers):
            writer.transport.abort()
        return cut

    def cut(self):
        """Reset all connections, and every new one; how many there were."""
        return self._do(self._set(False))

    def restore(self):
        self._do(self._set(True))
