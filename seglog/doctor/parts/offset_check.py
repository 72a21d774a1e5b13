"""Compares offsets of groups and delay levels, and the topic table, with the queues."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from seglog.doctor.tables.config_tables import DELAY_FILE, OFFSETS_FILE, ConfigTables
from seglog.doctor.tables.lost_tables import was_served
from seglog.storage.directory import TOPICS_FILE, RocksTable, parts_with, queue_directory
from seglog.storage.findings import Finding
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, CONFIG, CONSUME_QUEUE, LMQ_PREFIX, SCHEDULE_TOPIC
from seglog.storage.scan import Queues

_OFFSETS: Final = f"{CONFIG}/{OFFSETS_FILE}"
_DELAYS: Final = f"{CONFIG}/{DELAY_FILE}"


@dataclass(frozen=True, slots=True)
class GroupLag:
    """The progress of a group in a queue.

    Attributes:
        lag: Number of messages that it has not received and that still exist.
        missed: Number of messages that retention removed before the group received them.
    """

    group: str
    topic: str
    queue_id: int
    offset: int
    min_offset: int
    max_offset: int
    lag: int
    missed: int


def group_lags(tables: ConfigTables, queues: Queues) -> list[GroupLag]:
    """Returns the progress of each group in each existing queue."""
    lags: list[GroupLag] = []
    for at in tables.offsets:
        queue = queues.get((at.topic, at.queue_id))
        if queue is None:
            continue
        first = max(at.offset, queue.min_offset)
        lags.append(
            GroupLag(
                at.group,
                at.topic,
                at.queue_id,
                at.offset,
                queue.min_offset,
                queue.max_offset,
                max(0, queue.max_offset - first),
                max(0, queue.min_offset - at.offset),
            )
        )
    return lags


def offset_findings(tables: ConfigTables, queues: Queues) -> list[Finding]:
    """Returns findings on offsets that do not fit their queues."""
    findings: list[Finding] = []
    for at in tables.offsets:
        queue = queues.get((at.topic, at.queue_id))
        where = f"group {at.group} in {at.topic}/{at.queue_id}"
        if queue is None:
            if at.offset > 0:
                words = (f"a queue for {where}", f"none; offset {at.offset}")
                findings.append(Finding("offset-without-queue", _OFFSETS, 0, 0, *words))
        elif at.offset > queue.max_offset:
            words = (f"at most {queue.max_offset} for {where}", str(at.offset))
            findings.append(
                Finding("offset-beyond-queue", _OFFSETS, 0, 0, *words, at.offset - queue.max_offset)
            )
        elif at.offset < queue.min_offset:
            words = (f"{queue.min_offset} or more for {where}", str(at.offset))
            findings.append(
                Finding("offset-below-queue", _OFFSETS, 0, 0, *words, queue.min_offset - at.offset)
            )
    return findings + _delay_findings(tables, queues)


def _delay_findings(tables: ConfigTables, queues: Queues) -> list[Finding]:
    if tables.delays is None and (DELAY_FILE in tables.listed or not was_served(tables)):
        return []  # damage is another finding; a store without a broker has no table
    delays = tables.delays or {}
    findings: list[Finding] = []
    for level, offset in delays.items():
        queue = queues.get((SCHEDULE_TOPIC, level - 1))
        if queue is None:
            continue  # the table lists levels before their first message
        if offset > queue.max_offset:
            words = (f"at most {queue.max_offset} for level {level}", str(offset))
            findings.append(Finding("delay-offset-beyond", _DELAYS, 0, 0, *words, offset - queue.max_offset))
        elif offset < queue.min_offset:
            words = (f"{queue.min_offset} or more for level {level}", str(offset))
            findings.append(Finding("delay-offset-below", _DELAYS, 0, 0, *words, queue.min_offset - offset))
    for (topic, queue_id), queue in queues.items():
        waiting = queue.max_offset - queue.min_offset
        if topic == SCHEDULE_TOPIC and waiting and queue_id + 1 not in delays:
            words = (f"an offset for level {queue_id + 1}", "none")
            findings.append(Finding("delay-offset-missing", _DELAYS, 0, 0, *words, waiting))
    return findings


def topic_findings(
    tables: ConfigTables, queues: Queues, folders: Iterable[tuple[str, int, str]]
) -> list[Finding]:
    """Returns the differences between the topic table and the queues.

    Args:
        tables: The config files.
        queues: All queues.
        folders: Topic, queue id and folder of every queue that has a directory. RocketMQ refuses one of
            another kind, also without files; a topic that it does not know has plain queues.
    """
    findings: list[Finding] = []
    topics = tables.topics or {}
    for topic, queue_id, folder in sorted(folders):
        config = topics.get(topic)
        wanted = BATCH_CONSUME_QUEUE if config is not None and config.is_batch else CONSUME_QUEUE
        if tables.topics is None and (_may_know_topics(tables) or _has_messages(queues, topic, queue_id)):
            continue
        if folder != wanted:
            name = queue_directory(topic, queue_id, folder)
            findings.append(Finding("queue-kind", name, expected=wanted, found=folder))
    for (topic, queue_id), queue in queues.items():
        config = topics.get(topic)
        if config is None or topic.startswith(LMQ_PREFIX) or config.read_queues < 0:
            continue
        count = queue.max_offset - queue.min_offset
        if queue_id >= config.read_queues and count > 0:
            expected = f"readQueueNums above {queue_id}"
            name = queue_directory(topic, queue_id)
            findings.append(
                Finding("queue-beyond-topic", name, 0, 0, expected, str(config.read_queues), count)
            )
    return findings


def _may_know_topics(tables: ConfigTables) -> bool:
    """Returns whether a broker may know topics though its table was not read."""
    return TOPICS_FILE in tables.listed or bool(parts_with(tables.rocksdb, RocksTable.TOPICS))


def _has_messages(queues: Queues, topic: str, queue_id: int) -> bool:
    """Returns whether a queue has messages: then it is of this store, and the table lacks its topic."""
    queue = queues.get((topic, queue_id))
    return queue is not None and queue.min_offset < queue.max_offset
