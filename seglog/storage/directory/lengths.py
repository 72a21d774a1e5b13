"""How long the files of a store's log and queues are, from all evidence in the store.

That is: distances between names, lengths, what the contents state, what was written down when the files were
made (``seglog/lengths.conf``) or is set in a ``broker.conf`` of the store, and what the caller knows. In an
undamaged store names and lengths settle it and no file is opened. Where they do not, each file is asked;
where the answer is still open, the length is unknown, and nothing may be written to the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.errors import InvalidArgumentError
from seglog.storage.directory.broker_conf import BATCH_FILE, QUEUE_FILE, SEGMENT, stated_lengths
from seglog.storage.directory.file_facts import (
    PAGE_BYTES,
    Certainty,
    FileFacts,
    Inferred,
    infer_length,
    quick_length,
)
from seglog.storage.directory.geometry import (
    DEFAULT_SEGMENT_BYTES,
    MAX_SEGMENT_BYTES,
    MIN_SEGMENT_BYTES,
    NOTHING_KNOWN,
    FileSizes,
    StoreGeometry,
)
from seglog.storage.directory.log_facts import MOST_RECORD_BYTES, disproves, read_log_facts
from seglog.storage.directory.log_files import LogFile
from seglog.storage.directory.queue_files import QueueFiles, data_end
from seglog.storage.files.files import Files, read_part
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES, DEFAULT_QUEUE_FILE_BYTES
from seglog.storage.format.record.record import FILLER_BYTES, MIN_RECORD_BYTES

_LOG_RANGE: Final = (MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES)
_LAST_UNITS: Final = 64
"""So many at the end of a queue are asked for places after the end of the log's only file.

