"""Records of a compaction log held against those of the commit log that they are copies of.

The commit log is the truth: where it has the record of a queue offset, a copy that differs is written again
from it, in its place. A record that cannot be read, and that the commit log has no more, costs only itself: a
tombstone takes its place, since what is behind it proves where it ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seglog.errors import MessageIllegalError
from seglog.storage.compaction.rebuild import read_filler, sound_record
from seglog.storage.directory.index_files import IndexFile, known_hashes, list_index_files
from seglog.storage.directory.log_files import LogReader
from seglog.storage.files.files import Files, OpenFile
from seglog.storage.format.queue import BATCH_UNIT, BATCH_UNIT_BYTES, Units
from seglog.storage.format.queue.compaction import compaction_key, compaction_record
from seglog.storage.format.record.record import MIN_RECORD_BYTES, Damage, RecordRow, examine
from seglog.storage.format.record.tombstone import (
    LostRecord,
    encode_tombstone,
    is_tombstone,
    tombstone_tags_code,
)
from seglog.storage.kernels.index_keys import index_keys


class Source(NamedTuple):
    """A record of the commit log that a copy should be the same as, and where it is."""

    phy_offset: int
    row: RecordRow


class LostCopy(NamedTuple):
    """A record of a compaction log that is lost: what its unit says."""

    record: LostRecord
    store_timestamp_ms: int

    @property
    def tags_code(self) -> int:
        """The code that the unit of its tombstone has."""
        return tombstone_tags_code(self.record, self.store_timestamp_ms, record_crc=False)

    def tombstone(self) -> bytes:
        """Returns the record that takes its place."""
        return encode_tombstone(self.record, self.store_timestamp_ms, record_crc=False)


class HeldCopies:
    """What the files of a compaction queue are held against, and what that comes to.

    Attributes:
        records: Those of the commit log; None to believe the files.
        copies: Records that are written again, by place: place in the commit log, and size.
        lost: Records that tombstones stand in for, by place.
    """

    def __init__(self, records: CommitRecords | None) -> None:
        self.records = records
        self.copies: dict[int, tuple[int, int]] = {}
        self.lost: dict[int, LostCopy] = {}

    def differs(self, record: memoryview, unit: tuple[int, ...]) -> bool:
        """Returns whether the commit log has the record of a unit, and otherwise; notes it then."""
        place, size, code, store_ms, queue_offset, *_ = unit
        source = None if self.records is None else self.records.differing(record, place, queue_offset)
        if source is None or (source.row.tags_code, source.row.store_timestamp_ms) != (code, store_ms):
            return False
        self.copies[place] = source.phy_offset, size
        return True

    def tags_code_of(self, record: memoryview, place: int, row: RecordRow) -> int:
        """Returns the code of a record's tag, that of the commit log if it has it; notes if it differs."""
        source = None if self.records is None else self.records.differing(record, place, row.queue_offset)
        if source is None or source.row.store_timestamp_ms != row.store_timestamp_ms:
            return row.tags_code
        self.copies[place] = source.phy_offset, row.size_bytes
        return source.row.tags_code

    def give_up(self, topic: str, queue_id: int, unit: tuple[int, ...]) -> None:
        """Notes that the record of a unit is lost."""
        place, size, _code, store_ms, queue_offset, *_ = unit
        self.lost[place] = LostCopy(LostRecord(topic, queue_id, queue_offset, place, size), store_ms)

    def keep_only(self, firsts: AbstractSet[int], log_bytes: int) -> None:
        """Forgets what is in other log files than those of some first offsets."""
        self.copies = {
            place: one for place, one in self.copies.items() if place - place % log_bytes in firsts
        }
        self.lost = {place: one for place, one in self.lost.items() if place - place % log_bytes in firsts}

    def take(self, noted: HeldCopies) -> None:
        """Adds what was noted elsewhere."""
        self.copies |= noted.copies
        self.lost |= noted.lost


