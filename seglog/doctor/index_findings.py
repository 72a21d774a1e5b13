"""What an index must hold, and what is not as it should be about it once the log was walked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from seglog.doctor.index_entries import IndexEntries
from seglog.doctor.key_check import KeyDiff, Places
from seglog.doctor.record_watch import IndexFacts
from seglog.storage.audit.plan import AuditPlan
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format import properties as props
from seglog.storage.format.index import INDEX_HEADER, key_hash
from seglog.storage.format.index_keys import TAGS_NAME, IndexedRecord, key_text, tag_key
from seglog.storage.format.names import COMMIT_LOG, INDEX, segment_file_name
from seglog.storage.format.record import FILLER, FILLER_BYTES, Damage, examine
from seglog.storage.format.sys_flag import TRANSACTION_MASK, TRANSACTION_ROLLBACK
from seglog.storage.index_files import IndexFile
from seglog.storage.log_files import LogReader
from seglog.storage.log_records import iter_records

_EVERYWHERE: Final = 1 << 62
_PROBED_BYTES: Final = 1 << 20
_PROBED_RECORDS: Final = 4096
_VOTES: Final = 32


def load_index(plan: AuditPlan, files: Files, *, is_live: bool) -> IndexFacts:
    """Returns the index of a store, and which records must be in it.

    Args:
        plan: The store.
        files: Where it is.
        is_live: Whether a process writes to it now.
    """
    is_closed = plan.mode == "normal" and not is_live
    entries = IndexEntries(files, plan.root, is_closed=is_closed)
    # Otherwise the index trails the log, and a crash leaves it there; a writer may be within a record.
    is_whole = is_closed or not (entries.entry_count or is_live)
    end = _EVERYWHERE if is_whole else entries.newest_phy_offset + (not is_live)
    return IndexFacts(entries, _has_tags(plan, files, entries), end)


def index_findings(
    facts: IndexFacts, diff: KeyDiff, plan: AuditPlan, files: Files, end: int
) -> list[Finding]:
    """Returns what is not as it should be about the index.

    Args:
        facts: The index.
        diff: How it differs from the log, all of it.
        plan: The store.
        files: Where it is.
        end: Where the log ends.
    """
    entries = facts.entries
    findings = list(entries.findings)
    if not entries.entry_count:
        is_damaged = any(finding.code == "index-damaged" for finding in findings)
        if diff.absent.count and not is_damaged:
            findings.append(Finding("index-missing", INDEX, messages=diff.absent.count))
        return findings
    segment = plan.geometry.segment_size_bytes
    for phy_offset in diff.changed:
        position = phy_offset % segment
        file = f"{COMMIT_LOG}/{segment_file_name(phy_offset - position)}"
        words = ("the keys that the index has of this record", "others")
        findings.append(Finding("record-keys", file, position, 0, *words, 1))
    stray = diff.stray
    if facts.end_phy_offset == _EVERYWHERE:
        behind = entries.in_range(end, _EVERYWHERE)["phy_offset"]
        stray = stray + Places.of(behind)
    for code, places in (("index-short", diff.absent), ("index-entry-stray", stray)):
        if places.count:
            count = places.count if code == "index-short" else 0
            findings.append(Finding(code, INDEX, found=_text(places), messages=count))
    if diff.late.count:
        words = ("the time of the record", f"another for {diff.late.count} records {_text(diff.late)}")
        findings.append(Finding("index-damaged", INDEX, 0, 0, *words))
    return findings + _wrong_headers(plan, files, entries, end)


def _text(places: Places) -> str:
    return f"at {places.first}" if places.first == places.last else f"from {places.first} to {places.last}"


def _wrong_headers(plan: AuditPlan, files: Files, entries: IndexEntries, end: int) -> list[Finding]:
    """Returns a finding for each file whose header has other times than the records that it names."""
    start = plan.log_files[0].first_offset if plan.log_files else 0
    findings: list[Finding] = []
    reader = LogReader(files, plan.root, plan.geometry.segment_size_bytes)
    try:
        for file in entries.index_files:
            header = file.header
            wrong = {
                "begin_timestamp_ms": (header.begin_phy_offset, header.begin_timestamp_ms),
                "end_timestamp_ms": (header.end_phy_offset, header.end_timestamp_ms),
            }
            for name, (phy_offset, stated_ms) in wrong.items():
                time_ms = _store_ms(reader, phy_offset) if start <= phy_offset < end else None
                if time_ms is not None and time_ms != stated_ms:
                    words = (f"{name} {time_ms}", str(stated_ms))
                    position = INDEX_HEADER.offsets[name]
                    findings.append(
                        Finding("index-damaged", f"{INDEX}/{file.path.name}", position, 8, *words)
                    )
    finally:
        reader.close()
    return findings


def _store_ms(reader: LogReader, phy_offset: int) -> int | None:
    head = reader.read(phy_offset, FILLER_BYTES)
    size = FILLER.struct.unpack(head)[0] if len(head) == FILLER_BYTES else 0
    row = examine(reader.read(phy_offset, max(0, size)), 0, phy_offset)
    return None if isinstance(row, Damage) else row.store_timestamp_ms


def _has_tags(plan: AuditPlan, files: Files, entries: IndexEntries) -> bool:
    """Returns whether tags are among the keys: RocketMQ indexes them since 5.4.0.

    Most of some records with tags decide, for single entries may be damaged.
    """
    segment = plan.geometry.segment_size_bytes
    reader = LogReader(files, plan.root, segment)
    votes = Counter[bool]()
    try:
        for file in entries.index_files:
            begin, last = file.header.begin_phy_offset, file.header.end_phy_offset
            firsts = (item.first_offset for item in plan.log_files)
            for start in [begin, *(first for first in firsts if begin < first <= last)]:
                end = min(last + 1, start - start % segment + segment, start + _PROBED_BYTES)
                found = islice(iter_records(reader, segment, start, end), _PROBED_RECORDS)
                votes.update(_votes(file, entries, (record for record, _end in found)))
                if votes.total() >= _VOTES:
                    return votes[True] >= votes[False]
    finally:
        reader.close()
    return votes[True] >= votes[False]


def _votes(file: IndexFile, entries: IndexEntries, records: Iterable[IndexedRecord]) -> Iterator[bool]:
    """Yields of records with a tag whether a file has an entry for it."""
    last = file.header.end_phy_offset
    given = 0
    for record in records:
        tag = props.find_property(record.properties, TAGS_NAME)
        # The keys of the last record may go on in the next file.
        is_inside = record.phy_offset < last or (record.phy_offset == last and not file.is_full)
        if tag is None or not is_inside or record.sys_flag & TRANSACTION_MASK == TRANSACTION_ROLLBACK:
            continue
        hashed = key_hash(tag_key(record.topic, key_text(tag)))
        held = entries.in_range(record.phy_offset, record.phy_offset + 1)
        yield bool((held["key_hash"] == hashed).any())
        given += 1
        if given >= _VOTES:
            return
