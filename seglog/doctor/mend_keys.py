"""Records whose keys or tag one flipped bit changed get it back, by what the index knows of them.

Nothing covers the properties of a record without ``__CRC32#``. But the index has hashes of its keys: where
one bit, and only one, gives the record exactly the keys that the index has of it, that bit was flipped.

An entry of the index whose hash is damaged would ask for the same: the last letter of a key changes the hash
as a flipped bit of it does. So the index must explain itself, chains included (a damaged hash falls into
another chain), and the queue's unit must have the tag of the record that results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from seglog.doctor.actions import Action
from seglog.doctor.index_entries import IndexEntries
from seglog.doctor.index_problems import index_of
from seglog.storage.certain_mends.properties import property_bits
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.flipped_bit import Bit, flipped
from seglog.storage.gathered import place_of
from seglog.storage.log_files import LogReader
from seglog.storage.queue_files import read_units
from seglog.storage.queue_overlay import has_own_tags_code
from seglog.storage.rewrite import rewrite_record
from seglog.storage.survey import Survey


def mend_keys(found: Survey, files: Files, of_index: Sequence[Finding]) -> Iterator[Action]:
    """Flips bits of properties back; yields what it did.

    Args:
        found: A survey of the store.
        files: Where it is.
        of_index: What the index says otherwise than the log.
    """
    if any(finding.code == "index-damaged" for finding in of_index):
        return
    _plan, facts = index_of(found, files)
    entries = IndexEntries(files, facts.outlines)
    segment = found.geometry.segment_size_bytes
    reader = LogReader(files, found.root, segment)
    try:
        for finding in of_index:
            if finding.code != "record-keys":
                continue
            place = int(finding.file.rpartition("/")[2]) + finding.position_bytes
            at = place_of(found.rows, place)
            if at == len(found.rows) or int(found.rows["phy_offset"][at]) != place:
                continue
            record = bytes(reader.read(place, int(found.rows["size_bytes"][at])))
            known = set(entries.in_range(place, place + 1)["key_hash"].tolist())
            tags_codes = _tags_codes(found, files, found.rows[at])
            bits = list(property_bits(record, place, known, tags_codes, tags=facts.has_tags))
            if len(bits) == 1:
                yield _flip(found, files, place, record, bits[0])
    finally:
        reader.close()


def _tags_codes(found: Survey, files: Files, row: np.void) -> set[int]:
    """Returns what the queue's file says of the tag of a record; nothing where it says something else."""
    topic, queue_id = found.scan.queues.names[int(row["queue"])]
    queue = found.queue_files.get((topic, queue_id))
    if queue is None:
        return set()
    _first, stored = read_units(files, queue, found.geometry.queue_file_size_bytes)
    of_record = stored[(stored["phy_offset"] == row["phy_offset"]) & ~has_own_tags_code(topic, stored)]
    return set(of_record["tags_code"].tolist())


def _flip(found: Survey, files: Files, place: int, record: bytes, bit: Bit) -> Action:
    segment = found.geometry.segment_size_bytes
    done = rewrite_record(files, found.root, segment, place, record, flipped(record, bit))
    return Action("bit", *done[:3], f"{done.words} in a property, for the keys that the index knows", saved=1)
