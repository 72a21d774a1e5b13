"""What a broker does by itself when its time has come: save tables, deliver delayed messages, delete files.

A duty says how long it has until then, and does one turn of it. On real time each duty has a thread of its
own, so a slow one delays no other. On a virtual clock there are no threads: :meth:`Duties.advance` goes
from one due moment to the next and lets the duties have their turns in a fixed order, so the same calls
give the same store, however long the virtual time is.
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
"""How long a duty rests whose turn has failed."""
_LATEST_MS: Final = 253_399_622_400_000 - 1
"""Last moment of November 9999: ids of messages state the time since the start of a month of a date."""

_log = logger(__name__)


class Duty(ABC):
    """One thing that a broker does by time."""

    name: ClassVar[str]
    """What it is called in logs and in the name of its thread."""
    longest_sleep_ms: float | None = None
    """How long its thread sleeps at most, for a duty that nothing wakes when there is new work."""

    def __init__(self) -> None:
        self.bell = threading.Condition()

    def wake(self) -> None:
        """Has :meth:`left_ms` asked again: there may be something to do earlier than it last said."""
        with self.bell:
            self.bell.notify_all()

    @abstractmethod
    def left_ms(self) -> float | None:
        """Returns how long until the next turn, 0 or less for now, None for not before it is woken.

        It is called under the bell's lock, so it is quick and does not call :meth:`wake`.
        """

    @abstractmethod
    def run(self) -> None:
        """Has one turn. Afterwards it is due later, or at once only because there is more to do.

        Raises:
            SeglogError, OSError: The turn failed; the next is ``RETRY_MS`` later.
        """


class Duties:
    """The duties of one broker.

    Args:
        clock: Theirs, for the waits.
        duties: In the order in which those that are due at one moment have their turns.
    """

    def __init__(self, clock: Clock, duties: Sequence[Duty]) -> None:
        self._clock = clock
        self._duties = tuple(_Turns(clock, duty) for duty in duties)
        self._threads: list[threading.Thread] = []
        self._is_stopping = False
        self._moving = threading.RLock()  # time passes for one caller after the other

    def start(self) -> None:
        """Gives every duty a thread, until :meth:`stop`."""
        for turns in self._duties:
            thread = threading.Thread(
                target=self._serve, args=(turns,), name=f"seglog-{turns.duty.name}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Returns once every thread has ended, at the latest after the turn that it is in."""
        self._is_stopping = True
        for turns in self._duties:
            turns.duty.wake()
        for thread in self._threads:
            join(thread)

    def run_due(self) -> bool:
        """Lets what is due now have one turn each; returns whether anything was."""
        due = [turns for turns in self._duties if turns.left_ms() <= 0]
        for turns in due:
            turns.run()
        return bool(due)

    def advance(self, by_ms: int, until: Callable[[], bool] = lambda: False) -> None:
        """Moves a virtual clock on and does everything that falls into that time, at its moment.

        Args:
            by_ms: How far.
            until: Ends it earlier; asked after everything that is due at a moment is done.

        Raises:
            InvalidArgumentError: The clock goes by itself, would go back, or would leave the calendar.
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
                # To ask all duties is what a step costs: what they say serves to run and to go on.
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
                except Exception:  # noqa: BLE001 - without its thread the duty would never be done again
                    _log.exception("%s failed, trying again in %d ms", duty.name, RETRY_MS)
                    turns.rest()


class _Turns:
    """A duty, and when it may have its next turn after one that failed."""

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
        """Puts the next turn off: this one has failed."""
        self._not_before_ms = self._clock.monotonic_ms() + RETRY_MS
