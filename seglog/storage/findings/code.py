"""What a finding code stands for: how much it matters, what it means, and what would put it right."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final


class Severity(enum.Enum):
    """How much a finding matters."""

    NOTE = "note"
    """Normal, or repaired without loss by opening the store."""
    WARNING = "warning"
    """Derived data was wrong, RocketMQ would do harm or not start, or a repair brings messages back."""
    LOSS = "loss"
    """Messages cannot be read."""


@dataclass(frozen=True, slots=True)
class Code:
    """What a code stands for.

    Attributes:
        severity: How much it matters.
        meaning: What it is, in a sentence.
        for_messages: What it means for messages.
        fix: What would put it right; empty where nothing need be done.
        command: What to type for that, with ``STORE`` for the directory and ``PLACE`` for the physical
            offset; empty if no command does it.
    """

    severity: Severity
    meaning: str
    for_messages: str
    fix: str = ""
    command: str = ""


BY_HAND: Final = ""
"""The command of a fix that no command makes."""
REPAIR: Final = "seglog repair STORE"
WITH_OPTION: Final = "seglog repair --"
"""Begins the command of a repair that needs to know a length."""
ROCKSDB_QUEUES: Final = "rocksdb-queues"
"""Code of the finding with which a repair of the store is refused."""
REFUSED_REPAIR: Final = "nothing that seglog does: it does not write to a store with queues in RocksDB"
"""What stands in place of a fix beside that finding."""
SEAL: Final = "seglog verify --seal STORE"
CONFIG: Final = "seglog inspect config STORE"
INTACT: Final = "none is lost"
KEYS_MISS: Final = "none is lost; queries by key miss some"
REFUSES: Final = "none is lost, but RocketMQ does not start"


def note(meaning: str, for_messages: str, fix: str = "", command: str = "") -> Code:
    """Returns a code for what is normal; most of these need no fix."""
    return Code(Severity.NOTE, meaning, for_messages, fix, command)


def warning(meaning: str, for_messages: str, fix: str, command: str = REPAIR) -> Code:
    """Returns a code for derived data that is wrong; most of these a repair puts right."""
    return Code(Severity.WARNING, meaning, for_messages, fix, command)


def loss(meaning: str, for_messages: str, fix: str, command: str = REPAIR) -> Code:
    """Returns a code for messages that cannot be read; a repair keeps the rest readable."""
    return Code(Severity.LOSS, meaning, for_messages, fix, command)
