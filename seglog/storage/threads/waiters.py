"""Who waits for queues to grow, threads and tasks, each for one queue or for any of many.

A put wakes only those that wait for the queue that it wrote to, and costs nothing where none wait.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from seglog.clock import Clock

_Key = tuple[str, int]


class Waiters:
    """Who waits for which queue.

    Attributes:
        waiting: Whom to wake, by queue; empty while no call waits.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self.waiting: dict[_Key, tuple[Callable[[], None], ...]] = {}  # never changed in place
        self._held_by: int | None = None
        self._held: list[_Key] = []

    def notify(self, topic: str, queue_id: int) -> None:
        """Wakes those who wait for this queue."""
        if not self.waiting:
            return
        if self._held_by == threading.get_ident():
            self._held.append((topic, queue_id))
            return
        for wake in self.waiting.get((topic, queue_id), ()):
            wake()

    def hold_back(self) -> None:
        """Has what the calling thread notifies wait for :meth:`release`: it holds a lock.

        One thread at a time may hold back.
        """
        self._held_by = threading.get_ident()

    def release(self) -> list[_Key]:
        """Ends what :meth:`hold_back` began; returns what is to be notified without that lock."""
        held, self._held, self._held_by = self._held, [], None
        return held

    def notify_all(self) -> None:
        """Wakes everyone: the store closes."""
        with self._lock:
            waiting = [wake for each in self.waiting.values() for wake in each]
        for wake in waiting:
            wake()

    def wait(self, queues: Collection[_Key], ready: Callable[[], bool], timeout_ms: float) -> bool:
        """Waits until ``ready`` or until ``timeout_ms`` have passed; returns what ``ready`` says then.

        Args:
            queues: Those whose growth ``ready`` looks at.
            ready: Looks at them; called without a lock of the store.
            timeout_ms: How long to wait.
        """
        if ready():
            return True
        condition = threading.Condition()

        def wake() -> None:
            with condition:
                condition.notify_all()

        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        with self._listening(queues, wake), condition:
            while not ready():
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0 or not self._clock.wait(condition, left_ms):
                    return ready()
        return True

    async def wait_async(
        self, queues: Collection[_Key], ready: Callable[[], bool], timeout_ms: float
    ) -> bool:
        """Waits as :meth:`wait` does, for a task; a clock that is moved by hand is looked at now and then."""
        if ready():
            return True
        loop = asyncio.get_running_loop()
        grown = asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop was closed, and no task waits in it any more
                loop.call_soon_threadsafe(grown.set)

        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        with self._listening(queues, wake):
            while not ready():
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    return False
                with suppress(TimeoutError):
                    async with asyncio.timeout(left_ms / 1000):
                        await grown.wait()
                grown.clear()
        return True

    def listen(self, queue: _Key, wake: Callable[[], None]) -> None:
        """Has ``wake`` called for every append to a queue, until :meth:`unlisten`.

        Args:
            queue: Topic and queue.
            wake: Called by the appending thread, without a lock of the store: quick, and never raising.
        """
        with self._lock:
            self.waiting[queue] = (*self.waiting.get(queue, ()), wake)

    def unlisten(self, queue: _Key, wake: Callable[[], None]) -> None:
        """Ends what :meth:`listen` began; a call of ``wake`` may still be under way."""
        with self._lock:
            left = tuple(each for each in self.waiting.get(queue, ()) if each is not wake)
            if left:
                self.waiting[queue] = left
            else:
                self.waiting.pop(queue, None)

    @contextmanager
    def _listening(self, queues: Collection[_Key], wake: Callable[[], None]) -> Iterator[None]:
        """Has ``wake`` called for every append to the queues during the block."""
        for key in queues:
            self.listen(key, wake)
        try:
            yield
        finally:
            for key in queues:
                self.unlisten(key, wake)
