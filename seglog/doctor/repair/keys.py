"""Restores keys or tags of records in which one bit was flipped, with the help of the index.

No checksum covers the properties of a record without ``__CRC32#``. But the index has hashes of its keys: if
exactly one bit exists whose change gives the record the keys that the index has for it, that bit was flipped.
Index files that an opening removed are used as well, as they are kept in the attic.

An index entry with a damaged hash would lead to the same repair: changing the last letter of a key changes
the hash in the same way as flipping one of its bits. So two more conditions hold. The index file must be
consistent, chains included (an entry with a damaged hash is in the wrong chain). And the queue's unit, the
present one or one that an opening overwrote, must have the tag of the repaired record. An index file whose
header has another time than the record that it begins with belongs to another store, or to an earlier life of
this store, and proves nothing. If no single bit explains the keys, the copy of a record in a compaction log
may (:mod:`seglog.doctor.repair.copy_witness`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Final

import numpy as np

from seglog.doctor.plans.actions import Action
from seglog.doctor.repair.copy_witness import record_by_copy
from seglog.storage.certain_mends import property_bits
from seglog.storage.directory import IndexFile, LogReader, list_index_files, queue_directory, read_units
from seglog.storage.files import Files, rewrite_record
from seglog.storage.findings import Finding
from seglog.storage.format.names import CONSUME_QUEUE
from seglog.storage.format.queue import CQ_UNIT, CQ_UNIT_BYTES, Units
from seglog.storage.format.record import flipped
from seglog.storage.index import as_found, is_of_log, removed_files
from seglog.storage.index_check import (
    FileOutline,
    HeldEntries,
    IndexEntries,
    IndexFacts,
    chain_finding,
    compare_log,
    index_facts,
    late,
    outlined_or_damaged,
)
from seglog.storage.kernels.walk import Rows
from seglog.storage.overlay import has_own_tags_code
from seglog.storage.small_files import iter_kept
from seglog.storage.survey import Survey
from seglog.storage.walk import place_of

_MAX_GENERATIONS: Final = 8
"""Number of openings whose removed index files are used; later ones are ignored."""


def mend_keys(found: Survey, files: Files, of_index: Sequence[Finding]) -> Iterator[Action]:
    """Flips damaged bits of properties back; yields the actions.

    Args:
        found: A survey of the store.
        files: Access to the store.
        of_index: The differences between index and log.
    """
    witnesses = list(_witnesses(found, files, of_index))
    doubted = {place for _facts, places in witnesses for place in places}
    if not doubted:
        return
    overwritten = _overwritten_units(found, files, doubted)
    older: list[IndexEntries] = []
    by_copy = partial(record_by_copy, found, files)
    with closing(LogReader(files, found.root, found.geometry.segment_size_bytes)) as reader:
        for facts, places in witnesses:
            entries = IndexEntries(files, facts.outlines)
            for place in places:
                at = place_of(found.rows, place)
                row = found.rows[at : at + 1]
                # A later index may have been written from the damaged record: it proves nothing against an
                # older one.
                if row["phy_offset"].tolist() != [place] or any(len(_about(one, row)) for one in older):
                    continue
                record = bytes(reader.read(place, int(row["size_bytes"][0])))
                known = set(_about(entries, row)["key_hash"].tolist())
                tags_codes = _tags_codes(found, files, row[0], overwritten)
                bits = list(property_bits(record, place, known, tags_codes, tags=facts.has_tags))
                if len(bits) == 1:
                    proof = "for the keys that the index knows"
                    yield _rewrite(found, files, place, record, flipped(record, bits[0]), "bit", proof)
                elif not bits and (right := by_copy(record, place, known, tags_codes, tags=facts.has_tags)):
                    proof = "as the copy in the compaction log has it, and the index knows its keys"
                    yield _rewrite(found, files, place, record, right, "head", proof)
            older.append(entries)


def _witnesses(
    found: Survey, files: Files, of_index: Sequence[Finding]
) -> Iterator[tuple[IndexFacts, list[int]]]:
    """Yields the consistent part of the index as each opening found it, and as it is now, oldest first.

    Each comes with the places of the records for which it has other keys.
    """
    removed = removed_files(files, found.root)
    is_asked = any(finding.code == "record-keys" for finding in of_index)
    current = list_index_files(files, found.root)[0] if removed or is_asked else []
    for generation in sorted(removed)[:_MAX_GENERATIONS]:
        yield _records_that_differ(found, files, as_found(current, removed[generation]))
    if is_asked:
        yield _records_that_differ(found, files, current)


def _records_that_differ(
    found: Survey, files: Files, index: Sequence[IndexFile]
) -> tuple[IndexFacts, list[int]]:
    """Returns the consistent part of an index of this log, and the records for which its keys differ."""
    log = range(max(0, found.min_phy_offset), found.max_phy_offset)
    with closing(LogReader(files, found.root, found.geometry.segment_size_bytes)) as reader:
        index = [file for file in index if is_of_log(reader, file.header, log)]
    outlined = [outlined_or_damaged(files, file) for file in index if file.header.index_count > 1]
    sound = [
        outline
        for outline in outlined
        if isinstance(outline, FileOutline) and chain_finding(files, outline.file, is_closed=False) is None
    ]
    facts = index_facts(found, files, sound, [], is_live=False)
    return facts, list(compare_log(found, files, facts).changed)


def _about(entries: IndexEntries, row: Rows) -> HeldEntries:
    """Returns the entries for a record; none if one has another time, as of an older life of the log."""
    place = int(row["phy_offset"][0])
    held = entries.in_range(place, place + 1)
    is_late = len(late(np.repeat(row["store_timestamp_ms"], len(held)), held))
    return held[:0] if is_late else held


def _overwritten_units(found: Survey, files: Files, places: set[int]) -> dict[str, list[Units]]:
    """Returns the units for some records that openings overwrote, by the folder of their queue."""
    overwritten: defaultdict[str, list[Units]] = defaultdict(list)
    for kept in iter_kept(files, found.root):
        if kept.name is not None and kept.name.startswith(f"{CONSUME_QUEUE}/"):
            start = -kept.position_bytes % CQ_UNIT_BYTES
            count = (len(kept.data) - start) // CQ_UNIT_BYTES
            if count > 0:
                units = np.frombuffer(kept.data, CQ_UNIT.dtype, count, start)
                about = units[np.isin(units["phy_offset"], list(places))]
                overwritten[kept.name.rpartition("/")[0]].append(about)
    return overwritten


def _tags_codes(
    found: Survey, files: Files, row: np.void, overwritten: Mapping[str, Sequence[Units]]
) -> set[int]:
    """Returns the tags codes that the queue has, or had, for a record; none where the code is no tag's."""
    topic, queue_id = found.scan.queues.names[int(row["queue"])]
    queue = found.queue_files.get((topic, queue_id))
    if queue is None:
        return set()
    _first, stored = read_units(files, queue, found.geometry.queue_file_size_bytes)
    units = np.concatenate([stored, *overwritten.get(queue_directory(topic, queue_id), ())])
    same = (units["phy_offset"] == row["phy_offset"]) & (units["size_bytes"] == row["size_bytes"])
    return set(units["tags_code"][same & ~has_own_tags_code(topic, units)].tolist())


def _rewrite(
    found: Survey, files: Files, place: int, record: bytes, right: bytes, kind: str, proof: str
) -> Action:
    segment = found.geometry.segment_size_bytes
    done = rewrite_record(files, found.root, segment, place, record, right)
    return Action(kind, *done[:3], f"{done.words} in a property, {proof}")
