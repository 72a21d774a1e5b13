"""Mends records whose tag was changed by one flipped bit, with the queue unit and the index as proof.

No checksum covers the properties of a record without ``__CRC32#``. But its queue unit has the code of the
tag, and the index has hashes of keys and tag. If exactly one bit makes the record agree with both, that bit
was flipped. One of them alone proves nothing: another last letter of a tag changes the code just as a flipped
bit of the code does, and a unit may be of an earlier log. Mends that only the index proves are made by a
repair.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from itertools import islice
from typing import Final

import numpy as np

from seglog.storage.certain_mends.heads import rows_led_to
from seglog.storage.certain_mends.mend import BIT, MAX_DOUBTED, Mend
from seglog.storage.directory import LogReader, read_units
from seglog.storage.directory.index_files import known_hashes, list_index_files
from seglog.storage.files.files import Files
from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.format.record import Damage, ends_with_record_crc, examine, flipped, unit_tags_code
from seglog.storage.format.record.flipped_bit import Bit
from seglog.storage.format.record.tombstone import LOST_TAGS_CODE
from seglog.storage.index.index_times import is_of_log
from seglog.storage.kernels.index_keys import index_keys
from seglog.storage.overlay.queue_overlay import QueueState, has_own_tags_code
from seglog.storage.survey.store_survey import Survey

_MAX_PROPERTIES_BYTES: Final = 4096


def mends_of_tags(found: Survey, files: Files) -> Iterator[Mend]:
    """Yields the mends of tags, in the order of queues."""
    states = [state for state in found.queues.values() if state.findings and _has_wrong_units(state)]
    doubted = list(islice(_doubted(found, files, states), MAX_DOUBTED + 1)) if states else []
    if not 0 < len(doubted) <= MAX_DOUBTED:
        return
    index, _damaged = list_index_files(files, found.root)
    log = range(max(0, found.min_phy_offset), found.max_phy_offset)
    with closing(LogReader(files, found.root, found.geometry.segment_size_bytes)) as reader:
        index = [file for file in index if is_of_log(reader, file.header, log)]
        for state, row, code in doubted:
            place = int(row["phy_offset"])
            store_ms = int(row["store_timestamp_ms"])
            known = known_hashes(files, index, place, store_ms)
            record = bytes(reader.read(place, int(row["size_bytes"])))
            bits = {
                bit
                for tags in (True, False)
                if known != index_keys(memoryview(record), place, tags=tags).hashes
                for bit in property_bits(record, place, known, {code}, tags=tags)
            }
            if len(bits) == 1:
                key = (state.topic, state.queue_id, int(row["queue_offset"]))
                proof = ", for the tag that its queue and the index know"
                yield Mend(BIT, place, record, flipped(record, bits.pop()), *key, proof)


def property_bits(
    record: bytes, place: int, known: Collection[int], tags_codes: Collection[int], *, tags: bool
) -> Iterator[Bit]:
    """Yields the bits of properties that, flipped alone, give a record its known keys and tag.

    Args:
        record: The record; for a record with a record CRC none is yielded.
        place: Its physical offset.
        known: The hashes that the index has for it, each once.
        tags_codes: The possible codes of its tag; any code if empty.
        tags: Whether the index has entries for tags.
    """
    row = examine(memoryview(record), 0, place)
    is_covered = ends_with_record_crc(record)
    if isinstance(row, Damage) or is_covered or row.properties_bytes > _MAX_PROPERTIES_BYTES:
        return
    start, end = row.properties_at, row.properties_at + row.properties_bytes
    for position in range(start, end):
        for value in (1, 2, 4, 8, 16, 32, 64, 128):
            right = flipped(record, (position, value))
            code = unit_tags_code(row.topic, right[start:end], row.store_timestamp_ms)
            is_tag = not tags_codes or code in tags_codes
            if is_tag and index_keys(memoryview(right), place, tags=tags).hashes == known:
                yield position, value


def _has_wrong_units(state: QueueState) -> bool:
    is_told = any(finding.code == "queue-unit-wrong" for finding in state.findings)
    return is_told and not state.topic.startswith(LMQ_PREFIX)


def _doubted(
    found: Survey, files: Files, states: Collection[QueueState]
) -> Iterator[tuple[QueueState, np.void, int]]:
    """Yields the records whose unit has the code of another tag, and that code."""
    for state in states:
        queue = found.queue_files[state.topic, state.queue_id]
        _first, units = read_units(files, queue, found.geometry.queue_file_size_bytes)
        rows, leads = rows_led_to(found, units)
        number = found.scan.queues.find(state.topic.encode("utf-8", "surrogateescape"), state.queue_id)
        leads &= rows["queue"] == (-1 if number is None else number)
        leads &= (rows["tags_code"] != units["tags_code"]) & (rows["tags_code"] != LOST_TAGS_CODE)
        for at in np.flatnonzero(leads & ~has_own_tags_code(state.topic, units)).tolist():
            yield state, rows[at], int(units["tags_code"][at])
