"""The timed work of a broker: it saves tables, delivers delayed messages, deletes files.

A duty returns the time until its next turn, and runs one turn. On real time each duty has a thread of its
own, so a slow one delays no other. On a virtual clock there are no threads: :meth:`Duties.advance` goes from
one due time to the next and runs the due duties in a fixed order, so the same calls give the same store, for
any length of virtual time.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from seglog.arguments import refusal
from seglog.clock import Clock, VirtualClock
from seglog.errors import InvalidArgumentError, SeglogError
from seglog.joining import join
from seglog.logs import logger

RETRY_MS: Final = 1_000
"""Pause of a duty after a failed turn."""
_LATEST_MS: Final = 253_399_622_400_000 - 1
"""Last moment of November 9999: message ids hold the time since the start of a month."""

_log = logger(__name__)


class Duty(ABC):
    """One kind of timed work of a broker."""

    name: ClassVar[str]
    """Its name, in logs and of its thread."""
    longest_sleep_ms: float | None = None
    """Longest sleep of its thread, for a duty that is not woken when there is new work."""

    def __init__(self) -> None:
        self.bell = threading.Condition()

    def wake(self) -> None:
        """Makes the thread call :meth:`left_ms` again: the next turn may be due earlier than before."""
        with self.bell:
            self.bell.notify_all()

    @abstractmethod
    def left_ms(self) -> float | None:
        """Returns the time in ms until the next turn, 0 or less for now, None to wait until it is woken.

        It is called under the bell's lock, so it must be quick and must not call :meth:`wake`.
        """

    @abstractmethod
    def run(self) -> None:
        """Runs one turn. Afterwards it is due later, or at once only if there is more work.

        Raises:
            SeglogError, OSError: The turn failed; the next is ``RETRY_MS`` later.
        """


class Duties:
    """The duties of one broker.

    Args:
        clock: Their clock, for the waits.
        duties: The duties, in the order of their turns at one moment.
    """

    def __init__(self, clock: Clock, duties: Sequence[Duty]) -> None:
        self._clock = clock
        self._duties = tuple(_Turns(clock, duty) for duty in duties)
        self._threads: list[threading.Thread] = []
        self._is_stopping = False
        self._moving = threading.RLock()  # only one caller at a time moves the time

    def start(self) -> None:
        """Starts a thread for every duty, until :meth:`stop`."""
        for turns in self._duties:
            thread = threading.Thread(
                target=self._serve, args=(turns,), name=f"seglog-{turns.duty.name}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Waits until every thread has ended; a running turn is finished."""
        self._is_stopping = True
        for turns in self._duties:
            turns.duty.wake()
        for thread in self._threads:
            join(thread)

    def run_due(self) -> bool:
        """Runs one turn of each duty that is due now; returns whether any was due."""
        due = [turns for turns in self._duties if turns.left_ms() <= 0]
        for turns in due:
            turns.run()
        return bool(due)

    def advance(self, by_ms: int, until: Callable[[], bool] = lambda: False) -> None:
        """Moves a virtual clock forward, and runs every duty at the time at which it is due.

        Args:
            by_ms: The time to move by.
            until: Returns True to stop earlier; called when all duties of a moment are done.

        Raises:
            InvalidArgumentError: The clock is real time, would go back, or would leave the calendar.
        """
        clock = self._clock
        if not isinstance(clock, VirtualClock):
            raise InvalidArgumentError(
                "only a virtual clock can be moved", help="open the broker with clock=VirtualClock()"
            )
        if by_ms < 0:
            raise InvalidArgumentError(f"time cannot go back by {-by_ms} ms")
        if by_ms > (most_ms := _LATEST_MS - clock.now_ms()):
            raise refusal("by", by_ms, f"at most {most_ms} ms: virtual time ends with November 9999")
        with self._moving:
            end_ms = clock.monotonic_ms() + by_ms
            while True:
                # A step's cost is the calls of left_ms(): their results serve both to run and to find the
                # next time.
                lefts = [turns.left_ms() for turns in self._duties]
                next_ms = min(lefts, default=math.inf)
                if next_ms <= 0:
                    for turns, of_turns_ms in zip(self._duties, lefts, strict=True):
                        if of_turns_ms <= 0:
                            turns.run()
                    continue
                left_ms = end_ms - clock.monotonic_ms()
                if left_ms <= 0 or self._is_stopping or until():
                    return
                clock.advance(math.ceil(min(left_ms, next_ms)))

    def _serve(self, turns: _Turns) -> None:
        duty = turns.duty
        while not self._is_stopping:
            with duty.bell:
                left_ms = turns.left_ms()
                if left_ms > 0 and not self._is_stopping:
                    left_ms = min(left_ms, duty.longest_sleep_ms or math.inf)
                    self._clock.wait(duty.bell, None if math.isinf(left_ms) else left_ms)
                    continue
            if not self._is_stopping:
                try:
                    turns.run()
                except Exception:  # noqa: BLE001 - without its thread the duty would never run again
                    _log.exception("%s failed, trying again in %d ms", duty.name, RETRY_MS)
                    turns.rest()


class _Turns:
    """A duty, and the time of its next turn after a failed one."""

    def __init__(self, clock: Clock, duty: Duty) -> None:
        self.duty = duty
        self._clock = clock
        self._not_before_ms = -math.inf

    def left_ms(self) -> float:
        left_ms = self.duty.left_ms()
        if left_ms is None:
            return math.inf
        return max(left_ms, self._not_before_ms - self._clock.monotonic_ms())

    def run(self) -> None:
        try:
            self.duty.run()
            self._not_before_ms = -math.inf
        except (SeglogError, OSError) as error:
            self.rest()
            _log.warning("%s failed, trying again in %d ms: %s", self.duty.name, RETRY_MS, error)

    def rest(self) -> None:
        """Delays the next turn after a failed one."""
        self._not_before_ms = self._clock.monotonic_ms() + RETRY_MS
