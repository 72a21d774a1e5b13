"""Reads records one after the other, for what follows the log: the key index, and queries beyond it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from seglog.storage.format.index_keys import IndexedRecord
from seglog.storage.format.record import FILLER, FILLER_BYTES, MAGIC_BLANK, Damage, examine
from seglog.storage.log_files import LogReader
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
