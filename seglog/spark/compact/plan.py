"""The plan of a compaction: which messages would be dropped and why, by topic, and the groups concerned."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from seglog.doctor.tables import load_tables
from seglog.errors import InvalidArgumentError, NotFoundError, StoreError, UnsupportedStoreError
from seglog.spark.compact.oversize import oversize_below
from seglog.spark.compact.own_files import check_writes_done
from seglog.spark.compact.phases import Runner
from seglog.spark.compact.policy import Policy, QueuePolicy, Verdict
from seglog.spark.compact.records import Asked
from seglog.spark.compact.summary import NOWHERE, QueuePart
from seglog.spark.compact.task import CompactionPart, Task
from seglog.spark.compact.writing import SegmentPlan
from seglog.spark.making.spills import Key
from seglog.storage.audit import AuditPlan, AuditQueue, AuditReport
from seglog.storage.compaction import queue_ids
from seglog.storage.directory import configured_kinds
from seglog.storage.files import Files
from seglog.storage.findings import Severity
from seglog.storage.format.index import IndexGeometry
from seglog.storage.format.names import EPOCH_FILE, LMQ_PREFIX, SCHEDULE_TOPIC
from seglog.storage.format.record import FILLER_BYTES
from seglog.storage.format.system_names import SYSTEM_PREFIXES, TIMER_TOPIC
from seglog.storage.splits import LogOutcome

_BROKERS_OWN: Final = (*SYSTEM_PREFIXES, SCHEDULE_TOPIC, LMQ_PREFIX, "SEGLOG_")


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """The effect of a compaction on a topic.

    Attributes:
        records: Number of records by verdict.
        size_bytes: Their bytes by verdict.
        bytes_after: Bytes of the topic afterwards, with placeholders.
    """

    topic: str
    records: tuple[int, ...]
    size_bytes: tuple[int, ...]
    bytes_after: int

    @property
    def kept(self) -> int:
        """Number of messages that are kept."""
        return self.records[Verdict.KEPT] + self.records[Verdict.HELD]

    @property
    def dropped(self) -> int:
        """Number of messages that are dropped; placeholders and fillers are no messages."""
        return sum(self.records[Verdict.SUPERSEDED : Verdict.PLACEHOLDER])

    @property
    def bytes_before(self) -> int:
        """Bytes of the topic now."""
        return sum(self.size_bytes)


@dataclass(frozen=True, slots=True)
class Undelivered:
    """Messages that would be dropped although a group has not read them."""

    group: str
    topic: str
    queue_id: int
    offset: int
    messages: int


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The plan of a compaction.

    Attributes:
        root: The store.
        task: The compaction, as tasks receive it.
        audit: An audit of the store.
        index_division: Slots and entries of its index files; None if nothing shows them.
        topics: The effect on each topic.
        undelivered: Messages that the policies drop and that groups have not read.
        allows_undelivered: Whether these are dropped nevertheless; otherwise they are kept.
        segments: The segments of the new log.
        begins: Queue offset at which each queue with a policy will begin.
    """

    root: Path
    task: Task
    audit: AuditReport
    index_division: IndexGeometry | None
    topics: tuple[TopicPlan, ...]
    undelivered: tuple[Undelivered, ...]
    allows_undelivered: bool
    segments: tuple[SegmentPlan, ...]
    begins: Mapping[Key, int]

    @property
    def dropped(self) -> int:
        """Number of messages that are dropped."""
        return sum(topic.dropped for topic in self.topics)

    @property
    def dropped_in_front(self) -> dict[Key, range]:
        """Queue offsets that no queue will have any more, by queue: its minimum rises past them."""
        mins = {(queue.topic, queue.queue_id): queue.min_offset for queue in self.audit.queues}
        return {key: range(mins[key], begin) for key, begin in self.begins.items()}

    @property
    def bytes_before(self) -> int:
        """Bytes of all records before the compaction."""
        return sum(topic.bytes_before for topic in self.topics)

    @property
    def bytes_after(self) -> int:
        """Bytes of all records after the compaction."""
        return sum(segment.used_bytes for segment in self.segments)


def compaction_topics(files: Files, root: Path) -> frozenset[str]:
    """Returns the topics that have the attribute ``cleanup.policy=COMPACTION``."""
    return configured_kinds(files, root).compaction


def check_audit(audit: AuditReport, *, is_left: bool) -> None:
    """Checks that a store is fit to be compacted.

    Args:
        audit: Its audit.
        is_left: Whether it was closed and left to RocketMQ, which makes its index: it has an abort file then.

    Raises:
        StoreError: The store is damaged, or was not closed.
    """
    wrong = [finding for finding in audit.findings if finding.severity is not Severity.NOTE]
    if wrong or audit.holes:
        first = f": {wrong[0]}" if wrong else ""
        raise StoreError(
            f"{audit.path} is not in order ({len(wrong)} findings{first})", help="run seglog repair first"
        )
    if audit.mode != "normal" and not is_left:
        raise StoreError(
            f"{audit.path} was not closed", help="start and stop its broker, or open it with seglog, first"
        )


