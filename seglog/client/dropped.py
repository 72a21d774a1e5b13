"""What is done for a producer or consumer that an application has dropped open, or whose loop ends before it.

Nothing would close its client: the thread that clients of the process share keeps the connections. Python
warns, as of a file, and the connections end.

A finalizer may run at any place in any thread, under any lock. So it takes none: it has the loop do it.

A loop that is about to be closed, by ``asyncio.run`` say, ends the asynchronous generators that were begun in
it, which is how one hears of that while tasks can end still.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Final

from seglog.client.client import Client

_TURNS: Final = 3
"""Of a loop, in which a task that is cancelled ends."""


def watch(face: object, client: Client) -> weakref.finalize[[Client, str], object]:
    """Has a client end with what it was made for, if nothing refers to that any more.

    At the end of the program nothing is said or done: connections end with their process.

    Args:
        face: The producer or consumer; the client does not refer to it.
        client: Its own, of an address: in process nothing is held open.

    Returns:
        What is to be detached once it was closed, or goes on by itself.
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
        with suppress(RuntimeError):  # the loop was closed since
            loop.call_soon_threadsafe(client.hang_up)


def _warn(name: str, statement: str) -> None:
    text = f"{name} was dropped open: close() it, or use it in {statement} statement"
    warnings.warn(text, ResourceWarning, stacklevel=3)


class LoopEnd:
    """Warns of a member of a group that is open where its event loop ends, and lets its tasks end there.

    Asyncio would say of each task of a listener that it was destroyed. It is made in the loop, and kept by
    what lives as long as the member consumes.

    Args:
        name: Returns what the consumer is called.
        client: Its client.
        end_listeners: Has its listener not called any more, and cancels what is at work.
    """

    def __init__(self, name: Callable[[], str], client: Client, end_listeners: Callable[[], object]) -> None:
        self._name, self._client, self._end_listeners = name, client, end_listeners
        self._is_watching = True
        self._waiting = self._wait()
        with suppress(StopIteration):
            self._waiting.asend(None).send(None)  # the loop knows it from now on

    def detach(self) -> None:
        """Watches no more: the consumer is being closed."""
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
