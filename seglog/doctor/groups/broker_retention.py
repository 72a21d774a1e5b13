"""What the cleaning of a RocketMQ broker does to each file of the log, and by which of its rules.

RocketMQ 5.4.0: ``DefaultMessageStore.CleanCommitLogService`` (deleteExpiredFiles, isSpaceToDelete) and
``MappedFileQueue.deleteExpiredFileByTime``. It goes by when a file was last changed, not by its messages; it
stops at the first file that stays; the newest is never deleted.
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
"""What ``MessageStoreConfig.getDiskMaxUsedSpaceRatio`` makes of a ratio that is beyond them."""


class Rule(enum.Enum):
    """Why a file goes or stays."""

    FORCED = "forced"
    """The disk is so full that the oldest files go however young they are."""
    EXPIRED_NOW = "expired-now"
    """It is expired, and the disk so full that expired files go at any hour."""
    EXPIRED = "expired"
    """It is expired, and goes at the hour of cleaning."""
    AGE = "age"
    """It stays until it expires."""
    BEHIND = "behind"
    """It is expired, and stays behind one that is not."""
    NEWEST = "newest"
    """The last file is never deleted."""


@dataclass(frozen=True, slots=True)
class BrokerRules:
    """The settings of a broker by which it cleans; the defaults are RocketMQ's.

    Attributes:
        reserved_hours: ``fileReservedTime``.
        delete_when: ``deleteWhen``: hours of the day, divided by semicolons.
        expired_percent: ``diskMaxUsedSpaceRatio``: above it expired files go at any hour.
        forced_percent: ``diskSpaceCleanForciblyRatio``: above it files go however young they are.
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
        changed_ms: When it was last changed.
        expires_ms: When it is expired by that.
        rule: Why it goes or stays.
    """

    name: str
    size_bytes: int
    changed_ms: int
    expires_ms: int
    rule: Rule


def broker_cleaning(
    files: RestoringFiles, root: Path, rules: BrokerRules, usage: DiskUsage, now_ms: int
) -> Iterator[Kept]:
    """Yields what RocketMQ's cleaning does to each file of the log, the oldest first.

    Args:
        files: Where the store is.
        root: The store.
        rules: The broker's settings.
        usage: How full its disk is.
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
    """Returns whether more of a disk is in use than some of a hundred parts."""
    return 100 * usage.used_bytes > percent * (usage.used_bytes + usage.available_bytes)


def _number(said: Mapping[str, str], name: str, default: int) -> int:
    text = said.get(name, str(default)).strip()
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise InvalidArgumentError(f"{name} is no number: {text[:20]!r}")
    return int(text)
