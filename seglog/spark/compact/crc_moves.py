"""Record CRCs of records that move: what a new ``phy_offset`` does to each, without reading the record again.

CRC-32 is linear: of two records that differ in some bits only, the checksums differ by what a record of
nothing but those bits would have. So a moved record keeps the proof that it had: one that was damaged before
does not verify afterwards either. All records of a stretch at once.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.format.layout import I64_ITEMS
from seglog.storage.format.record import CRC_MASK, PHY_OFFSET_AT
from seglog.storage.format.record import properties as props
from seglog.storage.kernels.gather import Bytes, Ints

_POLYNOMIAL: Final = 0xEDB88320
"""Of CRC-32, as zlib computes it."""
_BYTES: Final = 256
_PLACE_BYTES: Final = 8
_DIGITS_FROM_END: Final = props.CRC_DIGITS + 1
_ZERO: Final = ord("0")
Words = npt.NDArray[np.uint32]


def move_crcs(target: Bytes, places: Ints, sizes: Ints, old_offsets: Ints, new_offsets: Ints) -> None:
    """Brings the ``__CRC32#`` of records to what their new places make it.

    Args:
        target: The records.
        places: ``(n,)``, where in it they start.
        sizes: ``(n,)``, how long they are.
        old_offsets: ``(n,)``, the ``phy_offset`` that the CRC was made for.
        new_offsets: ``(n,)``, the one that they have now.
    """
    differing = (old_offsets ^ new_offsets).astype(I64_ITEMS).view(np.uint8).reshape(-1, _PLACE_BYTES)
    register = np.zeros(len(places), np.uint32)
    step = _zero_tables(0)[0]
    for column in range(_PLACE_BYTES):
        register = step[(register ^ differing[:, column]) & 0xFF] ^ (register >> np.uint32(8))
    behind = sizes - props.CRC_PROPERTY_BYTES - PHY_OFFSET_AT - _PLACE_BYTES
    change = _behind_zeros(register, behind) & np.uint32(CRC_MASK)
    digits_at = (places + sizes - _DIGITS_FROM_END)[:, None] + np.arange(props.CRC_DIGITS)
    powers = 10 ** np.arange(props.CRC_DIGITS, dtype=np.int64)
    old = ((target[digits_at].astype(np.int64) - _ZERO) * powers).sum(axis=1)
    new = old ^ change.astype(np.int64)
    target[digits_at] = new[:, None] // powers % 10 + _ZERO


def _behind_zeros(register: Words, counts: Ints) -> Words:
    """Returns what a CRC register is when so many bytes of zeros have followed."""
    for bit in range(int(counts.max(initial=0)).bit_length()):
        rows = np.flatnonzero(counts >> bit & 1)
        tables = _zero_tables(bit)
        value = register[rows]
        register[rows] = (
            tables[0][value & 0xFF]
            ^ tables[1][value >> np.uint32(8) & 0xFF]
            ^ tables[2][value >> np.uint32(16) & 0xFF]
            ^ tables[3][value >> np.uint32(24)]
        )
    return register


@cache
def _zero_tables(bit: int) -> Words:
    """Returns ``(4, 256)``: what ``2**bit`` bytes of zeros make of each byte of the register."""
    if bit == 0:
        table = np.arange(_BYTES, dtype=np.uint32)
        for _ in range(8):
            table = np.where(table & 1, table >> np.uint32(1) ^ np.uint32(_POLYNOMIAL), table >> np.uint32(1))
        bytes_behind = [np.arange(_BYTES, dtype=np.uint32) << np.uint32(shift) for shift in (0, 8, 16)]
        # A byte of zeros moves the others down by one place, and feeds the lowest through the table.
        return np.stack([table, *bytes_behind]).astype(np.uint32)
    half = _zero_tables(bit - 1)
    return np.stack(
        [
            half[0][row & 0xFF]
            ^ half[1][row >> np.uint32(8) & 0xFF]
            ^ half[2][row >> np.uint32(16) & 0xFF]
            ^ half[3][row >> np.uint32(24)]
            for row in half
        ]
    )
