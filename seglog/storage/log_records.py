"""Reads records one after the other, for what follows the log: the key index, and queries beyond it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from seglog.storage.format import properties as props
from seglog.storage.format.index_keys import IndexedRecord
from seglog.storage.format.record import FILLER, FILLER_BYTES, MAGIC_BLANK, Damage, examine
from seglog.storage.log_files import LogReader, last_data_end
from seglog.storage.log_scan import Hole

_WINDOW_BYTES: Final = 4 << 20


def iter_records(
    reader: LogReader, segment_size_bytes: int, start: int, end: int, holes: Sequence[Hole] = ()
) -> Iterator[tuple[IndexedRecord, int]]:
    """Yields the records of ``[start, end)`` in log order, each with the physical offset of its end.

    Args:
        reader: The log.
        segment_size_bytes: Length of its files.
        start: Where a record starts.
        end: Where one ends; everything before it but the holes is sound.
        holes: Stretches without records.
    """
    behind = {hole.phy_offset: hole.end for hole in holes}
    # No window reaches into a hole: what is there may pass for a record where checksums are not looked at.
    starts = sorted([*behind, end])
    at = start
    need = _WINDOW_BYTES
    while at < end:
        at = behind.get(at, at)
        segment_end = at - at % segment_size_bytes + segment_size_bytes
        sound_end = min(end, starts[min(bisect_right(starts, at), len(behind))])
        window = reader.read(at, min(need, segment_end - at, sound_end - at))
        position = 0
        for record, size in _whole_records(window, at):
            yield record, record.phy_offset + size
            position += size
        at += position
        rest = window[position:]
        if at in behind:
            continue
        if _ends_segment(rest, segment_end - at):
            at = segment_end
        elif position == 0:
            if need >= segment_size_bytes:
                return  # not sound after all: whoever asked knows less than a survey
            need *= 4
            continue
        need = _WINDOW_BYTES


def has_record_crc(reader: LogReader, newest: np.void) -> bool:
    """Returns whether a record carries ``__CRC32#``.

    Args:
        reader: The log.
        newest: The ``ROW`` of the record.
    """
    record = bytes(reader.read(int(newest["phy_offset"]), int(newest["size_bytes"])))
    return record[-props.CRC_PROPERTY_BYTES :].startswith(props.CRC_NAME)


class RecordsBehind:
    """Tells whether whole records lie behind the end of the log.

    Args:
        reader: The log.
        end_phy_offset: Where it ends.
        segment_size_bytes: Length of its files.
    """

    def __init__(self, reader: LogReader, end_phy_offset: int, segment_size_bytes: int) -> None:
        self._reader = reader
        self._end = end_phy_offset
        self._segment_size_bytes = segment_size_bytes
        self._data_ends: dict[int, int] = {}

    def has_record(self, phy_offset: int) -> bool:
        """Returns whether one lies at a place behind the end; quick where nothing was ever written."""
        first = phy_offset - phy_offset % self._segment_size_bytes
        segment_end = first + self._segment_size_bytes
        if first not in self._data_ends:
            self._data_ends[first] = last_data_end(self._reader, max(first, self._end), segment_end)
        if phy_offset >= self._data_ends[first]:
            return False
        window = self._reader.read(phy_offset, min(_WINDOW_BYTES, segment_end - phy_offset))
        return not isinstance(examine(window, 0, phy_offset), Damage)


def _ends_segment(rest: memoryview, room: int) -> bool:
    """Returns whether no record can follow in the segment: its end, or a filler."""
    if room < FILLER_BYTES:
        return True
    return len(rest) >= FILLER_BYTES and FILLER.struct.unpack_from(rest)[1] == MAGIC_BLANK


def _whole_records(window: memoryview, phy_offset: int) -> Iterator[tuple[IndexedRecord, int]]:
    """Yields the records at the start of the window and their sizes."""
    at = 0
    while True:
        row = examine(window, at, phy_offset + at, verify=False)
        if isinstance(row, Damage):
            return
        start = at + row.properties_at
        yield (
            IndexedRecord(
                phy_offset + at,
                row.store_timestamp_ms,
                row.sys_flag,
                row.topic.decode("utf-8", "replace"),
                bytes(window[start : start + row.properties_bytes]),
            ),
            row.size_bytes,
        )
        at += row.size_bytes
