"""A record without its body: the same size, place, keys and properties, and zeros instead of the body.

RocketMQ serves such a record as a message like any other; queue unit and index entries stay valid. The
compression bits are cleared, because zeros are no compressed body. ``SEGLOG_ERASED=1`` is added to the
properties if the body is long enough: its bytes are taken from the body's. Checksums are computed again.

Source: tried with RocketMQ 5.3.3, 5.4.0 and 5.5.0; ``MessageExtEncoder.java``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from seglog.doctor.message.copy_names import ERASED
from seglog.errors import CorruptError
from seglog.storage.format.layout import I16
from seglog.storage.format.record import HEADS, HOST_BITS, Damage, encode_record, examine
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags

_MARK: Final = f"{ERASED}\x011\x02".encode()
_CLEARED: Final = flags.COMPRESSED | flags.COMPRESSION_MASK | flags.NEED_UNWRAP


@dataclass(frozen=True, slots=True)
class ErasedRecord:
    """The replacement of a record.

    Attributes:
        data: Its bytes, as many as those of the record.
        is_marked: Whether the mark fits.
    """

    data: bytes
    is_marked: bool


def erase_record(record: bytes | memoryview, phy_offset: int) -> ErasedRecord:
    """Returns the replacement of a record; for an erased record, the same bytes again.

    Args:
        record: The complete record.
        phy_offset: Its physical offset.

    Raises:
        CorruptError: The bytes are no valid record.
    """
    view = memoryview(bytes(record))
    row = examine(view, 0, phy_offset)
    if isinstance(row, Damage):
        raise CorruptError(row.kind, expected=row.expected, found=row.found)
    properties = bytes(view[row.properties_at : row.properties_at + row.properties_bytes])
    has_crc = props.ends_with_record_crc(properties)
    crc_bytes = props.CRC_PROPERTY_BYTES if has_crc else 0
    own = properties[: len(properties) - crc_bytes]
    marked = _marked(own, row.body_bytes, crc_bytes)
    body = bytes(row.body_bytes + len(own) - len(marked))
    layout = HEADS[row.sys_flag & HOST_BITS]
    head = layout.decode(view) | {"sys_flag": row.sys_flag & ~_CLEARED}
    topic = bytes(view[row.body_at + row.body_bytes : row.properties_at - I16.size])
    made = encode_record(layout, head, topic, body, marked, record_crc=has_crc)
    return ErasedRecord(made, props.find_property(marked, ERASED.encode()) is not None)


def _marked(own: bytes, body_bytes: int, crc_bytes: int) -> bytes:
    """Returns properties with the mark added, unless they have it or it does not fit."""
    if props.find_property(own, ERASED.encode()) is not None:
        return own
    end = b"" if not own or own.endswith(b"\x02") else b"\x02"
    added = len(end) + len(_MARK)
    if added > body_bytes or len(own) + added + crc_bytes > props.MAX_PROPERTIES_BYTES:
        return own
    return own + end + _MARK
