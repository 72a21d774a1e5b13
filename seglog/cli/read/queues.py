"""``seglog inspect queues``: every queue, its files, and their differences from the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from seglog.cli.read import java_lines
from seglog.cli.read.batch_queues import ListedBatchQueue, list_batch_queues
from seglog.cli.read.reading import survey_store
from seglog.cli.ui import options, pager, render
from seglog.errors import NotFoundError
from seglog.storage.compaction import CompactionState
from seglog.storage.directory import queue_directory
from seglog.storage.findings import Finding, findings_fields
from seglog.storage.format.names import BATCH_CONSUME_QUEUE, check_topic
from seglog.storage.format.queue import plain_queue_kind
from seglog.storage.overlay import BatchQueueState, QueueState
from seglog.storage.survey import Survey

_IN_ROCKSDB: Final = "in RocksDB and not looked at"


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One queue.

    Attributes:
        kind: ``plain``, ``delay`` (its tags codes are times), ``lmq``, ``batch``, ``compaction`` or
            ``deleted``.
        files: Number of its files, and their total length.
        agrees: Whether the files agree with the log; None for a deleted queue, and for one in RocksDB.
        findings: The differences.
        how: The differences in words, for queues whose differences are no findings.
    """

    topic: str
    queue_id: int
    kind: str
    min_offset: int
    max_offset: int
    files: tuple[int, int]
    agrees: bool | None
    findings: tuple[Finding, ...]
    how: str


@click.command
@options.store
@click.argument("topic", required=False)
@options.as_json
@pager.paged()
def command(*, path: Path, topic: str | None, as_json: bool) -> None:
    """Show each queue of STORE, or of TOPIC: kind, range, files, and whether they agree with the log.

    Where they do not, the log is right, and opening the store for writing puts the files right.
    """
    if topic is not None:
        check_topic(topic)
    found = survey_store(path, verify=False)
    lines = sorted(
        (line for line in _lines(found, topic) if topic in (None, line.topic)),
        key=lambda line: (java_lines.java_order(line.topic), line.queue_id),
    )
    if topic is not None and not lines:
        raise NotFoundError(f"the store has no topic {topic}")
    if as_json:
        for line in lines:
            render.emit(_fields(line, found.findings))
    else:
        _show(lines)


def _lines(found: Survey, topic: str | None) -> list[QueueLine]:
    file_findings: dict[str, list[Finding]] = {}
    for finding in found.findings:
        if finding.code.startswith("queue-file-"):
            file_findings.setdefault(finding.file.rpartition("/")[0], []).append(finding)
    lines = []
    for (name, queue_id), state in found.queues.items():
        files = found.queue_files.get((name, queue_id))
        of_files = file_findings.get(queue_directory(name, queue_id), [])
        sizes = files.sizes.values() if files is not None else ()
        lines.append(
            QueueLine(
                name,
                queue_id,
                plain_queue_kind(name),
                state.min_offset,
                state.max_offset,
                (len(sizes), sum(sizes)),
                *_compared(found, state, of_files),
            )
        )
    for queue in list_batch_queues(found, topic):
        folder = queue_directory(queue.topic, queue.queue_id, BATCH_CONSUME_QUEUE)
        lines.append(_batch_line(found, queue, file_findings.get(folder, ())))
    lines += [_compaction_line(state) for state in found.compaction.values()]
    for finding in found.findings:
        if finding.code == "queue-deleted":
            name, _slash, number = finding.file.partition("/")[2].rpartition("/")
            lines.append(
                QueueLine(name, int(number), "deleted", 0, 0, (0, 0), None, (finding,), finding.meaning)
            )
    return lines


def _batch_line(found: Survey, queue: ListedBatchQueue, of_files: Sequence[Finding]) -> QueueLine:
    state = queue.state
    return QueueLine(
        queue.topic,
        queue.queue_id,
        "batch",
        state.min_offset,
        state.max_offset,
        (len(queue.sizes), sum(queue.sizes.values())),
        *_compared(found, state, of_files),
    )


def _compared(
    found: Survey, state: QueueState | BatchQueueState, of_files: Sequence[Finding]
) -> tuple[bool | None, tuple[Finding, ...], str]:
    """Returns whether the files of a queue agree with the log, its findings, and these in words."""
    findings = (*state.findings, *of_files)
    if not state.agrees and not findings and found.rocksdb_queues:
        return None, (), _IN_ROCKSDB
    return state.agrees and not of_files, findings, _how(findings)


def _compaction_line(state: CompactionState) -> QueueLine:
    """Returns the line of a compaction topic's own log and queue, the truth once records were dropped."""
    files = state.files
    sizes = [*files.logs.values(), *files.queues.values()]
    return QueueLine(
        files.topic,
        files.queue_id,
        "compaction",
        max(0, state.units.min_offset),
        state.units.max_offset,
        (len(sizes), sum(sizes)),
        not state.dropped,
        (),
        f"{render.count_text(len(state.dropped), 'file')} that do not count" if state.dropped else "",
    )


def _how(findings: Sequence[Finding]) -> str:
    return "; ".join(
        f"{finding.code}" + (f" ({render.count_text(finding.messages, 'unit')})" if finding.messages else "")
        for finding in findings
    )


def _fields(line: QueueLine, among: Sequence[Finding]) -> dict[str, object]:
    return {
        "kind": "queue-state",
        "topic": line.topic,
        "queueId": line.queue_id,
        "queueKind": line.kind,
        "minOffset": line.min_offset,
        "maxOffset": line.max_offset,
        "files": line.files[0],
        "fileBytes": line.files[1],
        "agrees": line.agrees,
        "how": line.how,
        "findings": [*findings_fields(line.findings, among)],
    }


def _show(lines: Sequence[QueueLine]) -> None:
    render.table(
        ("topic", "queue", "kind", "min", "max", "files", "size", "agrees", "difference"),
        [_cells(line) for line in lines],
        numbers=("queue", "min", "max", "files", "size"),
    )
    wrong = sum(line.agrees is False for line in lines)
    apart = sum(line.how == _IN_ROCKSDB for line in lines)
    words = [render.count_text(len(lines), "queue")]
    if apart:
        words.append(f"{render.count_text(apart)} {_IN_ROCKSDB}")
    if wrong:
        words.append(f"{render.count_text(wrong)} not as the log says")
    elif apart < len(lines):
        words.append("the others as the log says" if apart else "all as the log says")
    render.say(", ".join(words))


def _cells(line: QueueLine) -> tuple[str, ...]:
    return (
        render.printable(line.topic),
        str(line.queue_id),
        line.kind,
        str(line.min_offset),
        str(line.max_offset),
        str(line.files[0]),
        render.size_text(line.files[1]),
        {True: "yes", False: "NO", None: "-"}[line.agrees],
        line.how,
    )
