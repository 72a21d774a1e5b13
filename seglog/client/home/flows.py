"""Flows: coroutines that run on a home, a step at a time, without a thread or a task of their own.

A flow awaits later results with :func:`until`, and time with :func:`sleep` or a :class:`Bell`. Its home
continues it, whichever thread has the result; so state that only flows of one home change needs no lock. The
same flow runs on an event loop and on virtual time, where it is continued while time is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeAlias, TypeVar

from seglog.client.home.home import Home
from seglog.errors import ClientClosedError
from seglog.logs import logger
from seglog.remoting.later import CancelledError, Deferred

R = TypeVar("R")
Steps: TypeAlias = Coroutine[Deferred[Any], None, R]
"""A coroutine that awaits only objects of this module."""
LateSteps: TypeAlias = Generator[Deferred[Any], None, R]
"""The result of :func:`late`."""

_log = logger(__name__)


class Until(Generic[R]):
    """The awaitable of a flow: a later result.

    Args:
        deferred: The result; it is cancelled if the flow is stopped.
    """

    __slots__ = ("_deferred",)

    def __init__(self, deferred: Deferred[R]) -> None:
        self._deferred = deferred

    def __await__(self) -> Generator[Deferred[R], None, R]:
        if not self._deferred.is_done:
            yield self._deferred
        return self._deferred.result()


def until(deferred: Deferred[R]) -> Until[R]:
    """Returns an awaitable for a result; it raises the error that the result failed with."""
    return Until(deferred)


def sleep(home: Home, delay_ms: float) -> Until[None]:
    """Returns an awaitable for a time to pass."""
    return Until(_passed(home, delay_ms))


def rest(home: Home, delay_ms: float, ending: Deferred[None]) -> Until[None]:
    """Returns an awaitable for a time to pass or for ``ending``, whichever is first."""
    over = _passed(home, delay_ms)

    def end(_ending: Deferred[None]) -> None:
        over.resolve(None)

    ending.then(end)
    over.then(lambda _: ending.unfollow(end))  # else it would keep a reference to each rest that is over
    return Until(over)


def _passed(home: Home, delay_ms: float) -> Deferred[None]:
    over: Deferred[None] = Deferred()
    timer = home.timers.after(delay_ms, lambda: over.resolve(None))
    over.then(lambda _: home.timers.cancel(timer))
    return over


class Bell:
    """Wakes the flow that waits for it; a bell rung before ends the next wait at once.

    Args:
        home: The home of the waiting flow; only :meth:`ring` may be called elsewhere.
    """

    __slots__ = ("_home", "_is_rung", "_waiting")

    def __init__(self, home: Home) -> None:
        self._home = home
        self._is_rung = False
        self._waiting: Deferred[bool] | None = None

    def ring(self) -> None:
        """Wakes the flow, or lets the next wait end at once; any thread may call it."""
        self._is_rung = True
        waiting = self._waiting
        if waiting is not None:
            waiting.resolve(True)

    async def wait(self, timeout_ms: float | None = None) -> bool:
        """Waits, and returns whether it was rung: False after the timeout; None for no limit."""
        if not self._is_rung:
            waiting: Deferred[bool] = Deferred()
            self._waiting = waiting
            self._end_if_rung(waiting)
            if timeout_ms is not None and not waiting.is_done:
                timer = self._home.timers.after(timeout_ms, lambda: waiting.resolve(False))
                waiting.then(lambda _: self._home.timers.cancel(timer))
            try:
                await until(waiting)
            finally:
                self._waiting = None
        was_rung, self._is_rung = self._is_rung, False
        return was_rung

    def _end_if_rung(self, waiting: Deferred[bool]) -> None:
        """Ends a wait if another thread rang meanwhile, which may not have seen the wait."""
        if self._is_rung:
            waiting.resolve(True)


class Flow(Deferred[R], Generic[R]):
    """A running coroutine, and its result.

    Args:
        home: Runs it.
        steps: The coroutine.
        name: For the log.
    """

    __slots__ = ("_home", "_is_stopped", "_name", "_steps", "_waits_for")

    def __init__(self, home: Home, steps: Steps[R] | LateSteps[R], name: str) -> None:
        super().__init__()
        self._home = home
        self._steps = steps
        self._name = name
        self._waits_for: Deferred[Any] | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Cancels the awaited result, which raises ``CancelledError`` in it; call it on its home."""
        self._is_stopped = True
        if self._waits_for is not None:
            self._waits_for.cancel()

    def step(self) -> None:
        """Continues it until it has to wait; called by its home."""
        while True:
            self._waits_for = None
            try:
                waits_for = self._steps.send(None)
            except StopIteration as end:
                self.resolve(end.value)
                return
            except CancelledError as error:
                if not self._is_stopped:
                    _log.warning("%s ended: what it waited for was cancelled", self._name)
                self.fail(error)
                return
            except Exception as error:  # noqa: BLE001 - the top of a flow: its home continues
                _log.exception("%s failed", self._name)
                self.fail(error)
                return
            except BaseException as error:  # it would end a program; the home handles it
                self.fail(error)
                raise
            if self._is_stopped:
                waits_for.cancel()
            if not waits_for.is_done:
                self._waits_for = waits_for
                waits_for.then(lambda _: self._home.post(self.step))
                return


def late(make: Callable[[], Steps[R]]) -> LateSteps[R]:
    """Returns steps whose coroutine is made at the first step, so that none is left unawaited without a step.

    This happens on virtual time that is not moved any more.

    Args:
        make: Makes the coroutine.
    """
    return (yield from make().__await__())


def start(home: Home, steps: Steps[R] | LateSteps[R], name: str, *, may_run_now: bool = False) -> Flow[R]:
    """Starts a coroutine on its home; any thread may call it. An error that it ends with is logged.

    If the home is over it fails at once, with a ``ClientClosedError``.

    Args:
        home: Runs it; its first step is taken there, soon.
        steps: The coroutine, or :func:`late`.
        name: Its task, for the log.
        may_run_now: Whether the calling thread may take the first step itself: to wake the home, and to be
            woken by it, takes longer than most steps. The step must not use an event loop.
    """
    flow = Flow(home, steps, name)
    why_over = home.why_over
    if why_over is None:
        if not (may_run_now and home.run_now(flow.step)):
            home.post(flow.step)
    else:
        steps.close()
        flow.fail(ClientClosedError(f"{name} has not begun: {why_over}"))
    return flow
