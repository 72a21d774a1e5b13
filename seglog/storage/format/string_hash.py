"""Java's ``String.hashCode`` of many strings at once, for the key index.

The hash of n code units is the sum of ``unit · 31**(n - 1 - i)`` mod 2**32, so one pass over the units of
all strings and one running sum give all hashes; 32-bit arithmetic wraps as Java's does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def java_string_hashes(texts: Sequence[str]) -> npt.NDArray[np.int32]:
    """Returns ``(n,)`` hashes of n strings, each equal to Java's ``text.hashCode()``."""
    joined = "".join(texts)
    if joined.isascii():
        units = np.frombuffer(joined.encode(), np.uint8).astype(np.uint32)
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    else:
        pieces = [text.encode("utf-16-be", "surrogatepass") for text in texts]
        units = np.frombuffer(b"".join(pieces), ">u2").astype(np.uint32)
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces)) // 2
    if not len(units):
        return np.zeros(len(texts), np.int32)
    ends = np.cumsum(lengths)
    powers = np.full(int(lengths.max()), 31, np.uint32)
    powers[0] = 1
    np.multiply.accumulate(powers, out=powers)
    from_end = np.repeat(ends, lengths) - 1 - np.arange(len(units))
    sums = np.zeros(len(units) + 1, np.uint32)
    np.cumsum(units * powers[from_end], dtype=np.uint32, out=sums[1:])
    hashes: npt.NDArray[np.int32] = (sums[ends] - sums[ends - lengths]).view(np.int32)
    return hashes
