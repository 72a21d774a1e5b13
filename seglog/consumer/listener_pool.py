"""Where listeners are called: in threads of the consumer, or where time is moved.

A thread is there once there is work for it, and ends with the pool. On virtual time a call is made at once,
in the thread that moves time, so that everything comes in the same order each time.

Source: ``ConsumeMessageConcurrentlyService.java consumeExecutor``.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from seglog.client.home import Home
from seglog.remoting.later import Deferred

R = TypeVar("R")
_log = logging.getLogger(__name__)


class ListenerPool(Protocol):
    """Calls functions that wait for an application."""

    def run(self, call: Callable[[], R]) -> Deferred[R]:
        """Has a function called; what it raises is its result."""

    def surface(self, error: BaseException) -> None:
        """Takes what a listener raised that would end a program or a task, after its message was put back."""

    def close(self) -> None:
        """Calls nothing more, and lets its threads end; it does not wait for them."""


class InlinePool:
    """Calls at once, in the calling thread.

    Args:
        home: What is run while time is moved.
    """

    def __init__(self, home: Home) -> None:
        self._home = home

    def run(self, call: Callable[[], R]) -> Deferred[R]:
        """Calls it."""
        result: Deferred[R] = Deferred()
        try:
            result.resolve(call())
        except Exception as error:  # noqa: BLE001 - it is the result
            result.fail(error)
        return result

    def surface(self, error: BaseException) -> None:
        """Has it come to who moves time, whose thread it would have ended."""

        def come() -> None:
            raise error

        self._home.post(come)

    def close(self) -> None:
        """There is nothing to end."""


class ThreadPool:
    """Daemon threads, so that a listener that hangs does not keep a program from its end.

    Args:
        most_threads: How many, at most.
        name: Of each thread, with a number behind it.
    """

    def __init__(self, most_threads: int, name: str) -> None:
        self._most_threads = most_threads
        self._name = name
        self._work: deque[tuple[Callable[[], None], Deferred[Any]]] = deque()
        self._bell = threading.Condition()
        self._threads = 0
        self._free = 0
        self._is_closed = False

    def run(self, call: Callable[[], R]) -> Deferred[R]:
        """Has a thread call it; once the pool is closed it is cancelled instead."""
        result: Deferred[R] = Deferred()

        def work() -> None:
            try:
                value = call()
            except BaseException as error:  # noqa: BLE001 - it is the result; Java catches Throwable
                result.fail(error)
            else:
                result.resolve(value)

        with self._bell:
            is_taken = not self._is_closed
            if is_taken:
                self._work.append((work, result))
                self._bell.notify()
                if self._free < len(self._work) and self._threads < self._most_threads:
                    self._threads += 1
                    threading.Thread(
                        target=self._serve, name=f"{self._name}-{self._threads}", daemon=True
                    ).start()
        if not is_taken:
            result.cancel()
        return result

    def surface(self, error: BaseException) -> None:
        """Logs it: a message failed, as in Java, which catches ``Throwable``, and the others go on."""
        _log.error("a listener of %s raised %r: its message comes again", self._name, error, exc_info=error)

    def close(self) -> None:
        """Calls nothing more, and lets its threads end; it does not wait for them."""
        with self._bell:
            self._is_closed = True
            waiting, self._work = self._work, deque()
            self._bell.notify_all()
        for _work, result in waiting:
            result.cancel()

    def _serve(self) -> None:
        while True:
            with self._bell:
                self._free += 1
                while not self._work and not self._is_closed:
                    self._bell.wait()
                self._free -= 1
                if self._is_closed:
                    return
                work, _result = self._work.popleft()
            work()
