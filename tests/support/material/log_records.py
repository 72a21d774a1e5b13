"""Records of a golden store's commit log, read straight from its files."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from seglog.storage.format.record.message import Message, decode_message
from seglog.storage.format.record.record import Damage, RecordRow, examine


class LogRecord(NamedTuple):
    """A record at its place in the log."""

    phy_offset: int
    row: RecordRow
    record: bytes

    @property
    def topic(self) -> str:
        """Of the message."""
        return self.row.topic.decode("utf-8", "replace")

    @property
    def properties(self) -> bytes:
        """As stored."""
        at = self.row.properties_at
        return self.record[at : at + self.row.properties_bytes]

    def message(self) -> Message:
        """Returns the message."""
        return decode_message(self.record)


def iter_log(store: Path) -> Iterator[LogRecord]:
    """Yields the records of every segment up to the first thing that is none."""
    for segment in sorted((store / "commitlog").iterdir()):
        first, at = int(segment.name), 0
        # Mapped, not read: a segment may be a gigabyte of hole.
        with (
            segment.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
            memoryview(mapped) as data,
        ):
            while not isinstance(row := examine(data, at, first + at, verify=False), Damage):
                yield LogRecord(first + at, row, bytes(data[at : at + row.size_bytes]))
                at += row.size_bytes
