"""Threads for plain listeners: each is started when there is work for it, and ends with the pool.

Source: ``ConsumeMessageConcurrentlyService.java consumeExecutor``.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from seglog.client.home import run_at_once
from seglog.consumer.pools.pool import R, Work
from seglog.forked import abandon_in_children, end_child
from seglog.logs import logger
from seglog.remoting.later import Deferred

_log = logger(__name__)


class ThreadPool:
    """Daemon threads, so that a listener that hangs does not keep a program from ending.

    A child process that a listener forks has only that thread: it ends when the listener ends, with the
    status of a ``sys.exit()``.

    Args:
        most_threads: The most threads.
        name: The name of each thread, to which a number is added.
    """

    LEAVES_ALONE: ClassVar[bool] = True

    def __init__(self, most_threads: int, name: str) -> None:
        self._most_threads = most_threads
        self._name = name
        self._work: deque[tuple[Callable[[], None], Deferred[Any]]] = deque()
        self._bell = threading.Condition()
        self._threads = 0
        self._free = 0
        self._is_closed = self._is_forked = False
        self._mine = threading.local()
        abandon_in_children(self, ThreadPool._abandon)

    def run(self, work: Work[R]) -> Deferred[R]:
        """Runs the work in a thread; after a close it is cancelled instead.

        If there is no thread and none can be started, it fails with that ``RuntimeError``.
        """
        result: Deferred[R] = Deferred()

        def call() -> None:
            try:
                value = run_at_once(work())
            except BaseException as error:  # noqa: BLE001 - it becomes the result; Java catches Throwable
                if self._is_forked:
                    self._end_child(error)
                result.fail(error)
            else:
                if self._is_forked:
                    self._end_child(None)
                result.resolve(value)

        lacking: RuntimeError | None = None
        with self._bell:
            is_taken = not self._is_closed
            if is_taken:
                self._work.append((call, result))
                self._bell.notify()
                if self._free < len(self._work) and self._threads < self._most_threads:
                    lacking = self._begin_thread()
                if lacking is not None:
                    self._work.pop()
        if not is_taken:
            result.cancel()
        elif lacking is not None:
            result.fail(lacking)
        return result

    def _begin_thread(self) -> RuntimeError | None:
        """Starts one more thread; returns the error only if no thread exists: others do the work."""
        name = f"{self._name}-{self._threads + 1}"
        try:
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        except RuntimeError as error:  # a limit of the process or the user
            return None if self._threads else error
        self._threads += 1
        return None

    def is_here(self) -> bool:
        """Returns whether the caller is one of its threads."""
        return hasattr(self._mine, "is_here")

    def surface(self, error: BaseException) -> None:
        """Logs it: a message failed, as in Java, which catches ``Throwable``, and the others go on."""
        _log.error("a listener of %s raised %r: its message comes again", self._name, error, exc_info=error)

    def close(self) -> bool:
        """Starts nothing more, and lets its threads end; does not wait for them."""
        with self._bell:
            self._is_closed = True
            waiting, self._work = self._work, deque()
            self._bell.notify_all()
        for _work, result in waiting:
            result.cancel()
        return False

    def _abandon(self) -> None:
        """Calls nothing more in a forked child, where another thread of the parent may have held the lock."""
        self._is_closed = self._is_forked = True
        self._bell, self._work = threading.Condition(), deque()

    def _end_child(self, error: BaseException | None) -> NoReturn:
        if error is None:
            _log.warning(
                "a listener of %s has come to its end in process %d, which was forked in it: that process"
                " ends, and its parent continues with the messages",
                self._name,
                os.getpid(),
            )
        end_child(error)

    def _serve(self) -> None:
        self._mine.is_here = True
        while True:
            with self._bell:
                self._free += 1
                while not self._work and not self._is_closed:
                    self._bell.wait()
                self._free -= 1
                if self._is_closed:
                    return
                call, _result = self._work.popleft()
            call()
