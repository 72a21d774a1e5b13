"""The bitmap of an ext unit: which SQL92 filters may match its message.

Each filter of ``config/consumerFilter.json`` has a few bit positions (its Bloom filter data). The broker
evaluates every filter as it dispatches a message and sets all bits of those that match, so a clear bit is
certain and a set one is not. Bit ``b`` lies in byte ``b // 8`` at ``1 << b % 8``.

Source: ``filter/.../BitsArray.java``, ``filter/.../BloomFilter.java isHit``,
``broker/.../ExpressionMessageFilter.java isMatchedByConsumeQueue``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seglog.errors import InvalidArgumentError


def bitmap_hits(bitmap: bytes, bits: Sequence[int], bit_count: int) -> bool:
    """Returns whether a filter may match the message of this bitmap; only False is certain.

    Args:
        bitmap: Of the ext unit.
        bits: ``bloomFilterData.bitPos`` of the filter.
        bit_count: ``bloomFilterData.bitNum``; bitmaps of another length say nothing.
    """
    if len(bitmap) * 8 != bit_count:
        return True
    return all(not 0 <= bit < bit_count or bitmap[bit // 8] & 1 << bit % 8 for bit in bits)


def make_bitmap(bits: Iterable[int], bit_count: int) -> bytes:
    """Returns a bitmap with these bits set.

    Raises:
        InvalidArgumentError: A bit outside of ``0..bit_count - 1``.
    """
    bitmap = bytearray((bit_count + 7) // 8)
    for bit in bits:
        if not 0 <= bit < bit_count:
            raise InvalidArgumentError(f"bit {bit} is outside 0..{bit_count - 1}")
        bitmap[bit // 8] |= 1 << bit % 8
    return bytes(bitmap)
