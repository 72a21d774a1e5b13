"""A result that comes later: of a pull that is held, of a send that waits for the disk, of a client's answer.

No event loop in it. What resolves it is any thread, and functions given to :meth:`Deferred.then` run in that
one: they only pass the word on, to a thread that waits or to the inbox of a loop. One that raises is logged:
the thread may be that of the disk, and has others to tell.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from threading import TIMEOUT_MAX
from typing import Any, Final, Generic, TypeVar

from seglog.errors import InvalidArgumentError
from seglog.logs import logger
from seglog.schedule import AnyTimers

R = TypeVar("R")


class _Stepped(threading.local):
    """What is known of a coroutine that a thread runs without an event loop.

    Attributes:
        timers: Those of the time that it lives by; None where no such coroutine is run.
    """

    timers: AnyTimers | None = None


STEPPED: Final = _Stepped()
"""Of the calling thread; who steps a coroutine that awaits a ``Deferred`` sets it meanwhile."""
_log = logger(__name__)


class CancelledError(Exception):
    """It was cancelled: its result is not wanted any more."""


class Deferred(Generic[R]):
    """A result that comes once; any thread may call it. The first result counts, all others are dropped."""

    __slots__ = ("_error", "_followers", "_is_done", "_lock", "_make", "_value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_done = False
        self._value: R | None = None
        self._make: Callable[[], R] | None = None
        self._error: BaseException | None = None
        self._followers: list[Callable[[Deferred[R]], object]] = []

    @property
    def is_done(self) -> bool:
        """Whether it has a result, or was cancelled."""
        return self._is_done

    @property
    def error(self) -> BaseException | None:
        """What it failed with, a ``CancelledError`` too; None where it has not failed."""
        return self._error

    def resolve(self, value: R) -> bool:
        """Gives the result; returns whether it is the first."""
        return self._end(value, None, None)

    def resolve_by(self, make: Callable[[], R]) -> bool:
        """Gives a result that is made when it is first asked for, by the thread that asks.

        So what is costly is not done by the thread that brings the news.
        """
        return self._end(None, make, None)

    def fail(self, error: BaseException) -> bool:
        """Has those that ask for the result get an error; returns whether that is the first result."""
        return self._end(None, None, error)

    def cancel(self) -> bool:
        """Says that the result is not wanted any more; returns whether there was none yet."""
        is_first = self._end(None, None, CancelledError())
        if is_first:
            self._forget()
        return is_first

    def _forget(self) -> None:
        """Called once it was cancelled; subclasses take it out of their tables."""

    def then(self, follower: Callable[[Deferred[R]], object]) -> None:
        """Has a function called once there is a result, by the thread that gives it; at once if there is one.

        Args:
            follower: Given this; it neither waits nor raises.
        """
        if not self.is_done:
            with self._lock:
                if not self._is_done:
                    self._followers.append(follower)
                    return
        self._tell(follower)

    def result(self) -> R:
        """Returns the result.

        Raises:
            CancelledError: It was cancelled.
            InvalidArgumentError: There is none yet.
            BaseException: What it failed with.
        """
        if not self._is_done:
            raise InvalidArgumentError("there is no result yet", help="wait for it, or await it")
        if self._make is not None:
            self._make_it()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # None only where that is the result

    def wait(self, timeout_s: float | None = None) -> R:
        """Keeps the calling thread until there is a result, and returns it.

        Args:
            timeout_s: How long it waits at most; None for as long as it takes.

        Raises:
            TimeoutError: There was none in time.
            InvalidArgumentError: The calling thread runs an event loop, which would wait for itself.
            BaseException: As :meth:`result`.
        """
        if not self._is_done:
            if is_loop_here():
                raise InvalidArgumentError("a loop's thread would wait for itself", help="await it instead")
            over = threading.Lock()  # an Event is three objects more, and is made for each send
            over.acquire()
            follower = _releaser(over)
            self.then(follower)
            if not over.acquire(timeout=-1 if timeout_s is None else min(max(timeout_s, 0), TIMEOUT_MAX)):
                self.unfollow(follower)
                raise TimeoutError(f"no result within {timeout_s} s")
        return self.result()

    def __await__(self) -> Generator[Any, Any, R]:
        """Waits in a task of an event loop; elsewhere what steps the coroutine gets the deferred itself."""
        if not self._is_done:
            if STEPPED.timers is None and is_loop_here():
                from seglog.remoting.later.loop_inbox import until_told  # asyncio is there already

                try:
                    yield from until_told(self.then).__await__()
                finally:
                    self.cancel()
            else:
                yield self
        return self.result()

    def _end(self, value: R | None, make: Callable[[], R] | None, error: BaseException | None) -> bool:
        if self.is_done:
            return False  # without the lock, which is held while a result is made
        with self._lock:
            if self._is_done:
                return False
            self._value, self._make, self._error = value, make, error
            self._is_done = True
            followers, self._followers = self._followers, []
        for follower in followers:
            self._tell(follower)
        return True

    def _tell(self, follower: Callable[[Deferred[R]], object]) -> None:
        try:
            follower(self)
        except Exception:  # noqa: BLE001 - others follow, and the thread has more to do
            _log.exception("what follows a result failed")

    def unfollow(self, follower: Callable[[Deferred[R]], object]) -> None:
        """Does not call a function any more that was given to :meth:`then`."""
        with self._lock:
            if follower in self._followers:
                self._followers.remove(follower)

    def _make_it(self) -> None:
        with self._lock:
            make = self._make
            if make is None:
                return  # another thread was first
            try:
                self._value = make()
            except BaseException as error:  # noqa: BLE001 - it is the result
                self._error = error
            self._make = None  # last: who finds none takes what was made


def _releaser(lock: threading.Lock) -> Callable[[object], None]:
    return lambda _: lock.release()


def is_loop_here() -> bool:
    """Returns whether the calling thread runs an event loop; without asyncio loaded none does."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def resolved(value: R) -> Deferred[R]:
    """Returns what has its result already."""
    deferred: Deferred[R] = Deferred()
    deferred.resolve(value)
    return deferred
