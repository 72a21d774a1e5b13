"""Finds the bytes of erased records in files other than the log.

The attic, undo packs and files that were moved aside hold old bytes. Bytes from the place of an erased
record belong to it, and so does every record that states such a place, or that has the erased key.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from seglog.doctor.erase.erase_journal import Rewrite
from seglog.doctor.erase.residue_search import MAX_NEEDLE_BYTES
from seglog.storage.files import Files, read_part, write_over
from seglog.storage.format.index import record_keys
from seglog.storage.format.layout import I64, U32
from seglog.storage.format.record import (
    MAGIC_AT,
    MIN_RECORD_BYTES,
    PHY_OFFSET_AT,
    RECORD_MAGIC,
    RecordRow,
    examine,
)
from seglog.storage.small_files import ErasedPlace

_WINDOW_BYTES: Final = 8 << 20
_MAX_RECORD_BYTES: Final = 5 << 20
"""Longer records than brokers accept are searched for at their place only."""


@dataclass(slots=True)
class ErasedRecords:
    """Erased records, and their bytes that were found.

    Attributes:
        sizes: Lengths of the records, by place.
        bodies_at: Start and end of the body within each record.
        key: The key whose messages are erased; empty for none.
        places: Records that were found by the key.
        bodies: Their old bodies, up to 256 bytes of each body that was complete.
    """

    sizes: dict[int, int] = field(default_factory=dict)
    bodies_at: dict[int, tuple[int, int]] = field(default_factory=dict)
    key: str = ""
    places: set[ErasedPlace] = field(default_factory=set)
    bodies: set[bytes] = field(default_factory=set)
    _starts: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, rewrites: Iterable[Rewrite], key: str = "") -> Self:
        """Returns the records that an erase writes."""
        made = cls(key=key)
        for one in rewrites:
            row = examine(memoryview(one.data), 0, one.phy_offset)
            made.sizes[one.phy_offset] = len(one.data)
            if isinstance(row, RecordRow):
                made.bodies_at[one.phy_offset] = row.body_at, row.body_at + row.body_bytes
        return made

    def zeroed(self, data: bytes, phy_offset: int | None) -> bytes:
        """Returns bytes in which those of the records are zeros.

        Args:
            data: Old bytes.
            phy_offset: Their place in the log; None for bytes of other files.
        """
        made = bytearray(data)
        if phy_offset is not None:
            for place in self._places_in(phy_offset, phy_offset + len(data)):
                self._zero(made, data, place, place - phy_offset)
        view = memoryview(data)
        for match in RECORD_MAGIC.finditer(data, MAGIC_AT):
            at = match.start() - MAGIC_AT
            if len(view) - at < MIN_RECORD_BYTES:
                break
            stated = _stated(data, at)
            if self.sizes.get(stated) == U32.unpack_from(view, at)[0]:
                self._zero(made, data, stated, at)
            elif self.key and stated >= 0:
                self._zero_keyed(made, view, stated, at)
        return bytes(made)

    def zero_in_file(self, files: Files, path: Path, phy_offset: int | None = None) -> int:
        """Zeroes the bytes of the records in a file without checksums, durably; returns their number.

        Args:
            files: Access to the store.
            path: The file.
            phy_offset: Place of its first byte in the log; None for other files.
        """
        count = 0
        with closing(files.open(path, writable=False)) as handle:
            at = handle.next_data(0)
            while at is not None and at < handle.size_bytes:
                data = bytes(read_part(handle, at, _WINDOW_BYTES + _MAX_RECORD_BYTES))
                made = self.zeroed(data, None if phy_offset is None else phy_offset + at)
                if made != data:
                    count += changed_bytes(data, made)
                    write_over(files, path, at, made)
                at = handle.next_data(at + _WINDOW_BYTES)
        return count

    def _places_in(self, start: int, end: int) -> list[int]:
        """Returns the places of the records that have bytes in a stretch of the log."""
        if not self._starts:
            self._starts = sorted(self.sizes)
        low = bisect_right(self._starts, start - max(self.sizes.values(), default=0))
        return self._starts[low : bisect_left(self._starts, end)]

    def _zero(self, made: bytearray, data: bytes, place: int, at: int) -> None:
        """Zeroes the record of a place, which starts at ``at`` in the bytes, or before their start."""
        low, high = self.bodies_at.get(place, (0, 0))
        # If sectors were swapped, the bytes at a place belong to another record.
        is_own = at >= 0 and (RECORD_MAGIC.match(data, at + MAGIC_AT) is None or _stated(data, at) == place)
        if is_own and low < high and at + high <= len(data):
            self.bodies.add(data[at + low : at + min(high, low + MAX_NEEDLE_BYTES)])
        start, end = max(0, at), min(at + self.sizes[place], len(made))
        if start < end:
            made[start:end] = bytes(end - start)

    def _zero_keyed(self, made: bytearray, view: memoryview, stated: int, at: int) -> None:
        row = examine(view, at, stated)
        if isinstance(row, RecordRow) and self.key in _keys(view, row):
            topic = row.topic.decode("utf-8", "replace")
            self.places.add(ErasedPlace(stated, row.size_bytes, topic, row.queue_id, row.queue_offset))
            self.bodies.add(bytes(view[row.body_at : row.body_at + min(row.body_bytes, MAX_NEEDLE_BYTES)]))
            made[at : at + row.size_bytes] = bytes(row.size_bytes)


def changed_bytes(before: bytes, after: bytes) -> int:
    """Returns the number of bytes that differ; both have the same length."""
    return sum(was != now for was, now in zip(before, after, strict=True))


def _stated(data: bytes, at: int) -> int:
    """Returns the place that the record at a position states."""
    return int(I64.unpack_from(data, at + PHY_OFFSET_AT)[0])


def _keys(view: memoryview, row: RecordRow) -> set[str]:
    properties = bytes(view[row.properties_at : row.properties_at + row.properties_bytes])
    topic = row.topic.decode("utf-8", "replace")
    keys = record_keys(topic, properties, row.sys_flag, tags=False)
    return {key.partition("#")[2] if key.startswith(f"{topic}#") else key for key in keys}
