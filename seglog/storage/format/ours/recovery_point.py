"""The recovery point: what a walk over the log would know at a place of it, so that opening can start there.

The log below ``end_phy_offset`` was on the disk when the point was written, and held nothing but whole
records. What the point says of it can be checked without a walk: every block of 64 KiB has a checksum,
here or in the seal of its segment, and so have the units of every queue file.

Truth: none. Without a point, or with one that is not certain, the log is walked from its start.

Source: seglog's own. RocketMQ knows nothing of ``<store>/seglog/``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.errors import CorruptError, TruncatedError
from seglog.storage.format.layout import Field, Layout
from seglog.storage.format.ours.seal import checksum

RECOVERY_POINT_MAGIC: Final = 0x52504E54
RECOVERY_POINT_VERSION: Final = 1

_SOURCE: Final = "seglog/recovery-point in the store"

RECOVERY_POINT_HEAD: Final = Layout(
    "Recovery point, head",
    _SOURCE,
    (
        Field("magic", "u32", "–", "0x52504E54, RPNT in ASCII"),
        Field("version", "i32", "–", "1"),
        Field("min_phy_offset", "i64", "bytes from log start", "where the log started"),
        Field("end_phy_offset", "i64", "bytes from log start", "the point: where a walk can start"),
        Field("segment_bytes", "i64", "bytes", "length of commit-log files"),
        Field("queue_file_bytes", "i64", "bytes", "length of queue files"),
        Field(
            "last_phy_offset", "i64", "bytes from log start", "where the last record below the point starts"
        ),
        Field("last_store_timestamp_ms", "i64", "ms", "store time of that record"),
        Field("newest_store_timestamp_ms", "i64", "ms", "the latest store time of any record below"),
        Field("indexed_phy_offset", "i64", "bytes from log start", "every key below is in the index"),
        Field("index_end_phy_offset", "i64", "bytes from log start", "the index's last record; -1: no file"),
        Field("blocks_from", "i64", "bytes from log start", "segments below have seals; blocks start here"),
        Field("block_count", "i32", "–", "blocks that follow this head"),
        Field("queue_count", "i32", "–", "queues that follow the blocks"),
        Field("file_count", "i32", "–", "queue files that follow the queues, in their order"),
        Field(
            "names_bytes", "i32", "bytes", "topics that follow the files, in the order of the queues, UTF-8"
        ),
    ),
)

_PLACES: Final = tuple(RECOVERY_POINT_HEAD.offsets)[2:-4]
"""Fields of the head that a :class:`RecoveryPoint` has under the same names."""

RECOVERY_POINT_BLOCK: Final = Layout(
    "Recovery point, one block",
    _SOURCE,
    (Field("crc32c", "u32", "–", "CRC-32C of 64 KiB of a segment; of fewer at its end and at the point"),),
)

RECOVERY_POINT_QUEUE: Final = Layout(
    "Recovery point, one queue",
    _SOURCE,
    (
        Field("topic_bytes", "i32", "bytes", "length of its topic"),
        Field("queue_id", "i32", "–", "its number"),
        Field("first_queue_offset", "i64", "messages", "the first unit that counts"),
        Field("end_queue_offset", "i64", "messages", "behind its last unit that leads below the point"),
        Field("file_count", "i32", "–", "its files from the first unit on"),
    ),
)

RECOVERY_POINT_FILE: Final = Layout(
    "Recovery point, one queue file",
    _SOURCE,
    (
        Field("crc32c", "u32", "–", "CRC-32C of its units that count"),
        Field("last_phy_offset", "i64", "bytes from log start", "where the last of them leads"),
    ),
)

RECOVERY_POINT_END: Final = Layout(
    "Recovery point, end",
    _SOURCE,
    (Field("crc32c", "u32", "–", "CRC-32C of everything before"),),
)


@dataclass(frozen=True, slots=True)
class QueueSum:
    """The units of a queue that lead below the point.

    Attributes:
        first_slot: Queue offset of the first of them.
        end_slot: Queue offset behind the last.
        crcs: CRC-32C of those in each file, from the file of ``first_slot`` on.
        last_places: Where the last of them in each file leads, a physical offset.
    """

    topic: str
    queue_id: int
    first_slot: int
    end_slot: int
    crcs: tuple[int, ...]
    last_places: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RecoveryPoint:
    """A decoded recovery point.

    Attributes:
        min_phy_offset: Where the log started.
        end_phy_offset: Where a walk can start; a record's end.
        segment_bytes: Length of commit-log files.
        queue_file_bytes: Length of queue files.
        last_phy_offset: Where the last record below the end starts.
        last_store_timestamp_ms: Its store time.
        newest_store_timestamp_ms: The latest of all records below the end; clocks may have been set back.
        indexed_phy_offset: Every key of a record below is in the index, as it was then; a record's end.
        index_end_phy_offset: The last record that the index knew then; -1 without any index file.
        blocks_from: Where the first of the blocks starts; all segments below have seals.
        block_crcs: ``(n,) u32``, CRC-32C of each block from there to the end, segment by segment.
        queues: The queues.
    """

    min_phy_offset: int
    end_phy_offset: int
    segment_bytes: int
    queue_file_bytes: int
    last_phy_offset: int
    last_store_timestamp_ms: int
    newest_store_timestamp_ms: int
    indexed_phy_offset: int
    index_end_phy_offset: int
    blocks_from: int
    block_crcs: npt.NDArray[np.uint32]
    queues: tuple[QueueSum, ...]


def encode_recovery_point(point: RecoveryPoint) -> bytes:
    """Returns the bytes of the file."""
    names = [queue.topic.encode() for queue in point.queues]
    queues = np.array(
        [
            (len(name), queue.queue_id, queue.first_slot, queue.end_slot, len(queue.crcs))
            for name, queue in zip(names, point.queues, strict=True)
        ],
        RECOVERY_POINT_QUEUE.dtype,
    )
    files = np.array(
        [pair for queue in point.queues for pair in zip(queue.crcs, queue.last_places, strict=True)],
        RECOVERY_POINT_FILE.dtype,
    )
    joined = b"".join(names)
    head = RECOVERY_POINT_HEAD.struct.pack(
        RECOVERY_POINT_MAGIC,
        RECOVERY_POINT_VERSION,
        *(getattr(point, name) for name in _PLACES),
        len(point.block_crcs),
        len(queues),
        len(files),
        len(joined),
    )
    blocks = np.zeros(len(point.block_crcs), RECOVERY_POINT_BLOCK.dtype)
    blocks["crc32c"] = point.block_crcs
    data = b"".join([head, blocks.tobytes(), queues.tobytes(), files.tobytes(), joined])
    return data + RECOVERY_POINT_END.struct.pack(checksum(data))


def decode_recovery_point(data: bytes) -> RecoveryPoint:
    """Returns the recovery point that a file holds.

    Raises:
        TruncatedError: The file is too short.
        CorruptError: It is none, one of another version, or not as it was written.
    """
    least = RECOVERY_POINT_HEAD.size_bytes + RECOVERY_POINT_END.size_bytes
    if len(data) < least:
        raise TruncatedError("point-short", expected=f"at least {least} bytes", found=len(data))
    end = len(data) - RECOVERY_POINT_END.size_bytes
    own, stored = checksum(memoryview(data)[:end]), RECOVERY_POINT_END.struct.unpack_from(data, end)[0]
    if own != stored:
        raise CorruptError("point-crc", position_bytes=end, expected=f"{stored:#x}", found=f"{own:#x}")
    magic, version, *places, blocks, queues, files, names = RECOVERY_POINT_HEAD.struct.unpack_from(data)
    if (magic, version) != (RECOVERY_POINT_MAGIC, RECOVERY_POINT_VERSION):
        expected = f"{RECOVERY_POINT_MAGIC:#x} version {RECOVERY_POINT_VERSION}"
        raise CorruptError("point-version", expected=expected, found=f"{magic:#x} version {version}")
    parts = ((RECOVERY_POINT_BLOCK, blocks), (RECOVERY_POINT_QUEUE, queues), (RECOVERY_POINT_FILE, files))
    wanted = RECOVERY_POINT_HEAD.size_bytes + names + sum(layout.size_bytes * n for layout, n in parts)
    if min(blocks, queues, files, names) < 0 or wanted != end:
        raise CorruptError("point-lengths", expected=wanted, found=end)
    at = RECOVERY_POINT_HEAD.size_bytes
    tables: list[npt.NDArray[np.void]] = []
    for layout, count in parts:
        tables.append(np.frombuffer(data, layout.dtype, count, at))
        at += count * layout.size_bytes
    block_rows, queue_rows, file_rows = tables
    counts = [queue_rows["topic_bytes"].astype(np.int64), queue_rows["file_count"].astype(np.int64)]
    if [count.sum() for count in counts] != [names, files] or any((count < 0).any() for count in counts):
        raise CorruptError("point-lengths", expected=f"{names} bytes of names, {files} files")
    sums = _queue_sums(queue_rows, file_rows, data[at:end])
    crcs = block_rows["crc32c"].astype(np.uint32)
    return RecoveryPoint(**dict(zip(_PLACES, places, strict=True)), block_crcs=crcs, queues=sums)


def _queue_sums(
    queues: npt.NDArray[np.void], files: npt.NDArray[np.void], names: bytes
) -> tuple[QueueSum, ...]:
    found: list[QueueSum] = []
    crcs, places = files["crc32c"].tolist(), files["last_phy_offset"].tolist()
    at = file_at = 0
    for size, queue_id, first, end, count in queues.tolist():
        topic = names[at : at + size].decode("utf-8", "replace")
        own = slice(file_at, file_at + count)
        found.append(QueueSum(topic, queue_id, first, end, tuple(crcs[own]), tuple(places[own])))
        at, file_at = at + size, file_at + count
    return tuple(found)
