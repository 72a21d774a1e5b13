"""Records that one flipped bit damaged get it back, before any of them is given up.

The checksum of a body or of a record names the bit. Lengths, magic, place and signs have no checksum in
records without ``__CRC32#``: there a queue unit must say the same place and size of the record that results.
Without that, sectors that were swapped could pass for records with one wrong bit in their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from seglog.doctor.actions import Action
from seglog.storage.files import Files
from seglog.storage.format.flipped_bit import Bit, flipped, mend_record, structure_bits
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.record import MIN_RECORD_BYTES, Damage, RecordRow, examine
from seglog.storage.log_files import LogReader
from seglog.storage.queue_overlay import is_message
from seglog.storage.survey import Survey

_MAX_RECORD_BYTES: Final = 192 << 10
_SIZE: Final = slice(0, 4)


def mend_bits(found: Survey, files: Files) -> Iterator[Action]:
    """Flips back single bits in the holes of a log and at its torn end; yields what it did."""
    segment = found.geometry.segment_size_bytes
    stretches = [(hole.phy_offset, hole.end) for hole in found.holes]
    if found.scan.tail is not None:
        end = found.max_phy_offset
        stretches.append((end, end - end % segment + segment))
    reader = LogReader(files, found.root, segment)
    try:
        for start, end in stretches:
            yield from _mend_stretch(found, files, reader, start, end)
    finally:
        reader.close()


def _mend_stretch(found: Survey, files: Files, reader: LogReader, start: int, end: int) -> Iterator[Action]:
    segment = found.geometry.segment_size_bytes
    units = _units_between(found, start, end)
    at = start
    while at < end:
        room = min(end, at - at % segment + segment) - at
        window = bytes(reader.read(at, min(room, _MAX_RECORD_BYTES)))
        bit = _bit_of(found, window, at, units.get(at), room)
        whole = window if bit is None else flipped(window, bit)
        row = examine(memoryview(whole), 0, at, verify=False)
        if bit is not None and isinstance(row, RecordRow):
            yield _flip(found.root, files, segment, at, bit, window, row)
            reader.close()
        following = min((place for place in units if place > at), default=end)
        at = at + row.size_bytes if isinstance(row, RecordRow) else following


def _bit_of(found: Survey, window: bytes, at: int, unit_bytes: int | None, room: int) -> Bit | None:
    if not any(window[:MIN_RECORD_BYTES]):
        return None
    sizes = {int.from_bytes(window[_SIZE]), room}
    if unit_bytes is not None:
        sizes.add(unit_bytes)
    bits = {
        bit
        for size in sizes
        if MIN_RECORD_BYTES <= size <= len(window) and (bit := mend_record(window[:size], at)) is not None
    }
    if not bits:
        bits = {bit for bit in structure_bits(window, at) if _has_unit(found, flipped(window, bit), at)}
    return next(iter(bits)) if len(bits) == 1 else None


def _has_unit(found: Survey, record: bytes, at: int) -> bool:
    """Returns whether the queue that a record names has a unit that leads to it."""
    row = examine(memoryview(record), 0, at)
    if isinstance(row, Damage):
        return False
    topic = row.topic.decode("utf-8", "surrogateescape")
    state = found.queues.get((topic, row.queue_id))
    if state is not None:
        slot = row.queue_offset - state.first_slot
        units = state.units[slot : slot + 1] if slot >= 0 else state.units[:0]
        return bool(len(units)) and (int(units["phy_offset"][0]), int(units["size_bytes"][0])) == (
            at,
            row.size_bytes,
        )
    batch = found.batch_queues.get((topic, row.queue_id))
    if batch is None:
        return False
    same = (batch.units["phy_offset"] == at) & (batch.units["size_bytes"] == row.size_bytes)
    return bool((same & (batch.units["base_queue_offset"] == row.queue_offset)).any())


def _units_between(found: Survey, start: int, end: int) -> dict[int, int]:
    """Returns the sizes that units have of records in a stretch, by place."""
    sizes: dict[int, int] = {}
    for state in found.queues.values():
        units = state.units[is_message(state.units)]
        for part in (units, state.behind[is_message(state.behind)]):
            inside = part[(part["phy_offset"] >= start) & (part["phy_offset"] < end)]
            sizes |= dict(zip(inside["phy_offset"].tolist(), inside["size_bytes"].tolist(), strict=True))
    for batch in found.batch_queues.values():
        joined = np.concatenate([batch.units, batch.behind])
        inside = joined[(joined["phy_offset"] >= start) & (joined["phy_offset"] < end)]
        sizes |= dict(zip(inside["phy_offset"].tolist(), inside["size_bytes"].tolist(), strict=True))
    return sizes


def _flip(root: Path, files: Files, segment: int, at: int, bit: Bit, window: bytes, row: RecordRow) -> Action:
    position, value = bit
    start = at % segment
    name = f"{COMMIT_LOG}/{segment_file_name(at - start)}"
    now = window[position] ^ value
    handle = files.open(root / name, writable=True)
    try:
        handle.write_at(bytes((now,)), start + position)
        handle.sync()
    finally:
        handle.close()
    topic = row.topic.decode("utf-8", "replace")
    return Action(
        "bit",
        name,
        start + position,
        1,
        f"{window[position]:#04x} becomes {now:#04x} in {topic}/{row.queue_id} {row.queue_offset}",
        saved=1,
    )
