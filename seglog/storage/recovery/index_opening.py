"""Decides which index files of a store can stay, and where the index continues.

A file stays if it explains itself, its entries end where the log has a record, and it follows the one
before. After a crash the newest file is also checked entry by entry, since its pages reached the disk in
any order. The first file that does not stay takes all later ones with it; what they held is indexed again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import islice, takewhile
from pathlib import Path

import numpy as np

from seglog.clock import Clock
from seglog.storage.directory.index_files import IndexFile, Numbers, count_last, list_index_files
from seglog.storage.directory.log_files import LogReader
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.index import DEFAULT_INDEX_GEOMETRY, MAX_TIMESTAMP_MS, IndexGeometry, key_hash
from seglog.storage.format.index.index_keys import IndexedRecord, record_keys, tag_key, telling_tag
from seglog.storage.format.names import INDEX
from seglog.storage.index.attic_index import keep_removed
from seglog.storage.index.index_lookup import iter_places
from seglog.storage.index.key_index import KeyIndex
from seglog.storage.index_check.index_chains import chain_finding
from seglog.storage.kernels.walk import iter_resync
from seglog.storage.segments.mapped_file import MapPool
from seglog.storage.survey.store_survey import Survey
from seglog.storage.walk.growable_rows import place_of
from seglog.storage.walk.log_records import iter_records

_SAMPLE_FIRST = 1024
_SAMPLE_RECORDS = 64
_SAMPLE_BYTES = 256 << 10


def open_key_index(
    files: Files,
    root: Path,
    pool: MapPool,
    clock: Clock,
    found: Survey | None,
    segment_size_bytes: int,
    ends: Callable[[], tuple[int, int]],
    geometry: IndexGeometry | None = None,
    *,
    keeps_removed: bool = False,
) -> tuple[KeyIndex, list[Finding]]:
    """Returns the index of a store, ready to follow the log, and what was wrong with it.

    Args:
        files: Where the store is.
        root: The store directory; the caller holds its lock.
        pool: Bounds what is mapped.
        clock: Names new files.
        found: The survey, None for a new store.
        segment_size_bytes: Length of the log's files.
        ends: Returns how far the log is written, and where the last record ends that may have keys.
        geometry: Division of the files of a store that has none yet; RocketMQ's default if None.
        keeps_removed: Whether files that do not stay go to the attic.
    """
    kept, removed = _kept(files, root, found)
    if keeps_removed and removed and found is not None:
        keep_removed(files, root, removed, partial(_is_whole, files), partial(_has_record, files, found))
    else:
        for path in removed:
            files.remove(path)
    if removed:
        # One that came back after a power cut could fit the log again: other records lie in its places then.
        files.sync_dir(root / INDEX)
    newest = kept[-1] if kept else None
    tags = True
    if newest is not None and found is not None:
        told = _indexes_tags(files, found, newest)
        tags = True if told is None else told
    index = KeyIndex(
        files,
        root,
        pool,
        clock,
        newest.geometry if newest is not None else geometry or DEFAULT_INDEX_GEOMETRY,
        newest,
        _resume(files, found, kept),
        tags=tags,
        ends=ends,
        segment_size_bytes=segment_size_bytes,
        holes=() if found is None else tuple(found.holes),
    )
    return index, [Finding("index-damaged", f"{INDEX}/{path.name}") for path in removed]


def _kept(files: Files, root: Path, found: Survey | None) -> tuple[list[IndexFile], list[Path]]:
    """Returns the files that stay, and those that do not."""
    known, damaged = list_index_files(files, root)
    paths = sorted([file.path for file in known] + damaged)
    if known and found is not None and _starts_late(files, found, known[0]):
        return [], paths
    kept: list[IndexFile] = []
    for file in known:
        if found is None or paths[len(kept)] != file.path or not _fits(files, found, file, kept):
            break
        kept.append(file)
    if kept and found is not None and found.mode == "abnormal" and not _is_whole(files, kept[-1]):
        kept.pop()
    return kept, paths[len(kept) :]


def _starts_late(files: Files, found: Survey, first: IndexFile) -> bool:
    """Returns whether the log has keys before those of the first file: older files were lost."""
    if found.walked_from:
        end = min(first.header.begin_phy_offset, found.max_phy_offset)
        oldest = list(islice(_between(files, found, max(0, found.min_phy_offset), end), _SAMPLE_FIRST))
    else:
        before = place_of(found.rows, first.header.begin_phy_offset)
        oldest = _records(files, found, 0, min(before, _SAMPLE_FIRST))
    return any(record_keys(record.topic, record.properties, record.sys_flag, tags=False) for record in oldest)


def _fits(files: Files, found: Survey, file: IndexFile, before: list[IndexFile]) -> bool:
    if before and (not before[-1].is_full or file.geometry != before[-1].geometry):
        return False
    end = file.header.end_phy_offset
    if file.header.index_count <= 1:
        return False  # RocketMQ makes a file for a key that it has; without any, its slots may be anything
    if before and file.header.begin_phy_offset < before[-1].header.end_phy_offset:
        return False
    return end < found.min_phy_offset or _is_record(files, found, end)


def _is_record(files: Files, found: Survey, phy_offset: int) -> bool:
    if phy_offset < found.walked_from:
        return next(_between(files, found, phy_offset, found.walked_from), None) is not None
    at = place_of(found.rows, phy_offset)
    return at < len(found.rows) and int(found.rows["phy_offset"][at]) == phy_offset


def _has_record(files: Files, found: Survey, places: Numbers) -> bool:
    """Returns whether a record starts at any of some places."""
    starts = found.rows["phy_offset"]
    walked = places[(places >= found.walked_from) & (places < found.max_phy_offset)]
    if np.isin(walked, starts, assume_unique=True).any():
        return True
    below = places[(places >= found.min_phy_offset) & (places < found.walked_from)]
    return any(_is_record(files, found, place) for place in below[:_SAMPLE_FIRST].tolist())


def _is_whole(files: Files, file: IndexFile) -> bool:
    """Returns whether header, slots and chains of a file are as they must be."""
    count = file.header.index_count
    return 1 <= count <= file.geometry.entry_count and chain_finding(files, file, is_closed=True) is None


def _resume(files: Files, found: Survey | None, kept: list[IndexFile]) -> tuple[int, int]:
    """Returns the record to continue with and how many of its keys are in already."""
    start = 0 if found is None else max(0, found.min_phy_offset)
    point = None if found is None else found.point
    known_end = kept[-1].header.end_phy_offset if kept else -1
    if point is not None and known_end == point.index_end_phy_offset and point.indexed_phy_offset > known_end:
        return max(start, point.indexed_phy_offset), 0  # behind its last record came none with a key
    if not kept or kept[-1].header.end_phy_offset < start:
        return start, 0
    end = kept[-1].header.end_phy_offset
    count = 0
    for file in reversed(kept):
        own = count_last(files, file, end)
        count += own
        if own < file.header.index_count - 1:
            break
    return end, count


def _indexes_tags(files: Files, found: Survey, file: IndexFile) -> bool | None:
    """Returns whether the newest file has entries for tags, None if its last records do not show it."""
    last = place_of(found.rows, file.header.end_phy_offset + 1)
    first = max(place_of(found.rows, file.header.begin_phy_offset), last - _SAMPLE_RECORDS)
    if first == 0 and found.walked_from:
        records = _newest_below(files, found, file)
    else:
        records = _records(files, found, first, last)
    for record in reversed(records[:-1] or records):
        tag = telling_tag(record)
        if tag is None:
            continue
        hashed = key_hash(tag_key(record.topic, tag))
        for place in iter_places(files, file, hashed, 0, MAX_TIMESTAMP_MS):
            if place <= record.phy_offset:
                return place == record.phy_offset
        return False
    return None


def _newest_below(files: Files, found: Survey, file: IndexFile) -> list[IndexedRecord]:
    """Returns the last records that an index file can know, where the rows of a survey begin too late."""
    begin, end = max(file.header.begin_phy_offset, found.min_phy_offset), file.header.end_phy_offset
    segment = found.geometry.segment_size_bytes
    start = max(begin, end - _SAMPLE_BYTES)
    with closing(LogReader(files, found.root, segment)) as reader:
        window = reader.read(start, min(_SAMPLE_BYTES, segment - start % segment))
    proven = start + next(iter_resync(window, start, 0), segment - start % segment)
    following = _between(files, found, proven, found.max_phy_offset)
    return list(deque(takewhile(lambda record: record.phy_offset <= end, following), _SAMPLE_RECORDS))


def _between(files: Files, found: Survey, start: int, end: int) -> Iterator[IndexedRecord]:
    """Yields the records of a stretch of the log that starts with one."""
    segment = found.geometry.segment_size_bytes
    with closing(LogReader(files, found.root, segment)) as reader:
        for record, _end in iter_records(reader, segment, start, end, found.holes):
            yield record


def _records(files: Files, found: Survey, first: int, last: int) -> list[IndexedRecord]:
    """Returns the records of the survey's rows ``first`` to ``last``, the latter not included."""
    rows = found.rows[first:last]
    if not len(rows):
        return []
    start, end = int(rows["phy_offset"][0]), int(rows["phy_offset"][-1]) + int(rows["size_bytes"][-1])
    segment = found.geometry.segment_size_bytes
    with closing(LogReader(files, found.root, segment)) as reader:
        return [record for record, _end in iter_records(reader, segment, start, end, found.holes)]
