"""The effect of a RocketMQ broker's cleaning on each file of the log, and the rule that applies.

RocketMQ 5.4.0: ``DefaultMessageStore.CleanCommitLogService`` (deleteExpiredFiles, isSpaceToDelete) and
``MappedFileQueue.deleteExpiredFileByTime``. The age of a file is that of its last change, not of its
messages. Cleaning stops at the first file that is kept; the newest file is never deleted.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.errors import InvalidArgumentError
from seglog.storage.directory import list_log_files
from seglog.storage.files import DiskUsage, RestoringFiles
from seglog.storage.format.names import COMMIT_LOG, segment_file_name

_HOUR_MS: Final = 3_600_000
_LEAST_PERCENT: Final = 10
_MOST_PERCENT: Final = 95
"""Limits to which ``MessageStoreConfig.getDiskMaxUsedSpaceRatio`` clips a ratio."""


class Rule(enum.Enum):
    """Why a file is deleted or kept."""

    FORCED = "forced"
    """The disk is so full that the oldest files are deleted at any age."""
    EXPIRED_NOW = "expired-now"
    """The file is expired, and the disk is so full that expired files are deleted at any hour."""
    EXPIRED = "expired"
    """The file is expired, and is deleted at the hour of cleaning."""
    AGE = "age"
    """The file is kept until it expires."""
    BEHIND = "behind"
    """The file is expired, and is kept because an older file is kept."""
    NEWEST = "newest"
    """The last file is never deleted."""


@dataclass(frozen=True, slots=True)
class BrokerRules:
    """The settings of a broker by which it cleans; the defaults are RocketMQ's.

    Attributes:
        reserved_hours: ``fileReservedTime``.
        delete_when: ``deleteWhen``: hours of the day, divided by semicolons.
        expired_percent: ``diskMaxUsedSpaceRatio``: above it expired files are deleted at any hour.
        forced_percent: ``diskSpaceCleanForciblyRatio``: above it files are deleted at any age.
        refused_percent: ``diskSpaceWarningLevelRatio``: above it the broker refuses messages.
        is_forcible: ``cleanFileForciblyEnable``.
    """

    reserved_hours: int = 72
    delete_when: str = "04"
    expired_percent: int = 75
    forced_percent: int = 85
    refused_percent: int = 90
    is_forcible: bool = True

    @classmethod
    def of(cls, said: Mapping[str, str]) -> BrokerRules:
        """Returns the settings of a broker's configuration.

        Args:
            said: Its names and values.

        Raises:
            InvalidArgumentError: A value is no number.
        """
        usual = cls()
        expired = _number(said, "diskMaxUsedSpaceRatio", usual.expired_percent)
        return cls(
            _number(said, "fileReservedTime", usual.reserved_hours),
            said.get("deleteWhen", usual.delete_when).strip(),
            min(max(expired, _LEAST_PERCENT), _MOST_PERCENT),
            _number(said, "diskSpaceCleanForciblyRatio", usual.forced_percent),
            _number(said, "diskSpaceWarningLevelRatio", usual.refused_percent),
            said.get("cleanFileForciblyEnable", "true").strip().lower() == "true",
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """A file of the log and its rule.

    Attributes:
        name: Its name.
        size_bytes: Its length.
        changed_ms: Time of its last change.
        expires_ms: Time at which it expires.
        rule: Why it is deleted or kept.
    """

    name: str
    size_bytes: int
    changed_ms: int
    expires_ms: int
    rule: Rule


def broker_cleaning(
    files: RestoringFiles, root: Path, rules: BrokerRules, usage: DiskUsage, now_ms: int
) -> Iterator[Kept]:
    """Yields the effect of RocketMQ's cleaning on each file of the log, the oldest first.

    Args:
        files: Access to the store.
        root: The store.
        rules: The broker's settings.
        usage: Usage of its disk.
        now_ms: The time now.
    """
    log_files, _findings = list_log_files(files, root)
    is_forced = rules.is_forcible and is_above(usage, rules.forced_percent)
    has_kept = False
    for number, file in enumerate(log_files, 1):
        name = segment_file_name(file.first_offset)
        changed_ms = files.stamp(root / COMMIT_LOG / name).modified_ns // 1_000_000
        expires_ms = changed_ms + rules.reserved_hours * _HOUR_MS
        if number == len(log_files):
            rule = Rule.NEWEST
        elif is_forced:
            rule = Rule.FORCED
        elif now_ms < expires_ms:
            rule, has_kept = Rule.AGE, True
        elif has_kept:
            rule = Rule.BEHIND
        else:
            rule = Rule.EXPIRED_NOW if is_above(usage, rules.expired_percent) else Rule.EXPIRED
        yield Kept(name, file.size_bytes, changed_ms, expires_ms, rule)


def is_above(usage: DiskUsage, percent: int) -> bool:
    """Returns whether the used share of a disk is above a number of percent."""
    return 100 * usage.used_bytes > percent * (usage.used_bytes + usage.available_bytes)


def _number(said: Mapping[str, str], name: str, default: int) -> int:
    text = said.get(name, str(default)).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise InvalidArgumentError(f"{name} is no number: {text[:20]!r}")
    return int(text)