class CommitRecords:
    """The records of a queue in the commit log, by queue offset.

    Args:
        files: Where the store is.
        root: The store directory.
        reader: Reads the commit log.
        queue: The topic, and the number of the queue.
        first_slot: Queue offset of the first unit.
        units: ``(n,) CQ_UNIT.dtype``: only hints, each record proves itself.
    """

    def __init__(
        self,
        files: Files,
        root: Path,
        reader: LogReader,
        queue: tuple[str, int],
        first_slot: int,
        units: Units,
    ) -> None:
        self._files = files
        self._root = root
        self._reader = reader
        self._index: list[IndexFile] | None = None
        self._queue = (queue[0].encode("utf-8", "surrogateescape"), queue[1])
        self._first_slot = first_slot
        self._units = units

    def differing(self, copy: memoryview, phy_offset: int, queue_offset: int) -> Source | None:
        """Returns the record that a copy should be the same as and is not; None if there is none.

        Args:
            copy: What is in the compaction log.
            phy_offset: Where.
            queue_offset: Whose place it is.
        """
        slot = queue_offset - self._first_slot
        if not 0 <= slot < len(self._units):
            return None
        place, size, _code = self._units[slot].item()
        if size != len(copy) or place < 0:
            return None
        record = self._reader.read(place, size)
        if len(record) != size or compaction_record(record, phy_offset) == copy:
            return None
        row = examine(record, 0, place)
        if not isinstance(row, RecordRow) or (row.topic, row.queue_id, row.queue_offset, row.size_bytes) != (
            *self._queue,
            queue_offset,
            size,
        ):
            return None
        if not has_key(record, place) or is_tombstone(record):
            return None
        if sound_record(copy, phy_offset) is not None and self._is_doubted(record, place, row):
            return None
        return Source(place, row)

    def _is_doubted(self, record: memoryview, place: int, row: RecordRow) -> bool:
        """Returns whether the index has other keys of a record of the commit log, as damage leaves it."""
        keys = index_keys(record, place, tags=False)
        if keys.with_crc:
            return False
        if self._index is None:
            self._index = list_index_files(self._files, self._root)[0]
        known = known_hashes(self._files, self._index, place, row.store_timestamp_ms)
        return bool(known) and not known.issuperset(keys.rows["key_hash"].tolist())


def has_key(record: memoryview, phy_offset: int) -> bool:
    """Returns whether a record of the commit log belongs into a compaction log."""
    row = examine(record, 0, phy_offset, verify=False)
    if isinstance(row, Damage):
        return False
    start = row.properties_at
    try:
        compaction_key(bytes(record[start : start + row.properties_bytes]))
    except MessageIllegalError:
        return False
    return True


def sound_record_at(log: OpenFile, record: memoryview, place: int, first: int) -> RecordRow | None:
    """Returns the record that begins at a place of a log file, if it is sound, however long it says it is.

    Args:
        log: The log file.
        record: What is there, as long as the unit says.
        place: Where.
        first: First offset of the file.
    """
    if place < first:
        return None
    size, _magic = read_filler(log, place - first)
    if size != len(record):
        is_within = MIN_RECORD_BYTES <= size <= log.size_bytes - (place - first)
        record = memoryview(bytearray(size if is_within else 0))
        log.read_into(record, place - first)
    return sound_record(record, place)


def with_tags_codes(data: bytes, lost: Mapping[int, LostCopy], indexes: Sequence[int]) -> bytes:
    """Returns a queue file of which units have the codes of the tombstones that they lead to.

    Args:
        data: The file.
        lost: What is lost, by place.
        indexes: Numbers of the units.
    """
    content = bytearray(data)
    units = np.frombuffer(content, BATCH_UNIT.dtype, len(content) // BATCH_UNIT_BYTES)
    for index in indexes:
        units["tags_code"][index] = lost[int(units["phy_offset"][index])].tags_code
    return bytes(content)
