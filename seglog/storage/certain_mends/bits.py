"""Mends records with one flipped bit or an overwritten head, before any of them counts as lost.

One flipped bit: the checksum of a body or of a record identifies it. In records without ``__CRC32#`` no
checksum covers lengths, magic, physical offset and signs: there a queue unit must have the same place and
size as the mended record. Without this condition swapped sectors could pass for records with one wrong bit in
their physical offset. For a wrong bit in the length, the next record is as good a witness where the queue has
no unit: it begins where the mended record ends.

An overwritten head: magic, physical offset and length of a record are known from other places
(:mod:`seglog.storage.format.record.self_evident_fields`). They are written again if a checksum of the record
is right then, and its queue unit, or a checksum over the whole record, shows that it belongs here. A queue id
or queue offset that no record can have, and flags with which the lengths do not add up, are written again as
the queue unit proves them, one field alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from seglog.storage.certain_mends.mend import BIT, HEAD, Mend
from seglog.storage.directory.log_files import LogReader
from seglog.storage.files.files import Files
from seglog.storage.format.layout import U32
from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.format.record.flipped_bit import (
    Bit,
    bit_of_field,
    flipped,
    has_crc_property,
    mend_record,
    structure_bits,
)
from seglog.storage.format.record.record import MIN_RECORD_BYTES, Damage, RecordRow, examine
from seglog.storage.format.record.self_evident_fields import restate, restate_by_unit, restated_fields
from seglog.storage.overlay import BatchQueueState, QueueState, is_message
from seglog.storage.walk.behind_damage import Hole

_MAX_RECORD_BYTES: Final = 192 << 10
_FIELD_WORDS: Final = {
    "size_bytes": "length",
    "magic": "magic",
    "queue_id": "queue id",
    "queue_offset": "queue offset",
    "phy_offset": "place",
    "sys_flag": "flags",
}


class _Unit(NamedTuple):
    """A queue unit that leads into an unreadable stretch; without queue if it is of no plain queue."""

    size_bytes: int
    queue_id: int = -1
    queue_offset: int = -1


@dataclass(frozen=True, slots=True)
class DamagedLog:
    """A walked log, and the queues that may have units for its unreadable parts.

    Attributes:
        root: The store directory.
        segment_size_bytes: Length of its files.
        holes: Its unreadable stretches.
        end_phy_offset: Its end.
        is_torn: Whether a torn write is there.
        queues: The right content of each plain queue; queues without units that lead into a hole may be
            missing.
        batch_queues: The same for batch queues.
    """

    root: Path
    segment_size_bytes: int
    holes: Sequence[Hole]
    end_phy_offset: int
    is_torn: bool
    queues: Mapping[tuple[str, int], QueueState]
    batch_queues: Mapping[tuple[str, int], BatchQueueState]

    @property
    def holes_between(self) -> list[tuple[int, int]]:
        """Start and end of each unreadable stretch."""
        return [(hole.phy_offset, hole.end) for hole in self.holes]

    @property
    def behind_end(self) -> tuple[int, int]:
        """The rest of the file in which it ends."""
        end, segment = self.end_phy_offset, self.segment_size_bytes
        return end, end - end % segment + segment

    @property
    def unreadable(self) -> list[tuple[int, int]]:
        """Start and end of each stretch in which records may stand that are not read."""
        return [*self.holes_between, self.behind_end]


def mends_of_records(found: DamagedLog, files: Files) -> Iterator[Mend]:
    """Yields the mends of records in the holes of a log and at its torn end, in log order."""
    segment = found.segment_size_bytes
    stretches = [(*hole, True) for hole in found.holes_between]
    if found.is_torn:
        stretches.append((*found.behind_end, False))
    if not stretches:
        return
    with closing(LogReader(files, found.root, segment)) as reader:
        for start, end, is_followed in stretches:
            yield from _of_stretch(found, reader, start, end, is_followed=is_followed)


def _of_stretch(
    found: DamagedLog, reader: LogReader, start: int, end: int, *, is_followed: bool
) -> Iterator[Mend]:
    segment = found.segment_size_bytes
    units = _units_between(found, start, end)
    places = sorted(units)
    at = start
    while at < end:
        room = min(end, at - at % segment + segment) - at
        window = bytes(reader.read(at, min(room, _MAX_RECORD_BYTES)))
        if window:  # a file that is cut gets its length back in zeros, and is read so from then on
            window = window.ljust(min(room, _MAX_RECORD_BYTES), b"\0")
        unit = units.get(at)
        bit = _bit_of(found, window, at, None if unit is None else unit.size_bytes, room)
        if bit is None and is_followed:
            bit = _bit_of_length(found, window, at, end)
        whole = flipped(window, bit) if bit is not None else _restated(found, window, at, unit)
        row = examine(memoryview(window if whole is None else whole), 0, at, verify=False)
        if whole is not None and isinstance(row, RecordRow):
            yield _mend(row, at, window, whole, is_bit=bit is not None)
        following = bisect_right(places, at)
        next_place = places[following] if following < len(places) else end
        at = at + row.size_bytes if isinstance(row, RecordRow) else next_place


def _mend(row: RecordRow, at: int, window: bytes, whole: bytes, *, is_bit: bool) -> Mend:
    before, after = window[: row.size_bytes], whole[: row.size_bytes]
    fields = " and ".join(map(_FIELD_WORDS.__getitem__, restated_fields(before, after)))
    topic = row.topic.decode("utf-8", "surrogateescape")
    has_checksum = row.body_bytes > 0 or has_crc_property(after)
    proof = "; its checksum is right then" if has_checksum else ", whose queue leads here"
    kind, proof = (BIT, "") if is_bit else (HEAD, proof)
    return Mend(kind, at, before, after, topic, row.queue_id, row.queue_offset, proof, fields)


def _bit_of(found: DamagedLog, window: bytes, at: int, unit_bytes: int | None, room: int) -> Bit | None:
    if len(window) < MIN_RECORD_BYTES or not any(window[:MIN_RECORD_BYTES]):
        return None
    sizes = {U32.unpack_from(window)[0], room}
    if unit_bytes is not None:
        sizes.add(unit_bytes)
    bits = {
        bit
        for size in sizes
        if MIN_RECORD_BYTES <= size <= len(window) and (bit := mend_record(window[:size], at)) is not None
    }
    if not bits:
        bits = {bit for bit in structure_bits(window, at) if has_unit(found, flipped(window, bit), at)}
    return next(iter(bits)) if len(bits) == 1 else None


def _bit_of_length(found: DamagedLog, window: bytes, at: int, end: int) -> Bit | None:
    """Returns the wrong bit of a length, if the record ends where the next one begins without it."""
    if len(window) < MIN_RECORD_BYTES or end - at > len(window):
        return None
    bit = bit_of_field("size_bytes", U32.unpack_from(window)[0] ^ (end - at))
    if bit is None:
        return None
    row = examine(memoryview(flipped(window, bit)), 0, at)
    if isinstance(row, Damage) or not row.body_bytes or _has_other_unit(found, row):
        return None
    return bit


def _restated(found: DamagedLog, window: bytes, at: int, unit: _Unit | None) -> bytes | None:
    if len(window) < MIN_RECORD_BYTES or not any(window[:MIN_RECORD_BYTES]):
        return None
    for size in {U32.unpack_from(window)[0], 0 if unit is None else unit.size_bytes}:
        if MIN_RECORD_BYTES <= size <= len(window):
            made = restate(window[:size], at)
            if made is not None and (has_unit(found, made, at) or has_crc_property(made)):
                return made
    if unit is not None and unit.queue_id >= 0 and MIN_RECORD_BYTES <= unit.size_bytes <= len(window):
        made = restate_by_unit(window[: unit.size_bytes], at, unit.queue_id, unit.queue_offset)
        if made is not None and has_unit(found, made, at):
            return made
    return None


def has_unit(found: DamagedLog, record: bytes, at: int) -> bool:
    """Returns whether the queue that a record names has a unit that leads to it."""
    row = examine(memoryview(record), 0, at)
    if isinstance(row, Damage):
        return False
    topic = row.topic.decode("utf-8", "surrogateescape")
    state = found.queues.get((topic, row.queue_id))
    if state is not None:
        for first, part in ((state.first_slot, state.units), (state.behind_slot, state.behind)):
            slot = row.queue_offset - first
            units = part[slot : slot + 1] if slot >= 0 else part[:0]
            if units[["phy_offset", "size_bytes"]].tolist() == [(at, row.size_bytes)]:
                return True
        return False
    batch = found.batch_queues.get((topic, row.queue_id))
    if batch is None:
        return False
    units = np.concatenate([batch.units, batch.behind])
    same = (units["phy_offset"] == at) & (units["size_bytes"] == row.size_bytes)
    return bool((same & (units["base_queue_offset"] == row.queue_offset)).any())


def _has_other_unit(found: DamagedLog, row: RecordRow) -> bool:
    """Returns whether the queue that a record names has another unit for its queue offset."""
    key = row.topic.decode("utf-8", "surrogateescape"), row.queue_id
    state, batch = found.queues.get(key), found.batch_queues.get(key)
    if state is not None and row.queue_offset >= state.first_slot:
        slot = row.queue_offset - state.first_slot
        return bool(is_message(state.units[slot : slot + 1]).any())
    return batch is not None and bool((batch.units["base_queue_offset"] == row.queue_offset).any())


def _units_between(found: DamagedLog, start: int, end: int) -> dict[int, _Unit]:
    """Returns the units that lead into a stretch, by physical offset."""
    units: dict[int, _Unit] = {}
    for batch in found.batch_queues.values():
        joined = np.concatenate([batch.units, batch.behind])
        for at in _leading_into(joined, start, end):
            units[int(joined["phy_offset"][at])] = _Unit(int(joined["size_bytes"][at]))
    # Plain queues last: a unit of a further queue (LMQ) leads to a record of such a queue.
    for state in sorted(found.queues.values(), key=lambda state: not state.topic.startswith(LMQ_PREFIX)):
        for slot, part in ((state.first_slot, state.units), (state.behind_slot, state.behind)):
            for at in _leading_into(part, start, end):
                if is_message(part[at : at + 1])[0]:
                    is_own = not state.topic.startswith(LMQ_PREFIX)
                    queue = (state.queue_id, slot + at) if is_own else (-1, -1)
                    units[int(part["phy_offset"][at])] = _Unit(int(part["size_bytes"][at]), *queue)
    return units


def _leading_into(units: npt.NDArray[np.void], start: int, end: int) -> list[int]:
    """Returns the numbers of the units that lead into a stretch."""
    inside = (units["phy_offset"] >= start) & (units["phy_offset"] < end)
    return np.flatnonzero(inside).tolist()
