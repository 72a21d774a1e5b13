"""The config files of a broker as a check reads them: valid values are used, others are findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from seglog.broker.offsets import newest_offsets
from seglog.errors import CorruptError
from seglog.storage.directory import TOPICS_FILE, RocksPart, RocksTable, find_rocksdb, parts_with
from seglog.storage.files import Files
from seglog.storage.findings import MOST_QUOTED, Finding
from seglog.storage.format.config import ConfigValue, decode_config
from seglog.storage.format.names import CONFIG
from seglog.storage.format.ours import file_print

OFFSETS_FILE: Final = "consumerOffset.json"
DELAY_FILE: Final = "delayOffset.json"
GROUPS_FILE: Final = "subscriptionGroup.json"
_BACKUP: Final = ".bak"
_SEPARATOR: Final = "@"
TABLES: Final = {
    TOPICS_FILE: "topicConfigTable",
    OFFSETS_FILE: "offsetTable",
    DELAY_FILE: "offsetTable",
    GROUPS_FILE: "subscriptionGroupTable",
    "consumerFilter.json": "filterDataByTopic",
    "messageRequestMode.json": "messageRequestModeMap",
}
"""The table in each file."""

Object = Mapping[str | int, ConfigValue]


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """The offset of a group in a queue."""

    group: str
    topic: str
    queue_id: int
    offset: int


@dataclass(frozen=True, slots=True)
class TopicQueues:
    """The fields of a topic in ``topics.json``; -1 for a missing number."""

    read_queues: int
    write_queues: int
    is_batch: bool


@dataclass(slots=True)
class ConfigTables:
    """The contents of the config files.

    A table that the broker keeps in RocksDB counts as missing: a JSON file of it may be from before.

    Attributes:
        topics: Topics by name; None if the file is missing or cannot be read.
        offsets: Offsets of consumer groups.
        delays: Offsets by delay level; None if the file is missing or cannot be read.
        groups: Names of the consumer groups that the broker knows; None as above.
        listed: Names of the files that are there themselves or as a backup, readable or not.
        rocksdb: The parts of the store that are in RocksDB.
        findings: The findings.
    """

    topics: dict[str, TopicQueues] | None = None
    offsets: list[StoredOffset] = field(default_factory=list)
    delays: dict[int, int] | None = None
    groups: frozenset[str] | None = None
    listed: frozenset[str] = frozenset()
    rocksdb: tuple[RocksPart, ...] = ()
    findings: list[Finding] = field(default_factory=list)


def load_tables(files: Files, root: Path) -> ConfigTables:
    """Reads the config files, or their backups; the survey reports damage of single files."""
    tables = ConfigTables()
    listed = {entry.name: entry.size_bytes for entry in files.list_dir(root / CONFIG) if not entry.is_dir}
    stems = {name.removesuffix(_BACKUP) for name in listed}
    tables.listed = frozenset(name for name in stems if name.endswith(".json"))
    for name in sorted(tables.listed):
        loaded = _load(files, root, name, listed, tables.findings)
        if loaded is not None:
            value, table_print = loaded
            _take(tables, name, value)
            if name == OFFSETS_FILE:
                tables.offsets = _newest(files, root, tables.offsets, table_print)
    tables.rocksdb = find_rocksdb(files, root)
    if parts_with(tables.rocksdb, RocksTable.TOPICS):
        tables.topics = None
    if parts_with(tables.rocksdb, RocksTable.GROUPS):
        tables.groups = None
    if parts_with(tables.rocksdb, RocksTable.OFFSETS):
        tables.offsets = []
    return tables


def _newest(files: Files, root: Path, offsets: list[StoredOffset], table_print: int) -> list[StoredOffset]:
    """Returns the offsets with those of the history, where that is ahead of the table."""
    table = {(one.group, one.topic, one.queue_id): one.offset for one in offsets}
    newest = newest_offsets(files, root, table, table_print)
    return offsets if newest == table else [StoredOffset(*key, offset) for key, offset in newest.items()]


def read_table(name: str, value: Object) -> ConfigTables:
    """Returns the contents of one file.

    Args:
        name: A key of :data:`TABLES`.
        value: The value of the file.
    """
    tables = ConfigTables()
    _take(tables, name, value)
    return tables


def _load(
    files: Files, root: Path, name: str, listed: Mapping[str, int], findings: list[Finding]
) -> tuple[Object, int] | None:
    """Returns value and print of a file or its backup, as RocketMQ does; None if neither has one."""
    damage, is_empty = "", False
    for candidate in (name, name + _BACKUP):
        if not listed.get(candidate):  # RocketMQ reads the backup of an empty file as of a missing one
            is_empty = is_empty or candidate in listed
            continue
        try:
            data = files.read_file(root / CONFIG / candidate)
            value = decode_config(data)
        except CorruptError as error:
            damage = damage or str(error.found)
            continue
        if not isinstance(value, Mapping):
            findings.append(_wrong(candidate, "an object", type(value).__name__))
            return None
        if candidate != name and not damage:
            findings.append(Finding("config-backup-only", f"{CONFIG}/{candidate}"))
        return value, file_print(data)
    if damage or is_empty:
        found = damage or "0 bytes"
        findings.append(Finding("config-lost", f"{CONFIG}/{name}", expected="JSON, or a backup", found=found))
    return None


def _wrong(name: str, expected: str, found: object) -> Finding:
    return Finding("config-shape", f"{CONFIG}/{name}", expected=expected, found=repr(found)[:MOST_QUOTED])


def _take(tables: ConfigTables, name: str, value: Object) -> None:
    wanted = TABLES.get(name)
    if wanted is None:
        return
    table = value.get(wanted)
    if not isinstance(table, Mapping):
        tables.findings.append(_wrong(name, f"a table {wanted}", table))
        return
    if name == TOPICS_FILE:
        tables.topics = dict(_topics(table, tables.findings))
    elif name == OFFSETS_FILE:
        tables.offsets = list(_group_offsets(table, tables.findings))
    elif name == DELAY_FILE:
        tables.delays = dict(_numbers(table, name, "delay level", tables.findings))
    else:
        if name == GROUPS_FILE:
            tables.groups = frozenset(map(str, table))
        tables.findings += [
            _wrong(name, f"an object for {key}", item)
            for key, item in table.items()
            if not isinstance(item, Mapping)
        ]


def _topics(table: Object, findings: list[Finding]) -> Iterator[tuple[str, TopicQueues]]:
    for topic, config in table.items():
        if not isinstance(config, Mapping):
            findings.append(_wrong(TOPICS_FILE, f"an object for {topic}", config))
            continue
        counts = []
        for name in ("readQueueNums", "writeQueueNums", "perm"):
            number = _number(config.get(name, -1))
            if number is None:
                findings.append(_wrong(TOPICS_FILE, f"a number {name} of {topic}", config.get(name)))
            counts.append(-1 if number is None else number)
        attributes = config.get("attributes")
        kind = attributes.get("queue.type") if isinstance(attributes, Mapping) else None
        yield str(topic), TopicQueues(counts[0], counts[1], kind == "BatchCQ")


def _group_offsets(table: Object, findings: list[Finding]) -> Iterator[StoredOffset]:
    for key, queues in table.items():
        topic, _, group = str(key).partition(_SEPARATOR)
        if not group or not isinstance(queues, Mapping):
            findings.append(_wrong(OFFSETS_FILE, "topic@group and a table of queues", key))
            continue
        # RocketMQ accepts a commit of any queue id, and so does seglog; a negative one is of no queue.
        of_queues = {queue_id: offset for queue_id, offset in queues.items() if not _is_below_0(queue_id)}
        for queue_id, offset in _numbers(of_queues, OFFSETS_FILE, f"queue of {key}", findings):
            yield StoredOffset(group, topic, queue_id, offset)


def _is_below_0(queue_id: object) -> bool:
    digits = str(queue_id).removeprefix("-")
    return len(digits) < len(str(queue_id)) and digits.isascii() and digits.isdigit()


def _numbers(table: Object, name: str, what: str, findings: list[Finding]) -> Iterator[tuple[int, int]]:
    for key, value in table.items():
        text, number = str(key), _number(value)
        if text.isascii() and text.isdigit() and number is not None and number >= 0:
            yield int(text), number
        else:
            findings.append(_wrong(name, f"a number from 0 for each {what}", f"{key}: {value}"))


def _number(value: ConfigValue) -> int | None:
    """Returns a number of at least -1, None for anything else."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and isinstance(value, int) and value >= -1 else None