def ask(plan: AuditPlan, policies: Mapping[str, Policy], salt: int) -> Asked:
    """Returns the settings that the facts of a store's records depend on.

    Args:
        plan: The store's files.
        policies: The policies, by topic.
        salt: Salt of the key hashes, a random number.
    """
    erased = {
        topic: frozenset(text.encode() for text in policy.erased)
        for topic, policy in policies.items()
        if policy.erased
    }
    compacted = frozenset(topic for topic, policy in policies.items() if policy.compact)
    return Asked(plan.root, plan.geometry, compacted, erased, salt)


def make_task(
    files: Files,
    plan: AuditPlan,
    log: LogOutcome,
    audit: AuditReport,
    policies: Mapping[str, Policy],
    asked: Asked,
    *,
    now_ms: int,
    allow_undelivered: bool,
) -> Task:
    """Resolves policies to queues.

    Args:
        files: Access to the store.
        plan: The store's files.
        log: The log, joined from its stretches.
        audit: The result of the audit of the files.
        policies: The policies, by topic.
        asked: The result of :func:`ask` for them.
        now_ms: The time, in ms since 1970 UTC.
        allow_undelivered: Whether messages may be dropped that a group has not read.

    Raises:
        InvalidArgumentError: A topic cannot have a policy.
        NotFoundError: There is no such topic.
    """
    _check_topics(plan, audit, policies)
    offsets: dict[Key, dict[str, int]] = {}
    groups_of: dict[str, set[str]] = {}
    for at in load_tables(files, plan.root).offsets:
        offsets.setdefault((at.topic, at.queue_id), {})[at.group] = at.offset
        groups_of.setdefault(at.topic, set()).add(at.group)
    queues: dict[Key, QueuePolicy] = {}
    for queue in audit.queues:
        policy = policies.get(queue.topic)
        if policy is not None and queue.kind == "plain" and queue.records:
            key = queue.topic, queue.queue_id
            known = offsets.get(key, {})
            # A group of the topic without an offset in this queue has all of it to read; reconcile counts it
            # so too.
            groups = {group: known.get(group, queue.min_offset) for group in groups_of.get(queue.topic, ())}
            queues[key] = _resolve(files, plan, queue, policy, groups, now_ms, allow=allow_undelivered)
    return Task(
        asked,
        plan.batch_topics,
        plan.splits,
        {stretch.split: stretch.start for stretch in log.stretches},
        _compaction_parts(files, plan, audit, queues),
        audit.records,
        queues,
    )


def make_plan(
    task: Task,
    audit: AuditReport,
    index_division: IndexGeometry | None,
    runner: Runner,
    staged: Path | None,
    *,
    allow: bool,
) -> CompactionPlan:
    """Decides on every record.

    Args:
        task: The compaction.
        audit: An audit of the store.
        index_division: Slots and entries of its index files; None if nothing shows them.
        runner: Runs the phases.
        staged: The new store; None for a plan only.
        allow: Whether messages may be dropped that a group has not read.

    Raises:
        StoreError: The log differs from the audit.
    """
    parts = runner.decide(task, staged)
    in_log = [part for part in parts if part.part < len(task.splits)]
    seen = sum(sum(part.records) for part in in_log)
    if seen != audit.records:
        raise StoreError(
            f"{seen} records were decided on, but the log has {audit.records}",
            help="another process writes to the store; stop the broker, or run it again",
        )
    begins = _begins(in_log, task.policies)
    segments = place_parts(task, audit.end_phy_offset, in_log, begins)
    return CompactionPlan(
        task.root,
        task,
        audit,
        index_division,
        tuple(_topic_plans(in_log, begins)),
        tuple(_undelivered(in_log, task)),
        allow,
        segments,
        begins,
    )


