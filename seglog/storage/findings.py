"""What a look at a store found: one value per fact, with a stable code that programs can match."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from typing_extensions import override


class Severity(enum.Enum):
    """How much a finding matters."""

    NOTE = "note"
    """Normal, or repaired without loss by opening the store."""
    WARNING = "warning"
    """Derived data was wrong; the log is whole."""
    LOSS = "loss"
    """Messages cannot be read."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact about a store.

    Attributes:
        code: Stable short word, a key of :data:`CODES`.
        file: Relative to the store.
        position_bytes: Where in the file.
        size_bytes: How much of it is concerned, 0 where that says nothing.
        expected: What should be there.
        found: What is there.
        messages: How many messages are concerned, 0 where none or unknown.
    """

    code: str
    file: str
    position_bytes: int = 0
    size_bytes: int = 0
    expected: str = ""
    found: str = ""
    messages: int = 0

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return CODES[self.code][0]

    @property
    def meaning(self) -> str:
        """What the code stands for, in a sentence."""
        return CODES[self.code][1]

    @override
    def __str__(self) -> str:
        detail = f": expected {self.expected}, found {self.found}" if self.expected or self.found else ""
        return f"{self.code} {self.file} +{self.position_bytes}{detail} ({self.meaning})"


CODES: Final[dict[str, tuple[Severity, str]]] = {
    "log-hole": (Severity.LOSS, "records in the middle of the log cannot be read; later ones can"),
    "log-torn-tail": (Severity.NOTE, "the last write did not finish; nothing after it is valid"),
    "log-tail-lost": (
        Severity.LOSS,
        "the end of the log is gone; messages-lost names what queue units still know of it",
    ),
    "messages-lost": (
        Severity.LOSS,
        "records at the end of the log are gone, but queue units know their offsets, which stay taken",
    ),
    "tombstones": (
        Severity.NOTE,
        "messages were lost here earlier; tombstones keep their places, and seglog/holes names them",
    ),
    "log-file-missing": (Severity.LOSS, "a file in the middle of the commit log is not there"),
    "log-file-size": (Severity.WARNING, "a commit-log file is not as long as the others"),
    "log-file-stray": (Severity.WARNING, "not a commit-log file; RocketMQ refuses to start with it"),
    "log-spare": (Severity.NOTE, "a segment file prepared ahead, still empty"),
    "log-block-changed": (
        Severity.WARNING,
        "bytes changed since they were written; their records are served if each proves itself",
    ),
    "recovery-point-unused": (Severity.NOTE, "the recovery point is in doubt; the whole log was walked"),
    "seal-rot": (Severity.LOSS, "bytes of a sealed segment changed, and nobody wrote them"),
    "seal-rot-unused": (Severity.WARNING, "bytes behind the last record of a sealed segment changed"),
    "seal-stale": (Severity.WARNING, "the log was written anew since this segment was sealed"),
    "seal-unreadable": (Severity.WARNING, "not a whole seal; the segment was checked by its records"),
    "seal-missing": (Severity.NOTE, "a full segment without seal; it was checked by its records"),
    "record-queue-offset": (
        Severity.WARNING,
        "a record's queue offset cannot be; the queue's file says where it belongs, or it is left out",
    ),
    "topic-name": (Severity.LOSS, "records of a topic that no folder can be called like have no queue"),
    "queue-missing": (Severity.WARNING, "the log has messages of a queue that has no files"),
    "queue-short": (Severity.WARNING, "the log has messages that their queue does not know"),
    "queue-beyond-log": (Severity.WARNING, "queue units lead behind the end of the log"),
    "queue-unit-wrong": (Severity.WARNING, "queue units disagree with the log"),
    "queue-unit-stray": (Severity.WARNING, "queue units lead to no message of this queue"),
    "queue-gap": (Severity.LOSS, "messages are missing in the middle of a queue"),
    "queue-file-size": (Severity.WARNING, "a queue file is not as long as the others"),
    "queue-file-stray": (Severity.WARNING, "not a queue file; RocketMQ refuses to start with it"),
    "queue-deleted": (
        Severity.NOTE,
        "the topic is not in topics.json: deleted, its records are left to retention",
    ),
    "index-damaged": (Severity.WARNING, "an index file did not fit the log; it is made again from the log"),
    "index-missing": (Severity.WARNING, "messages have keys, but no index file is there"),
    "index-short": (Severity.WARNING, "the log has keys that the index does not know"),
    "index-entry-stray": (Severity.WARNING, "index entries lead to no record, or to one without keys"),
    "index-file-stray": (Severity.NOTE, "not an index file; RocketMQ ignores it"),
    "record-keys": (
        Severity.WARNING,
        "the index has other keys of this record: without record CRC either of them may be damaged",
    ),
    "checkpoint-missing": (Severity.NOTE, "the log is walked whole instead"),
    "checkpoint-size": (Severity.WARNING, "the checkpoint is not as long as it should be"),
    "checkpoint-behind": (Severity.NOTE, "much older than the log; more of it is walked than need be"),
    "checkpoint-ahead": (
        Severity.WARNING,
        "knows of more than the log holds: the log may have lost its end, or the checkpoint is damaged",
    ),
    "config-damaged": (Severity.WARNING, "a config file is no JSON; its backup is read instead"),
}
"""Severity and meaning of each code."""
