"""Decides which index files of a store are kept, and where the index continues.

A file is kept if its header is consistent, its entries end at a record of the log, and it follows the file
before it. In the newest file, the entries of that last record are compared with the record's keys: the log
decides where the index continues, and a recovery point that is further is not believed. After a crash the
newest file is also checked entry by entry, because its pages reached the disk in any order. If a file is not
kept, all later files are removed with it, and their records are indexed again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice, takewhile
from pathlib import Path

import numpy as np

from seglog.clock import Clock
from seglog.storage.directory.index_files import IndexFile, Numbers, is_begun, last_hashes, list_index_files
from seglog.storage.directory.log_files import LogReader
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.index import DEFAULT_INDEX_GEOMETRY, MAX_TIMESTAMP_MS, IndexGeometry, key_hash
from seglog.storage.format.index.index_keys import (
    OF_TOMBSTONES,
    IndexedRecord,
    record_keys,
    tag_key,
    telling_tag,
)
from seglog.storage.format.names import INDEX
from seglog.storage.format.record.properties import find_property
from seglog.storage.index.attic_index import keep_removed
from seglog.storage.index.index_lookup import iter_places
from seglog.storage.index.key_index import KeyIndex
from seglog.storage.index_check.index_chains import chain_finding
from seglog.storage.kernels.walk import iter_resync
from seglog.storage.segments.mapped_file import MapPool
from seglog.storage.survey.store_survey import Survey
from seglog.storage.walk.behind_damage import Hole
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
    """Returns the index of a store, ready to follow the log, and the findings about its files.

    Args:
        files: The file layer of the store.
        root: The store directory; the caller holds its lock.
        pool: Bounds the number of maps.
        clock: Gives the names of new files.
        found: The survey, None for a new store.
        segment_size_bytes: Length of the log's files.
        ends: Returns the end of the log, and the end of the last record that may have keys.
        geometry: Slots and entries of new files if no file is kept; None makes no files.
        keeps_removed: Whether removed files are moved to the attic.
    """
    kept, listed = _kept(files, root, found)
    tags, resume = True, (0, 0)
    if found is not None:
        tags = _indexes_tags(files, found, kept)
        while (known := _resume(files, found, kept, tags=tags)) is None:
            kept.pop()
            tags = _indexes_tags(files, found, kept)
        resume = known
    removed = listed[len(kept) :]
    is_due = bool(removed) and found is not None and found.mode == "abnormal" and is_begun(files, removed[-1])
    gone = removed
    if keeps_removed and found is not None:
        telling = removed[:-1] if is_due else removed  # a file without an entry is evidence of nothing
        gone = removed[len(telling) :]
        if telling:
            keep_removed(files, root, telling, partial(_is_whole, files), partial(_has_record, files, found))
    for path in gone:
        files.remove(path)
    if removed:
        # A removed file that a power failure brings back could fit the log later, when other records are at
        # its places.
        files.sync_dir(root / INDEX)
    newest = kept[-1] if kept else None
    lacks = None
    if newest is None and geometry is None:
        lacks = found is not None and _has_keys(files, found, 0, found.max_phy_offset)
    index = KeyIndex(
        files,
        root,
        pool,
        clock,
        newest.geometry if newest is not None else geometry or DEFAULT_INDEX_GEOMETRY,
        newest,
        resume,
        tags=tags,
        lacks=lacks,
        ends=ends,
        segment_size_bytes=segment_size_bytes,
        holes=() if found is None else tuple(found.holes),
    )
    findings = [
        Finding("index-due" if is_due and path == removed[-1] else "index-damaged", f"{INDEX}/{path.name}")
        for path in removed
    ]
    if lacks:
        findings.append(Finding("index-missing", INDEX, expected="files that show how they are divided"))
    return index, findings


def _kept(files: Files, root: Path, found: Survey | None) -> tuple[list[IndexFile], list[Path]]:
    """Returns the files that may be kept, and the paths of all files."""
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
    return kept, paths


def _starts_late(files: Files, found: Survey, first: IndexFile) -> bool:
    """Returns whether the log has keys before those of the first file: then older index files were lost."""
    return _has_keys(files, found, 0, min(first.header.begin_phy_offset, found.max_phy_offset))


def _has_keys(files: Files, found: Survey, start: int, end: int, behind: int = -1) -> bool:
    """Returns whether the first records of a stretch of the log have keys; those behind a place only."""
    return any(
        record_keys(record.topic, record.properties, record.sys_flag, tags=False)
        for record in _first_records(files, found, start, end)
        if record.phy_offset > behind
    )


def _first_records(files: Files, found: Survey, start: int, end: int) -> list[IndexedRecord]:
    if found.walked_from:
        start = max(0, found.min_phy_offset, start)
        return list(islice(_between(files, found, start, end), _SAMPLE_FIRST))
    first = place_of(found.rows, start)
    return _records(files, found, first, min(place_of(found.rows, end), first + _SAMPLE_FIRST))


def _is_far_behind(files: Files, found: Survey, before: IndexFile, file: IndexFile) -> bool:
    """Returns whether the log has keys between two files of the index: then files between them were lost."""
    start, end = before.header.end_phy_offset, min(file.header.begin_phy_offset, found.max_phy_offset)
    # The last record of a file may have no further key.
    return end > max(start, found.min_phy_offset) and _has_keys(files, found, start, end, behind=start)


def _fits(files: Files, found: Survey, file: IndexFile, before: list[IndexFile]) -> bool:
    if before and (not before[-1].is_full or file.geometry != before[-1].geometry):
        return False
    end = file.header.end_phy_offset
    if file.header.index_count <= 1:
        return False  # RocketMQ creates a file only for a key; the slots of a file without one are undefined
    if before and file.header.begin_phy_offset < before[-1].header.end_phy_offset:
        return False
    if before and _is_far_behind(files, found, before[-1], file):
        return False
    return end < found.min_phy_offset or _is_record(files, found, end)


def _is_record(files: Files, found: Survey, phy_offset: int) -> bool:
    if phy_offset < found.walked_from:
        return next(_between(files, found, phy_offset, found.walked_from), None) is not None
    at = place_of(found.rows, phy_offset)
    return at < len(found.rows) and int(found.rows["phy_offset"][at]) == phy_offset


def _has_record(files: Files, found: Survey, places: Numbers) -> bool:
    """Returns whether a record starts at any of the places."""
    starts = found.rows["phy_offset"]
    walked = places[(places >= found.walked_from) & (places < found.max_phy_offset)]
    if np.isin(walked, starts, assume_unique=True).any():
        return True
    below = places[(places >= found.min_phy_offset) & (places < found.walked_from)]
    return any(_is_record(files, found, place) for place in below[:_SAMPLE_FIRST].tolist())


def _is_whole(files: Files, file: IndexFile) -> bool:
    """Returns whether header, slots and chains of a file are consistent."""
    count = file.header.index_count
    return 1 <= count <= file.geometry.entry_count and chain_finding(files, file, is_closed=True) is None


def _resume(files: Files, found: Survey, kept: list[IndexFile], *, tags: bool) -> tuple[int, int] | None:
    """Returns the record to continue with, and how many of its keys are indexed already.

    Returns:
        None if the newest file lacks entries of its last record that it must have.
    """
    start = max(0, found.min_phy_offset)
    end = kept[-1].header.end_phy_offset if kept else -1
    count = 0
    if kept and end >= start:
        known = _known_keys(files, found, kept, tags=tags)
        if known is None:
            return None
        count, is_all = known
        if not is_all:
            return end, count
    point = found.point
    if point is not None and end == point.index_end_phy_offset and point.indexed_phy_offset > end:
        return max(start, point.indexed_phy_offset), 0  # no record between the two has a key
    return (end, count) if end >= start else (start, 0)


def _known_keys(files: Files, found: Survey, kept: list[IndexFile], *, tags: bool) -> tuple[int, bool] | None:
    """Returns how many keys of its last record an index has, and whether these are all of them.

    Entries that differ from the keys, but are as many, are accepted: a key in a record without record CRC may
    be damaged, and then the index proves the right key.

    Returns:
        None if the entries are not the first keys of the record: one of them is damaged.
    """
    end = kept[-1].header.end_phy_offset
    entries = last_hashes(files, kept, end)
    record = next(_between(files, found, end, found.max_phy_offset), None)
    keys = [] if record is None else record_keys(record.topic, record.properties, record.sys_flag, tags=tags)
    if record is None or not keys or find_property(record.properties, OF_TOMBSTONES) is not None:
        return len(entries), True  # a tombstone does not have the keys of the record that it replaces
    hashes = [key_hash(key) for key in keys]
    count = 0
    for entry in entries:
        if count < len(hashes) and entry == hashes[count]:
            count += 1
        elif entry == hashes[0]:
            count = 1  # RocketMQ indexes the last record again when it starts
        else:
            return (len(keys), True) if len(entries) == len(keys) else None
    return count, count == len(keys)


def _indexes_tags(files: Files, found: Survey, kept: list[IndexFile]) -> bool:
    """Returns whether the newest file has entries for tags; True if its last records do not show it."""
    if not kept:
        return True
    file = kept[-1]
    last = place_of(found.rows, file.header.end_phy_offset + 1)
    first = max(place_of(found.rows, file.header.begin_phy_offset), last - _SAMPLE_RECORDS)
    if first == 0 and found.walked_from:
        log = max(file.header.begin_phy_offset, found.min_phy_offset), found.max_phy_offset
        records = _newest_below(files, found.root, found.geometry.segment_size_bytes, log, file, found.holes)
    else:
        records = _records(files, found, first, last)
    return _told_of_tags(files, file, records)


def indexes_tags(files: Files, root: Path, segment_bytes: int, log: tuple[int, int], file: IndexFile) -> bool:
    """Returns whether an index file has entries for tags; new entries of its index follow the same rule.

    Args:
        files: The file layer of the store.
        root: The store directory; its log has no hole in the stretch.
        segment_bytes: Length of the log's files.
        log: Beginning and end of the log.
        file: The newest file.
    """
    begin = max(file.header.begin_phy_offset, log[0])
    return _told_of_tags(files, file, _newest_below(files, root, segment_bytes, (begin, log[1]), file))


def _told_of_tags(files: Files, file: IndexFile, records: list[IndexedRecord]) -> bool:
    for record in reversed(records[:-1] or records):
        tag = telling_tag(record)
        if tag is None:
            continue
        hashed = key_hash(tag_key(record.topic, tag))
        for place in iter_places(files, file, hashed, 0, MAX_TIMESTAMP_MS):
            if place <= record.phy_offset:
                return place == record.phy_offset
        return False
    return True


def _newest_below(
    files: Files,
    root: Path,
    segment: int,
    log: tuple[int, int],
    file: IndexFile,
    holes: Sequence[Hole] = (),
) -> list[IndexedRecord]:
    """Returns the last records of a stretch of the log that an index file can have entries for."""
    end = file.header.end_phy_offset
    start = max(log[0], end - _SAMPLE_BYTES)
    with closing(LogReader(files, root, segment)) as reader:
        window = reader.read(start, min(_SAMPLE_BYTES, segment - start % segment))
        proven = start + next(iter_resync(window, start, 0), segment - start % segment)
        following = (record for record, _end in iter_records(reader, segment, proven, log[1], holes))
        return list(deque(takewhile(lambda record: record.phy_offset <= end, following), _SAMPLE_RECORDS))


def _between(files: Files, found: Survey, start: int, end: int) -> Iterator[IndexedRecord]:
    """Yields the records of a stretch of the log; the stretch starts at a record."""
    segment = found.geometry.segment_size_bytes
    with closing(LogReader(files, found.root, segment)) as reader:
        for record, _end in iter_records(reader, segment, start, end, found.holes):
            yield record


def _records(files: Files, found: Survey, first: int, last: int) -> list[IndexedRecord]:
    """Returns the records of the survey's rows ``first`` to ``last``, without the last one."""
    rows = found.rows[first:last]
    if not len(rows):
        return []
    start, end = int(rows["phy_offset"][0]), int(rows["phy_offset"][-1]) + int(rows["size_bytes"][-1])
    segment = found.geometry.segment_size_bytes
    with closing(LogReader(files, found.root, segment)) as reader:
        return [record for record, _end in iter_records(reader, segment, start, end, found.holes)]
