"""The policy of each queue on dropping messages, and the verdicts."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final


class Verdict(enum.IntEnum):
    """The verdict on a record."""

    KEPT = 0
    """It is kept."""
    HELD = 1
    """The policy drops it, but a group has not read it, so it is kept."""
    SUPERSEDED = 2
    """A later message has its key."""
    TOMBSTONE = 3
    """It has no body, so it deletes its key, and it was kept long enough for that."""
    EXPIRED = 4
    """It is older than the retention time of its topic."""
    OVERSIZE = 5
    """Newer messages take all the bytes that its queue may have."""
    ERASED = 6
    """It has a key that must be erased."""
    PLACEHOLDER = 7
    """It replaces a message that an earlier compaction dropped."""
    FILLER = 8
    """A repair wrote it where no record could be saved."""


WORDS: Final = {
    Verdict.KEPT: "kept",
    Verdict.HELD: "held",
    Verdict.SUPERSEDED: "superseded",
    Verdict.TOMBSTONE: "tombstone",
    Verdict.EXPIRED: "expired",
    Verdict.OVERSIZE: "oversize",
    Verdict.ERASED: "erased",
    Verdict.PLACEHOLDER: "placeholder",
    Verdict.FILLER: "filler",
}
"""Names of verdicts in reports."""

DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of a topic. The names are those of Kafka.

    Attributes:
        compact: Whether only the last message of each key is kept.
        delete_retention_ms: How long a message without body is kept that is the last of its key.
        min_compaction_lag_ms: Messages younger than this are not compacted, and supersede none.
        retention_ms: Greatest age of messages; None for any age.
        retention_bytes: Most bytes of records that each queue of the topic may have; None for any number.
        erased: Keys whose messages are dropped in any case.
    """

    compact: bool = False
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    retention_ms: int | None = None
    retention_bytes: int | None = None
    erased: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """The policy of one queue, with all times and places resolved.

    Attributes:
        topic: Its topic.
        queue_id: Its queue id.
        compact: As in :class:`Policy`.
        cleanable_until_ms: Newest store time of messages that are compacted.
        tombstones_until_ms: Newest store time of messages without body that may be dropped.
        expired_below_ms: Messages with an earlier store time are dropped.
        oversize_below: Messages with smaller queue offsets are dropped.
        erased: Keys whose messages are dropped.
        last_offset: Queue offset of the queue's last message.
        group_offsets: Offset of each group that reads the queue, by its name.
        held_from: Messages from this queue offset on are always kept; None for no limit.
    """

    topic: str
    queue_id: int
    last_offset: int
    compact: bool = False
    cleanable_until_ms: int = 0
    tombstones_until_ms: int = 0
    expired_below_ms: int = 0
    oversize_below: int = 0
    erased: frozenset[bytes] = frozenset()
    group_offsets: dict[str, int] = field(default_factory=dict)
    held_from: int | None = None
