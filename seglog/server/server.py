"""Server: a broker behind one port or several, served by a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any

from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.closing import Closing
from seglog.errors import InvalidArgumentError
from seglog.forked import abandon_in_children, forked_error
from seglog.server.async_server import AsyncServer
from seglog.server.limits import DEFAULT_LIMITS, ServerLimits
from seglog.server.listening import Listener


class Server(Closing):
    """Serves a broker from now on; close it, or use it in a ``with`` statement. Any thread may call it.

    In a forked child it does nothing: the thread and the connections belong to the parent. The child may read
    its addresses; the end of a ``with`` statement has no effect there.

    Args:
        broker: As for :class:`~seglog.server.async_server.AsyncServer`.
        listener: Likewise.
        more: Likewise.
        limits: Likewise.

    Raises:
        InvalidArgumentError: A listener was closed, or another server has it.
    """

    def __init__(
        self, broker: Broker, listener: Listener, *more: Listener, limits: ServerLimits = DEFAULT_LIMITS
    ) -> None:
        self._server = AsyncServer(broker, listener, *more, limits=limits)
        self._loop = asyncio.new_event_loop()
        self._closing = threading.Lock()
        self._ending = threading.Lock()  # not the lock of close(), which hang_up() must be able to shorten
        self._is_forked = False
        abandon_in_children(self, Server._abandon)
        self._thread = threading.Thread(target=self._run, name="seglog-server", daemon=True)
        self._thread.start()
        try:
            self._do(self._server.start()).result()
        except BaseException:
            self._end()
            raise

    @override
    def __repr__(self) -> str:
        return repr(self._server).replace("AsyncServer", "Server", 1)

    @property
    def address(self) -> str:
        """The address at which it listens, "host:port"; the first of several."""
        return self._server.address

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses at which it listens, in the order of its listeners."""
        return self._server.addresses

    @property
    def connection_count(self) -> int:
        """The number of open connections."""
        return self._server.connection_count

    @property
    def accepted_count(self) -> int:
        """The number of connections that were ever accepted."""
        return self._server.accepted_count

    @override
    def close(self, linger_ms: float = 0) -> None:
        """Closes the server as :meth:`AsyncServer.close` does, and ends its thread.

        Args:
            linger_ms: The shortest time of answering GO_AWAY.

        Raises:
            ClosedError: This is a forked child.
            InvalidArgumentError: The server's own thread calls it and would wait for itself: from the hook
                before each request, or from a callback of an answer.
        """
        self._check_process()
        if self._is_here():
            raise InvalidArgumentError(
                f"the server at {self.address} cannot be closed by the thread that serves: it would wait for"
                " itself",
                help="close it from another thread, such as the one that made it",
            )
        with self._closing:
            if self._loop.is_closed():
                return
            self._do(self._server.close(linger_ms)).result()
            self._end()

    @override
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it; in a forked child it does nothing."""
        if not self._is_forked:
            self.close()

    def hang_up(self) -> None:
        """Closes all connections at once.

        Raises:
            ClosedError: This is a forked child.
        """
        self._check_process()

        async def hang_up() -> None:
            self._server.hang_up()

        if self._is_here():
            self._server.hang_up()
            return
        with self._ending:
            if not self._loop.is_closed():
                self._do(hang_up()).result()

    def _end(self) -> None:
        with self._ending:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _abandon(self) -> None:
        """Stops all work in a forked child; another thread of the parent may hold the locks."""
        self._is_forked = True

    def _check_process(self) -> None:
        if self._is_forked:
            raise forked_error(f"the server at {self.address}")

    def _is_here(self) -> bool:
        """Returns whether the calling thread is the serving one."""
        return threading.get_ident() == self._thread.ident

    def _do(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
