"""The duty that delivers delayed messages when they are due.

Each level has a queue of the delay topic, in the order of delivery. The tagsCode of a unit is the time at
which its message is due: the store time plus the delay. The duty does nothing before the earliest of these
times. A delivery appends the message again, to the topic and queue that its properties name, with the
properties that it had in the delay topic: like RocketMQ it keeps DELAY, REAL_TOPIC and REAL_QID, so consumers
see them.

Delivery is at least once: a delivery counts when it is in the log, and the count is saved when the delivery
is on the disk. After a crash nothing is delivered twice, because the deliveries since the last save are found
in the log. If they cannot be found (a Java broker saved the table and was killed), the messages that were due
in the seconds since then are delivered again, as with RocketMQ. The same happens after two power failures
within moments.

A message that can never be delivered is skipped and logged: it names no queue or one that cannot exist, or it
was lost. RocketMQ tries some of these every 100 ms for ever, and the level makes no progress.

Source: ``ScheduleMessageService.java DeliverDelayedMessageTimerTask, messageTimeUp``.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from typing_extensions import override

from seglog.broker.delay.delay_levels import DelayLevels
from seglog.broker.delay.delay_offsets import DelayOffsets
from seglog.broker.delay.delivery_recovery import Deliveries, target_of
from seglog.broker.tables.topics import TopicTable
from seglog.clock import Clock
from seglog.errors import InvalidArgumentError, InvalidNameError, MessageIllegalError
from seglog.logs import logger
from seglog.schedule import Duty
from seglog.storage.format.config import ConfigValue
from seglog.storage.format.names import HALF_TOPIC, SCHEDULE_TOPIC
from seglog.storage.format.record import DELAY_LEVELS_S, Message, delay_ms, stored_tags_code
from seglog.storage.format.record import properties as props
from seglog.storage.store import MessageStore
from seglog.storage.writes import Durability

BATCH: Final = 64
"""Messages of one level in one turn; then the other levels have their turn."""
LONGEST_SLEEP_MS: Final = 1_000
"""The wall clock may be set forward at any moment, so the duty looks at it at least this often."""
_NEVER: Final = frozenset((SCHEDULE_TOPIC, HALF_TOPIC))
"""Topics without delivery: a message would be delayed for ever, or be part of no producer's transaction."""

_log = logger(__name__)


