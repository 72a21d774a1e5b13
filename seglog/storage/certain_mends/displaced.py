"""Brings records back that stand whole in a hole of the log, or after its end, and state another place.

So it is after sectors were swapped, or written to a wrong place. A unit of the record's queue has to lead
to the stated place, with the record's length and queue offset, and that place has to be in a hole or after
the end too: no record that can be read is written over. What was erased stays erased.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

from seglog.storage.certain_mends.bits import DamagedLog, has_unit
from seglog.storage.certain_mends.from_attic import is_erased, whole_records
from seglog.storage.certain_mends.mend import MOVED, Mend
from seglog.storage.directory.log_files import LogReader
from seglog.storage.files.files import Files
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.record.record import Damage, examine
from seglog.storage.format.record.tombstone import is_tombstone
from seglog.storage.small_files.erased_places import erased_places

_MAX_RECORD_BYTES: Final = 192 << 10
_PIECE_BYTES: Final = 4 << 20


def mends_of_displaced(found: DamagedLog, files: Files, made: Sequence[Mend]) -> list[Mend]:
    """Returns the mends of records in the holes of a log that other stretches of holes have, in log order.

    Args:
        found: The log.
        files: The file layer of the store.
        made: The mends of what is at its place; nothing is written over these.
    """
    if not found.holes:
        return []
    segment = found.segment_size_bytes
    taken = [range(mend.phy_offset, mend.phy_offset + len(mend.after)) for mend in made]
    mends: dict[int, Mend | None] = {}
    with closing(LogReader(files, found.root, segment)) as reader:
        for start, stop in found.unreadable:
            for at, mend in _between(found, reader, start, stop):
                place, end = mend.phy_offset, mend.phy_offset + len(mend.after)
                if at == place or any(place < one.stop and one.start < end for one in taken):
                    continue
                other = mends.setdefault(place, mend)
                if other is not None and other.after != mend.after:
                    mends[place] = None  # of two records nothing says which it was
    certain = [mend for _place, mend in sorted(mends.items()) if mend is not None]
    erased = erased_places(files, found.root) if certain else set()
    return [mend for mend in certain if not is_erased(mend, erased)]


def _between(found: DamagedLog, reader: LogReader, start: int, stop: int) -> Iterator[tuple[int, Mend]]:
    """Yields where a record stands in a stretch, and the mend that writes it to the place that it states."""
    segment = found.segment_size_bytes
    at = start
    while at < stop:
        end = min(stop, at - at % segment + segment)
        data_at = reader.next_data(at)
        if data_at is None or data_at >= end:
            at = end
            continue
        at = max(at, data_at)
        data = bytes(reader.read(at, min(end - at, _PIECE_BYTES + _MAX_RECORD_BYTES)))
        for position, place, record, _is_followed in whole_records(data, segment):
            end_of_record = place + len(record)
            if any(first <= place and end_of_record <= last for first, last in found.unreadable):
                there = bytes(reader.read(place, len(record)))
                if len(there) == len(record) and not is_tombstone(memoryview(record)):
                    yield from _mend(found, at + position, place, there, record)
        at = min(at + _PIECE_BYTES, end)


def _mend(found: DamagedLog, at: int, place: int, there: bytes, record: bytes) -> Iterator[tuple[int, Mend]]:
    row = examine(memoryview(record), 0, place, verify=False)
    if isinstance(row, Damage) or not has_unit(found, record, place):
        return
    topic = row.topic.decode("utf-8", "surrogateescape")
    file_at = at - at % found.segment_size_bytes
    proof = f"{segment_file_name(file_at)} +{at - file_at}"
    yield at, Mend(MOVED, place, there, record, topic, row.queue_id, row.queue_offset, proof)
