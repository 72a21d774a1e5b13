"""Holds the key index against the log, whole: it can show damage that no checksum covers.

Without ``__CRC32#`` nothing covers a record's properties, so a flipped bit in a key passes every check of
the record; but the index has a hash of the key as it was. It is not believed over the log: what comes of this
is said, not done.

Reads the keys of every record, so it is for commands that look at everything, not for opening a store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.errors import CorruptError
from seglog.storage.commit_log import HoleMap
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.index import is_index_file_name
from seglog.storage.format.index_keys import IndexedRecord, indexes_tags
from seglog.storage.format.index_rows import key_rows
from seglog.storage.format.index_view import IndexView
from seglog.storage.format.names import COMMIT_LOG, INDEX, segment_file_name
from seglog.storage.format.tombstone import LOST
from seglog.storage.index_files import list_index_files, load_index_file
from seglog.storage.log_files import LogReader
from seglog.storage.log_records import iter_records
from seglog.storage.survey import Survey
from seglog.storage.unindexed import is_not_indexed_yet

_BATCH_RECORDS: Final = 4096
_LOST: Final = f"{LOST}\x01".encode()
_Ints = npt.NDArray[np.int64]
_KEY = np.dtype([("phy_offset", "i8"), ("hash", "i8")])
_Keys = npt.NDArray[np.void]


def cross_check(found: Survey, files: Files) -> list[Finding]:
    """Returns what the index says otherwise than the log.

    Args:
        found: The log, with its queues.
        files: Where the store is.
    """
    listed, damaged = list_index_files(files, found.root)
    views: list[IndexView] = []
    for file in listed:
        try:
            view = IndexView(load_index_file(files, file.path), file.geometry)
        except CorruptError:
            damaged.append(file.path)
        else:
            # RocketMQ makes a file for a key that it has.
            views.append(view) if view.header.index_count > 1 else damaged.append(file.path)
    findings = [Finding("index-damaged", f"{INDEX}/{path.name}") for path in sorted(damaged)]
    strays = [
        Finding("index-file-stray", f"{INDEX}/{entry.name}", size_bytes=entry.size_bytes)
        for entry in files.list_dir(found.root / INDEX)
        if not entry.is_dir and not is_index_file_name(entry.name)
    ]
    wanted, tombstones = _keys_of_log(found, files, views)
    if not len(wanted):
        return findings + strays
    if not views:
        log = found.min_phy_offset, found.max_phy_offset
        is_due = is_not_indexed_yet(files, found.root, found.mode, found.checkpoint, *log)
        code = "index-due" if is_due else "index-missing"
        return strays + (findings or [Finding(code, INDEX, messages=_records(wanted))])
    held = _keys_of_index(found, views)
    # The index may know a lost message by its keys, or by what stands in its place.
    wanted, held = (keys[~np.isin(keys["phy_offset"], tombstones)] for keys in (wanted, held))
    if found.mode != "normal" and len(held):
        # The index trails the log, and a crash leaves it there.
        wanted = wanted[wanted["phy_offset"] <= held["phy_offset"][-1]]
    missing, extra = np.setdiff1d(wanted, held), np.setdiff1d(held, wanted)
    return strays + findings + _compare(found, missing, extra)


def _compare(found: Survey, missing: _Keys, extra: _Keys) -> list[Finding]:
    findings: list[Finding] = []
    segment = found.geometry.segment_size_bytes
    changed = np.intersect1d(missing["phy_offset"], extra["phy_offset"])
    for phy_offset in changed.tolist():
        position = phy_offset % segment
        file = f"{COMMIT_LOG}/{segment_file_name(phy_offset - position)}"
        findings.append(
            Finding(
                "record-keys",
                file,
                position,
                expected="the keys that the index has of this record",
                found="others",
                messages=1,
            )
        )
    absent = missing[~np.isin(missing["phy_offset"], changed)]
    if len(absent):
        findings.append(
            Finding("index-short", INDEX, found=_places(absent["phy_offset"]), messages=_records(absent))
        )
    stray = extra[~np.isin(extra["phy_offset"], changed)]
    if len(stray):
        findings.append(Finding("index-entry-stray", INDEX, found=_places(stray["phy_offset"])))
    return findings


def _keys_of_log(found: Survey, files: Files, views: Sequence[IndexView]) -> tuple[_Keys, _Ints]:
    """Returns place and key hash of all keys of all records, sorted, each once; and where tombstones lie."""
    reader = LogReader(files, found.root, found.geometry.segment_size_bytes)
    parts, tombstones = [np.empty(0, _KEY)], []
    try:
        told = (_tell_tags(views, batch) for batch in _batches(found, reader))
        tags = next((answer for answer in told if answer is not None), True)
        for batch in _batches(found, reader):
            rows = key_rows(batch, tags=tags)
            parts.append(_keys(rows["phy_offset"], rows["key_hash"]))
            tombstones += [record.phy_offset for record in batch if _LOST in record.properties]
    finally:
        reader.close()
    return np.unique(np.concatenate(parts)), np.array(tombstones, np.int64)


def _batches(found: Survey, reader: LogReader) -> Iterator[list[IndexedRecord]]:
    segment = found.geometry.segment_size_bytes
    start, end = max(0, found.min_phy_offset), found.scan.end_phy_offset
    records = iter_records(reader, segment, start, end, found.holes)
    while batch := [record for record, _end in islice(records, _BATCH_RECORDS)]:
        yield batch


def _tell_tags(views: Sequence[IndexView], batch: list[IndexedRecord]) -> bool | None:
    return next((told for view in views if (told := indexes_tags(view, batch)) is not None), None)


def _keys_of_index(found: Survey, views: Sequence[IndexView]) -> _Keys:
    """Returns place and key hash of all entries about what the log still has, sorted, each once."""
    parts = [np.empty(0, _KEY)]
    for view in views:
        entries = view.entries_in_use
        parts.append(_keys(entries["phy_offset"], entries["key_hash"]))
    keys = np.unique(np.concatenate(parts))
    phy_offsets = keys["phy_offset"]
    return keys[(phy_offsets >= found.min_phy_offset) & ~HoleMap(found.holes).covers_each(phy_offsets)]


def _keys(phy_offsets: npt.NDArray[np.generic], hashes: npt.NDArray[np.generic]) -> _Keys:
    keys = np.empty(len(phy_offsets), _KEY)
    keys["phy_offset"], keys["hash"] = phy_offsets, hashes
    return keys


def _records(keys: _Keys) -> int:
    return len(np.unique(keys["phy_offset"]))


def _places(phy_offsets: npt.NDArray[np.int64]) -> str:
    first, last = int(phy_offsets.min()), int(phy_offsets.max())
    return f"at {first}" if first == last else f"from {first} to {last}"
