"""Config files that are missing with their backups, although the store proves that they existed.

A store that no broker had open has no tables, and seglog's broker writes a table with its first entry. So a
missing file is a loss only with a proof. There are two: seglog's history of offsets gets each offset before
the table does; and RocketMQ saves ``consumerOffset.json`` together with the tables of filters and orders,
also empty ones, and a topic before its first message.

Source: ``BrokerController.java initializeBrokerScheduledTasks, shutdownBasicService``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from seglog.broker.offsets import SAVED_WITH_OFFSETS, OffsetPast
from seglog.doctor.tables.config_tables import GROUPS_FILE, OFFSETS_FILE, ConfigTables, load_tables
from seglog.errors import ConfigError, UnsupportedStoreError
from seglog.storage.directory import TOPICS_FILE, RocksTable, parts_with
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.names import CONFIG, DLQ_PREFIX, RETRY_PREFIX
from seglog.storage.format.system_names import is_business_topic, is_system_group
from seglog.text import shell_line


def was_served(tables: ConfigTables) -> bool:
    """Returns whether the files prove that a broker with clients saved its tables here."""
    return bool(tables.listed & SAVED_WITH_OFFSETS)


def past_offsets(files: Files, root: Path) -> dict[tuple[str, str, int], int]:
    """Returns the newest offsets in the history by group, topic and queue id; empty without a history."""
    return OffsetPast(files, root).newest()


def lost_findings(files: Files, root: Path, tables: ConfigTables, topics: Iterable[str]) -> list[Finding]:
    """Returns a finding for each missing table that held something.

    Args:
        files: Access to the store.
        root: The store directory.
        tables: Its config files.
        topics: Topics that have queues.
    """
    proofs: list[tuple[str, str]] = []
    has_offsets = OFFSETS_FILE in tables.listed or parts_with(tables.rocksdb, RocksTable.OFFSETS)
    if not has_offsets and (proof := _proof_of_offsets(files, root, tables)):
        proofs.append((OFFSETS_FILE, proof))
    has_topics = TOPICS_FILE in tables.listed or parts_with(tables.rocksdb, RocksTable.TOPICS)
    if not has_topics and was_served(tables):
        named = sorted(topic for topic in topics if is_registered(topic))
        if named:
            proofs.append((TOPICS_FILE, f"queues of {_some(named)}"))
    words = "a table, or a backup"
    return [
        Finding("config-lost", f"{CONFIG}/{name}", expected=words, found=f"neither, but {proof}")
        for name, proof in proofs
    ]


def is_registered(topic: str) -> bool:
    """Returns whether a topic is in the table for its clients, and not because each broker adds it."""
    return is_business_topic(topic) or topic.startswith((RETRY_PREFIX, DLQ_PREFIX))


def demand_offsets(files: Files, root: Path) -> None:
    """Refuses a store whose table of offsets is lost.

    Raises:
        ConfigError: The table and its backup are missing or empty, and groups had offsets.
        UnsupportedStoreError: The broker keeps the table in RocksDB.
    """
    tables = load_tables(files, root)
    if apart := parts_with(tables.rocksdb, RocksTable.OFFSETS):
        raise UnsupportedStoreError(
            f"the broker of {root} keeps the offsets of groups in RocksDB ({apart[0].name}), which seglog"
            " does not read; what groups need is unknown",
            help="nothing was changed; start the broker, which knows them",
        )
    name = f"{CONFIG}/{OFFSETS_FILE}"
    found = [*tables.findings, *lost_findings(files, root, tables, ())]
    if lost := [one for one in found if one.code == "config-lost" and one.file == name]:
        repair = shell_line(["seglog", "repair", root])
        raise ConfigError(
            f"{root / name}: expected {lost[0].expected}, found {lost[0].found}; what groups need is unknown",
            help=f"run `{repair}`; set with `seglog offsets reset` what it cannot restore",
        )


def _proof_of_offsets(files: Files, root: Path, tables: ConfigTables) -> str:
    if past := past_offsets(files, root):
        return f"the history of offsets names {_some(sorted({group for group, _topic, _queue_id in past}))}"
    groups = sorted(group for group in tables.groups or () if not is_system_group(group))
    return f"{GROUPS_FILE} names {_some(groups)}" if groups and was_served(tables) else ""


def _some(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
