"""The parts of a store that RocketMQ keeps in RocksDB, which seglog neither reads nor writes.

A folder is recognised by the files that RocksDB writes; its name only says what RocketMQ keeps there.

Source: ``StorePathConfigHelper.java`` and ``RocksDBConsumeQueueStore.java`` (queues),
``MessageRocksDBStorage.java`` (key index, timer and transactions), ``config/v1/RocksDB*Manager.java`` and
``config/v2/ConfigStorage.java`` (tables), ``PopConsumerService.java``.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.errors import StoreError, UnsupportedStoreError
from seglog.storage.directory.queue_files import list_queues
from seglog.storage.files.files import Entry, Files, read_start
from seglog.storage.format.names import (
    BATCH_CONSUME_QUEUE,
    COMMIT_LOG,
    CONFIG,
    CONSUME_QUEUE,
    CONSUME_QUEUE_EXT,
    INDEX,
    OURS,
)
from seglog.text import shell_line


class RocksKind(enum.Enum):
    """What a RocksDB of RocketMQ holds."""

    QUEUES = "queues"
    """The consume queues, instead of queue files or beside them."""
    TABLES = "tables"
    """Tables that are otherwise JSON files in ``config``."""
    OTHER = "other"
    """Parts that RocketMQ keeps beside its files, also in a store of files."""


class RocksTable(enum.Enum):
    """A table that RocketMQ can keep in RocksDB."""

    TOPICS = "topics"
    GROUPS = "groups"
    OFFSETS = "offsets"


@dataclass(frozen=True, slots=True)
class RocksPart:
    """One RocksDB in a store.

    Attributes:
        name: Its folder, relative to the store.
        kind: The kind of its contents.
        holds: Its contents, in words.
        tables: The tables in it.
    """

    name: str
    kind: RocksKind
    holds: str
    tables: frozenset[RocksTable] = frozenset()

    @property
    def text(self) -> str:
        """Name and contents, for people."""
        return f"{self.name} ({self.holds})"


SEPARATE_QUEUES: Final = "consumequeue_rocksdb"
"""Folder of RocksDB's queues with ``useSeparateStorePathForRocksdbCQ``, since 5.5.0."""
_QUEUES: Final = (RocksKind.QUEUES, "queues")
_ALL_TABLES: Final = (RocksKind.TABLES, "topics, groups and offsets", frozenset(RocksTable))
_KNOWN: Final[Mapping[str, tuple[RocksKind, str] | tuple[RocksKind, str, frozenset[RocksTable]]]] = {
    CONSUME_QUEUE: _QUEUES,
    SEPARATE_QUEUES: _QUEUES,
    "rocksdbstore": (RocksKind.OTHER, "key index, timer and transactions"),
    "kvStore": (RocksKind.OTHER, "check-points of pop consumers"),
    f"{CONFIG}/rdb": _ALL_TABLES,
    f"{CONFIG}/metadata": _ALL_TABLES,
    f"{CONFIG}/topics": (RocksKind.TABLES, "topics", frozenset({RocksTable.TOPICS})),
    f"{CONFIG}/subscriptionGroups": (RocksKind.TABLES, "groups", frozenset({RocksTable.GROUPS})),
    f"{CONFIG}/consumerOffsets": (RocksKind.TABLES, "offsets", frozenset({RocksTable.OFFSETS})),
}
_UNKNOWN: Final = (RocksKind.OTHER, "of a purpose that seglog does not know")
_NO_ROCKSDB: Final = frozenset(
    {COMMIT_LOG, INDEX, CONSUME_QUEUE_EXT, BATCH_CONSUME_QUEUE, OURS, CONFIG, "timerlog", "compaction"}
)
"""Folders of RocketMQ and seglog that no RocksDB is in; some have very many files."""
_CURRENT: Final = "CURRENT"
_CURRENT_TEXT: Final = re.compile(rb"MANIFEST-\d+\s*")
_MOST_CURRENT_BYTES: Final = 64
_PROOF: Final = re.compile(r"(MANIFEST|OPTIONS)-\d+|\d{6,}\.sst")
"""Files that show a RocksDB of which ``CURRENT`` is lost."""
_OWN_FILE: Final = re.compile(
    r"CURRENT|IDENTITY|LOCK|LOG(\.old(\.\d+)?)?|(MANIFEST|OPTIONS)-\d+(\.dbtmp)?|\d{6,}\.(sst|log|blob|dbtmp)"
)


def is_rocksdb_file(name: str) -> bool:
    """Returns whether RocksDB gives a file this name."""
    return _OWN_FILE.fullmatch(name) is not None


