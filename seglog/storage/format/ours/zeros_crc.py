"""CRC-32C over a run of zeros in the time of its logarithm: the hole of a sparse file may claim any length.

A zero bit multiplies the register by one matrix over GF(2); its squares, one for each power of two of bytes,
are computed once.
"""

from __future__ import annotations

from functools import cache
from typing import Final

_POLYNOMIAL: Final = 0x82F63B78
"""Castagnoli's, bits reversed."""
_ALL: Final = 0xFFFF_FFFF
_Matrix = tuple[int, ...]


def crc_of_zeros(count: int, crc: int = 0) -> int:
    """Returns the CRC-32C of ``count`` zero bytes, going on from ``crc``.

    Args:
        count: How many bytes, below 2^63.
        crc: That of the bytes before.
    """
    register = crc ^ _ALL
    power = 0
    while count:
        if count & 1:
            register = _times(_zero_bytes(power), register)
        count >>= 1
        power += 1
    return register ^ _ALL


@cache
def _zero_bytes(power: int) -> _Matrix:
    """Returns what 2^power zero bytes do to the register."""
    if power:
        half = _zero_bytes(power - 1)
        return tuple(_times(half, column) for column in half)
    matrix: _Matrix = (_POLYNOMIAL, *(1 << bit for bit in range(31)))
    for _doubling in range(3):
        matrix = tuple(_times(matrix, column) for column in matrix)
    return matrix


def _times(matrix: _Matrix, register: int) -> int:
    product = 0
    for column in matrix:
        if not register:
            break
        if register & 1:
            product ^= column
        register >>= 1
    return product
