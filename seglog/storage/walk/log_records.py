"""Reads records one after the other, for the key index, and for queries behind the end of the index."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np

from seglog.storage.directory.log_files import LogReader, last_data_end
from seglog.storage.format.index.index_build import KeyRows
from seglog.storage.format.index.index_keys import IndexedRecord
from seglog.storage.format.index.index_rows import key_rows
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.record import FILLER, FILLER_BYTES, MAGIC_BLANK, Damage, RecordRow, examine
from seglog.storage.kernels import index_keys
from seglog.storage.walk.behind_damage import Hole

_WINDOW_BYTES: Final = 4 << 20
_MAPPED_WINDOW_BYTES: Final = 32 << 20
"""Window of native kernels: they take the GIL once per window, because threads that put hold it for long."""
_BATCH_RECORDS: Final = 4096


class LogWindows:
    """Reads ``[start, end)`` of the log window by window; the caller reports the end of the records in each.

    Args:
        reader: The log.
        segment_size_bytes: Length of its files.
        start: Physical offset of a record.
        end: End of a record; everything before it except the holes is undamaged.
        holes: Stretches without records.
        mapped: Whether native kernels read the windows: then windows may be maps of files.
    """

    def __init__(
        self,
        reader: LogReader,
        segment_size_bytes: int,
        start: int,
        end: int,
        holes: Sequence[Hole] = (),
        *,
        mapped: bool = False,
    ) -> None:
        self._reader = reader
        self._segment_size_bytes = segment_size_bytes
        self._end = end
        self._behind = {hole.phy_offset: hole.end for hole in holes}
        # No window reaches into a hole: without checks of checksums its bytes could pass for a record.
        self._starts = sorted([*self._behind, end])
        self._mapped = mapped
        self._usual_bytes = _MAPPED_WINDOW_BYTES if mapped else _WINDOW_BYTES
        self._need = self._usual_bytes
        self._window = memoryview(b"")
        self.phy_offset = start
        """Physical offset of the last window."""

    def read(self) -> memoryview | None:
        """Returns the next window, None at the end; it begins with a record, unless that is longer."""
        if self.phy_offset >= self._end:
            return None
        at = self.phy_offset = self._behind.get(self.phy_offset, self.phy_offset)
        sound_end = min(self._end, self._starts[min(bisect_right(self._starts, at), len(self._behind))])
        size_bytes = max(0, min(self._need, self._segment_end - at, sound_end - at))
        whole = self._reader.map(at) if self._mapped else None
        if whole is None:
            self._window = self._reader.read(at, size_bytes)
        else:
            position = at % self._segment_size_bytes
            self._window = whole[position : position + size_bytes]
        return self._window

    def took(self, position: int) -> None:
        """Reports the position in the window at which the last whole record ended."""
        segment_end = self._segment_end
        self.phy_offset += position
        if self.phy_offset >= self._end:
            return
        # Read instead of taken from the window: another process may cut the file of a map.
        rest = self._reader.read(self.phy_offset, min(FILLER_BYTES, len(self._window) - position))
        if self.phy_offset in self._behind:
            return
        if _ends_segment(rest, segment_end - self.phy_offset):
            self.phy_offset = segment_end
        elif position == 0:
            if self._need >= self._segment_size_bytes:
                self.phy_offset = self._end  # damaged after all: the caller's facts are older than the damage
            self._need *= 4
            return
        self._need = self._usual_bytes

    @property
    def _segment_end(self) -> int:
        return self.phy_offset - self.phy_offset % self._segment_size_bytes + self._segment_size_bytes


def iter_records(
    reader: LogReader, segment_size_bytes: int, start: int, end: int, holes: Sequence[Hole] = ()
) -> Iterator[tuple[IndexedRecord, int]]:
    """Yields the records of ``[start, end)`` in log order, each with the physical offset of its end.

    Args:
        reader: The log.
        segment_size_bytes: Length of its files.
        start: Physical offset of a record.
        end: End of a record; everything before it except the holes is undamaged.
        holes: Stretches without records.
    """
    windows = LogWindows(reader, segment_size_bytes, start, end, holes)
    while (window := windows.read()) is not None:
        position = 0
        for record, size in _whole_records(window, windows.phy_offset):
            yield record, record.phy_offset + size
            position += size
        windows.took(position)


def iter_key_rows(windows: LogWindows, *, tags: bool) -> Iterator[tuple[KeyRows, int]]:
    """Yields the keys of records in log order, batch by batch, each with the end of its last record.

    Args:
        windows: The stretch of the log.
        tags: Whether tags are keys.

    Yields:
        ``(n,) KEY_ROW``, valid until the next iteration.
    """
    native = index_keys.native_key_rows
    reader = index_keys.KeyReader(native, tags=tags) if native is not None else None
    while (window := windows.read()) is not None:
        position, at = 0, windows.phy_offset
        if reader is not None:
            while position < len(window):
                rows, end = reader.read(window, at, position)
                if end == position:
                    break
                position = end
                yield rows, at + position
        else:
            records = _whole_records(window, at)
            while batch := list(islice(records, _BATCH_RECORDS)):
                position += sum(size for _record, size in batch)
                yield key_rows([record for record, _size in batch], tags=tags), at + position
        windows.took(position)


def has_record_crc(reader: LogReader, newest: np.void) -> bool:
    """Returns whether a record carries ``__CRC32#``.

    Args:
        reader: The log.
        newest: The ``ROW`` of the record.
    """
    return props.ends_with_record_crc(reader.read(int(newest["phy_offset"]), int(newest["size_bytes"])))


def record_at(
    reader: LogReader, phy_offset: int, *, verify: bool = True, most_bytes: int = 1 << 31
) -> tuple[memoryview, RecordRow] | None:
    """Returns the bytes and the fields of the record that starts at a place; None if none does.

    Args:
        reader: The log.
        phy_offset: The place.
        verify: Whether to check checksums.
        most_bytes: Longer records are not read.
    """
    head = reader.read(phy_offset, FILLER_BYTES)
    size = FILLER.struct.unpack(head)[0] if len(head) == FILLER_BYTES else 0
    record = reader.read(phy_offset, max(0, min(size, most_bytes)))
    row = examine(record, 0, phy_offset, verify=verify)
    return None if isinstance(row, Damage) else (record, row)


class RecordsBehind:
    """Looks for whole records behind the end of the log.

    Args:
        reader: The log.
        end_phy_offset: Its end.
        segment_size_bytes: Length of its files.
    """

    def __init__(self, reader: LogReader, end_phy_offset: int, segment_size_bytes: int) -> None:
        self._reader = reader
        self._end = end_phy_offset
        self._segment_size_bytes = segment_size_bytes
        self._data_ends: dict[int, int] = {}

    def has_record(self, phy_offset: int) -> bool:
        """Returns whether a record starts at a place behind the end; fast if nothing was written there."""
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
