"""Placeholders: what keeps the queue offset of a message that was dropped.

The record that RocketMQ takes for a message of the same queue and offset: head of the dropped one (times,
hosts, flags of the addresses), no body, and of the properties only ``SEGLOG_COMPACTED=1``. Readers know it
by its ``flag``. It is never longer than the record that it stands for; where the mark would make it so, the
mark is left out.
"""

from __future__ import annotations

import zlib
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.spark.compact.crc_moves import move_crcs
from seglog.storage.format.layout import I16, I32_ITEMS, I64_ITEMS, U32_ITEMS
from seglog.storage.format.record import (
    BORN_HOST_V6,
    CRC_MASK,
    FLAG_AT,
    HEADS,
    HOST_BITS,
    MAGIC_AT,
    PHY_OFFSET_AT,
    STORE_HOST_V6,
    TRANSACTION_MASK,
    topic_field,
)
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.gather import Bytes, Ints, overlapping

COMPACTED: Final = "SEGLOG_COMPACTED"
PLACEHOLDER_FLAG: Final = 0x434D_5054
"""``flag`` of every placeholder: "CMPT" in ASCII."""
_MARK: Final = f"{COMPACTED}\x011\x02".encode()
_KEPT_BITS: Final = BORN_HOST_V6 | STORE_HOST_V6 | TRANSACTION_MASK


def placeholder_sizes(topic: str, sys_flags: Ints, sizes: Ints, has_crc: npt.NDArray[np.bool_]) -> Ints:
    """Returns how long the placeholders of records of one topic are.

    Args:
        topic: Their topic.
        sys_flags: ``(n,)``, of each.
        sizes: ``(n,)``, how long each is.
        has_crc: ``(n,)``, whether it has a record CRC.
    """
    _magic, field = topic_field(topic.encode())
    heads = np.array([HEADS[bits].size_bytes if bits in HEADS else 0 for bits in range(HOST_BITS + 1)])
    least = heads[sys_flags & HOST_BITS] + len(field) + I16.size
    least = least + np.where(has_crc, props.CRC_PROPERTY_BYTES, 0)
    marked: Ints = least + len(_MARK)
    return np.where(marked <= sizes, marked, least).astype(np.int64)


def write_placeholders(
    source: Bytes, positions: Ints, sys_flags: Ints, topic: str, target: Bytes, places: Ints, sizes: Ints
) -> None:
    """Writes placeholders of records of one topic; their own places and CRCs are for :func:`move_records`.

    Args:
        source: ``(m,) u8``, a stretch of the log.
        positions: ``(n,)``, where in it the records start.
        sys_flags: ``(n,)``, of each.
        topic: Their topic.
        target: Where to write.
        places: ``(n,)``, where in it they go.
        sizes: ``(n,)``, what :func:`placeholder_sizes` returned.
    """
    bits = sys_flags & HOST_BITS
    for host_bits in np.unique(bits).tolist():
        head_bytes = HEADS[host_bits].size_bytes
        for size in np.unique(sizes[bits == host_bits]).tolist():
            chosen = np.flatnonzero((bits == host_bits) & (sizes == size))
            at, to = positions[chosen], places[chosen]
            head = np.dtype(f"V{head_bytes}")
            overlapping(target, head)[to] = overlapping(source, head)[at]
            tail = _tail(topic, size - head_bytes)
            overlapping(target, np.dtype(f"V{len(tail)}"))[to + head_bytes] = np.void(tail)
            _patch(target, to, host_bits, size, sys_flags[chosen])
            overlapping(target, U32_ITEMS)[to + MAGIC_AT] = topic_field(topic.encode())[0]


def move_records(
    target: Bytes,
    places: Ints,
    sizes: Ints,
    new_offsets: Ints,
    has_crc: npt.NDArray[np.bool_],
    is_new: npt.NDArray[np.bool_],
) -> None:
    """Says in records where they are now, and brings their record CRCs to it.

    Args:
        target: What they were copied to.
        places: ``(n,)``, where in it they start.
        sizes: ``(n,)``, how long they are.
        new_offsets: ``(n,)``, where in the log they are now.
        has_crc: ``(n,)``, which have a record CRC.
        is_new: ``(n,)``, which are placeholders: their CRCs are made, not moved.
    """
    phy_offsets = overlapping(target, I64_ITEMS)
    moved = has_crc & ~is_new
    old = phy_offsets[places[moved] + PHY_OFFSET_AT].astype(np.int64)
    phy_offsets[places + PHY_OFFSET_AT] = new_offsets
    move_crcs(target, places[moved], sizes[moved], old, new_offsets[moved])
    memory = memoryview(target)  # type: ignore[arg-type]  # numpy is a buffer
    for row in np.flatnonzero(has_crc & is_new).tolist():
        start = int(places[row])
        covered_end = start + int(sizes[row]) - props.CRC_PROPERTY_BYTES
        entry = props.crc_property(zlib.crc32(memory[start:covered_end]) & CRC_MASK)
        memory[covered_end : covered_end + len(entry)] = entry


def _tail(topic: str, size_bytes: int) -> bytes:
    """Returns topic and properties of a placeholder, of a length that :func:`placeholder_sizes` found."""
    _magic, field = topic_field(topic.encode())
    rest = size_bytes - len(field) - I16.size
    # The mark has 19 bytes, the CRC 20: the length says which of them it has.
    mark = _MARK if rest >= len(_MARK) and rest != props.CRC_PROPERTY_BYTES else b""
    crc = props.crc_property(0) if rest > len(mark) else b""
    return field + I16.pack(rest) + mark + crc


def _patch(target: Bytes, places: Ints, host_bits: int, size_bytes: int, sys_flags: Ints) -> None:
    layout = HEADS[host_bits]
    ints = overlapping(target, I32_ITEMS)
    ints[places] = size_bytes
    ints[places + layout.offsets["body_crc"]] = 0
    ints[places + FLAG_AT] = PLACEHOLDER_FLAG
    ints[places + layout.offsets["sys_flag"]] = sys_flags & _KEPT_BITS
    ints[places + layout.offsets["body_bytes"]] = 0
