"""Placeholders: records that keep the queue offset of a message that a compaction dropped.

RocketMQ ends a queue at a slot without a record, so each slot needs one. A placeholder has the head of the
dropped message, no body, and of the properties only ``SEGLOG_COMPACTED=1``, which is left out where it would
make the record longer, and the record CRC. Readers know it by its ``flag`` and by that it has nothing else.
"""

from __future__ import annotations

from typing import Final

from seglog.storage.format.record.properties import CRC_PROPERTY_BYTES, ends_with_record_crc

PLACEHOLDER_PROPERTY: Final = "SEGLOG_COMPACTED"
PLACEHOLDER_FLAG: Final = 0x434D_5054
"""``flag`` of every placeholder: "CMPT" in ASCII."""
PLACEHOLDER_MARK: Final = f"{PLACEHOLDER_PROPERTY}\x011\x02".encode()
PLACEHOLDER_PROPERTIES_BYTES: Final = frozenset(
    mark + crc for mark in (0, len(PLACEHOLDER_MARK)) for crc in (0, CRC_PROPERTY_BYTES)
)
"""How long the properties of a placeholder may be."""


def is_placeholder(flag: int, body: bytes | bytearray | memoryview, properties: bytes) -> bool:
    """Returns whether a message with these stands for one that was dropped; applications may use the flag."""
    if flag != PLACEHOLDER_FLAG or len(body):
        return False
    own = properties[:-CRC_PROPERTY_BYTES] if ends_with_record_crc(properties) else properties
    return own in (b"", PLACEHOLDER_MARK)
