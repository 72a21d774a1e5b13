"""Tables that are missing with their backups: made from what the store says.

The history of offsets has every offset that the table had. Queues and folders prove the topics, their numbers
of queues and their kinds; the other settings of a topic get RocketMQ's defaults. Without a history no offset
is invented: an empty table would let retention delete what groups need.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from seglog.broker.offsets import SEPARATOR, to_config
from seglog.broker.tables import DataVersion, TopicConfig
from seglog.clock import Clock
from seglog.doctor.plans.actions import Action
from seglog.doctor.tables.config_tables import OFFSETS_FILE, TABLES, load_tables
from seglog.doctor.tables.lost_tables import is_registered, lost_findings, past_offsets
from seglog.storage.directory import TOPICS_FILE, list_queues
from seglog.storage.files import Files
from seglog.storage.format.config import ConfigValue, encode_config
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, CONFIG, CONSUME_QUEUE
from seglog.storage.format.queue import BATCH_UNIT, COMPACTION, COMPACTION_LOG, CQ_UNIT
from seglog.text import count_text

_BATCH: Mapping[str | int, ConfigValue] = {"queue.type": "BatchCQ"}
_COMPACTED: Mapping[str | int, ConfigValue] = {"cleanup.policy": "COMPACTION"}


def mend_lost(files: Files, root: Path, clock: Clock) -> Iterator[Action]:
    """Makes the missing tables of offsets and topics; yields the actions."""
    topics = _topics(files, root)
    lost = {finding.file for finding in lost_findings(files, root, load_tables(files, root), topics)}
    version = DataVersion().next(clock.now_ms())
    if f"{CONFIG}/{OFFSETS_FILE}" in lost and (past := past_offsets(files, root)):
        table: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for (group, topic, queue_id), offset in sorted(past.items()):
            table[f"{topic}{SEPARATOR}{group}"][queue_id] = offset
        detail = f"{count_text(len(past), 'offset')} from the history of offsets"
        yield _write(files, root, OFFSETS_FILE, to_config(table, version, {}), detail)
    if f"{CONFIG}/{TOPICS_FILE}" in lost:
        configs: dict[str | int, ConfigValue] = {
            name: config.to_config() for name, config in sorted(topics.items()) if is_registered(name)
        }
        value: dict[str | int, ConfigValue] = {
            "dataVersion": version.to_config(),
            TABLES[TOPICS_FILE]: configs,
        }
        yield _write(files, root, TOPICS_FILE, value, f"{count_text(len(configs), 'topic')} from the queues")


def _topics(files: Files, root: Path) -> dict[str, TopicConfig]:
    """Returns the settings of each topic that has queue files, as far as these show them."""
    compacted = {entry.name for entry in files.list_dir(root / COMPACTION / COMPACTION_LOG) if entry.is_dir}
    found: dict[str, TopicConfig] = {}
    for folder, layout in ((CONSUME_QUEUE, CQ_UNIT), (BATCH_CONSUME_QUEUE, BATCH_UNIT)):
        for queue in list_queues(files, root, folder, layout):
            if not queue.sizes:
                continue
            known = found.get(queue.topic)
            count = max(queue.queue_id + 1, 0 if known is None else known.queue_nums)
            kind = _BATCH if folder == BATCH_CONSUME_QUEUE else {}
            attributes = {**kind, **(_COMPACTED if queue.topic in compacted else {})}
            found[queue.topic] = TopicConfig(queue.topic, count, count, attributes=attributes)
    return found


def _write(files: Files, root: Path, name: str, value: ConfigValue, detail: str) -> Action:
    data = encode_config(value).encode()
    files.make_dirs(root / CONFIG)
    files.write_file(root / CONFIG / name, data)
    return Action("config", f"{CONFIG}/{name}", size_bytes=len(data), detail=detail)
