"""The bits of a consumer's filter in RocketMQ's bit maps of filters, kept beside each filter that is stored.

RocketMQ drops all stored filters if the bits of one differ from those that it computes.

Source: ``filter/.../util/BloomFilter.java``; Guava's ``Hashing.murmur3_128`` with seed 0. The sizes follow
from ``maxErrorRateOfBloomFilter`` 20 and ``expectConsumerNumUseFilter`` 32.
"""

from __future__ import annotations

from typing import Final

BIT_NUM: Final = 112
"""Bits of a map."""
HASHES: Final = 3
"""Bits of each filter."""

_U64: Final = (1 << 64) - 1
_C1: Final = 0x87C37B91114253D5
_C2: Final = 0x4CF5AD432745937F
_BLOCK_BYTES: Final = 16


def bit_positions(group: str, topic: str) -> tuple[int, ...]:
    """Returns the bits of a group's filter for a topic, each below ``BIT_NUM``."""
    low = murmur3_low(f"{group}#{topic}".encode("utf-8", "replace"))
    first, second = _as_int32(low), _as_int32(low >> 32)
    positions: list[int] = []
    for number in range(1, HASHES + 1):
        combined = _as_int32(first + number * second)
        positions.append((~combined if combined < 0 else combined) % BIT_NUM)
    return tuple(positions)


def murmur3_low(data: bytes) -> int:
    """Returns the first 64 bits of MurmurHash3's 128 bits for x64, with seed 0."""
    h1 = h2 = 0
    whole = len(data) - len(data) % _BLOCK_BYTES
    for at in range(0, whole, _BLOCK_BYTES):
        h1 ^= _mixed_first(int.from_bytes(data[at : at + 8], "little"))
        h1 = (_rotated(h1, 27) + h2) * 5 + 0x52DCE729 & _U64
        h2 ^= _mixed_second(int.from_bytes(data[at + 8 : at + 16], "little"))
        h2 = (_rotated(h2, 31) + h1) * 5 + 0x38495AB5 & _U64
    h1 ^= _mixed_first(int.from_bytes(data[whole : whole + 8], "little"))
    h2 ^= _mixed_second(int.from_bytes(data[whole + 8 :], "little"))
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = h1 + h2 & _U64
    h2 = h2 + h1 & _U64
    return _finished(h1) + _finished(h2) & _U64


def _mixed_first(k1: int) -> int:
    return _rotated(k1 * _C1 & _U64, 31) * _C2 & _U64


def _mixed_second(k2: int) -> int:
    return _rotated(k2 * _C2 & _U64, 33) * _C1 & _U64


def _finished(h: int) -> int:
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & _U64
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & _U64
    return h ^ h >> 33


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _U64


def _as_int32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
