"""Waits of threads and tasks for results of a home."""

from __future__ import annotations

import threading
from typing import Final, Protocol, TypeVar

from seglog.client.home.home import Home
from seglog.client.home.virtual_home import VirtualHome
from seglog.errors import InvalidArgumentError
from seglog.remoting.later import Deferred, is_loop_here

BESIDE_S: Final = 3.0
"""The longest wait of :func:`wait_beside`."""
R = TypeVar("R")


class Wait(Protocol):
    """The wait of one face: :func:`await_for`, or :func:`wait_here`."""

    async def __call__(self, home: Home, result: Deferred[R], timeout_s: float | None = None) -> R:
        """Returns a result of a home; see :func:`wait_for`."""


def wait_for(home: Home, result: Deferred[R], timeout_s: float | None = None) -> R:
    """Returns a result of a home.

    On virtual time the calling thread runs the work that is due now; no time passes.

    Args:
        home: What brings it.
        result: The result.
        timeout_s: The longest wait; None for no limit. Ignored on virtual time.

    Raises:
        TimeoutError: There was no result in time, or on virtual time none without time passing.
        InvalidArgumentError: The home runs the caller.
        BaseException: What the result failed with.
    """
    if not result.is_done and home.is_here():
        raise _waits_for_itself()
    if isinstance(home, VirtualHome):
        home.run_due()
        if not result.is_done:
            raise TimeoutError("it needs virtual time to pass: call advance() of the broker")
    return result.wait(timeout_s)


async def wait_here(home: Home, result: Deferred[R], timeout_s: float | None = None) -> R:
    """Waits as :func:`wait_for` does, in a coroutine that the calling thread runs at once."""
    return wait_for(home, result, timeout_s)


def check_may_wait(home: Home, *, is_awaited: bool, face: str | None = None) -> None:
    """Refuses a call that could never finish waiting, before it has begun.

    Args:
        home: The home to wait for.
        is_awaited: Whether the caller awaits, so that an event loop continues meanwhile.
        face: The class of the called object, for the error; with the prefix Async it is the class for event
            loops.

    Raises:
        InvalidArgumentError: The caller would wait for itself.
    """
    if isinstance(home, VirtualHome):
        waits_for_itself = home.is_here()
    elif is_awaited:
        waits_for_itself = False
    else:
        waits_for_itself = is_loop_here()
        if waits_for_itself and face is not None:
            raise InvalidArgumentError(
                f"a {face} was called in an event loop, which would wait for itself",
                help=f"use Async{face} there and await its calls, or call this one from another thread",
            )
    if waits_for_itself:
        raise _waits_for_itself()


def wait_beside(home: Home, result: Deferred[object]) -> None:
    """Waits in a thread that runs an event loop, for what needs no step of that loop; not in its own home.

    Args:
        home: What brings it, within :data:`BESIDE_S`.
        result: The result, or its error, which are dropped.
    """
    if not (result.is_done or home.is_here()):
        is_over = threading.Event()
        result.then(lambda _: is_over.set())
        is_over.wait(BESIDE_S)


async def await_for(home: Home, result: Deferred[R], timeout_s: float | None = None) -> R:
    """Returns a result of a home, in a task, which may run in the home's own loop.

    If the task is cancelled or times out, the result still arrives later. On virtual time it works as
    :func:`wait_for`.

    Args:
        home: What brings it.
        result: The result.
        timeout_s: As for :func:`wait_for`.

    Raises:
        As :func:`wait_for`.
    """
    if isinstance(home, VirtualHome):
        return wait_for(home, result)
    import asyncio

    from seglog.remoting.later import until_told

    if not result.is_done:
        try:
            async with asyncio.timeout(timeout_s):
                await until_told(result.then)
        except TimeoutError:
            raise TimeoutError(f"no result within {timeout_s} s") from None
    return result.result()


def _waits_for_itself() -> InvalidArgumentError:
    return InvalidArgumentError(
        "a listener, or an event loop, would wait for itself",
        help="await it, or call it from another thread",
    )
