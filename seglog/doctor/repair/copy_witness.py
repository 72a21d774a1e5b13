"""Restores a record of a compaction topic from its copy in the compaction log and from the index.

No checksum covers the properties of a record without ``__CRC32#``. The copy holds them a second time, and the
index holds hashes of their keys: if two of the three agree, the third is wrong.
"""

from __future__ import annotations

from collections.abc import Collection

from seglog.storage.compaction import sound_record
from seglog.storage.files import Files
from seglog.storage.format.queue import compaction_record
from seglog.storage.format.record import RecordRow, ends_with_record_crc, examine, unit_tags_code
from seglog.storage.kernels.index_keys import index_keys
from seglog.storage.survey import Survey


def record_by_copy(
    found: Survey,
    files: Files,
    record: bytes,
    place: int,
    known: Collection[int],
    tags_codes: Collection[int],
    *,
    tags: bool,
) -> bytes | None:
    """Returns the record as its copy has it, None if no copy is proved right.

    Args:
        found: A survey of the store.
        files: Access to the store.
        record: The record in the commit log; a record with a record CRC needs no proof.
        place: Its physical offset.
        known: The hashes that the index has for it, each once.
        tags_codes: The tags codes that its tag may have; empty if any is right.
        tags: Whether tags are among the keys.
    """
    row = examine(memoryview(record), 0, place)
    if not isinstance(row, RecordRow) or ends_with_record_crc(record):
        return None
    copy = _copy_of(found, files, row)
    right = None if copy is None else compaction_record(copy, place)
    start, end = row.properties_at, row.properties_at + row.properties_bytes
    if right is None or (right[:start], right[end:]) != (record[:start], record[end:]):
        return None
    code = unit_tags_code(row.topic, right[start:end], row.store_timestamp_ms)
    is_known = index_keys(memoryview(right), place, tags=tags).hashes == known
    return right if is_known and (not tags_codes or code in tags_codes) else None


def _copy_of(found: Survey, files: Files, row: RecordRow) -> memoryview | None:
    """Returns the undamaged record of a queue offset in a compaction log, None if there is none."""
    state = found.compaction.get((row.topic.decode("utf-8", "surrogateescape"), row.queue_id))
    if state is None:
        return None
    units = state.units.units(0, state.units.end_index)
    about = units[(units["base_queue_offset"] == row.queue_offset) & (units["size_bytes"] == row.size_bytes)]
    if len(about) != 1 or int(about["phy_offset"][0]) in state.lost:
        return None
    phy_offset = int(about["phy_offset"][0])
    copy = state.read_log(files, phy_offset, row.size_bytes)
    return copy if sound_record(copy, phy_offset) is not None else None
