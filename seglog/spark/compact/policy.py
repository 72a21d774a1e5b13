"""What may be dropped, queue by queue, and why a message is."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final


class Verdict(enum.IntEnum):
    """What becomes of a record."""

    KEPT = 0
    """It stays."""
    HELD = 1
    """It would be dropped, but a group has still to read it."""
    SUPERSEDED = 2
    """A later message has its key."""
    TOMBSTONE = 3
    """It has no body, so it deletes its key, and was kept long enough for that."""
    EXPIRED = 4
    """Older than its topic's messages are to get."""
    OVERSIZE = 5
    """Its queue holds enough without it."""
    ERASED = 6
    """It has a key that is to be erased."""
    PLACEHOLDER = 7
    """What stands for a message that was dropped before."""
    FILLER = 8
    """What a repair put where nothing could be saved."""


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
    """What is asked for a topic. Names as Kafka has them.

    Attributes:
        compact: Whether only the last message of each key stays.
        delete_retention_ms: How long a message without body stays that is the last of its key.
        min_compaction_lag_ms: Messages younger than this are not compacted, and supersede none.
        retention_ms: How old messages may get; None for any age.
        retention_bytes: How many bytes of records each queue of the topic may have; None for any number.
        erased: Keys whose messages go in any case.
    """

    compact: bool = False
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    retention_ms: int | None = None
    retention_bytes: int | None = None
    erased: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """A policy as it is for one queue, with all times and places resolved.

    Attributes:
        topic: Its topic.
        queue_id: Its number.
        compact: As :class:`Policy`.
        cleanable_until_ms: Newest store time of messages that are compacted.
        tombstones_until_ms: Newest store time of messages without body that may go.
        expired_below_ms: Messages that were stored before go.
        oversize_below: Messages with smaller queue offsets go.
        erased: Keys whose messages go.
        last_offset: That of the queue's last message.
        group_offsets: Where each group continues that reads the queue, by its name.
        held_from: Messages from here on stay in any case; None for none.
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
