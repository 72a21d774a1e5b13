"""Reads one place of the log without walking all of it: its bytes, and the records before and after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.cli.read.reading import check_store, log_as_stated
from seglog.errors import NotFoundError, OffsetRangeError
from seglog.storage.directory import LogFile, LogReader, list_store
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.format.record import FILLER, HEADS, MAGIC_BLANK, Damage, examine
from seglog.storage.kernels.walk import iter_resync

_WINDOW_BYTES: Final = 4 << 20
_LONGEST_BYTES: Final = 8 << 20
"""More bytes than any record has with the default limits."""
_HEAD_BYTES: Final = max(layout.size_bytes for layout in HEADS.values())
_TAIL_BYTES: Final = 2 * (2 + 0x7FFF)
"""Most bytes of topic and properties with their length fields."""


@dataclass(frozen=True, slots=True)
class Near:
    """A record near a place."""

    phy_offset: int
    size_bytes: int


class LogPlaces:
    """The log of a store; close it.

    Args:
        path: The store directory.

    Raises:
        NotFoundError: There is no store, or it has no log.
        NotAStoreError: The path is not a store.
        UnsupportedStoreError: A store of another kind.
    """

    def __init__(self, path: Path) -> None:
        check_store(path)
        files = log_as_stated(path)
        listing = list_store(files, path)
        self.log_files = listing.log_files
        if not self.log_files:
            raise NotFoundError(f"the store at {path} has no commit-log files")
        self.segment_size_bytes = listing.geometry.segment_size_bytes
        self._reader = LogReader(files, path, self.segment_size_bytes)

    def close(self) -> None:
        """Closes the open file."""
        self._reader.close()

    def check(self, phy_offset: int) -> None:
        """Refuses a place that is in no file of the log.

        Raises:
            OffsetRangeError: It is in no file.
        """
        first = self.log_files[0].first_offset
        end = self.log_files[-1].first_offset + self.segment_size_bytes
        if not first <= phy_offset < end:
            raise OffsetRangeError(
                f"{phy_offset} is outside of the commit log's files, {first}..{end - 1}",
                min_offset=first,
                max_offset=end - 1,
            )

    def segment_end(self, phy_offset: int) -> int:
        """Returns the end of the file that holds a place."""
        return phy_offset - phy_offset % self.segment_size_bytes + self.segment_size_bytes

    def file_of(self, phy_offset: int) -> str:
        """Returns the file that holds a place, relative to the store."""
        return f"{COMMIT_LOG}/{segment_file_name(phy_offset - phy_offset % self.segment_size_bytes)}"

    def read_record(self, phy_offset: int) -> memoryview:
        """Returns the bytes of a possible record: as many as its sizes make plausible, at least a head."""
        head = self._reader.read(phy_offset, _HEAD_BYTES)
        if len(head) < _HEAD_BYTES:
            return head
        size, magic = FILLER.struct.unpack_from(head)
        if magic == MAGIC_BLANK or not _HEAD_BYTES < size <= self.segment_end(phy_offset) - phy_offset:
            return head
        sizes = [layout.picking("body_bytes").unpack_from(head)[0] for layout in HEADS.values()]
        # A damaged size must not cause a read of a whole segment: a record is its body and little more.
        likely = max((body for body in sizes if 0 <= body <= size), default=0)
        return self._reader.read(phy_offset, min(size, _HEAD_BYTES + likely + _TAIL_BYTES))

    def read(self, phy_offset: int, size_bytes: int) -> memoryview:
        """Returns up to that many bytes of one file."""
        return self._reader.read(phy_offset, size_bytes)

    def is_unwritten(self, phy_offset: int) -> bool:
        """Returns whether the file has only zeros from a place on."""
        end = self.segment_end(phy_offset)
        return not any(any(bytes(chunk)) for _at, chunk in self._reader.chunks(phy_offset, end))

    def before(self, phy_offset: int) -> Near | None:
        """Returns the last whole record that starts before a place."""
        for file in reversed(self.log_files):
            end = min(phy_offset, file.first_offset + self.segment_size_bytes)
            while end > file.first_offset:
                start = max(file.first_offset, end - _WINDOW_BYTES)
                last: Near | None = None
                for last in self._in_window(start, end):  # noqa: B007 - the last one is wanted
                    pass
                if last is not None:
                    return last
                end = start
        return None

    def after(self, phy_offset: int) -> Near | None:
        """Returns the first whole record that starts after a place."""
        for file in self.log_files:
            start = max(phy_offset + 1, file.first_offset)
            found = next(self._in_file(file, start), None)
            if found is not None:
                return found
        return None

    def _in_file(self, file: LogFile, start: int) -> Iterator[Near]:
        end = file.first_offset + self.segment_size_bytes
        at = self._reader.next_data(start) if start < end else None
        while at is not None and at < end:
            yield from self._in_window(at, min(end, at + _WINDOW_BYTES))
            at = self._reader.next_data(at + _WINDOW_BYTES)

    def _in_window(self, start: int, end: int) -> Iterator[Near]:
        """Yields the whole records that start in a stretch of one segment."""
        window = self._reader.read(start, min(end + _LONGEST_BYTES, self.segment_end(start)) - start)
        for position in iter_resync(window, start, 0):
            if start + position >= end:
                return
            row = examine(window, position, start + position, verify=False)
            if not isinstance(row, Damage):
                yield Near(start + position, row.size_bytes)