def find_rocksdb(files: Files, root: Path) -> tuple[RocksPart, ...]:
    """Returns the parts of a store that are in RocksDB, sorted by name.

    Args:
        files: Access to the store.
        root: The store directory.
    """
    places = [
        *(entry.name for entry in files.list_dir(root) if entry.is_dir and entry.name not in _NO_ROCKSDB),
        *(f"{CONFIG}/{entry.name}" for entry in _listed(files, root / CONFIG) if entry.is_dir),
    ]
    return tuple(
        RocksPart(name, *_KNOWN.get(name, _UNKNOWN))
        for name in sorted(places)
        if _is_rocksdb(files, root / name)
    )


def parts_with(parts: Iterable[RocksPart], *tables: RocksTable) -> list[RocksPart]:
    """Returns the parts in which the broker keeps any of these tables."""
    return [part for part in parts if part.tables.intersection(tables)]


def not_read_text(parts: Iterable[RocksPart], *tables: RocksTable) -> str:
    """Returns that tables are in RocksDB and were not looked at, in words; empty if they are not there.

    Args:
        parts: The parts of a store.
        tables: The tables that were asked for.
    """
    named = [part.text for part in parts_with(parts, *tables)]
    if not named:
        return ""
    return (
        f"what the broker keeps in RocksDB: {', '.join(named)}; seglog does not read that, and JSON files of"
        " these tables may be from before"
    )


def demand_own_queues(files: Files, root: Path) -> None:
    """Refuses a store that has queues in RocksDB: what is written to log and files would not reach them.

    With ``storeType=defaultRocksDB`` RocketMQ reads these queues alone. With ``rocksdbCQDoubleWriteEnable``
    it has both, and its settings decide which of them numbers messages (``combineAssignOffsetCQType``) and
    which is read (``combineCQPreferCQType``). It brings RocksDB up to date over the last files of the log
    alone (``combineCQMaxExtraSearchCommitLogFiles``): after 13 files that only the queue files knew, 5.4.0
    did not start, or served a queue from offset 34 on where it had been at 5.
    Source: ``CombineConsumeQueueStore.java``.

    Args:
        files: Access to the store.
        root: The store directory.

    Raises:
        UnsupportedStoreError: It has.
    """
    named = [part.name for part in find_rocksdb(files, root) if part.kind is RocksKind.QUEUES]
    if not named:
        return
    if _has_queue_files(files, root):
        where = f"{root} has queues in RocksDB ({', '.join(named)}/) beside its queue files"
        why = "a broker set to number or read messages by RocksDB would not know of the changes"
    else:
        where = f"{root} keeps its queues in RocksDB ({', '.join(named)}/)"
        why = "RocketMQ reads these alone and would not know of the changes"
    raise UnsupportedStoreError(
        f"{where}, which seglog does not write: {why}",
        help=f"nothing was changed; such a store can be read: `{shell_line(['seglog', 'check', root])}`,"
        f" `{shell_line(['seglog', 'export', root])} -o FILE`",
    )


def demand_own_tables(files: Files, root: Path) -> None:
    """Refuses a store whose broker keeps tables in RocksDB: it would not read what is written to JSON files.

    With ``storeType=defaultRocksDB`` it does so even if it has not made them yet.
    Source: ``BrokerController.java``.

    Args:
        files: Access to the store.
        root: The store directory.

    Raises:
        UnsupportedStoreError: It does.
    """
    parts = find_rocksdb(files, root)
    named = [part.text for part in parts if part.kind is RocksKind.TABLES]
    queues = [part.text for part in parts if part.kind is RocksKind.QUEUES]
    if queues and not named and not _has_queue_files(files, root):
        named = queues
    if named:
        raise UnsupportedStoreError(
            f"the broker of {root} keeps tables in RocksDB ({', '.join(named)}), which seglog does not write;"
            " it would not read them from JSON files",
            help="no table was changed; start the broker of the store, and change them there with mqadmin",
        )


def demand_own_parts(files: Files, root: Path) -> None:
    """Refuses a store that has queues or tables in RocksDB, for a job that writes both.

    Raises:
        UnsupportedStoreError: It has.
    """
    demand_own_queues(files, root)
    demand_own_tables(files, root)


def _has_queue_files(files: Files, root: Path) -> bool:
    return any(queue.sizes for queue in list_queues(files, root))


def _is_rocksdb(files: Files, folder: Path) -> bool:
    names = {entry.name for entry in _listed(files, folder) if not entry.is_dir}
    if _CURRENT in names:
        with suppress(OSError, StoreError):
            if _CURRENT_TEXT.fullmatch(read_start(files, folder / _CURRENT, _MOST_CURRENT_BYTES)):
                return True
    return any(_PROOF.fullmatch(name) for name in names)


def _listed(files: Files, folder: Path) -> list[Entry]:
    """Returns the entries of a folder; none of one that cannot be listed, which other readers report."""
    with suppress(OSError, StoreError):
        return files.list_dir(folder)
    return []
