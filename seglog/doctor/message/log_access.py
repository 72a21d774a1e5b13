"""The log of a store without a survey: records by place, keys by index, and one scan.

A survey walks the whole log, and a request for one message should not wait for that. So the files are listed,
records are read where index entries or ids lead, and each record is verified. :meth:`LogView.scan` walks the
log if it must: records by the walk's kernel, and texts in them by a search over whole windows of bytes,
so that only records that hold one of the texts are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from seglog.errors import CorruptError
from seglog.storage.directory import (
    IndexFile,
    LogReader,
    demand_store,
    hashes_at,
    known_topics,
    list_index_files,
    list_store,
)
from seglog.storage.files import Files
from seglog.storage.format.index import MAX_TIMESTAMP_MS, key_hash, tag_key
from seglog.storage.format.names import DLQ_PREFIX, HALF_TOPIC, PARK_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC
from seglog.storage.format.record import (
    FILLER,
    FILLER_BYTES,
    MAGIC_V1,
    MAGIC_V2,
    MIN_RECORD_BYTES,
    Message,
    decode_message,
)
from seglog.storage.format.system_names import TIMER_TOPIC
from seglog.storage.index import iter_places, uncovered, usable
from seglog.storage.index_check import is_whole
from seglog.storage.walk import Hole, LogScan, Progress

_MAGICS: Final = (MAGIC_V1, MAGIC_V2)


@dataclass(frozen=True, slots=True)
class Scanned:
    """The result of a scan.

    Attributes:
        phy_offsets: Physical offsets of the records that hold one of the texts, in order.
        start: Start of the scan.
        end: End of the scan: the log's end, or the end that the caller set.
        holes: Stretches that could not be read.
        records: Number of records that were walked.
    """

    phy_offsets: tuple[int, ...]
    start: int
    end: int
    holes: tuple[Hole, ...]
    records: int


class LogView:
    """A store whose records are looked up one by one; writes nothing, works beside a writer.

    Attributes:
        root: The store directory.
        listing: Its files at the time of creation.
        index: The usable files of the index, oldest first.

    Args:
        files: Where the store is.
        root: The store directory.

    Raises:
        NotFoundError: There is no store.
        NotAStoreError: ``root`` is not a store.
        UnsupportedStoreError: A store of another kind.
    """

    def __init__(self, files: Files, root: Path) -> None:
        demand_store(files, root)
        self.files = files
        self.root = root
        self.listing = list_store(files, root)
        found, _damaged = list_index_files(files, root)
        self.index: list[IndexFile] = usable(found)
        self._reader = LogReader(files, root, self.segment_size_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()

    @property
    def segment_size_bytes(self) -> int:
        """Length of every file of the log."""
        return self.listing.geometry.segment_size_bytes

    @property
    def start(self) -> int:
        """Start of the log, a physical offset."""
        return min((file.first_offset for file in self.listing.log_files), default=0)

    @cached_property
    def topics(self) -> list[str]:
        """Topics that may be in the log, sorted: from folders, topics.json, and the groups of these."""
        found = {topic for topic, _queue in (*self.listing.queue_files, *self.listing.batch_files)}
        found |= known_topics(self.files, self.root) or frozenset()
        found |= {SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC}
        # A queue whose folder was lost is still in the index.
        groups = {topic.removeprefix(RETRY_PREFIX) for topic in found if topic.startswith(RETRY_PREFIX)}
        return sorted(
            found.union(f"{prefix}{group}" for prefix in (DLQ_PREFIX, PARK_PREFIX) for group in groups)
        )

    def record_at(self, phy_offset: int) -> memoryview | None:
        """Returns the bytes of the record that states a place as its start, None if there is none."""
        if phy_offset < self.start:
            return None
        head = self._reader.read(phy_offset, FILLER_BYTES)
        if len(head) < FILLER_BYTES:
            return None
        size, magic = FILLER.struct.unpack(head)
        if magic not in _MAGICS or size < MIN_RECORD_BYTES:
            return None
        record = self._reader.read(phy_offset, size)
        return record if len(record) == size else None

    def message_at(self, phy_offset: int) -> Message | None:
        """Returns the message whose valid record starts at a place, None if there is none."""
        record = self.record_at(phy_offset)
        try:
            message = None if record is None else decode_message(record, verify=True)
        except CorruptError:
            return None
        return message if message is not None and message.phy_offset == phy_offset else None

    def doubt_index(self) -> bool:
        """Leaves damaged files of the index out; returns whether there are any.

        Asked before a message is denied, as it reads all of them.
        """
        whole = [file for file in self.index if is_whole(self.files, file)]
        has_damaged, self.index = len(whole) < len(self.index), whole
        return has_damaged

    def not_indexed(self) -> list[tuple[int | None, int | None]]:
        """Returns the stretches of the log that the index does not cover; None for the log's start or end.

        Each begins with the last record of an index file, which may have further keys.
        """
        if not self.index:
            return [(None, None)]
        start, end = self.start, max(file.header.end_phy_offset for file in self.index)
        between = uncovered(self.index, start, end)
        found = [(None if begin == start else begin, stop) for begin, stop in between]
        return [*found, (end, None)]

    def index_places(self, topic: str, key: str) -> Iterator[tuple[str, int]]:
        """Yields index file and place of each entry that may belong to a key of a topic, newest first."""
        hashed = key_hash(f"{topic}#{key}")
        for file in reversed(self.index):
            for phy_offset in iter_places(self.files, file, hashed, 0, MAX_TIMESTAMP_MS):
                yield file.path.name, phy_offset

    def tag_entries(self, topic: str, tag: str, phy_offset: int) -> Iterator[str]:
        """Yields the index files that lead to a record by its tag.

        They are searched by the record's place, because the chain of a tag may be as long as the log.
        """
        hashed = key_hash(tag_key(topic, tag))
        for file in self.index:
            is_inside = file.header.begin_phy_offset <= phy_offset <= file.header.end_phy_offset
            if is_inside and hashed in hashes_at(self.files, file, phy_offset):
                yield file.path.name

    def scan(
        self,
        texts: Sequence[bytes],
        start: int | None = None,
        end: int | None = None,
        progress: Progress | None = None,
    ) -> Scanned:
        """Walks the log and returns the records that hold one of some texts anywhere.

        Args:
            texts: The texts.
            start: Where to begin, the start of a record; None for the log's start.
            end: Where to end; None for the log's end.
            progress: Called with bytes read and bytes in all.
        """
        segment = self.segment_size_bytes
        reader = LogReader(self.files, self.root, segment)
        begun = self.start if start is None else max(start, self.start)
        found: set[int] = set()
        records = 0
        with closing(LogScan(reader, self.listing.log_files, segment, verify=False)) as scan:
            if begun > self.start:
                scan.resume(begun, (begun, 0), {})
            for window in scan.iter_rows(progress):
                rows = window if end is None else window[window["phy_offset"] < end]
                if len(rows):
                    records += len(rows)
                    found.update(self._holding(rows["phy_offset"], int(rows["size_bytes"][-1]), texts))
                if end is not None and scan.end_phy_offset >= end:
                    break
        ended = scan.end_phy_offset if end is None else min(end, scan.end_phy_offset)
        holes = tuple(hole for hole in scan.holes if hole.phy_offset < ended)
        return Scanned(tuple(sorted(found)), begun, ended, holes, records)

    def _holding(
        self, phy_offsets: npt.NDArray[np.int64], last_bytes: int, texts: Sequence[bytes]
    ) -> set[int]:
        """Returns which of some consecutive records hold one of the texts."""
        start = int(phy_offsets[0])
        window = bytes(self._reader.read(start, int(phy_offsets[-1]) + last_bytes - start))
        found: set[int] = set()
        for text in texts:
            at = window.find(text)
            while at >= 0:
                number = int(np.searchsorted(phy_offsets, start + at, "right")) - 1
                found.add(int(phy_offsets[number]))
                if number + 1 == len(phy_offsets):
                    break
                at = window.find(text, int(phy_offsets[number + 1]) - start)
        return found
