"""What a check would say of the key index of a surveyed store: entries, times, chains and headers.

The index is held against the records batch by batch, as a check does it beside its walk.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Final

import numpy as np

from seglog.doctor.index_chains import chain_finding
from seglog.doctor.index_entries import IndexEntries
from seglog.doctor.index_facts import IndexFacts, index_facts, load_index, outlined_or_damaged
from seglog.doctor.index_findings import index_findings
from seglog.doctor.index_outline import FileOutline
from seglog.doctor.key_check import NO_DIFF, KeyDiff, compare_keys
from seglog.storage.audit.plan import AuditPlan, plan_audit
from seglog.storage.commit_log import HoleMap
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.index_build import KEY_ROW
from seglog.storage.format.index_rows import key_rows
from seglog.storage.format.tombstone import LOST
from seglog.storage.index_files import IndexFile
from seglog.storage.index_times import is_of_log
from seglog.storage.log_files import LogReader
from seglog.storage.log_records import iter_records
from seglog.storage.survey import Survey
from seglog.storage.unindexed import is_not_indexed_yet

_BATCH_RECORDS: Final = 4096
_LOST: Final = f"{LOST}\x01".encode()


def index_of(found: Survey, files: Files) -> tuple[AuditPlan, IndexFacts]:
    """Returns a surveyed store as an audit lists it, and its index."""
    # Under the name by which the caller, and a draft, know the store.
    plan = replace(plan_audit(found.root, files), root=found.root)
    return plan, load_index(plan, files, is_live=False)


def index_problems(found: Survey, files: Files) -> list[Finding]:
    """Returns what is not as it should be about the index.

    Args:
        found: The log.
        files: Where the store is.
    """
    plan, facts = index_of(found, files)
    is_closed = plan.mode == "normal"
    chains = [chain_finding(files, outline.file, is_closed=is_closed) for outline in facts.outlines]
    of_chains = [finding for finding in chains if finding is not None]
    diff = _difference(found, files, facts)
    is_due = is_not_indexed_yet(
        files, found.root, found.mode, found.checkpoint, found.min_phy_offset, found.max_phy_offset
    )
    return index_findings(facts, of_chains, diff, plan, files, found.max_phy_offset, is_due=is_due)


def records_that_differ(
    found: Survey, files: Files, index: Sequence[IndexFile]
) -> tuple[IndexFacts, list[int]]:
    """Returns what of an index is of this log and explains itself, and where records have other keys there.

    Args:
        found: The log.
        files: Where the store is.
        index: The files of the index, wherever they lie.
    """
    plan = replace(plan_audit(found.root, files), root=found.root)
    log = range(max(0, found.min_phy_offset), found.max_phy_offset)
    with closing(LogReader(files, found.root, found.geometry.segment_size_bytes)) as reader:
        index = [file for file in index if is_of_log(reader, file.header, log)]
    outlined = [outlined_or_damaged(files, file) for file in index if file.header.index_count > 1]
    sound = [
        outline
        for outline in outlined
        if isinstance(outline, FileOutline) and chain_finding(files, outline.file, is_closed=False) is None
    ]
    facts = index_facts(plan, files, sound, [], is_live=False)
    return facts, list(_difference(found, files, facts).changed)


def _difference(found: Survey, files: Files, facts: IndexFacts) -> KeyDiff:
    """Returns how an index differs from the log."""
    entries = IndexEntries(files, facts.outlines)
    holes = HoleMap(found.holes)
    at, log_end = max(0, found.min_phy_offset), found.max_phy_offset
    diff = NO_DIFF
    segment = found.geometry.segment_size_bytes
    reader = LogReader(files, found.root, segment)
    try:
        records = iter_records(reader, segment, at, log_end, found.holes)
        while batch := list(islice(records, _BATCH_RECORDS)):
            end = batch[-1][1]
            wanted = key_rows([record for record, _end in batch], tags=facts.has_tags)
            held = entries.in_range(at, end)
            # The index may know a lost message by its keys, or by what stands in its place.
            lost = [record.phy_offset for record, _end in batch if _LOST in record.properties]
            known = (wanted["phy_offset"] < facts.end_phy_offset) & ~np.isin(wanted["phy_offset"], lost)
            gone = np.isin(held["phy_offset"], lost) | holes.covers_each(held["phy_offset"])
            diff += compare_keys(wanted[known], held[~gone])
            at = end
    finally:
        reader.close()
    behind = entries.in_range(at, log_end)
    return diff + compare_keys(np.empty(0, KEY_ROW), behind[~holes.covers_each(behind["phy_offset"])])
