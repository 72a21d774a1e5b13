"""The counts of one broker, and the duty that takes samples of them.

Puts are not counted one by one: queue offsets give their number, so that a send costs nothing more; bytes are
the growth of the log. Pulled messages are counted with each pull. A server measures the times of calls.

Source: ``BrokerStatsManager.java``, ``BrokerStats.java``, ``StoreStatsService.java``. Difference: the numbers
of calls are not counted, only those of messages, and of pulls that found some or none.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from datetime import date
from typing import ClassVar, Final, NamedTuple

from typing_extensions import override

from seglog.broker.figures.samples import Rate, Samples, Span
from seglog.clock import Clock
from seglog.schedule import Periodic
from seglog.storage.store import MessageStore

SAMPLE_MS: Final = 10_000
PUT: Final = "put"
PULLED: Final = "pulled"
FOUND: Final = "found"
MISSED: Final = "missed"


class Totals(NamedTuple):
    """Numbers of messages since the broker was opened."""

    put: int
    pulled: int


class Figures:
    """The counts of a broker. Any thread may call it.

    Args:
        store: Its queue offsets give the number of puts.
        clock: The broker's.

    """

    def __init__(self, store: MessageStore, clock: Clock) -> None:
        self._gauges: dict[str, tuple[Callable[[], int], ...]] = {}
        self._facts: tuple[Callable[[], Mapping[str, str]], ...] = ()
        self._store = store
        self._first_end = store.max_phy_offset
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: Counter[Hashable] = Counter()
        self._pulls: dict[tuple[str, str], list[int]] = {}  # messages, pulls that found some and none
        self._pull_count = 0
        self._ends = self._ends_now()
        self._seen_end = store.max_phy_offset
        self._sampled = self._marks()
        self._samples = Samples(clock.monotonic_ms(), self._counts)
        self._day = self._today()
        self._looked = Totals(0, 0)
        self._mornings = (Totals(0, 0), Totals(0, 0))  # at the start of yesterday and of today

    def note_pull(self, group: str, topic: str, count: int) -> None:
        """Counts a pull, and the messages that it found."""
        with self._lock:
            self._pull_count += 1
            cell = self._pulls.get((topic, group))
            if cell is None:
                cell = self._pulls[topic, group] = [0, 0, 0]
            cell[0] += count
            cell[1 if count else 2] += 1

    def add_gauge(self, name: str, gauge: Callable[[], int]) -> Callable[[], None]:
        """Adds a figure of a part that this room does not know; figures of the same name are added up.

        Returns:
            What shows it no longer.
        """

        def drop() -> None:
            with self._lock:
                left = tuple(each for each in self._gauges[name] if each is not gauge)
                self._gauges = {key: each for key, each in self._gauges.items() if key != name}
                if left:
                    self._gauges[name] = left

        with self._lock:
            self._gauges = {**self._gauges, name: (*self._gauges.get(name, ()), gauge)}
        return drop

    def add_facts(self, facts: Callable[[], Mapping[str, str]]) -> Callable[[], None]:
        """Adds the facts that such a part reports, by RocketMQ's names; of several parts the last one counts.

        Returns:
            What shows it no longer.
        """

        def drop() -> None:
            with self._lock:
                self._facts = tuple(each for each in self._facts if each is not facts)

        with self._lock:
            self._facts = (*self._facts, facts)
        return drop

    def facts(self) -> dict[str, str]:
        """Returns the facts of those parts."""
        found: dict[str, str] = {}
        for each in self._facts:
            found |= each()
        return found

    @property
    def put_bytes(self) -> int:
        """The growth of the log since the broker was opened, in bytes."""
        return self._store.max_phy_offset - self._first_end

    def gauges(self) -> dict[str, int]:
        """Returns those figures, by name."""
        return {name: sum(gauge() for gauge in each) for name, each in sorted(self._gauges.items())}

    @property
    def has_changed(self) -> bool:
        """Whether anything was counted since the last sample."""
        return self._sampled != self._marks()

    def sample(self) -> None:
        """Takes a sample of all counts."""
        with self._lock:
            self._sampled = self._marks()
            self._look()
            self._samples.take(self._clock.monotonic_ms(), self._counts)

    def put_rate(self, topic: str, span: Span) -> Rate:
        """Returns how many messages were put to a topic."""
        return self._rate((PUT, topic), span)

    def pulled_rate(self, group: str, topic: str, span: Span) -> Rate:
        """Returns how many messages of a topic a group has pulled."""
        return self._rate((PULLED, topic, group), span)

    def rate_of_all(self, what: str, span: Span) -> Rate:
        """Returns the rate of all messages or pulls of a kind, such as :data:`PUT`."""
        return self._rate(what, span)

    def has_any(self, what: str) -> bool:
        """Returns whether any message was put, or pulled, since the broker was opened."""
        totals = self.totals()[-1]
        return (totals.put if what == PUT else totals.pulled) > 0

    def has_pulled(self, group: str, topic: str) -> bool:
        """Returns whether a group has pulled any message of a topic."""
        cell = self._pulls.get((topic, group))
        return cell is not None and cell[0] > 0

    def totals(self) -> tuple[Totals, Totals, Totals]:
        """Returns the totals at yesterday's start, at today's start, and now."""
        with self._lock:
            self._look()
            return *self._mornings, self._looked

    def _rate(self, name: Hashable, span: Span) -> Rate:
        with self._lock:
            self._look()
            return self._samples.rate(span, self._clock.monotonic_ms(), name, self._counts[name])

    def _look(self) -> None:
        """Counts what was put since the last look, under the lock."""
        end = self._store.max_phy_offset
        today = self._today()
        if today != self._day:
            is_next = (today - self._day).days == 1
            self._mornings = (self._mornings[1] if is_next else self._looked), self._looked
            self._day = today
        if end != self._seen_end:
            self._seen_end = end
            ends = self._ends_now()
            for topic, queue_end in ends.items():
                grown = queue_end - self._ends[topic]
                if grown > 0:  # the queues of a deleted topic may begin at 0 again
                    self._counts[PUT] += grown
                    self._counts[PUT, topic] += grown
            self._ends = ends
        for place, name in enumerate((PULLED, FOUND, MISSED)):
            self._counts[name] = sum(cell[place] for cell in self._pulls.values())
        for (topic, group), cell in self._pulls.items():
            self._counts[PULLED, topic, group] = cell[0]
        self._looked = Totals(self._counts[PUT], self._counts[PULLED])

    def _marks(self) -> tuple[int, int]:
        """Returns values that change with each message and each pull."""
        return self._store.max_phy_offset, self._pull_count

    def _ends_now(self) -> Counter[str]:
        ends: Counter[str] = Counter()
        for queue in self._store.queues():
            ends[queue.topic] += queue.max_offset
        return ends

    def _today(self) -> date:
        return date.fromtimestamp(self._clock.now_ms() / 1_000)  # noqa: DTZ012 - a day of people, as in RocketMQ


class Sampling(Periodic):
    """Takes a sample of the counts every ten seconds if any has changed."""

    name: ClassVar[str] = "sampling"

    def __init__(self, clock: Clock, figures: Figures) -> None:
        super().__init__(clock, SAMPLE_MS)
        self._figures = figures

    @override
    def is_needed(self) -> bool:
        return self._figures.has_changed

    @override
    def act(self) -> None:
        self._figures.sample()
