"""The queues of a store, each derived from the records of a walk and compared with its files.

The rules for one queue are in :mod:`seglog.storage.overlay.queue_overlay` and
:mod:`seglog.storage.overlay.batch_overlay`. This module decides which queues exist, and their kinds.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from seglog.storage.directory import QueueFiles, RocksTable, known_topics, parts_with, queue_directory
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format import names
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT
from seglog.storage.format.system_names import is_business_topic
from seglog.storage.overlay import BatchQueueState, QueueState
from seglog.storage.scan.listed import ListedStore

Key: TypeAlias = tuple[str, int]
"""Topic and number of a queue."""


class SeenQueues(Protocol):
    """The queues that a walk over the log found."""

    @property
    def plain(self) -> Collection[Key]:
        """Plain queues for which the log has a record with a queue offset."""

    @property
    def batch(self) -> Collection[Key]:
        """Batch queues for which the log has a record."""

    def overlay(self, queue: QueueFiles) -> QueueState:
        """Returns the right content of a plain queue, compared with its files; there may be none."""

    def overlay_batch(self, queue: QueueFiles) -> BatchQueueState:
        """Returns the right content of a batch queue, compared with its files; there may be none."""


@dataclass(frozen=True, slots=True)
class Overlays:
    """The queues of a store, sorted.

    Attributes:
        plain: The right content of each plain queue.
        batch: The right content of each batch queue.
        findings: The queues that were left out.
    """

    plain: dict[Key, QueueState]
    batch: dict[Key, BatchQueueState]
    findings: list[Finding]


def overlay_queues(
    store: ListedStore, seen: SeenQueues, batch_topics: Collection[str], files: Files
) -> Overlays:
    """Returns the right content of the queues of a store: queues in the log, and queues with files only.

    Args:
        store: The store.
        seen: The queues that the walk found in its log.
        batch_topics: Topics that have batch queues.
        files: The file layer of the store.
    """
    # After a crash the topic table may be older than the log, and beside one in RocksDB it always may: then
    # every queue of the log counts.
    is_current = store.mode == "normal" and not parts_with(store.rocksdb, RocksTable.TOPICS)
    with_files = {topic for topic, _queue_id in (*store.queue_files, *store.batch_files)}
    known = topics_that_stay(known_topics(files, store.root) if is_current else None, with_files)
    living, findings = living_queues(known, seen.plain, store.queue_files)
    folder = names.BATCH_CONSUME_QUEUE
    living_batch, wrong = living_queues(known, seen.batch, store.batch_files, folder)
    plain = {
        key: seen.overlay(store.queue_files.get(key) or QueueFiles(*key, store.root))
        for key in living
        if key[0] not in batch_topics
    }
    batch = {
        key: seen.overlay_batch(
            store.batch_files.get(key) or QueueFiles(*key, store.root, BATCH_UNIT, folder)
        )
        for key in living_batch
    }
    return Overlays(plain, batch, findings + wrong)


def batch_topics(
    told: Collection[str], with_files: Collection[Key], with_batch_files: Collection[Key]
) -> frozenset[str]:
    """Returns the topics that have batch queues; directories count more than any other evidence.

    Args:
        told: Topics that should have some, by their attribute or by inner batches in the log.
        with_files: Topic and number of every plain queue that has a directory.
        with_batch_files: Topic and number of every batch queue that has a directory.
    """
    plain = {topic for topic, _queue_id in with_files}
    return frozenset(topic for topic, _queue_id in with_batch_files) | (frozenset(told) - plain)


def topics_that_stay(known: Collection[str] | None, with_files: Collection[str]) -> frozenset[str] | None:
    """Returns the topics that are not deleted; None if every queue of the log counts.

    RocketMQ takes a topic out of its table and then removes the folders of all its queues. So a topic of
    which one folder is there was not deleted. A table that knows none of the topics with folders proves
    nothing: it is that of another store, or was begun again after a loss.
    Source: ``DefaultMessageStore.java`` deleteTopics, ``AdminBrokerProcessor.java`` deleteTopic.

    Args:
        known: The topics in the store's table; None if they are not known, or may be older than the log.
        with_files: The topics of which a queue has a directory.
    """
    if known is None:
        return None
    named = {topic for topic in with_files if is_business_topic(topic)}
    if named and named.isdisjoint(known):
        return None
    return frozenset(known) | frozenset(with_files)


def living_queues(
    known: Collection[str] | None,
    in_log: Collection[Key],
    with_files: Collection[Key],
    folder: str = names.CONSUME_QUEUE,
) -> tuple[list[Key], list[Finding]]:
    """Returns the queues that a store has, sorted, and findings about the queues that are left out.

    Args:
        known: The topics that are not deleted; None if every queue of the log counts.
        in_log: Topic and number of every queue for which the log has a record with a queue offset.
        with_files: Topic and number of every queue that has a directory.
        folder: The parent folder of queues of this kind.
    """
    findings: list[Finding] = []
    living: list[Key] = []
    for topic, queue_id in sorted({*in_log, *with_files}):
        if not names.can_name_directory(topic):
            findings.append(Finding("topic-name", names.COMMIT_LOG, found=repr(topic)))
            continue
        is_known = known is None or topic in known or topic.startswith(names.LMQ_PREFIX)
        if not is_known and (topic, queue_id) not in with_files:
            findings.append(Finding("queue-deleted", queue_directory(topic, queue_id, folder)))
        else:
            living.append((topic, queue_id))
    return living, findings
