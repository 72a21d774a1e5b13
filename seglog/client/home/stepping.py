"""Coroutines of an application on virtual time: stepped by the call that moves the time.

They may await awaitables of clients, and :func:`sleep_ms`. Anything else would wait for an event loop, which
does not know virtual time; awaiting it raises an error.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

from seglog.arguments import as_number
from seglog.client.home.home import Home
from seglog.errors import InvalidArgumentError
from seglog.remoting.later import STEPPED, Deferred

R = TypeVar("R")


async def sleep_ms(delay_ms: float) -> None:
    """Sleeps on the clock of the caller, virtual or real; awaited by a listener or by any task.

    In a task of an event loop that is real time, and in a listener on virtual time the broker's.

    Args:
        delay_ms: The time in milliseconds.

    Raises:
        InvalidArgumentError: ``delay_ms`` is not a number from 0 on.
    """
    delay_ms = as_number("delay_ms", delay_ms, 0)
    timers = STEPPED.timers
    if timers is not None:
        over: Deferred[None] = Deferred()
        timer = timers.after(delay_ms, lambda: over.resolve(None))
        over.then(lambda _: timers.cancel(timer))
        await over
    else:
        import asyncio

        await asyncio.sleep(delay_ms / 1000)


async def stepped(home: Home, steps: Coroutine[Any, Any, R]) -> R:
    """Runs a coroutine of an application in a flow; returns its result.

    Args:
        home: The home of the flow, on virtual time.
        steps: The coroutine.
    """
    return await _Steps(home, steps)


class _Steps(Generic[R]):
    """The awaitable of a flow for a coroutine: it passes on each result that the coroutine awaits."""

    def __init__(self, home: Home, steps: Coroutine[Any, Any, R]) -> None:
        self._home = home
        self._steps = steps

    def __await__(self) -> Generator[Deferred[Any], None, R]:
        steps = self._steps
        wrong: InvalidArgumentError | None = None
        try:
            while True:
                before, STEPPED.timers = STEPPED.timers, self._home.timers
                try:
                    awaited = steps.send(None) if wrong is None else steps.throw(wrong)
                except StopIteration as end:
                    result: R = end.value
                    return result
                finally:
                    STEPPED.timers = before
                if isinstance(awaited, Deferred):
                    wrong = None
                    yield awaited
                else:
                    wrong = InvalidArgumentError(
                        f"a listener awaits {type(awaited).__name__} on virtual time, which no loop knows",
                        help="await calls of seglog's clients, and sleep_ms() in place of asyncio.sleep()",
                    )
        finally:
            steps.close()
