"""The findings about a store that has queues or tables in RocksDB, which seglog does not read.

A queue that RocketMQ keeps in RocksDB has no files, and that is no damage. If the store has queue files as
well, they are either complete (``rocksdbCQDoubleWriteEnable``), or LMQ queues alone are in RocksDB
(``combineCQUseRocksdbForLmq``), or they are those of a store of files that was given
``storeType=defaultRocksDB``: RocketMQ then leaves them as they are, and all of them end before the log does.

Source: ``RocksDBMessageStore.java``, ``CombineConsumeQueueStore.java``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from seglog.storage.directory import RocksKind, RocksPart, find_rocksdb, last_units
from seglog.storage.directory.rocksdb_faults import rocksdb_fault
from seglog.storage.files.files import Files
from seglog.storage.findings.code import ROCKSDB_QUEUES
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import LMQ_PREFIX, parse_segment_file_name
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES
from seglog.storage.overlay import BatchQueueState, QueueState, is_message
from seglog.storage.scan.listed import ListedStore
from seglog.storage.scan.queue_overlays import Overlays

_ROCKSDB_TABLES: Final = "rocksdb-tables"
_LACKING: Final = frozenset({"queue-due", "queue-missing", "queue-short"})
"""Codes of findings on queues of which files lack messages of the log."""
_NO_LENGTH: Final = "queue-length-unknown"
_NEVER: Final = (1 << 63) - 1
_TOPIC_AT: Final = 1
"""Place of the topic among the parts of the path of a queue's file."""


def with_rocksdb(
    store: ListedStore, findings: Sequence[Finding], queues: Overlays, files: Files
) -> list[Finding]:
    """Returns findings in which notes on RocksDB replace those about files that a store need not have.

    Args:
        store: The listing of the store.
        findings: The findings on its log and files.
        queues: Its queues; what is left out here is left out of their findings too.
        files: The file layer of the store.
    """
    tables = [part for part in store.rocksdb if part.kind is RocksKind.TABLES]
    notes = [Finding(_ROCKSDB_TABLES, part.name, found=part.holds) for part in tables]
    notes += damaged_rocksdb(store.rocksdb, files, store.root)
    if not store.rocksdb_queues:
        return [*findings, *notes]
    is_all = not store.has_queue_files or _are_left_behind(store, queues, files)
    lacking = [one for one in findings if one.code in _LACKING and (is_all or _is_of_lmq(one))]
    left_out = {*lacking, *(one for one in findings if one.code == _NO_LENGTH and not store.has_queue_files)}
    for state in queues.plain.values():
        state.findings = [one for one in state.findings if one not in left_out]
    for batch in queues.batch.values():
        batch.findings = [one for one in batch.findings if one not in left_out]
    count = sum(one.messages for one in lacking)
    notes += [Finding(ROCKSDB_QUEUES, part.name, messages=count) for part in store.rocksdb_queues]
    return [*(one for one in findings if one not in left_out), *notes]


def refusals(files: Files, root: Path) -> list[Finding]:
    """Returns the findings that refuse a repair of a store, for a command that does not check all of it."""
    parts = find_rocksdb(files, root)
    return [Finding(ROCKSDB_QUEUES, part.name) for part in parts if part.kind is RocksKind.QUEUES]


def damaged_rocksdb(parts: Iterable[RocksPart], files: Files, root: Path) -> Iterator[Finding]:
    """Yields a finding for each RocksDB that cannot be opened as it is.

    Args:
        parts: The parts of the store that are in RocksDB.
        files: The file layer of the store.
        root: The store directory.
    """
    for part in parts:
        file, wrong = rocksdb_fault(files, root, part.name)
        if file:
            yield Finding(
                "rocksdb-damaged", f"{part.name}/{file}", expected="as RocksDB wrote it", found=wrong
            )


def _is_of_lmq(finding: Finding) -> bool:
    return finding.file.split("/")[_TOPIC_AT].startswith(LMQ_PREFIX)


def _are_left_behind(store: ListedStore, queues: Overlays, files: Files) -> bool:
    """Returns whether all queue files end before the first message that a queue lacks."""
    lacking = [*map(_first_lacking, _own_queues(queues)), *map(_first_lacking, queues.batch.values())]
    with_files = (*store.queue_files.values(), *store.batch_files.values())
    held = [last_units(files, queue)["phy_offset"] for queue in with_files]
    newest = max((int(places.max()) for places in held if len(places)), default=-1)
    return newest < min(lacking, default=-1)


def _own_queues(queues: Overlays) -> Iterator[QueueState]:
    return (state for (topic, _queue_id), state in queues.plain.items() if not topic.startswith(LMQ_PREFIX))


def _first_lacking(state: QueueState | BatchQueueState) -> int:
    """Returns the physical offset of the first message that a queue's files lack; the highest if none."""
    places = [_place(state, finding) for finding in state.findings if finding.code in _LACKING]
    return min(places, default=_NEVER)


def _place(state: QueueState | BatchQueueState, finding: Finding) -> int:
    if isinstance(state, BatchQueueState):
        first, unit_bytes, is_led = state.first_index, BATCH_UNIT_BYTES, np.ones(len(state.units), np.bool_)
    else:
        first, unit_bytes, is_led = state.first_slot, CQ_UNIT_BYTES, is_message(state.units)
    start = parse_segment_file_name(finding.file.rpartition("/")[2])  # None for the folder of a queue
    at = 0 if start is None else (start + finding.position_bytes) // unit_bytes - first
    places = state.units["phy_offset"][at:][is_led[at:]]
    return int(places[0]) if len(places) else _NEVER
