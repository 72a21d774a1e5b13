"""Bodies as their producers gave them: those that zlib compressed are inflated, one by one.

What lz4 or zstd compressed, and what does not inflate, stays as it is stored; its ``sysFlag`` still says
that it is compressed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import numpy as np
import pyarrow as pa

from seglog.errors import CorruptError
from seglog.spark.source.values.strings import merged
from seglog.storage.format.record import (
    COMPRESSED,
    COMPRESSION_LZ4,
    COMPRESSION_MASK,
    COMPRESSION_ZSTD,
    INNER_BATCH,
    inflate,
)
from seglog.storage.kernels.gather import Bytes, Ints

COMPRESSION_BITS: Final = COMPRESSED | COMPRESSION_MASK


def inflate_bodies(buffer: Bytes, starts: Ints, sizes: Ints, sys_flags: Ints) -> dict[int, bytes]:
    """Returns the bodies that inflate, by row.

    Args:
        buffer: ``(m,) u8``.
        starts: ``(n,)``, where in it bodies start.
        sizes: ``(n,)``, their lengths.
        sys_flags: ``(n,)``, which say how each is compressed.
    """
    kinds = sys_flags & COMPRESSION_MASK
    is_zlib = (sys_flags & COMPRESSED != 0) & (kinds != COMPRESSION_LZ4) & (kinds != COMPRESSION_ZSTD)
    # The body of a batch is not compressed as a whole.
    is_zlib &= sys_flags & INNER_BATCH == 0
    found: dict[int, bytes] = {}
    for row in np.flatnonzero(is_zlib).tolist():
        start = int(starts[row])
        with suppress(CorruptError):
            found[row] = inflate(buffer[start : start + int(sizes[row])].tobytes())
    return found


def with_inflated(stored: pa.Array, inflated: Mapping[int, bytes]) -> pa.Array:
    """Returns bodies as they are stored, but for those that were inflated."""
    rows = np.fromiter(inflated, np.int64, len(inflated))
    others = np.setdiff1d(np.arange(len(stored)), rows)
    return merged([(rows, pa.array(inflated.values(), pa.binary())), (others, stored.take(pa.array(others)))])
