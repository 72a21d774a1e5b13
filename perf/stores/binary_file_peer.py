"""An audit as it is written without seglog: ``binaryFile`` rows, and a Python loop over the records of each.

It checks what such scripts check: magic, size, place and the checksum of the body.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perf.figures.sample import check

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_HEAD: Final = struct.Struct(">iIIiiqqiqQqQiqi")
"""From the size to the length of the body, of a record between IPv4 addresses."""
_MAGICS: Final = frozenset({0xDAA320A7, 0xDAA320AB})
_CRC_MASK: Final = 0x7FFF_FFFF
_PART_BYTES: Final = 16 << 20
"""Java holds each part several times over on its way to Python; with whole segments its memory runs out."""


def cut_front(log: Path, folder: Path, size_bytes: int) -> int:
    """Copies the front of a log's first file into parts that begin with a record.

    Returns:
        How many bytes they have together.
    """
    with min(log.iterdir()).open("rb") as file:
        data = file.read(size_bytes)
    borders = [0]
    at = 0
    while at + _HEAD.size <= len(data):
        size, magic = struct.unpack_from(">iI", data, at)
        if magic not in _MAGICS or at + size > len(data):
            break
        at += size
        if at >= len(borders) * _PART_BYTES:
            borders.append(at)
    for start, end in pairwise(sorted({*borders, at})):
        (folder / f"part-{start}").write_bytes(data[start:end])
    return at


def audit_by_hand(session: SparkSession, folder: Path) -> None:
    """Audits the parts.

    Raises:
        SanityError: It saw no records, or damage where there is none.
    """
    rows = session.read.format("binaryFile").load(str(folder)).rdd.mapPartitions(_audit_parts).collect()
    check(sum(bad for _records, bad in rows), 0, "records that are damaged")
    check(sum(records for records, _bad in rows) > 0, True, "records at all")


def _audit_parts(rows: Iterable[Row]) -> Iterator[tuple[int, int]]:
    for row in rows:
        yield _audit_part(bytes(row.content), int(row.path.rsplit("-", 1)[1]))


def _audit_part(data: bytes, first: int) -> tuple[int, int]:
    at = records = bad = 0
    while at + _HEAD.size <= len(data):
        size, magic, crc, _queue, _flag, _offset, place, *_rest, body_bytes = _HEAD.unpack_from(data, at)
        if magic not in _MAGICS or place != first + at:
            bad += 1
            break
        body_at = at + _HEAD.size
        records += 1
        bad += zlib.crc32(data[body_at : body_at + body_bytes]) & _CRC_MASK != crc
        at += size
    return records, bad
