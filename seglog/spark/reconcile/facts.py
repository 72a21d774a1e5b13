"""The small facts that verdicts about messages depend on: read on the driver, for each store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.doctor.check import CheckReport, ending_of_check, verdict_on
from seglog.doctor.message import TIMER_FILE
from seglog.doctor.parts import HalfQueue, half_queues
from seglog.doctor.tables import OFFSETS_FILE, ConfigTables, load_tables
from seglog.errors import Ending
from seglog.spark.checked_remote import checked_files
from seglog.spark.remote_files import typed_path
from seglog.storage.audit import AuditQueue
from seglog.storage.directory import RocksTable, not_read_text
from seglog.storage.findings import place_text
from seglog.storage.format.system_names import is_business_topic, needs_no_registration
from seglog.storage.format.timer import decode_timer_checkpoint

_OFFSETS_UNKNOWN: Final = frozenset({"config-damaged", "config-lost", "config-shape"})
"""Codes of findings on the table of offsets with which it is not what the groups have reached."""
BROADCAST_SUFFIX: Final = "@broadcast"
"""Suffix of a group's name in the offset table, for the progress of a broadcast group through a proxy."""


@dataclass(frozen=True, slots=True, eq=False)
class StoreFacts:
    """The facts about one store.

    Attributes:
        store: Its directory or address.
        queues: Its queues, by topic and queue id.
        topics: The topics of the queues.
        tables: Its config files.
        halves: Queues of half messages.
        timer_read_ms: Timer messages that were due before this time are delivered; 0 without a timer wheel.
        has_tombstones: Whether tombstones replace lost messages in the log.
        unseen: What verdicts about the store do not show, and why, in words: offsets of groups that cannot be
            read, and losses.
    """

    store: str
    queues: Mapping[tuple[str, int], AuditQueue]
    topics: frozenset[str]
    tables: ConfigTables
    halves: tuple[HalfQueue, ...]
    timer_read_ms: int
    has_tombstones: bool
    unseen: tuple[str, ...]


def load_facts(report: CheckReport) -> StoreFacts:
    """Returns the facts about a store that was audited."""
    files, root = checked_files(report.store)
    tables = load_tables(files, root)
    queues = {(queue.topic, queue.queue_id): queue for queue in report.queues}
    timer_read_ms = decode_timer_checkpoint(files.read_file(root / TIMER_FILE)).last_read_timestamp_ms
    return StoreFacts(
        report.store,
        queues,
        frozenset(topic for topic, _queue_id in queues),
        tables,
        tuple(half_queues(files, root, report.geometry, queues, tables)),
        timer_read_ms,
        any(finding.code == "tombstones" for finding in report.findings),
        tuple(_unseen(report, tables)),
    )


def _unseen(report: CheckReport, tables: ConfigTables) -> Iterator[str]:
    if text := not_read_text(tables.rocksdb, RocksTable.OFFSETS):
        yield text
    for finding in report.findings:
        if finding.code in _OFFSETS_UNKNOWN and Path(finding.file).name == OFFSETS_FILE:
            yield f"the offsets of groups; {finding.meaning}: {place_text(finding)}"
    typed = typed_path(report.store)
    if verdict_on(report).may_be_more:
        yield f"messages that the store has lost, whose number is not known: `seglog check {typed}` says why"
    elif ending_of_check(report) is Ending.LOSS:
        yield f"messages that the store has lost: `seglog spark audit {typed}` names them"


def subscribers(stores: Iterable[StoreFacts]) -> dict[str, list[str]]:
    """Returns the groups of each topic: the groups that have an offset in one of its queues, in any store."""
    found: dict[str, set[str]] = {}
    for facts in stores:
        for at in facts.tables.offsets:
            if is_business_topic(at.topic) and not needs_no_registration(at.group):
                found.setdefault(at.topic, set()).add(at.group)
    return {topic: sorted(groups) for topic, groups in sorted(found.items())}
