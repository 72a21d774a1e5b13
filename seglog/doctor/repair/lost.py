"""Tables that are missing with their backups: made from what the store says.

The history of offsets has every offset that the table had. Queues and folders prove the topics, their numbers
of queues and their kinds; the other settings of a topic get RocketMQ's defaults. Without a history no offset
is invented: an empty table would let retention delete what groups need.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from seglog.broker.offsets import table_of, to_config
from seglog.broker.tables import DataVersion, proven_topics
from seglog.clock import Clock
from seglog.doctor.plans.actions import Action
from seglog.doctor.tables.config_tables import OFFSETS_FILE, TABLES, load_tables
from seglog.doctor.tables.lost_tables import is_registered, lost_findings, past_offsets
from seglog.storage.directory import TOPICS_FILE
from seglog.storage.files import Files
from seglog.storage.format.config import ConfigValue, encode_config
from seglog.storage.format.names import CONFIG
from seglog.text import count_text


def mend_lost(files: Files, root: Path, clock: Clock) -> Iterator[Action]:
    """Makes the missing tables of offsets and topics; yields the actions."""
    topics = proven_topics(files, root)
    lost = {finding.file for finding in lost_findings(files, root, load_tables(files, root), topics)}
    version = DataVersion().next(clock.now_ms())
    if f"{CONFIG}/{OFFSETS_FILE}" in lost and (past := past_offsets(files, root)):
        detail = f"{count_text(len(past), 'offset')} from the history of offsets"
        yield _write(files, root, OFFSETS_FILE, to_config(table_of(past), version, {}), detail)
    if f"{CONFIG}/{TOPICS_FILE}" in lost:
        configs: dict[str | int, ConfigValue] = {
            name: config.to_config() for name, config in sorted(topics.items()) if is_registered(name)
        }
        value: dict[str | int, ConfigValue] = {
            "dataVersion": version.to_config(),
            TABLES[TOPICS_FILE]: configs,
        }
        yield _write(files, root, TOPICS_FILE, value, f"{count_text(len(configs), 'topic')} from the queues")


def _write(files: Files, root: Path, name: str, value: ConfigValue, detail: str) -> Action:
    data = encode_config(value).encode()
    files.make_dirs(root / CONFIG)
    files.write_file(root / CONFIG / name, data)
    return Action("config", f"{CONFIG}/{name}", size_bytes=len(data), detail=detail)
