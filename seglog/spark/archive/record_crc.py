"""The CRC that identifies a record: it does not change when a compaction or a restore moves the record.

It is the CRC-32 of the record's bytes with zeros for ``physicalOffset``, and without the property
``__CRC32#`` at the end: those two depend on the record's place. There are three implementations with equal
results: in Python for one record, and for the records of a column; and as a Spark expression, for rows in
Spark.
"""

from __future__ import annotations

import zlib
from typing import Final

import numpy as np

from seglog.storage.format.layout import I64
from seglog.storage.format.record import PHY_OFFSET_AT
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.gather import Bytes, Ints, overlapping

_PLACE_END: Final = PHY_OFFSET_AT + I64.size


def record_crc(record: bytes | memoryview) -> int:
    """Returns the CRC of a complete record."""
    data = bytes(record)
    end = len(data) - (props.CRC_PROPERTY_BYTES if props.ends_with_record_crc(data) else 0)
    return zlib.crc32(data[_PLACE_END:end], zlib.crc32(bytes(I64.size), zlib.crc32(data[:PHY_OFFSET_AT])))


def record_crcs(data: Bytes, starts: Ints, sizes: Ints) -> Ints:
    """Returns the CRCs of complete records.

    Args:
        data: ``(m,) u8``.
        starts: ``(n,)``, start of each record in ``data``.
        sizes: ``(n,)``, length of each record.
    """
    ends = starts + sizes
    has_crc = np.ones(len(starts), np.bool_)
    at = np.maximum(ends - props.CRC_PROPERTY_BYTES, 0)
    for place, byte in enumerate(props.CRC_NAME):
        has_crc &= data[at + place] == byte
    ends -= np.where(has_crc & (sizes >= props.CRC_PROPERTY_BYTES), props.CRC_PROPERTY_BYTES, 0)
    placeless = data.copy()
    overlapping(placeless, np.dtype("V8"))[starts + PHY_OFFSET_AT] = bytes(I64.size)
    memory, crc = placeless.data, zlib.crc32
    crcs = [crc(memory[start:end]) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    return np.array(crcs, np.int64)


def record_crc_sql(record: str) -> str:
    """Returns the SQL expression of the CRC, a bigint, for a column of complete records."""
    name = props.CRC_NAME.hex()
    named = f"substring({record}, -{props.CRC_PROPERTY_BYTES}, {len(props.CRC_NAME)})"
    crc_bytes = f"if({named} = X'{name}', {props.CRC_PROPERTY_BYTES}, 0)"
    rest = f"octet_length({record}) - {_PLACE_END} - {crc_bytes}"
    return (
        f"crc32(concat(substring({record}, 1, {PHY_OFFSET_AT}), X'{bytes(I64.size).hex()}',"
        f" substring({record}, {_PLACE_END + 1}, {rest})))"
    )