As many at its start are asked for places in that file.
"""
_WITNESSES: Final = 2
"""One unit alone may be damaged."""
_AnyUnits: TypeAlias = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Lengths:
    """What is known of the lengths of a store's files.

    Attributes:
        segment: Of the files of the log.
        queue: Of queue files.
        batch: Of batch-queue files.
        written: What was written down when they were made, or is set in a ``broker.conf``.
        are_queues_asked: Whether the length of the log's only file was held against what its queues know, or
            needs not be.
    """

    segment: Inferred
    queue: Inferred
    batch: Inferred
    written: FileSizes = NOTHING_KNOWN
    are_queues_asked: bool = True

    def geometry(self, given: FileSizes, root: Path) -> StoreGeometry:
        """Returns the lengths to go by: what is known, then what the caller gives, then RocketMQ's.

        Raises:
            InvalidArgumentError: The caller gives another length than the files prove.
        """
        sizes = given.over(self.written)
        segment = _chosen(self.segment, given.segment_bytes, SEGMENT, root, given.not_said)
        queue = _chosen(self.queue, given.queue_file_bytes, QUEUE_FILE, root, given.not_said)
        batch = _chosen(self.batch, given.batch_file_bytes, BATCH_FILE, root, given.not_said)
        segment_bytes = segment or _guess(self.segment, DEFAULT_SEGMENT_BYTES)
        # Who runs with RocketMQ's log files runs with its queue files.
        is_usual = segment == DEFAULT_SEGMENT_BYTES or self.segment.certainty is Certainty.NO_FILE
        is_queue_known = queue is not None or (self.queue.certainty is Certainty.NO_FILE and is_usual)
        return StoreGeometry(
            segment_bytes,
            queue or _guess(self.queue, DEFAULT_QUEUE_FILE_BYTES, CQ_UNIT_BYTES),
            batch or sizes.batch_file_bytes,
            is_segment_known=segment is not None or self.segment.certainty is Certainty.NO_FILE,
            is_queue_file_known=is_queue_known,
            is_assumed=_is_assumed(self.segment, given.segment_bytes, DEFAULT_SEGMENT_BYTES)
            or _is_assumed(self.queue, given.queue_file_bytes, DEFAULT_QUEUE_FILE_BYTES),
        )


def find_lengths(
    files: Files,
    root: Path,
    log_files: Sequence[LogFile],
    queues: Iterable[QueueFiles],
    batch_queues: Iterable[QueueFiles] = (),
    *,
    asks_queues: bool = True,
) -> Lengths:
    """Works out how long the files of a store are.

    Args:
        files: Where the store is.
        root: The store directory.
        log_files: The files of its log, in order.
        queues: Those of its queues.
        batch_queues: Those of its batch queues.
        asks_queues: Whether a log of one file is held against the last units of every queue. Who reads all
            units anyway need not open each queue for that: where every queue says what the log says, none
            knows of records behind its end.
    """
    written = stated_lengths(files, root)
    queues = list(queues)
    segment, are_asked = _segment(
        files, root, log_files, queues if asks_queues else None, written.segment_bytes
    )
    return Lengths(
        segment,
        _of_queues(files, queues, CQ_UNIT_BYTES, written.queue_file_bytes),
        _of_queues(files, list(batch_queues), BATCH_UNIT_BYTES, written.batch_file_bytes),
        written,
        are_asked,
    )


def _chosen(
    found: Inferred, given: int | None, name: str, root: Path, not_said: frozenset[str]
) -> int | None:
    if given is None:
        return found.size_bytes
    is_other = found.certainty is Certainty.PROVEN and found.size_bytes != given
    # A broker that is configured with the length that the only file has does start.
    is_of_file = found.is_by_queues and given == found.longest_bytes
    if is_other or (given < found.at_least_bytes and not is_of_file):
        has = found.size_bytes if is_other else f"at least {found.at_least_bytes}"
        why, advice = "", "give the length that the store was made with, or none"
        if name in not_said:
            why = " (RocketMQ's default, which the configuration does not change)"
            advice = f"give the configuration that the broker runs with: {name} is not in this one"
        raise InvalidArgumentError(
            f"{name}={given}{why}, but the files of {root} have {has} bytes", help=advice
        )
    return given


def _is_assumed(found: Inferred, given: int | None, default: int) -> bool:
    return given is None and found.certainty is Certainty.BY_SIZE and found.size_bytes != default


def _guess(found: Inferred, default: int, unit_bytes: int = 1) -> int:
    """Returns a length that loses nothing in a store that is only read."""
    if found.certainty is Certainty.NO_FILE:
        return default
    least = min(MAX_SEGMENT_BYTES, max(1, found.at_least_bytes, found.longest_bytes))
    if unit_bytes == 1:
        return min(MAX_SEGMENT_BYTES, max(MIN_SEGMENT_BYTES, 1 << (least - 1).bit_length()))
    return max(default, -(-least // unit_bytes) * unit_bytes)


def _segment(
    files: Files,
    root: Path,
    log_files: Sequence[LogFile],
    queues: Sequence[QueueFiles] | None,
    written: int | None,
) -> tuple[Inferred, bool]:
    """Returns the length of the log's files, and whether queues were asked that have to be."""
    named = [(file.first_offset, file.size_bytes) for file in log_files]
    size = quick_length(named, 1)
    if size is not None and MIN_SEGMENT_BYTES <= size <= MAX_SEGMENT_BYTES:
        return Inferred(size, Certainty.PROVEN), True
    if written is not None and len(named) == 1 and named[0][1] == written and named[0][0] % written == 0:
        return Inferred(written, Certainty.WRITTEN), True
    facts = [_believed(read_log_facts(files, root, file), file, log_files) for file in log_files]
    if facts and not any(fact.size_bytes for fact in facts):
        return _of_names([fact.first_offset for fact in facts], written), True
    is_open = len(facts) == 1 and facts[0].exact_bytes is None
    behind = _behind_sole_file(files, root, facts[0], queues) if is_open and queues is not None else []
    found = infer_length(
        [*facts, *behind],
        unit_bytes=1,
        range_bytes=_LOG_RANGE,
        known_bytes=written,
        sole_unit_bytes=PAGE_BYTES,
    )
    if behind and facts[0].needed_bytes <= facts[0].size_bytes:
        found = replace(found, is_by_queues=True)
    return found, queues is not None or not is_open


def _of_names(firsts: Sequence[int], written: int | None) -> Inferred:
    """Returns the length of files that are all empty: how far their names are from each other.

    Two files may have lain further apart than one length: one distance alone proves nothing.
    """
    gaps = [later - first for first, later in pairwise(sorted(firsts))]
    distance = min(gaps, default=0)
    least, most = _LOG_RANGE
    fits = least <= distance <= most and all(first % distance == 0 for first in firsts)
    if fits and gaps.count(distance) >= _WITNESSES:
        return Inferred(distance, Certainty.PROVEN)
    return Inferred(written, Certainty.UNKNOWN if written is None else Certainty.WRITTEN)


def _believed(fact: FileFacts, file: LogFile, log_files: Sequence[LogFile]) -> FileFacts:
    """Returns what a file says; nothing if that puts it where no file of the log can begin."""
    step = gcd(*(one.first_offset for one in log_files)) or PAGE_BYTES
    is_other = fact.first_offset != file.first_offset
    return FileFacts(file.first_offset, file.size_bytes) if is_other and fact.first_offset % step else fact


