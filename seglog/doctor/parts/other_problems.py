"""What a check would say of a surveyed store beside its log, queues and index: tables, timer, filter data."""

from __future__ import annotations

from seglog.doctor.parts.offset_check import offset_findings, topic_findings
from seglog.doctor.parts.other_files import compaction_findings, ext_findings, own_findings
from seglog.doctor.parts.timer_check import timer_findings
from seglog.doctor.tables.config_tables import load_tables
from seglog.storage.audit import AuditQueue
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, CONSUME_QUEUE
from seglog.storage.survey import Survey


def other_problems(found: Survey, files: Files) -> list[Finding]:
    """Returns what is not as it should be; half messages are not looked at, for no repair ends them.

    Args:
        found: A survey of the store.
        files: Where it is.
    """
    root = found.root
    queues = surveyed_queues(found)
    tables = load_tables(files, root)
    with_files = [(*key, CONSUME_QUEUE) for key, queue in found.queue_files.items() if queue.sizes]
    with_files += [(*key, BATCH_CONSUME_QUEUE) for key, queue in found.batch_files.items() if queue.sizes]
    return [
        *tables.findings,
        *offset_findings(tables, queues),
        *topic_findings(tables, queues, with_files),
        *timer_problems(found, files),
        *ext_findings(files, root, found.queue_files.values(), found.geometry),
        *compaction_findings(files, root, queues, found.min_phy_offset, found.geometry),
        *own_findings(files, root, found.geometry, found.max_phy_offset),
    ]


def timer_problems(found: Survey, files: Files) -> list[Finding]:
    """Returns what is not as it should be about the timer."""
    return timer_findings(
        files,
        found.root,
        surveyed_queues(found),
        queue_file_bytes=found.geometry.queue_file_size_bytes,
        min_phy_offset=max(0, found.min_phy_offset),
    )


def surveyed_queues(found: Survey) -> dict[tuple[str, int], AuditQueue]:
    """Returns the queues of a survey as an audit has them: with their ends, their records not counted."""
    ends = [(key, "plain", queue.min_offset, queue.max_offset) for key, queue in found.queues.items()]
    ends += [(key, "batch", queue.min_offset, queue.max_offset) for key, queue in found.batch_queues.items()]
    return {
        key: AuditQueue(*key, first, end, 0, 0, -1, -1, 0, 0, 0, 0, kind) for key, kind, first, end in ends
    }
