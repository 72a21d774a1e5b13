"""What is wrong about the index, once the log was walked."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

import numpy as np

from seglog.storage.directory import IndexFile, LogReader
from seglog.storage.files.files import Files, read_part
from seglog.storage.findings.findings import Finding
from seglog.storage.format.index.index import INDEX_ENTRY, INDEX_HEADER
from seglog.storage.format.layout import I32
from seglog.storage.format.names import COMMIT_LOG, INDEX, segment_file_name
from seglog.storage.index.index_times import store_ms_at
from seglog.storage.index.unindexed import is_not_indexed_yet
from seglog.storage.index_check.index_coverage import EVERYWHERE, IndexFacts
from seglog.storage.index_check.index_entries import IndexEntries
from seglog.storage.index_check.key_check import KeyDiff, Places
from seglog.storage.kernels.index_entries import seconds_since
from seglog.storage.scan.listed import ListedStore


def index_findings(
    store: ListedStore,
    files: Files,
    facts: IndexFacts,
    of_chains: Iterable[Finding],
    diff: KeyDiff,
    log: tuple[int, int],
) -> list[Finding]:
    """Returns what is wrong about the index.

    Args:
        store: The store.
        files: Where it is.
        facts: Its index.
        of_chains: What is wrong with the chains of the files of that.
        diff: How it differs from the log, all of it.
        log: Where that starts and ends.
    """
    findings = [*facts.findings, *of_chains]
    if not facts.entry_count:
        is_damaged = any(finding.code == "index-damaged" for finding in findings)
        if diff.absent.count and not is_damaged:
            is_due = is_not_indexed_yet(files, store.root, store.mode, store.checkpoint, *log)
            code = "index-due" if is_due else "index-missing"
            begun = [finding for finding in findings if finding.code == "index-due"]
            findings = [finding for finding in findings if finding not in begun]
            findings.append(Finding(code, INDEX, messages=diff.absent.count))
        return findings
    segment = store.geometry.segment_size_bytes
    for phy_offset in diff.changed:
        position = phy_offset % segment
        file = f"{COMMIT_LOG}/{segment_file_name(phy_offset - position)}"
        words = ("the keys that the index has of this record", "others")
        findings.append(Finding("record-keys", file, position, 0, *words, 1))
    stray, expected = diff.stray, ""
    if facts.end_phy_offset == EVERYWHERE and store.log_files:  # of no log at all another finding says so
        behind = IndexEntries(files, facts.outlines).in_range(log[1], EVERYWHERE)["phy_offset"]
        stray = stray + Places.of(behind)
        expected = f"places before {log[1]}" if len(behind) else ""  # others are in the log
    if diff.absent.count:
        findings.append(Finding("index-short", INDEX, found=_text(diff.absent), messages=diff.absent.count))
    if stray.count:
        findings.append(Finding("index-entry-stray", INDEX, expected=expected, found=_text(stray)))
    if diff.late.count:
        words = ("the time of the record", f"another for {diff.late.count} records {_text(diff.late)}")
        findings.append(Finding("index-damaged", INDEX, 0, 0, *words))
    return findings + _wrong_headers(store, files, facts, log[1]) + _wrong_first_times(store, files, facts)


def _text(places: Places) -> str:
    return f"at {places.first}" if places.first == places.last else f"from {places.first} to {places.last}"


def _wrong_headers(store: ListedStore, files: Files, facts: IndexFacts, end: int) -> list[Finding]:
    """Returns a finding for each file whose header has other times than the records that it names."""
    start = store.log_files[0].first_offset if store.log_files else 0
    findings: list[Finding] = []
    with closing(LogReader(files, store.root, store.geometry.segment_size_bytes)) as reader:
        for file in (outline.file for outline in facts.outlines):
            header = file.header
            wrong = {
                "begin_timestamp_ms": (header.begin_phy_offset, header.begin_timestamp_ms),
                "end_timestamp_ms": (header.end_phy_offset, header.end_timestamp_ms),
            }
            for name, (phy_offset, stated_ms) in wrong.items():
                time_ms = store_ms_at(reader, phy_offset) if start <= phy_offset < end else None
                if time_ms is not None and time_ms != stated_ms:
                    words = (f"{name} {time_ms}", str(stated_ms))
                    position = INDEX_HEADER.offsets[name]
                    findings.append(
                        Finding("index-damaged", f"{INDEX}/{file.path.name}", position, 8, *words)
                    )
    return findings


def _wrong_first_times(store: ListedStore, files: Files, facts: IndexFacts) -> list[Finding]:
    """Returns a finding for each file whose first entry has another time than it was given.

    RocketMQ counts it from the end of the file before, the header being that file's until then. What was
    before the first file is known only where the log has all that ever was.
    """
    findings: list[Finding] = []
    is_whole = bool(store.log_files) and store.log_files[0].first_offset == 0
    before_ms = 0 if is_whole else None
    for file in (outline.file for outline in facts.outlines):
        if before_ms is not None:
            position = file.geometry.entries_at + INDEX_ENTRY.size_bytes + INDEX_ENTRY.offsets["time_diff_s"]
            data = _read(files, file, position, 4)
            found = int(I32.unpack(data.ljust(I32.size, b"\0"))[0])
            wanted = int(seconds_since(before_ms, np.array(file.header.begin_timestamp_ms)))
            if data and found != wanted:
                words = (f"{wanted} s since the file before", str(found))
                findings.append(Finding("index-damaged", f"{INDEX}/{file.path.name}", position, 4, *words))
        before_ms = file.header.end_timestamp_ms
    return findings


def _read(files: Files, file: IndexFile, position: int, size_bytes: int) -> bytes:
    try:
        handle = files.open(file.path, writable=False)
    except FileNotFoundError:  # retention took it while we looked
        return b""
    with closing(handle):
        return bytes(read_part(handle, position, size_bytes))