def _behind_sole_file(
    files: Files, root: Path, file: FileFacts, queues: Sequence[QueueFiles]
) -> list[FileFacts]:
    """Returns how long the only file of a log was at least, if queues know of records behind its end.

    A file that was full ends with a filler; without one the records behind it were in this file, not in a
    next one that is missing. A queue that is wrong about the file itself is one of another store.
    """
    limit = file.first_offset + MAX_SEGMENT_BYTES
    end = file.first_offset + file.size_bytes
    ends: list[int] = []
    for queue in queues:
        known = last_records(files, queue)
        known = known[(known[:, 0] >= file.first_offset) & (known[:, 0] < limit)]
        behind = known[known[:, 1] + FILLER_BYTES > end, 1].tolist()
        if behind:
            records = [*_first_records(files, queue).tolist(), *known.tolist()]
            ends += [] if disproves(files, root, file.first_offset, records) else behind
    if len(ends) < _WITNESSES:
        return []
    needed = sorted(ends)[-_WITNESSES] - file.first_offset + FILLER_BYTES
    return [FileFacts(file.first_offset, 0, needed_bytes=needed)]


def last_records(files: Files, queue: QueueFiles) -> npt.NDArray[np.int64]:
    """Returns where the records of the last units of a queue start and end: ``(n, 2)``, in no order."""
    return _records_of(last_units(files, queue))


def _first_records(files: Files, queue: QueueFiles) -> npt.NDArray[np.int64]:
    """Returns the same of the first units of its first file."""
    first, unit_bytes = min(queue.sizes), queue.layout.size_bytes
    try:
        handle = files.open(queue.directory / segment_file_name(first), writable=False)
    except OSError:
        return np.empty((0, 2), np.int64)
    with closing(handle):
        read = bytes(read_part(handle, 0, _LAST_UNITS * unit_bytes))
    return _records_of(np.frombuffer(read[: len(read) - len(read) % unit_bytes], queue.layout.dtype))


def _records_of(units: _AnyUnits) -> npt.NDArray[np.int64]:
    places, sizes = units["phy_offset"].astype(np.int64), units["size_bytes"].astype(np.int64)
    is_unit = (places >= 0) & (sizes >= MIN_RECORD_BYTES) & (sizes <= MOST_RECORD_BYTES)
    return np.stack([places, places + sizes], axis=1)[is_unit]


def last_units(files: Files, queue: QueueFiles) -> _AnyUnits:
    """Returns the last units of a queue that are not zeros, of its last file with any."""
    for first in sorted(queue.sizes, reverse=True):
        _start, units = _last_units(files, queue, first)
        if len(units):  # a file made ahead, or emptied, has none
            return units
    return np.empty(0, queue.layout.dtype)


def _last_units(files: Files, queue: QueueFiles, first_offset: int) -> tuple[int, _AnyUnits]:
    """Returns the last units of a queue file, and where in the file the first of them is."""
    unit_bytes = queue.layout.size_bytes
    try:
        handle = files.open(queue.directory / segment_file_name(first_offset), writable=False)
    except OSError:
        return 0, np.empty(0, queue.layout.dtype)
    with closing(handle):
        end = data_end(handle, unit_bytes)
        start = max(0, end - _LAST_UNITS * unit_bytes)
        buffer = bytearray(end - start)
        count = handle.read_into(memoryview(buffer), start)
    return start, np.frombuffer(bytes(buffer[: count - count % unit_bytes]), queue.layout.dtype)


def _of_queues(files: Files, queues: Sequence[QueueFiles], unit_bytes: int, written: int | None) -> Inferred:
    sizes = {size for queue in queues for size in queue.sizes.values()}
    if not any(sizes):
        return Inferred(written, Certainty.NO_FILE)
    rows = [sorted(queue.sizes) for queue in queues]
    if len(sizes) == 1:
        (size,) = sizes
        fits = size % unit_bytes == 0 and all(first % size == 0 for row in rows for first in row)
        if fits and (written in (None, size)):
            return Inferred(size, Certainty.PROVEN if sum(map(len, rows)) > 1 else Certainty.BY_SIZE)
    return infer_length(
        list(_queue_facts(files, queues)),
        unit_bytes=unit_bytes,
        range_bytes=(unit_bytes, MAX_SEGMENT_BYTES),
        known_bytes=written,
        sequences=rows,
    )


def _queue_facts(files: Files, queues: Sequence[QueueFiles]) -> Iterator[FileFacts]:
    for queue in queues:
        for first, size in queue.sizes.items():
            start, units = _last_units(files, queue, first)
            sizes = units["size_bytes"].astype(np.int64)
            is_unit = (units["phy_offset"].astype(np.int64) >= 0) & (sizes >= MIN_RECORD_BYTES)
            used = np.flatnonzero(is_unit & (sizes <= MOST_RECORD_BYTES))
            end = (int(used[-1]) + 1) * queue.layout.size_bytes if len(used) else 0
            yield FileFacts(first, size, needed_bytes=start + end if end else 0)
