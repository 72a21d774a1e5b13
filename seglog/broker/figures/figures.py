"""The counts of one broker, and the duty that takes samples of them.

Puts are not counted one by one: queue offsets give their number and the units of the queues their bytes, so
that a send costs nothing more. Pulls are counted with the messages that they find, and each message that is
sent back is. A server measures the times of calls.

Source: ``BrokerStatsManager.java``, ``BrokerStats.java``, ``StoreStatsService.java``. Difference: the number
of sends is not counted, only that of messages, and of pulls that found some or none.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import ClassVar, Final, NamedTuple

from typing_extensions import override

from seglog.broker.figures.samples import Rate, Samples, Span
from seglog.clock import Clock
from seglog.errors import SeglogError
from seglog.schedule import Periodic
from seglog.storage.store import MessageStore

SAMPLE_MS: Final = 10_000
PUT: Final = "put"
PUT_BYTES: Final = "put bytes"
PULLED: Final = "pulled"
PULLED_BYTES: Final = "pulled bytes"
SENT_BACK: Final = "sent back"
FOUND: Final = "found"
MISSED: Final = "missed"
OF_USERS: Final = {PUT: "put by users", PULLED: "pulled by users"}
"""The same counts without the broker's own topics."""


class Totals(NamedTuple):
    """Numbers of messages since the broker was opened."""

    put: int
    pulled: int


@dataclass(slots=True)
class _Pulls:
    """The pulls of a group from a topic.

    Attributes:
        messages: What they found.
        size_bytes: The same, in bytes of records.
        found: How many found some.
        missed: How many found none.
        sent_back: How many messages the group sent back.
    """

    messages: int = 0
    size_bytes: int = 0
    found: int = 0
    missed: int = 0
    sent_back: int = 0


