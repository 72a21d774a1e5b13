"""The duty that deletes old files of the log, and protects messages that groups still need.

A file is deleted when all its messages are older than the retention time, in one of the configured hours of
the day, or at any hour on a disk that fills up or after a request; on a disk that is nearly full it is
deleted at any age. One turn deletes one file, so that the disk has time for other work; a pass is ten files.

Unlike RocketMQ the duty first checks whether a group still needs messages of the file, or whether no group
had time to read them. The policy decides what happens then. ``refuse`` keeps the file and all later ones;
``park`` first copies those messages to a side file; ``allow`` deletes them, as RocketMQ does, and logs the
groups.

The age of the oldest file gives the time of the next turn, and the disk is only checked after writes or while
it is full.

Source: ``DefaultMessageStore.java CleanCommitLogService``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import ClassVar, Final

from typing_extensions import override

from seglog.broker.retention.disk_watermark import DiskGate
from seglog.broker.retention.retention_impact import Doomed, Standing, plan, victims_text
from seglog.broker.retention.retention_side_files import park_victims, parked_file
from seglog.broker.settings.config import BrokerConfig, GuardPolicy
from seglog.clock import Clock
from seglog.logs import logger
from seglog.schedule import Duty
from seglog.storage.retention import LogSegment
from seglog.storage.store import MessageStore

HOUR_MS: Final = 3_600_000
FIRST_LOOK_MS: Final = 60_000
FILES_IN_A_PASS: Final = 10
PAUSE_MS: Final = 100
"""Pause between two files of a pass."""
HELD_MS: Final = 60_000
"""Time until an expired file that was kept is checked again: its groups may have consumed it since."""
REQUESTED_PASSES: Final = 20
"""Number of passes after a request (DELETE_EXPIRED_COMMITLOG)."""

_log = logger(__name__)


class LogRetention(Duty):
    """Deletes the oldest files of one store's log when they have expired.

    Attributes:
        held: The expired file that was kept, None if the last one could be deleted.

    Args:
        clock: For ages and hours.
        store: The store.
        config: The retention time, the hours, and the marks of the disk.
        gate: Notified how full the disk is, and which groups keep the log from being deleted.
        standing: Returns the positions of all readers.
    """

    name: ClassVar[str] = "retention"

    def __init__(
        self,
        clock: Clock,
        store: MessageStore,
        config: BrokerConfig,
        gate: DiskGate,
        standing: Callable[[], Standing],
    ) -> None:
        super().__init__()
        self.longest_sleep_ms = config.retention_check_ms
        self.held: Doomed | None = None
        self._policy = GuardPolicy(config.retention_policy)
        self._clock = clock
        self._store = store
        self._config = config
        self._gate = gate
        self._standing = standing
        self._next_ms: float = clock.monotonic_ms() + FIRST_LOOK_MS
        self._looked_ms: float = self._next_ms - config.retention_check_ms
        self._seen_end = -1
        self._in_pass = 0
        self._requested = 0

    def use(self, config: BrokerConfig) -> None:
        """Uses another retention time, other hours and other marks from now on, and checks at once."""
        self._config = config
        self._next_ms = self._clock.monotonic_ms()
        self.wake()

    def request(self) -> None:
        """Requests that expired files are deleted at any hour."""
        self._requested = REQUESTED_PASSES
        self._next_ms = self._clock.monotonic_ms()
        self.wake()

    @override
    def left_ms(self) -> float | None:
        next_ms = self._next_ms
        if self._store.max_phy_offset != self._seen_end:
            next_ms = min(next_ms, self._looked_ms + self._config.retention_check_ms)
        return None if math.isinf(next_ms) else next_ms - self._clock.monotonic_ms()

    @override
    def run(self) -> None:
        self._looked_ms = self._clock.monotonic_ms()
        self._seen_end = self._store.max_phy_offset
        used_percent = self._store.files.usage(self._store.path).used_percent
        self._gate.look(used_percent)
        segment = self._store.retention.oldest()
        if segment is not None and self._may_go(segment, used_percent) and self._delete(segment):
            self._in_pass += 1
            is_over = self._in_pass == FILES_IN_A_PASS
            self._next_ms = self._looked_ms + (self._config.retention_check_ms if is_over else PAUSE_MS)
            self._in_pass %= FILES_IN_A_PASS
            return
        self._in_pass = 0
        self._requested = max(0, self._requested - 1)
        self._next_ms = self._looked_ms + self._rest_ms(segment, used_percent)

    def _may_go(self, segment: LogSegment, used_percent: int) -> bool:
        config = self._config
        if config.retention_hours is None:
            return False
        if used_percent > config.disk_force_percent:
            return True
        now_ms = self._clock.now_ms()
        if now_ms < self._expires_ms(segment):
            return False
        is_asked = used_percent > config.disk_clean_percent or self._requested > 0
        return is_asked or next_hour_ms(now_ms, config.retention_delete_hours) == now_ms

    def _rest_ms(self, segment: LogSegment | None, used_percent: int) -> float:
        """Returns the time in ms until the next turn if nothing is written meanwhile."""
        config = self._config
        hours, is_watched = config.retention_hours, self._gate.is_shut
        if hours is not None:
            is_watched |= used_percent > config.disk_clean_percent or self._requested > 0
        if is_watched:
            return config.retention_check_ms
        if segment is None or hours is None:
            return math.inf
        now_ms = self._clock.now_ms()
        expires_ms = segment.newest_store_ms + hours * HOUR_MS
        due_ms = next_hour_ms(max(now_ms, expires_ms), config.retention_delete_hours)
        return max(HELD_MS, due_ms - now_ms)

    def _expires_ms(self, segment: LogSegment) -> float:
        hours = self._config.retention_hours
        return math.inf if hours is None else segment.newest_store_ms + hours * HOUR_MS

    def _delete(self, segment: LogSegment) -> bool:
        """Deletes a file unless the policy keeps it; returns whether it was deleted."""
        is_young = self._clock.now_ms() < self._expires_ms(segment)
        (doomed,) = plan(self._store.retention, [segment], self._standing(), are_young=is_young)
        if not self._guard(doomed):
            return False
        self._store.retention.delete_before(segment.end_phy_offset)
        if doomed.unread_by_topic:
            _log.warning(
                "the log file at %d went with messages that no group has read: %s",
                segment.first_phy_offset,
                ", ".join(f"{count} of topic {topic}" for topic, count in doomed.unread_by_topic.items()),
            )
        self.held = None
        self._gate.hold("")
        return True

    def _guard(self, doomed: Doomed) -> bool:
        """Applies the policy to needed messages; returns whether the file may be deleted."""
        if not doomed.victims:
            return True
        text = victims_text(doomed.victims)
        first = doomed.segment.first_phy_offset
        if self._policy is GuardPolicy.REFUSE:
            if self.held is None or self.held.segment.first_phy_offset != first:
                _log.warning("the log file at %d stays, it is needed by %s", first, text)
            self.held = doomed
            self._gate.hold(text)
            return False
        if self._policy is GuardPolicy.PARK:
            count = park_victims(self._store, doomed)
            _log.warning("%d messages went to %s: %s", count, parked_file(doomed), text)
        else:
            _log.warning("the log file at %d goes although it was needed by %s", first, text)
        return True


def next_hour_ms(now_ms: int, hours: Collection[int]) -> int:
    """Returns the first moment from now on that falls into one of the hours of the day, in local time."""
    moment_ms = now_ms
    for _ in range(25):
        local = datetime.fromtimestamp(moment_ms / 1000, UTC).astimezone()
        if local.hour in hours:
            break
        past_ms = (local.minute * 60 + local.second) * 1000 + moment_ms % 1000
        moment_ms += HOUR_MS - past_ms
    return moment_ms
