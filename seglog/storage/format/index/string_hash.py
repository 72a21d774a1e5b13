"""Java's ``String.hashCode`` of many slices of one buffer at once, for the key index.

The hash of n units is the sum of ``unit · 31**(n - 1 - i)`` mod 2**32. 31 is odd, so it has an inverse
there, and one running sum of ``unit · 31**-i`` over the buffer holds the hash of every slice: the
difference of two of its places, times a power of 31. 32-bit arithmetic wraps as Java's does.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.format.layout import Buffer

_BASE: Final = 31
_INVERSE: Final = pow(_BASE, -1, 1 << 32)

Hashes = npt.NDArray[np.uint32]
_Ints = npt.NDArray[np.int64]


def powers_of_31(count: int) -> Hashes:
    """Returns 31**0 to 31**(count - 1) mod 2**32: what prepending moves a hash by."""
    return _powers(_BASE, count)


def slice_hashes(data: Buffer, starts: _Ints, ends: _Ints) -> Hashes:
    """Returns the hash of every slice, as of a string of its bytes.

    Bytes are taken as code units, which is Java's hash for ASCII only.

    Args:
        data: The buffer.
        starts: ``(n,)`` first byte of each slice.
        ends: ``(n,)`` byte behind each slice, none before its start.
    """
    units = np.frombuffer(data, np.uint8)
    sums = np.zeros(len(units) + 1, np.uint32)
    np.cumsum(units * _powers(_INVERSE, len(units)), dtype=np.uint32, out=sums[1:])
    # An empty slice at 0 has no last byte, but its sum is 0, and so is any product of it.
    hashes: Hashes = (sums[ends] - sums[starts]) * powers_of_31(len(units) + 1)[ends - 1]
    return hashes


def _powers(base: int, count: int) -> Hashes:
    powers = np.full(count, base, np.uint32)
    powers[:1] = 1
    powers[:] = np.multiply.accumulate(powers, dtype=np.uint32)
    return powers