class Figures:
    """The counts of a broker. Any thread may call it.

    Args:
        store: Its queue offsets give the number of puts.
        clock: The broker's.
        is_own: Whether a topic is the broker's own.

    A count has a name: one of the words above, alone or in a tuple with its topic, and its group.
    """

    def __init__(self, store: MessageStore, clock: Clock, is_own: Callable[[str], bool]) -> None:
        self._gauges: dict[str, tuple[Callable[[], int], ...]] = {}
        self._facts: tuple[Callable[[], Mapping[str, str]], ...] = ()
        self._store = store
        self._first_end = store.max_phy_offset
        self._clock = clock
        self._is_own = is_own
        self._lock = threading.Lock()
        """Guards the pulls and gauges; held for a moment."""
        self._looking = threading.Lock()
        """Guards the counts; held over a look, which reads queue files. No pull waits for it."""
        self._counts: Counter[Hashable] = Counter()
        self._forgotten: dict[Hashable, int] = {}  # counts of topics and groups that were deleted, as of then
        self._pulls: dict[tuple[str, str], _Pulls] = {}
        self._pull_count = 0
        self._ends = self._ends_now()
        self._seen_end = store.max_phy_offset
        self._sampled = self._marks()
        self._samples = Samples(clock.monotonic_ms(), self._counts)
        self._day = self._today()
        self._looked = Totals(0, 0)
        self._mornings = (Totals(0, 0), Totals(0, 0))  # at the start of yesterday and of today

    def note_pull(self, group: str, topic: str, count: int, size_bytes: int) -> None:
        """Counts a pull, and the messages that it found, with the bytes of their records."""
        with self._lock:
            self._pull_count += 1
            cell = self._cell(topic, group)
            cell.messages += count
            cell.size_bytes += size_bytes
            if count:
                cell.found += 1
            else:
                cell.missed += 1

    def note_sent_back(self, group: str, topic: str) -> None:
        """Counts a message that a group could not consume, by the topic that it came from first."""
        with self._lock:
            self._cell(topic, group).sent_back += 1

    def _cell(self, topic: str, group: str) -> _Pulls:
        """Returns what is counted of a group and a topic, under the lock."""
        cell = self._pulls.get((topic, group))
        if cell is None:
            cell = self._pulls[topic, group] = _Pulls()
        return cell

    def forget_topic(self, topic: str) -> None:
        """Has the figures of a topic start over: it is deleted."""
        self._forget(lambda name: name[1] == topic)

    def forget_group(self, group: str) -> None:
        """Has the figures of a group start over: it is deleted."""
        self._forget(lambda name: group in name[2:])

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
        with self._looking:
            self._sampled = self._marks()
            self._look()
            self._samples.take(self._clock.monotonic_ms(), self._counts)

    def put_rate(self, topic: str, span: Span) -> Rate:
        """Returns how many messages were put to a topic."""
        return self.rate((PUT, topic), span)

    def pulled_rate(self, group: str, topic: str, span: Span) -> Rate:
        """Returns how many messages of a topic a group has pulled."""
        return self.rate((PULLED, topic, group), span)

    def rate(self, name: Hashable, span: Span) -> Rate:
        """Returns the rate of a count."""
        with self._looking:
            self._look()
            count = self._counts[name]
            rate = self._samples.rate(span, self._clock.monotonic_ms(), name, count)
            left = count - self._forgotten.get(name, 0)
            return rate if rate.total <= left else Rate(left, rate.per_s * left / rate.total)

    def has_any(self, name: Hashable) -> bool:
        """Returns whether anything was counted since the opening or the deletion of its topic or group."""
        with self._looking:
            self._look()
            return self._counts[name] > self._forgotten.get(name, 0)

    def totals(self) -> tuple[Totals, Totals, Totals]:
        """Returns the totals at yesterday's start, at today's start, and now."""
        with self._looking:
            self._look()
            return *self._mornings, self._looked

    def _forget(self, is_of_it: Callable[[tuple[str, ...]], bool]) -> None:
        with self._looking:
            self._look()
            self._ends = self._ends_now()  # the queues of a deleted topic are gone
            for name, count in self._counts.items():
                if isinstance(name, tuple) and is_of_it(name):
                    self._forgotten[name] = count

    def _look(self) -> None:
        """Counts what was put and pulled since the last look, while no other look is at work."""
        end = self._store.max_phy_offset
        today = self._today()
        if today != self._day:
            is_next = (today - self._day).days == 1
            self._mornings = (self._mornings[1] if is_next else self._looked), self._looked
            self._day = today
        if end != self._seen_end:
            self._seen_end = end
            ends = self._ends_now()
            for (topic, queue_id), queue_end in ends.items():
                before = self._ends.get((topic, queue_id), 0)
                if queue_end > before:  # the queues of a deleted topic may begin at 0 again
                    self._count_put(topic, queue_id, before, queue_end)
            self._ends = ends
        with self._lock:
            pulls = list(self._pulls.items())
        self._counts[PULLED] = sum(cell.messages for _, cell in pulls)
        self._counts[FOUND] = sum(cell.found for _, cell in pulls)
        self._counts[MISSED] = sum(cell.missed for _, cell in pulls)
        self._counts[OF_USERS[PULLED]] = sum(
            cell.messages for (topic, _), cell in pulls if not self._is_own(topic)
        )
        for of, cell in pulls:
            self._counts[PULLED, *of] = cell.messages
            self._counts[PULLED_BYTES, *of] = cell.size_bytes
            self._counts[FOUND, *of] = cell.found
            self._counts[SENT_BACK, *of] = cell.sent_back
        self._looked = Totals(self._counts[PUT], self._counts[PULLED])

    def _count_put(self, topic: str, queue_id: int, first: int, end: int) -> None:
        grown = end - first
        self._counts[PUT] += grown
        self._counts[PUT, topic] += grown
        if not self._is_own(topic):
            self._counts[OF_USERS[PUT]] += grown
        with suppress(SeglogError):  # a queue file that cannot be read: who reads the queue is told
            self._counts[PUT_BYTES, topic] += self._store.stored_bytes(topic, queue_id, first, end)

    def _marks(self) -> tuple[int, int]:
        """Returns values that change with each message and each pull."""
        return self._store.max_phy_offset, self._pull_count

    def _ends_now(self) -> dict[tuple[str, int], int]:
        return {(queue.topic, queue.queue_id): queue.max_offset for queue in self._store.queues()}

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
