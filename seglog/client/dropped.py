"""Ends clients of producers and consumers that were dropped while open, or whose loop ended first.

Otherwise nothing would close their clients: the thread that clients of the process share keeps the
connections. A ResourceWarning is raised, as for a file, and the connections end.

A finalizer may run at any place in any thread, under any lock. So it takes no lock, and leaves the work to
the loop.

A loop that is about to be closed, for example by ``asyncio.run``, ends its asynchronous generators. Such a
generator detects the end here while tasks can still end.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Final

from seglog.client.client import Client

_TURNS: Final = 3
"""Turns of a loop in which a cancelled task ends."""


def watch(face: object, client: Client) -> weakref.finalize[[Client, str], object]:
    """Ends a client when its producer or consumer is no longer referenced.

    At the end of the program it does nothing: connections end with their process.

    Args:
        face: The producer or consumer; the client does not refer to it.
        client: Its own client of an address: in process nothing is held open.

    Returns:
        The finalizer, to be detached when the producer or consumer is closed, or consumes on by itself.
    """
    end = weakref.finalize(face, _end, client, repr(face))
    end.atexit = False
    return end


def _end(client: Client, name: str) -> None:
    loop = client.home.loop
    if loop is None or client.is_over:
        return
    try:
        _warn(name, "a with")
    finally:  # where warnings are errors Python prints it
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(client.hang_up)


def _warn(name: str, statement: str) -> None:
    text = f"{name} was dropped open: close() it, or use it in {statement} statement"
    warnings.warn(text, ResourceWarning, stacklevel=3)


class LoopEnd:
    """Warns of a member that is open when its event loop ends, and ends its tasks there.

    Otherwise asyncio would report each task of a listener as destroyed. It is made in the loop, and
    referenced by an object that exists as long as the member consumes.

    Args:
        name: Returns the name of the consumer.
        client: Its client.
        end_listeners: Stops calls of its listener, and cancels running ones.
    """

    def __init__(self, name: Callable[[], str], client: Client, end_listeners: Callable[[], object]) -> None:
        self._name, self._client, self._end_listeners = name, client, end_listeners
        self._is_watching = True
        self._waiting = self._wait()
        with suppress(StopIteration):
            self._waiting.asend(None).send(None)  # the loop knows it from now on

    def detach(self) -> None:
        """Stops watching: the consumer is being closed."""
        self._is_watching = False

    async def _wait(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            if self._is_watching and not self._client.is_over:
                await self._end()

    async def _end(self) -> None:
        import asyncio  # the loop's own, which is there

        try:
            _warn(self._name(), "an async with")
        finally:  # where warnings are errors the loop says it
            self._end_listeners()
            for _ in range(_TURNS):
                await asyncio.sleep(0)
