"""Topics that a store proves although ``config/topics.json`` lacks them.

Folders and files of queues prove a topic, its number of queues and its kind; a compaction log proves its
policy. The other settings of a topic get RocketMQ's defaults. Opening and repair add topics by this one rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from seglog.broker.tables.topics import TopicConfig
from seglog.storage.directory import list_queues
from seglog.storage.files import Files
from seglog.storage.format.config import ConfigValue
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, CONSUME_QUEUE
from seglog.storage.format.queue import BATCH_UNIT, COMPACTION, COMPACTION_LOG, CQ_UNIT

_BATCH: Mapping[str | int, ConfigValue] = {"queue.type": "BatchCQ"}
_COMPACTED: Mapping[str | int, ConfigValue] = {"cleanup.policy": "COMPACTION"}


def proven_topics(files: Files, root: Path) -> dict[str, TopicConfig]:
    """Returns the settings of each topic that has queue files, as far as these show them.

    Args:
        files: Access to the store.
        root: The store directory.
    """
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
