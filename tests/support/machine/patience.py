"""How long tests wait for what an idle machine does in a known time: longer where others compete for it.

A test that waits does it here, so that what was late can be told from what was wrong: :class:`LateError` is
the one failure that CI may try once more.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeVar

import pytest

from seglog.remoting.later import Deferred

T = TypeVar("T")

_LOOK_S: Final = 0.01
"""How long it is between two looks at what is awaited."""


class LateError(AssertionError):
    """What a test waited for did not come in time; nothing that came was wrong."""


def is_late(error: BaseException) -> bool:
    """Returns whether an error is a time-out: of this module, of a process, of pytest-timeout for a hang."""
    is_hang = isinstance(error, pytest.fail.Exception) and "from pytest-timeout" in str(error)
    return is_hang or isinstance(error, (LateError, subprocess.TimeoutExpired))


def patience_s(idle_s: float) -> float:
    """Returns a limit that only something that hangs passes.

    Args:
        idle_s: A limit that holds on an idle machine.
    """
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    return idle_s * max(2.0, 2 * load)


def wait_until(
    is_so: Callable[[], T],
    what: str = "what the test waits for",
    *,
    idle_s: float = 5,
    look_s: float = _LOOK_S,
) -> T:
    """Returns the first true answer of ``is_so``.

    Args:
        is_so: Looks once; what it raises ends the wait.
        what: What is awaited, for the error.
        idle_s: How long an idle machine may take.
        look_s: How long it is between two looks.

    Raises:
        LateError: It was not so in time.
    """
    for _ in looks(what, idle_s=idle_s, look_s=look_s):
        if found := is_so():
            return found
    raise AssertionError("looks() ends by LateError alone")


def _be_patient(begun: float, what: str, idle_s: float) -> None:
    """Raises LateError where a wait took too long. The limit follows the load, which may rise meanwhile."""
    waited_s = time.monotonic() - begun
    if waited_s > patience_s(idle_s):
        raise LateError(f"{what} was not so after {waited_s:.1f} s")


def took_within(seconds: float, what: str, *, idle_s: float) -> None:
    """Returns if what was measured took no longer than it may.

    Raises:
        LateError: It did.
    """
    limit_s = patience_s(idle_s)
    if seconds >= limit_s:
        raise LateError(f"{what} took {seconds:.2f} s, expected below {limit_s:.2f}")


def looks(what: str, *, idle_s: float = 5, look_s: float = _LOOK_S) -> Iterator[float]:
    """Yields the seconds waited so far, before each look, for a loop that ends itself by ``break``.

    Raises:
        LateError: The loop did not end in time.
    """
    begun = time.monotonic()
    while True:
        yield time.monotonic() - begun
        _be_patient(begun, what, idle_s)
        time.sleep(look_s)


def wait_for_event(event: threading.Event, what: str = "the event", *, idle_s: float = 5) -> None:
    """Returns once an event is set.

    Raises:
        LateError: It was not set in time.
    """
    limit_s = patience_s(idle_s)
    if not event.wait(limit_s):
        raise LateError(f"{what} was not set after {limit_s:.1f} s")


def join_thread(thread: threading.Thread, *, idle_s: float = 5) -> None:
    """Returns once a thread has ended.

    Raises:
        LateError: It runs still.
    """
    limit_s = patience_s(idle_s)
    thread.join(limit_s)
    if thread.is_alive():
        raise LateError(f"{thread.name} runs still after {limit_s:.1f} s")


def wait_for_end(process: subprocess.Popen[str] | subprocess.Popen[bytes], *, idle_s: float = 10) -> int:
    """Returns the exit code of a process that ends by itself.

    Raises:
        LateError: It runs still; it is killed.
    """
    limit_s = patience_s(idle_s)
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise LateError(f"{process.args!r} runs still after {limit_s:.1f} s") from None


def wait_for_result(deferred: Deferred[T], *, idle_s: float = 20) -> T:
    """Returns what a deferred comes to; an error that it comes to is raised as it is.

    Raises:
        LateError: It came to nothing in time.
    """
    limit_s = patience_s(idle_s)
    try:
        return deferred.wait(limit_s)
    except TimeoutError:
        if deferred.is_done:  # it has failed with a time-out of the product's, or came just after the limit
            return deferred.result()
        raise LateError(f"there was no result after {limit_s:.1f} s") from None


async def wait_until_in_loop(
    is_so: Callable[[], T],
    what: str = "what the test waits for",
    *,
    idle_s: float = 30,
    look_s: float = _LOOK_S,
) -> T:
    """Returns as :func:`wait_until`; the loop runs meanwhile."""
    begun = time.monotonic()
    while True:
        found = is_so()
        if found:
            return found
        _be_patient(begun, what, idle_s)
        await asyncio.sleep(look_s)


async def in_time(awaited: Awaitable[T], what: str = "what the test awaits", *, idle_s: float = 30) -> T:
    """Returns what is awaited; an error that it comes to is raised as it is.

    Raises:
        LateError: It came to nothing in time; it is cancelled.
    """
    limit_s = patience_s(idle_s)
    task = asyncio.ensure_future(awaited)
    try:
        done, _ = await asyncio.wait([task], timeout=limit_s)
        if not done:
            raise LateError(f"{what} was not there after {limit_s:.1f} s")
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
