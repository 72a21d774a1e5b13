"""The queue file of a compaction log's file, rebuilt from the records of that file.

A queue file follows from its log file record by record. It ends with an end unit, if it has room for one,
where the log file has a filler: a file that a compaction wrote last has neither.

Source: ``store/.../SparseConsumeQueue.java putEndPositionInfo``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from seglog.storage.files.files import Files, OpenFile
from seglog.storage.format.layout import U32
from seglog.storage.format.queue.batch_consume_queue import (
    BATCH_UNIT,
    BATCH_UNIT_BYTES,
    END_UNIT,
    NO_COMPACTED_OFFSET,
    BatchUnits,
)
from seglog.storage.format.queue.compaction import CompactionSizes
from seglog.storage.format.record.record import (
    CRC_MASK,
    FILLER,
    FILLER_BYTES,
    HEAD_V4,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    MIN_RECORD_BYTES,
    Damage,
    RecordRow,
    examine,
)

_PIECE_BYTES: Final = 1 << 20


class Rebuilt(NamedTuple):
    """What the records of a log file say that its queue file holds.

    Attributes:
        units: One for each record, up to the first that cannot be read.
        content: The whole queue file; None if it has no room for the units.
        is_whole: Whether nothing in the log file is unread.
    """

    units: BatchUnits
    content: bytes | None
    is_whole: bool


def rebuild_units(
    files: Files,
    path: Path,
    first: int,
    offsets: range,
    sizes: CompactionSizes,
    tags_code_of: Callable[[memoryview, int, RecordRow], int],
) -> Rebuilt:
    """Returns what the queue file of a log file must hold.

    Args:
        files: Where the store is.
        path: The log file.
        first: Its first offset.
        offsets: The queue offsets that its messages may have.
        sizes: Lengths of the files.
        tags_code_of: Returns the code of a record's tag, by the record, its place and what it says itself.
    """
    units, position, least = bytearray(), 0, offsets.start
    with closing(files.open(path, writable=False)) as log:
        size, magic = read_filler(log, 0)
        while magic in {MAGIC_V1, MAGIC_V2} and MIN_RECORD_BYTES <= size <= sizes.log_bytes - position:
            record = memoryview(bytearray(size))
            log.read_into(record, position)
            row = sound_record(record, first + position)
            if row is None or not least <= row.queue_offset < offsets.stop:
                break
            units += BATCH_UNIT.struct.pack(
                first + position,
                size,
                tags_code_of(record, first + position, row),
                row.store_timestamp_ms,
                row.queue_offset,
                1,
                NO_COMPACTED_OFFSET,
                0,
            )
            position, least = position + size, row.queue_offset + 1
            size, magic = read_filler(log, position)
        is_ended = magic == MAGIC_BLANK
        is_whole = is_ended or _is_zero(log, position)
    content = bytes(units)
    if is_ended and len(content) + BATCH_UNIT_BYTES <= sizes.queue_bytes:
        content += END_UNIT
    fits = len(content) <= sizes.queue_bytes
    made = np.frombuffer(bytes(units), BATCH_UNIT.dtype)
    return Rebuilt(made, content.ljust(sizes.queue_bytes, b"\0") if fits else None, is_whole)


def sound_record(record: memoryview, phy_offset: int) -> RecordRow | None:
    """Returns a record of a compaction log if it says that it is there and its body is as it was."""
    row = examine(record, 0, phy_offset, verify=False)  # its __CRC32# was made for another place
    if isinstance(row, Damage) or row.size_bytes != len(record):
        return None
    body = record[row.body_at : row.body_at + row.body_bytes]
    (stored_crc,) = U32.unpack_from(record, HEAD_V4.offsets["body_crc"])
    return row if not row.body_bytes or zlib.crc32(body) & CRC_MASK == stored_crc else None


def read_filler(log: OpenFile, position_bytes: int) -> tuple[int, int]:
    """Returns the size and the magic of what begins at a place in a log file; zeros at its end."""
    head = memoryview(bytearray(FILLER_BYTES))
    log.read_into(head, position_bytes)
    size, magic = FILLER.struct.unpack(head)
    return size, magic


def _is_zero(log: OpenFile, position_bytes: int) -> bool:
    """Returns whether a log file holds nothing but zeros from a place on."""
    at = log.next_data(position_bytes)
    while at is not None:
        piece = memoryview(bytearray(_PIECE_BYTES))
        count = log.read_into(piece, at)
        if bytes(piece[:count]).strip(b"\0"):
            return False
        at = log.next_data(at + count) if count else None
    return True