def place_parts(
    task: Task, end_phy_offset: int, parts: Sequence[QueuePart], begins: Mapping[Key, int]
) -> tuple[SegmentPlan, ...]:
    """Returns the parts of each segment of the new log, which begins after the old one's last segment.

    A part is never divided, so a segment may end up to a part short.
    """
    segment = task.geometry.segment_size_bytes
    sizes = np.zeros(len(task.splits), np.int64)
    for part in parts:
        sizes[part.part] += part.written_bytes(begins.get((part.topic, part.queue_id), 0))
    first = -(-end_phy_offset // segment) * segment
    groups: list[tuple[list[int], int]] = [([], 0)]
    for number, size in enumerate(sizes.tolist()):
        if not size:
            continue
        if groups[-1][1] + size > segment - FILLER_BYTES:
            groups.append(([], 0))
        taken, used = groups[-1]
        groups[-1] = ([*taken, number], used + size)
    return tuple(
        SegmentPlan(first + segment * number, tuple(taken), used, number == len(groups) - 1)
        for number, (taken, used) in enumerate(groups)
    )


def _check_topics(plan: AuditPlan, audit: AuditReport, policies: Mapping[str, Policy]) -> None:
    known = {queue.topic for queue in audit.queues}
    for topic in policies:
        if topic.startswith(_BROKERS_OWN):
            raise InvalidArgumentError(f"{topic} is the broker's own: nothing of it may go")
        if topic in plan.batch_topics:
            raise InvalidArgumentError(f"{topic} has batch queues, of which no single message can go")
        if topic not in known:
            raise NotFoundError(
                f"{plan.root} has no topic {topic}", help="`seglog inspect queues STORE` shows them"
            )


def check_movable(files: Files, root: Path, audit: AuditReport) -> None:
    """Checks that the records of a store may be moved.

    Raises:
        UnsupportedStoreError: A file that cannot be rewritten holds places of records.
        ConfigError: The note of a job that writes cannot be read.
    """
    check_writes_done(files, root)
    if any(queue.topic == TIMER_TOPIC and queue.records for queue in audit.queues):
        raise UnsupportedStoreError(
            f"{root} has timer messages: the timer log names their places",
            help="wait until retention has taken them, or copy the topics with archive and restore",
        )
    if files.exists(root / EPOCH_FILE):
        raise UnsupportedStoreError(f"{root} belongs to a controller group, whose epochs name places")


def _resolve(
    files: Files,
    plan: AuditPlan,
    queue: AuditQueue,
    policy: Policy,
    offsets: Mapping[str, int],
    now_ms: int,
    *,
    allow: bool,
) -> QueuePolicy:
    key = queue.topic, queue.queue_id
    found = QueuePolicy(
        *key,
        queue.max_offset - 1,
        compact=policy.compact,
        cleanable_until_ms=now_ms - policy.min_compaction_lag_ms,
        tombstones_until_ms=now_ms - max(policy.delete_retention_ms, policy.min_compaction_lag_ms),
        erased=frozenset(text.encode() for text in policy.erased),
        group_offsets=dict(sorted(offsets.items())),
        held_from=None if allow or not offsets else min(offsets.values()),
    )
    if policy.retention_ms is not None:
        found = replace(found, expired_below_ms=now_ms - policy.retention_ms)
    if policy.retention_bytes is not None:
        below = oversize_below(
            files, plan.root, queue, plan.geometry.queue_file_size_bytes, policy.retention_bytes
        )
        found = replace(found, oversize_below=below)
    return found


def _compaction_parts(
    files: Files, plan: AuditPlan, audit: AuditReport, queues: Mapping[Key, QueuePolicy]
) -> list[CompactionPart]:
    mins = {(queue.topic, queue.queue_id): queue.min_offset for queue in audit.queues}
    return [
        CompactionPart(topic, queue_id, mins[topic, queue_id])
        for topic in sorted(compaction_topics(files, plan.root))
        for queue_id in sorted(queue_ids(files, plan.root, topic))
        if (topic, queue_id) in queues
    ]


def _begins(parts: Sequence[QueuePart], policies: Mapping[Key, QueuePolicy]) -> dict[Key, int]:
    """Returns the queue offset at which each queue will begin."""
    firsts: dict[Key, int] = {}
    for part in parts:
        if part.first_offset != NOWHERE:
            key = part.topic, part.queue_id
            firsts[key] = min(part.first_offset, firsts.get(key, part.first_offset))
    return {key: firsts.get(key, policy.last_offset) for key, policy in policies.items()}


def _topic_plans(parts: Sequence[QueuePart], begins: Mapping[Key, int]) -> list[TopicPlan]:
    records: dict[str, Counter[int]] = defaultdict(Counter)
    sizes: dict[str, Counter[int]] = defaultdict(Counter)
    after: Counter[str] = Counter()
    for part in parts:
        records[part.topic].update(dict(enumerate(part.records)))
        sizes[part.topic].update(dict(enumerate(part.size_bytes)))
        after[part.topic] += part.written_bytes(begins.get((part.topic, part.queue_id), 0))
    return [
        TopicPlan(
            topic,
            tuple(records[topic][verdict] for verdict in Verdict),
            tuple(sizes[topic][verdict] for verdict in Verdict),
            after[topic],
        )
        for topic in sorted(records)
    ]


def _undelivered(parts: Sequence[QueuePart], task: Task) -> list[Undelivered]:
    counts: dict[tuple[str, Key], int] = {}
    for part in parts:
        policy = task.policies.get((part.topic, part.queue_id))
        if policy is None:
            continue
        for group, count in zip(policy.group_offsets, part.undelivered, strict=True):
            at = group, (part.topic, part.queue_id)
            counts[at] = counts.get(at, 0) + count
    return [
        Undelivered(group, *key, task.policies[key].group_offsets[group], count)
        for (group, key), count in sorted(counts.items())
        if count
    ]
