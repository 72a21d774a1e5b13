"""Bodies as their producers gave them: bodies that zlib, lz4 or zstd compressed are inflated, one by one.

A body that cannot be inflated is returned as it is stored; its ``sysFlag`` still marks it as compressed.
RocketMQ's clients write lz4 in frames (``Lz4Compressor.java``) and zstd as a stream
(``ZstdCompressor.java``).
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
    join_bounded,
)
from seglog.storage.kernels.gather import Bytes, Ints

COMPRESSION_BITS: Final = COMPRESSED | COMPRESSION_MASK
_STREAMED: Final = {COMPRESSION_LZ4: "lz4", COMPRESSION_ZSTD: "zstd"}
_PIECE_BYTES: Final = 1 << 16


def inflate_bodies(buffer: Bytes, starts: Ints, sizes: Ints, sys_flags: Ints) -> dict[int, bytes]:
    """Returns the bodies that can be inflated, by row.

    Args:
        buffer: ``(m,) u8``.
        starts: ``(n,)``, starts of bodies in it.
        sizes: ``(n,)``, their lengths.
        sys_flags: ``(n,)``, whose bits name the compression of each.
    """
    # The body of an inner batch is not compressed as a whole.
    is_compressed = (sys_flags & COMPRESSED != 0) & (sys_flags & INNER_BATCH == 0)
    found: dict[int, bytes] = {}
    for row in np.flatnonzero(is_compressed).tolist():
        start = int(starts[row])
        body = buffer[start : start + int(sizes[row])].tobytes()
        codec = _STREAMED.get(int(sys_flags[row]) & COMPRESSION_MASK)
        with suppress(CorruptError):
            found[row] = inflate(body) if codec is None else _inflate_stream(body, codec)
    return found


def with_inflated(stored: pa.Array, inflated: Mapping[int, bytes]) -> pa.Array:
    """Returns stored bodies, in which those that were inflated are replaced."""
    rows = np.fromiter(inflated, np.int64, len(inflated))
    others = np.setdiff1d(np.arange(len(stored)), rows)
    return merged([(rows, pa.array(inflated.values(), pa.binary())), (others, stored.take(pa.array(others)))])


def _inflate_stream(body: bytes, codec: str) -> bytes:
    """Returns a body of another codec as the producer gave it; Arrow has the codecs wherever Spark runs.

    Raises:
        CorruptError: It cannot be inflated, or inflates beyond 64 MiB.
    """
    if not body:
        raise CorruptError("inflate", expected=f"a whole {codec} body", found="nothing")
    try:
        with pa.CompressedInputStream(pa.py_buffer(body), codec) as stream:
            return join_bounded(iter(lambda: stream.read(_PIECE_BYTES), b""))
    except (OSError, pa.ArrowInvalid) as error:
        raise CorruptError("inflate", expected=f"a whole {codec} body", found=str(error)) from error
