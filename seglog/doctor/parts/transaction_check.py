"""Half messages and the op records that settle them: finds transactions that are still open.

Source: ``TransactionalMessageServiceImpl.java check, fillOpRemoveMap``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.doctor.tables.config_tables import ConfigTables
from seglog.errors import CorruptError
from seglog.storage.directory import (
    LogReader,
    QueueFiles,
    StoreGeometry,
    list_queue,
    queue_directory,
    read_units_left,
)
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.names import HALF_TOPIC, OP_TOPIC
from seglog.storage.format.record import decode_message
from seglog.storage.format.system_names import TRANSACTION_GROUP
from seglog.storage.overlay import is_message
from seglog.storage.scan import Queues

"""A broker's own group, which consumes both topics."""
_OFFSETS: Final = re.compile(r"[0-9]{1,18}(,[0-9]{1,18})*,?")


@dataclass(frozen=True, slots=True)
class HalfQueue:
    """The open half messages of one queue.

    Attributes:
        queue_id: Queue id.
        begin: Half messages before this queue offset are done, or removed.
        max_offset: Queue offset of the next half message.
        settled: Queue offsets from ``begin`` on that op records name.
        beyond: Queue offsets after the queue's end that op records name.
    """

    queue_id: int
    begin: int
    max_offset: int
    settled: frozenset[int]
    beyond: frozenset[int]

    @property
    def pending(self) -> int:
        """Number of half messages without an outcome."""
        return max(0, self.max_offset - self.begin - len(self.settled))


def half_findings(
    files: Files,
    root: Path,
    geometry: StoreGeometry,
    queues: Queues,
    tables: ConfigTables,
) -> list[Finding]:
    """Returns findings on open half messages and on op records without one; arguments as in half_queues."""
    findings: list[Finding] = []
    for half in half_queues(files, root, geometry, queues, tables):
        if half.pending:
            name = queue_directory(HALF_TOPIC, half.queue_id)
            findings.append(Finding("half-pending", name, messages=half.pending))
        if half.beyond:
            first = ", ".join(map(str, sorted(half.beyond)[:5]))
            name = queue_directory(OP_TOPIC, half.queue_id)
            words = (f"offsets below {half.max_offset}", first)
            findings.append(Finding("op-beyond-half", name, 0, 0, *words, len(half.beyond)))
    return findings


def half_queues(
    files: Files,
    root: Path,
    geometry: StoreGeometry,
    queues: Queues,
    tables: ConfigTables,
) -> Iterator[HalfQueue]:
    """Yields the queues of half messages, with the offsets that op records settle in them.

    A queue is left out if its op records have no queue file.

    Args:
        files: Access to the store.
        root: The store directory.
        geometry: Lengths of its files.
        queues: The queues of the store.
        tables: Its config files, which have the offsets of the broker's own group in both topics.
    """
    done = {(at.topic, at.queue_id): at.offset for at in tables.offsets if at.group == TRANSACTION_GROUP}
    for (topic, queue_id), queue in queues.items():
        if topic != HALF_TOPIC:
            continue
        begin = max(queue.min_offset, done.get((HALF_TOPIC, queue_id), 0))
        settled, beyond = set[int](), set[int]()
        first_op = done.get((OP_TOPIC, queue_id), 0)
        ops = list_queue(files, QueueFiles(OP_TOPIC, queue_id, root / queue_directory(OP_TOPIC, queue_id)))
        known = queues.get((OP_TOPIC, queue_id))
        if not ops.sizes and known is not None and known.max_offset > first_op:
            continue  # no file leads to the op records: what they settle is not known
        for offset in _op_offsets(files, root, geometry, ops, first_op):
            if offset >= queue.max_offset:
                beyond.add(offset)
            elif offset >= begin:
                settled.add(offset)
        yield HalfQueue(queue_id, begin, queue.max_offset, frozenset(settled), frozenset(beyond))


def named_offsets(body: bytes | memoryview) -> list[int]:
    """Returns the half message offsets in the body of an op record; empty if it is no such body."""
    text = bytes(body).decode("ascii", "replace")
    return [int(offset) for offset in text.split(",") if offset] if _OFFSETS.fullmatch(text) else []


def _op_offsets(
    files: Files, root: Path, geometry: StoreGeometry, queue: QueueFiles, first_op: int
) -> Iterator[int]:
    """Yields the half message offsets in op records, from a queue offset on."""
    first_slot, units = read_units_left(files, queue, geometry.queue_file_size_bytes)
    units = units[max(0, first_op - first_slot) :]
    with closing(LogReader(files, root, geometry.segment_size_bytes)) as reader:
        for unit in units[is_message(units)]:
            try:
                message = decode_message(reader.read(int(unit["phy_offset"]), int(unit["size_bytes"])))
            except CorruptError:
                continue  # reported as a hole of the log, or as a unit that leads to no record
            yield from named_offsets(message.body)
