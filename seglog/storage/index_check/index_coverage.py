"""What of an index decides which keys the records of a log must have there. Plain data.

An index is listed and outlined once; what is about one split of the log then is a small part of that, which
may go to another process and be looked up there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Final

from seglog.errors import CorruptError
from seglog.storage.directory import IndexFile, LogReader, list_index_files
from seglog.storage.directory.index_files import is_begun
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.index.index import is_index_file_name, key_hash
from seglog.storage.format.index.index_keys import IndexedRecord, tag_key, telling_tag
from seglog.storage.format.names import INDEX
from seglog.storage.index_check.index_entries import IndexEntries
from seglog.storage.index_check.index_outline import FileOutline, outline_file
from seglog.storage.scan.listed import ListedStore
from seglog.storage.survey.moving_store import look_again
from seglog.storage.walk.log_records import iter_records

EVERYWHERE: Final = 1 << 62
"""Behind every record that can be."""
_PROBED_BYTES: Final = 1 << 20
_PROBED_RECORDS: Final = 4096
_VOTES: Final = 32
_THREADS: Final = 2


@dataclass(frozen=True, slots=True, eq=False)
class IndexFacts:
    """What of the index decides which keys records must have there.

    Attributes:
        outlines: Its files that can be read, in order; or what of them is about a part of the log.
        findings: What is wrong with the files as such.
        has_tags: Whether tags are among its keys.
        end_phy_offset: Records from here on need no entries: the index of a store that was not closed
            trails the log.
    """

    outlines: tuple[FileOutline, ...]
    findings: tuple[Finding, ...]
    has_tags: bool
    end_phy_offset: int

    @property
    def entry_count(self) -> int:
        """How many entries its files have."""
        return sum(outline.entry_count for outline in self.outlines)

    def within(self, start: int, end: int) -> IndexFacts:
        """Returns what is about records that start in ``[start, end)``: enough to walk that stretch."""
        parts = [outline.within(start, end) for outline in self.outlines]
        return replace(self, outlines=tuple(part for part in parts if len(part.pieces)))


def load_index(store: ListedStore, files: Files, *, is_live: bool) -> IndexFacts:
    """Returns the index of a store, and which records must be in it.

    Args:
        store: The store.
        files: Where it is.
        is_live: Whether a process writes to it now.
    """

    def look() -> tuple[list[FileOutline | Finding], list[Finding]]:
        listed, findings = list_index(store, files)
        with ThreadPoolExecutor(_THREADS, "seglog-index") as pool:
            return list(pool.map(partial(outlined_or_damaged, files), listed)), findings

    outlined, findings = look_again(look)
    return index_facts(store, files, outlined, findings, is_live=is_live)


def list_index(store: ListedStore, files: Files) -> tuple[list[IndexFile], list[Finding]]:
    """Returns the files of an index that have entries, and what is wrong with others."""
    listed, damaged = list_index_files(files, store.root)
    # RocketMQ makes a file for a key that it has.
    damaged += [file.path for file in listed if file.header.index_count <= 1]
    newest = max([*damaged, *(file.path for file in listed)], default=None)
    # A kill leaves a file at the end that has no entry yet.
    is_due = store.mode != "normal" and newest is not None and is_begun(files, newest)
    findings = [
        Finding("index-due" if is_due and path == newest else "index-damaged", f"{INDEX}/{path.name}")
        for path in sorted(damaged)
    ]
    findings += [
        Finding("index-file-stray", f"{INDEX}/{entry.name}", size_bytes=entry.size_bytes)
        for entry in files.list_dir(store.root / INDEX)
        if not entry.is_dir and not is_index_file_name(entry.name)
    ]
    return [file for file in listed if file.header.index_count > 1], findings


def outlined_or_damaged(files: Files, file: IndexFile) -> FileOutline | Finding:
    """Returns the outline of a file, or that it has none."""
    try:
        return outline_file(files, file)
    except CorruptError:
        return Finding("index-damaged", f"{INDEX}/{file.path.name}")


def index_facts(
    store: ListedStore,
    files: Files,
    outlined: Iterable[FileOutline | Finding],
    findings: Iterable[Finding],
    *,
    is_live: bool,
) -> IndexFacts:
    """Returns what decides, from what the files were found to be.

    Args:
        store: The store.
        files: Where it is.
        outlined: Its index files, each as :func:`outlined_or_damaged` returns it.
        findings: Those of :func:`list_index`.
        is_live: Whether a process writes to it now.
    """
    outlined = list(outlined)
    outlines = tuple(one for one in outlined if isinstance(one, FileOutline))
    damaged = [one for one in outlined if isinstance(one, Finding)]
    is_closed = store.mode == "normal" and not is_live
    # Otherwise the index trails the log, and a crash leaves it there; a writer may be within a record.
    is_whole = is_closed or not (outlines or is_live)
    newest = max((outline.greatest for outline in outlines), default=-1)
    end = EVERYWHERE if is_whole else newest + (not is_live)
    return IndexFacts(outlines, (*findings, *damaged), _has_tags(store, files, outlines), end)


def _has_tags(store: ListedStore, files: Files, outlines: tuple[FileOutline, ...]) -> bool:
    """Returns whether tags are among the keys: RocketMQ indexes them since 5.4.0.

    Most of some records with tags decide, for single entries may be damaged.
    """
    segment = store.geometry.segment_size_bytes
    entries = IndexEntries(files, outlines)
    votes = Counter[bool]()
    with closing(LogReader(files, store.root, segment)) as reader:
        for file in (outline.file for outline in outlines):
            begin, last = file.header.begin_phy_offset, file.header.end_phy_offset
            firsts = (item.first_offset for item in store.log_files)
            for start in [begin, *(first for first in firsts if begin < first <= last)]:
                end = min(last + 1, start - start % segment + segment, start + _PROBED_BYTES)
                found = islice(iter_records(reader, segment, start, end), _PROBED_RECORDS)
                votes.update(_votes(file, entries, (record for record, _end in found)))
                if votes.total() >= _VOTES:
                    return votes[True] >= votes[False]
    return votes[True] >= votes[False]


def _votes(file: IndexFile, entries: IndexEntries, records: Iterable[IndexedRecord]) -> Iterator[bool]:
    """Yields of records with a tag whether a file has an entry for it."""
    last = file.header.end_phy_offset
    given = 0
    for record in records:
        tag = telling_tag(record)
        # The keys of the last record may continue in the next file.
        is_inside = record.phy_offset < last or (record.phy_offset == last and not file.is_full)
        if tag is None or not is_inside:
            continue
        hashed = key_hash(tag_key(record.topic, tag))
        held = entries.in_range(record.phy_offset, record.phy_offset + 1)
        yield bool((held["key_hash"] == hashed).any())
        given += 1
        if given >= _VOTES:
            return
