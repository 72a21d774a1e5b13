"""Makes a store of equal messages with numpy, a hundred times quicker than by putting them."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Final

import numpy as np

from seglog.storage.format.names import COMMIT_LOG, CONSUME_QUEUE, segment_file_name
from seglog.storage.format.queue.consume_queue import CQ_UNIT, CQ_UNIT_BYTES, DEFAULT_QUEUE_FILE_BYTES
from seglog.storage.format.record.record import CRC_MASK, FILLER, FILLER_BYTES, HEAD_V4, MAGIC_BLANK, MAGIC_V1
from seglog.storage.format.record.tags import tags_code

TOPIC: Final = "bench"
FIRST_MS: Final = 1_700_000_000_000
TAGS: Final = tuple(f"T{number}" for number in range(10))
MESSAGES_A_MS: Final = 10
_HEAD_OF_TAGS: Final = b"TAGS\x01T"


def record_dtype(body_bytes: int) -> np.dtype[np.void]:
    """Returns a record with a body of that size, the topic and one of the tags."""
    return np.dtype(
        [
            *HEAD_V4.dtype.descr,
            ("body", f"V{body_bytes}"),
            ("topic_bytes", "u1"),
            ("topic", f"S{len(TOPIC)}"),
            ("properties_bytes", ">i2"),
            ("tags", f"V{len(_HEAD_OF_TAGS)}"),
            ("tag", "u1"),
            ("end", "u1"),
        ]
    )


def make_store(root: Path, count: int, body_bytes: int, segment_bytes: int, each: int | None = None) -> None:
    """Writes log and queue of ``count`` messages: tags in turn, ten messages a ms.

    Args:
        root: An absent or empty directory.
        count: Messages.
        body_bytes: Length of every body.
        segment_bytes: Length of commit-log files; queue files have RocketMQ's default.
        each: Messages of a full file, behind which it is a hole; None for as many as fit.
    """
    kind = record_dtype(body_bytes)
    fitting = (segment_bytes - FILLER_BYTES) // kind.itemsize
    each = fitting if each is None else min(each, fitting)
    queue = root / CONSUME_QUEUE / TOPIC / "0"
    (root / COMMIT_LOG).mkdir(parents=True)
    queue.mkdir(parents=True)
    units = np.zeros(count, CQ_UNIT.dtype)
    codes = np.array([tags_code(tag) for tag in TAGS])
    for number, first in enumerate(range(0, count, each)):
        place = np.arange(min(each, count - first))
        rows = _records(kind, first + place, number * segment_bytes + place * kind.itemsize)
        part = units[first : first + len(rows)]
        part["phy_offset"], part["size_bytes"] = rows["phy_offset"], kind.itemsize
        part["tags_code"] = codes[(first + place) % len(TAGS)]
        with (root / COMMIT_LOG / segment_file_name(number * segment_bytes)).open("wb") as file:
            rows.tofile(file)
            if len(rows) == each:
                file.write(FILLER.struct.pack(segment_bytes - rows.nbytes, MAGIC_BLANK))
            file.truncate(segment_bytes)
    step = DEFAULT_QUEUE_FILE_BYTES // CQ_UNIT_BYTES
    for first in range(0, count, step):
        with (queue / segment_file_name(first * CQ_UNIT_BYTES)).open("wb") as file:
            units[first : first + step].tofile(file)
            file.truncate(DEFAULT_QUEUE_FILE_BYTES)


def _records(
    kind: np.dtype[np.void], numbers: np.ndarray[tuple[int], np.dtype[np.int64]], places: object
) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    body_bytes = kind["body"].itemsize
    body = bytes(number % 251 for number in range(body_bytes))
    rows = np.zeros(len(numbers), kind)
    fields: dict[str, object] = {
        "size_bytes": kind.itemsize,
        "magic": MAGIC_V1,
        "body_crc": zlib.crc32(body) & CRC_MASK,
        "queue_offset": numbers,
        "phy_offset": places,
        "born_timestamp_ms": FIRST_MS + numbers // MESSAGES_A_MS,
        "store_timestamp_ms": FIRST_MS + numbers // MESSAGES_A_MS,
        "body_bytes": body_bytes,
        "body": np.void(body),
        "topic_bytes": len(TOPIC),
        "topic": TOPIC.encode(),
        "properties_bytes": len(_HEAD_OF_TAGS) + 2,
        "tags": np.void(_HEAD_OF_TAGS),
        "tag": ord("0") + numbers % len(TAGS),
        "end": 2,
    }
    for name, values in fields.items():
        rows[name] = values
    return rows
