"""The threads and tasks that wait for queues to grow, each for one queue or for any of several.

A put wakes only the waiters of the queue that it wrote to, and costs nothing if there are none.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from seglog.clock import Clock

_Key = tuple[str, int]


class Waiters:
    """The waiters of all queues.

    Attributes:
        waiting: The functions that wake the waiters, by queue; empty while nothing waits or listens.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # The tuples are replaced, never changed: notify reads them without the lock.
        self.waiting: dict[_Key, tuple[Callable[[], None], ...]] = {}
        self._held_by: int | None = None
        self._held: list[_Key] = []

    def notify(self, topic: str, queue_id: int) -> None:
        """Wakes the waiters of a queue."""
        if not self.waiting:
            return
        if self._held_by == threading.get_ident():
            self._held.append((topic, queue_id))
            return
        for wake in self.waiting.get((topic, queue_id), ()):
            wake()

    def hold_back(self) -> None:
        """Delays the notifications of the calling thread until :meth:`release`, because it holds a lock.

        Only one thread at a time may hold back.
        """
        self._held_by = threading.get_ident()

    def release(self) -> list[_Key]:
        """Ends the delay of :meth:`hold_back`; returns the queues to notify once that lock is released."""
        held, self._held, self._held_by = self._held, [], None
        return held

    def notify_all(self) -> None:
        """Wakes all waiters, because the store closes."""
        with self._lock:
            waiting = [wake for each in self.waiting.values() for wake in each]
        for wake in waiting:
            wake()

    def wait(self, queues: Collection[_Key], ready: Callable[[], bool], timeout_ms: float) -> bool:
        """Waits until ``ready()`` is true or ``timeout_ms`` have passed; returns its last value.

        Args:
            queues: The queues whose growth can make ``ready`` true.
            ready: The condition; called without a lock of the store.
            timeout_ms: The longest wait.
        """
        if ready():
            return True
        condition = threading.Condition()

        def wake() -> None:
            with condition:
                condition.notify_all()

        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        # ready() is called again after the registration: a put between the first call and it woke no one.
        with self._listening(queues, wake), condition:
            while not ready():
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0 or not self._clock.wait(condition, left_ms):
                    return ready()
        return True

    async def wait_async(
        self, queues: Collection[_Key], ready: Callable[[], bool], timeout_ms: float
    ) -> bool:
        """Waits as :meth:`wait` does, for a task; sees steps of a virtual clock only when it wakes."""
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
        """Calls ``wake`` for every append to a queue, until :meth:`unlisten`.

        Args:
            queue: Topic and queue.
            wake: Called by the appending thread without a lock of the store; must be quick and not raise.
        """
        with self._lock:
            self.waiting[queue] = (*self.waiting.get(queue, ()), wake)

    def unlisten(self, queue: _Key, wake: Callable[[], None]) -> None:
        """Ends the calls that :meth:`listen` began; one call of ``wake`` may still be under way."""
        with self._lock:
            left = tuple(each for each in self.waiting.get(queue, ()) if each is not wake)
            if left:
                self.waiting[queue] = left
            else:
                self.waiting.pop(queue, None)

    @contextmanager
    def _listening(self, queues: Collection[_Key], wake: Callable[[], None]) -> Iterator[None]:
        """Calls ``wake`` for every append to the queues during the block."""
        for key in queues:
            self.listen(key, wake)
        try:
            yield
        finally:
            for key in queues:
                self.unlisten(key, wake)
