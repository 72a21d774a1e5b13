"""What is wrong with the derived files of a store: checkpoint, config files and key index.

None of them is needed to open it, but they can show damage that no checksum covers: a checkpoint newer than
every record tells that records are gone, and an index that was given other keys than a record has now tells
that bits of the record's properties were flipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Final

from seglog.errors import CorruptError
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.checkpoint import CHECKPOINT_FILE_BYTES, Checkpoint
from seglog.storage.format.config_json import decode_config
from seglog.storage.format.index import is_index_file_name, key_hash
from seglog.storage.format.index_keys import IndexedRecord, record_keys
from seglog.storage.format.index_view import IndexView
from seglog.storage.format.names import CHECKPOINT_FILE, CONFIG, INDEX
from seglog.storage.holes_file import TOMBSTONES, load_holes
from seglog.storage.index_files import IndexFile, list_index_files, load_index_file
from seglog.storage.kernels.walk import Rows
from seglog.storage.log_files import LogReader
from seglog.storage.log_records import iter_records
from seglog.storage.log_scan import Hole

_STALE_MS: Final = 3_600_000
"""A writer brings the checkpoint up every second; what is older by this much was left by no crash."""


def checkpoint_findings(
    files: Files, root: Path, checkpoint: Checkpoint, rows: Rows, mode: str
) -> list[Finding]:
    """Returns what is not as it should be about a checkpoint.

    Args:
        files: Where the store is.
        root: The store directory.
        checkpoint: What it said before the log was walked: a writer may be at work.
        rows: The log's records.
        mode: ``normal`` or ``abnormal``.
    """
    if not len(rows):
        return []
    sizes = [entry.size_bytes for entry in files.list_dir(root) if entry.name == CHECKPOINT_FILE]
    if not sizes:
        return [Finding("checkpoint-missing", CHECKPOINT_FILE)]
    if sizes[0] != CHECKPOINT_FILE_BYTES:
        return [Finding("checkpoint-size", CHECKPOINT_FILE, 0, 0, str(CHECKPOINT_FILE_BYTES), str(sizes[0]))]
    newest_ms, last_ms = int(rows["store_timestamp_ms"].max()), int(rows["store_timestamp_ms"][-1])
    latest_ms = max(
        checkpoint.physic_timestamp_ms, checkpoint.logics_timestamp_ms, checkpoint.index_timestamp_ms
    )
    found: list[Finding] = []
    if latest_ms > newest_ms or min(astuple(checkpoint)) < 0:
        found.append(
            Finding("checkpoint-ahead", CHECKPOINT_FILE, 0, 0, f"times up to {newest_ms}", str(latest_ms))
        )
    elif checkpoint.confirm_phy_offset > int(rows["phy_offset"][-1]):
        expected = f"a record up to {int(rows['phy_offset'][-1])}"
        found.append(
            Finding("checkpoint-ahead", CHECKPOINT_FILE, 0, 0, expected, str(checkpoint.confirm_phy_offset))
        )
    elif latest_ms < last_ms - _STALE_MS and (latest_ms > 0 or mode == "normal"):
        found.append(
            Finding("checkpoint-stale", CHECKPOINT_FILE, 0, 0, f"a time near {last_ms}", str(latest_ms))
        )
    return found


def config_findings(files: Files, root: Path) -> list[Finding]:
    """Returns the config files that are no JSON."""
    found: list[Finding] = []
    for entry in files.list_dir(root / CONFIG):
        if entry.is_dir or not entry.name.endswith((".json", ".json.bak")):
            continue
        data = files.read_file(root / CONFIG / entry.name)
        try:
            decode_config(data)
        except CorruptError as error:
            name = f"{CONFIG}/{entry.name}"
            found.append(
                Finding(
                    "config-damaged",
                    name,
                    error.position_bytes,
                    len(data),
                    str(error.expected),
                    str(error.found)[:80],
                )
            )
    return found


def index_findings(
    files: Files, root: Path, segment_size_bytes: int, log: tuple[int, int], holes: Sequence[Hole]
) -> list[Finding]:
    """Returns what is not as it should be about the key index; reads all of it and all records.

    Args:
        files: Where the store is.
        root: The store directory.
        segment_size_bytes: Length of the log's files.
        log: Where the log starts and ends.
        holes: Its unreadable stretches.
    """
    known, damaged = list_index_files(files, root)
    found = [Finding("index-damaged", f"{INDEX}/{path.name}") for path in damaged]
    found += [
        Finding("index-file-stray", f"{INDEX}/{entry.name}", size_bytes=entry.size_bytes)
        for entry in files.list_dir(root / INDEX)
        if not entry.is_dir and not is_index_file_name(entry.name)
    ]
    reader = LogReader(files, root, segment_size_bytes)
    start, end = log
    try:
        records = list(iter_records(reader, segment_size_bytes, start, end, holes))
    finally:
        reader.close()
    has_keys = any(_keys(record, tags=False) for record, _end in records)
    if has_keys and not known and not damaged:
        found.append(Finding("index-missing", INDEX))
    # What tombstones stand in for had keys that they have not.
    lost = [(hole.phy_offset, hole.end) for hole in holes]
    lost += [(known.phy_offset, known.end) for known in load_holes(files, root) if known.why == TOMBSTONES]
    wanted = {record.phy_offset: record for record, _end in records if not _lies_in(record.phy_offset, lost)}
    for file in known:
        found += _compare(files, file, wanted, log, lost)
    return found


def _lies_in(phy_offset: int, stretches: Sequence[tuple[int, int]]) -> bool:
    return any(start <= phy_offset < end for start, end in stretches)


def _compare(
    files: Files,
    file: IndexFile,
    records: dict[int, IndexedRecord],
    log: tuple[int, int],
    lost: Sequence[tuple[int, int]],
) -> Iterator[Finding]:
    name = f"{INDEX}/{file.path.name}"
    try:
        entries = IndexView(load_index_file(files, file.path), file.geometry).entries_in_use
    except CorruptError as error:
        yield Finding("index-damaged", name, 0, 0, str(error.expected), str(error.found))
        return
    says = (file.header.begin_phy_offset, file.header.end_phy_offset)
    has = (int(entries["phy_offset"][0]), int(entries["phy_offset"][-1])) if len(entries) else (0, 0)
    if says != has:
        yield Finding("index-damaged", name, 0, 0, f"a header that says {has}", f"{says}")
        return
    given: dict[int, set[int]] = {}
    for hashed, phy_offset in zip(entries["key_hash"].tolist(), entries["phy_offset"].tolist(), strict=True):
        given.setdefault(phy_offset, set()).add(hashed)
    start, end = log
    stray = [
        phy_offset
        for phy_offset in given
        if start <= phy_offset and phy_offset not in records and not _lies_in(phy_offset, lost)
    ]
    if stray:
        yield Finding(
            "index-stray",
            name,
            expected=f"places of records up to {end}",
            found=f"{min(stray)}..{max(stray)}",
            messages=len(stray),
        )
    # The records at both ends may have the rest of their keys in the files beside.
    whole = [phy_offset for phy_offset in given if phy_offset in records][1:-1]
    for phy_offset in whole:
        record = records[phy_offset]
        may_have = {key_hash(key) for key in _keys(record, tags=True)}
        must_have = {key_hash(key) for key in _keys(record, tags=False)}
        if given[phy_offset] - may_have or must_have - given[phy_offset]:
            yield Finding(
                "record-keys",
                name,
                expected=f"the keys of the record at {phy_offset}",
                found="others",
                messages=1,
            )
    inside = [
        phy_offset
        for phy_offset, record in records.items()
        if file.header.begin_phy_offset <= phy_offset <= file.header.end_phy_offset
        and phy_offset not in given
        and _keys(record, tags=False)
    ]
    if inside:
        yield Finding(
            "index-short",
            name,
            expected="the keys of all records between its first and its last",
            found=f"none of the record at {inside[0]}",
            messages=len(inside),
        )


def _keys(record: IndexedRecord, *, tags: bool) -> list[str]:
    return record_keys(record.topic, record.properties, record.sys_flag, tags=tags)
