"""Looks up keys in index files.

Only hashes are stored: callers must compare the keys of the records found. Files are asked newest
first, and chains lead from newer to older entries, so the newest records are found first.

Source: ``store/.../index/IndexFile.java selectPhyOffset``, ``IndexService.java queryOffset``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.errors import CorruptError
from seglog.storage.format.index.index import (
    INDEX_ENTRY,
    INDEX_HEADER,
    IndexGeometry,
    IndexHeader,
    decode_index_header,
)
from seglog.storage.format.layout import I32_ITEMS, Buffer

MAX_TIMESTAMP_MS: Final = 0x7FFF_FFFF_FFFF_FFFF
DEFAULT_QUERY_LIMIT: Final = 64
"""``maxMsgsNumBatch``: more than this many places RocketMQ does not return."""
_SECOND_MS: Final = 1000

Entries = npt.NDArray[np.void]
Slots = npt.NDArray[np.int32]


class IndexView:
    """A file as arrays that share its memory; follows a writer, valid as long as the buffer.

    Args:
        buffer: The whole file.
        geometry: Its division.

    Raises:
        CorruptError: The file has another length.
    """

    __slots__ = ("_buffer", "entries", "geometry", "slots")

    def __init__(self, buffer: Buffer, geometry: IndexGeometry) -> None:
        if len(buffer) != geometry.file_size_bytes:
            raise CorruptError(
                "index-size", expected=f"{geometry.file_size_bytes} bytes", found=f"{len(buffer)}"
            )
        self._buffer = buffer
        self.geometry = geometry
        self.slots: Slots = np.frombuffer(buffer, I32_ITEMS, geometry.slot_count, INDEX_HEADER.size_bytes)
        self.entries: Entries = np.frombuffer(
            buffer, INDEX_ENTRY.dtype, geometry.entry_count, geometry.entries_at
        )
        self.slots.flags.writeable = False
        self.entries.flags.writeable = False

    @property
    def header(self) -> IndexHeader:
        """The header as it is now."""
        return decode_index_header(self._buffer)

    @property
    def entries_in_use(self) -> Entries:
        """``(n,) INDEX_ENTRY.dtype``, entries 1 to n."""
        return self.entries[1 : self.header.index_count]

    @property
    def is_full(self) -> bool:
        """Whether the next entry needs another file."""
        return self.header.index_count >= self.geometry.entry_count

    def select(
        self, hashed: int, *, begin_ms: int = 0, end_ms: int = MAX_TIMESTAMP_MS, limit: int | None = None
    ) -> list[int]:
        """Returns where the records of one hash are, newest first.

        Entries know their time to the second, so records up to a second outside of the range come too.

        Args:
            hashed: See :func:`key_hash`.
            begin_ms: Earliest store time.
            end_ms: Latest store time.
            limit: At most this many.
        """
        found: list[int] = []
        for its_hash, phy_offset, time_ms in self._chain(hashed):
            if time_ms + _SECOND_MS <= begin_ms or (limit is not None and len(found) >= limit):
                break
            if its_hash == hashed and time_ms <= end_ms:
                found.append(phy_offset)
        return found

    def _chain(self, hashed: int) -> Iterator[tuple[int, int, int]]:
        """Yields hash, place and time of the entries of a slot, newest first.

        Ends where a damaged chain stops leading backwards, so it is linear for any bytes.
        """
        header = self.header
        unpack, entries_at, size = (
            INDEX_ENTRY.struct.unpack_from,
            self.geometry.entries_at,
            INDEX_ENTRY.size_bytes,
        )
        below = min(header.index_count, self.geometry.entry_count)
        entry = int(self.slots[hashed % self.geometry.slot_count])
        while 0 < entry < below:
            below = entry
            its_hash, phy_offset, diff_s, entry = unpack(self._buffer, entries_at + size * entry)
            if diff_s < 0:
                return
            # The difference of entry 1 counts from the end of the file before, but its time is known.
            yield its_hash, phy_offset, header.begin_timestamp_ms + (_SECOND_MS * diff_s if below > 1 else 0)