class Delivery(Duty):
    """Delivers the delayed messages of one broker. Any thread may call it.

    Args:
        store: Holds the waiting messages and takes the deliveries.
        levels: The delays.
        offsets: The next offset of each level.
        topics: The topics, to log a delivery to a topic that no longer exists.
        clock: Its wall clock; a message is due by the time stamps of the store.
    """

    name: ClassVar[str] = "delivery"

    def __init__(
        self,
        store: MessageStore,
        levels: DelayLevels,
        offsets: DelayOffsets,
        topics: TopicTable,
        clock: Clock,
    ) -> None:
        super().__init__()
        self.longest_sleep_ms = LONGEST_SLEEP_MS
        self.levels = levels
        self._store = store
        self._offsets = offsets
        self._topics = topics
        self._clock = clock
        self._lock = threading.Lock()  # held from an append until the delivery is noted
        self._due_ms: dict[int, int] = {}  # of the first message of each level; changed under the bell
        self._looked_end: int | None = None  # the end of the log when no level had an unread message
        self._next: dict[int, int] = {}
        self._delivered: dict[int, set[int]] = {}  # queue offsets after the next one, by level
        for level in range(1, levels.highest + 1):
            self._next[level] = self._start_of(level)

    @property
    def is_dirty(self) -> bool:
        """Whether :meth:`persist` has changes to save."""
        return self._offsets.is_dirty

    @property
    def progress(self) -> Mapping[int, int]:
        """Queue offset of the next message by delay level."""
        return self._offsets.all()

    def to_config(self) -> Mapping[str | int, ConfigValue]:
        """Returns :attr:`progress` as its file has it."""
        return self._offsets.to_config()

    def note_sent(self, level: int) -> None:
        """Notes that a message of a level was stored."""
        # A message behind others is due after them, so the result of left_ms() is still right.
        self._looked_end = None
        with self.bell:
            if level not in self._due_ms:
                self.bell.notify_all()

    def persist(self) -> None:
        """Saves the next offset of each level, after a sync of the deliveries that the offsets count.

        Raises:
            FullError: There is no space; what was saved before is unchanged.
            StoreFailedError: The disk failed.
        """
        if not self._offsets.is_dirty:
            return
        with self._lock:
            offsets, log_end = self._offsets.all(), self._store.max_phy_offset
        self._store.flush()
        self._offsets.save(offsets, log_end)

    @override
    def left_ms(self) -> float | None:
        now_ms = self._clock.now_ms()
        log_end = self._store.max_phy_offset
        if log_end != self._looked_end:  # a log that has not grown has no new message
            self._looked_end = log_end
            if any(self._has_unread(level) for level in self._next):
                self._looked_end = None
                return 0
        due_ms = [self._corrected(level, due_ms, now_ms) for level, due_ms in self._due_ms.items()]
        return min(due_ms) - now_ms if due_ms else None

    @override
    def run(self) -> None:
        now_ms = self._clock.now_ms()
        for level in self._next:
            if (
                self._has_unread(level)
                or self._corrected(level, self._due_ms.get(level, now_ms), now_ms) <= now_ms
            ):
                self._deliver(level, now_ms)

    def _start_of(self, level: int) -> int:
        store, queue_id = self._store, level - 1
        low, high = store.min_offset(SCHEDULE_TOPIC, queue_id), store.max_offset(SCHEDULE_TOPIC, queue_id)
        start = self._offsets.clamp(level, low, high)
        log_end = self._offsets.log_end
        if log_end is None and self._offsets.get(level) is None:
            log_end = 0  # deliveries of this level are in the log
        if log_end is not None and start < high and log_end < store.max_phy_offset:
            delivered = self._delivered[level] = Deliveries(store, log_end).find(queue_id, start)
            while start in delivered:
                delivered.discard(start)
                start += 1
        if high:
            self._offsets.set(level, start)
        return start

    def _corrected(self, level: int, due_ms: int, now_ms: int) -> int:
        """Returns when a message is due; now, if that is later than its level allows."""
        return now_ms if due_ms > now_ms + self.levels.delay_ms(level) else due_ms

    def _has_unread(self, level: int) -> bool:
        """Returns whether a level has a first message whose due time is not known yet."""
        if level in self._due_ms:
            return False
        return self._next[level] < self._store.max_offset(SCHEDULE_TOPIC, level - 1)

    def _deliver(self, level: int, now_ms: int) -> None:
        """Delivers the due messages of a level, one batch at most, and notes when the next one is due."""
        queue_id, queue_offset = level - 1, self._next[level]
        found = self._store.get(SCHEDULE_TOPIC, queue_id, queue_offset, BATCH)
        if not found.messages:
            if queue_offset < self._store.max_offset(SCHEDULE_TOPIC, queue_id):
                behind = max(queue_offset + 1, found.next_offset)
                _log.error(
                    "delay level %d: nothing can be read at %d, going on at %d (%s)",
                    *(level, queue_offset, behind, found.status.name),
                )
                self._move(level, behind)
            return
        for message, due_ms in zip(found.messages, self._due_times(level, found.messages), strict=True):
            if self._corrected(level, due_ms, now_ms) > now_ms:
                self._offsets.set(level, message.queue_offset)
                with self.bell:
                    self._due_ms[level] = due_ms
                return
            with self._lock:
                if message.queue_offset not in self._delivered.get(level, ()):
                    self._append(level, message)
                self._move(level, message.queue_offset + 1)

    def _due_times(self, level: int, messages: Sequence[Message]) -> list[int]:
        """Returns when messages of a level are due, in ms since the epoch."""
        first, last = messages[0].queue_offset, messages[-1].queue_offset
        units = self._store.queue(SCHEDULE_TOPIC, level - 1).units(first, last - first + 1)
        codes = units["tags_code"].tolist()
        return [self._due_of(level, message, codes[message.queue_offset - first]) for message in messages]

    def _due_of(self, level: int, message: Message, code: int) -> int:
        stored_ms, levels = message.store_timestamp_ms, self.levels
        is_rebuilt = not levels.is_default and code == stored_ms + delay_ms(min(level, len(DELAY_LEVELS_S)))
        # An address in ConsumeQueueExt, or a unit that a recovery rebuilt by RocketMQ's own levels.
        return stored_ms + levels.delay_ms(level) if code < 0 or is_rebuilt else code

    def _move(self, level: int, queue_offset: int) -> None:
        self._next[level] = queue_offset
        self._offsets.set(level, queue_offset)
        with self.bell:
            self._due_ms.pop(level, None)

    def _append(self, level: int, message: Message) -> None:
        target = target_of(message)
        if target is None or target[0] in _NEVER:
            _log.error("delay level %d: message %s goes nowhere (%s)", level, message.message_id, target)
            return
        topic, queue_id = target
        if self._topics.get(topic) is None:
            _log.warning(
                "delay level %d: message %s goes to topic %s, which is gone", level, message.message_id, topic
            )
        try:
            self._store.append(
                topic,
                queue_id,
                message.body,
                message.properties_raw,
                stored_tags_code(props.find_property(message.properties_raw, props.TAGS.encode())),
                sys_flag=message.sys_flag,
                flag=message.flag,
                born_timestamp_ms=message.born_timestamp_ms,
                born_host=message.born_host,
                store_host=message.store_host,
                reconsume_times=message.reconsume_times,
                durability=Durability.ASYNC,
            )
        except (InvalidArgumentError, InvalidNameError, MessageIllegalError) as error:
            _log.error(
                "delay level %d: message %s cannot be delivered to %s/%d: %s",
                *(level, message.message_id, topic, queue_id, error),
            )
