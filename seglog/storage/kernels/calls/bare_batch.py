"""Encodes the records of a batch of bare bodies, all at once.

Bare messages of one queue differ only in body, checksum and place. If all bodies are equally long, the
records are rows of one array. Otherwise their heads are rows of one array, and one join adds bodies and ends.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from seglog.storage.format.layout import I32_ITEMS, Layout
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.format.record.record import CRC_MASK

Places: TypeAlias = npt.NDArray[np.int64]
_BYTES_OF_SIZE: Final = np.arange(I32_ITEMS.itemsize)
_BODY: Final = 1
"""The part of a row that is the body; the head is before it, topic and properties behind."""


def encode_bare(
    head: Layout, template: bytes, tail: bytes, bodies: Sequence[bytes], phy_offset: int, queue_offset: int
) -> tuple[bytes | memoryview, Places, Places]:
    """Encodes records that follow each other in the log and in their queue.

    Args:
        head: Layout of the bytes before the body.
        template: A head with the fields that all records share.
        tail: The bytes behind the body.
        bodies: One body or more.
        phy_offset: Physical offset of the first record.
        queue_offset: Queue offset of the first record.

    Returns:
        The records, with size fields of zero; ``(n + 1,)``: the physical offset of each record and the end of
        the last one; ``(n,)``: their sizes.
    """
    count = len(bodies)
    lengths = np.fromiter(map(len, bodies), np.int64, count)
    bounds = np.empty(count + 1, np.int64)
    bounds[0] = phy_offset
    sizes = lengths + (len(template) + len(tail))
    np.cumsum(sizes, out=bounds[1:])
    bounds[1:] += phy_offset
    is_even = bool((lengths == lengths[0]).all())
    rows = np.empty(count, _row_dtype(head, int(lengths[0]), len(tail)) if is_even else head.dtype)
    heads: npt.NDArray[np.void] = rows["head"] if is_even else rows
    heads[...] = np.frombuffer(template, head.dtype)
    heads["body_bytes"] = lengths
    heads["body_crc"] = np.fromiter(map(zlib.crc32, bodies), np.uint32, count) & CRC_MASK
    heads["queue_offset"] = np.arange(queue_offset, queue_offset + count)
    heads["phy_offset"] = bounds[:-1]
    if is_even:
        if lengths[0]:
            rows["body"] = np.frombuffer(b"".join(bodies), rows.dtype[_BODY])
        rows["tail"] = np.frombuffer(tail, rows.dtype["tail"])
        return rows.data.cast("B"), bounds, sizes
    size, joined = len(template), rows.tobytes()
    cut = (joined[at : at + size] for at in range(0, len(joined), size))
    return b"".join(chain.from_iterable(zip(cut, bodies, repeat(tail)))), bounds, sizes


def publish_sizes(memory: memoryview, sizes: Places) -> None:
    """Writes the size fields of records, in order.

    Args:
        memory: Memory of the log from the first record to the end of the last.
        sizes: ``(n,)``, the size of each record.
    """
    first = int(sizes[0])
    if (sizes == first).all():
        np.ndarray(len(sizes), I32_ITEMS, memory, strides=(first,))[...] = first
    else:
        places = np.cumsum(sizes) - sizes
        each = sizes.astype(I32_ITEMS).view(np.uint8).reshape(-1, I32_ITEMS.itemsize)
        np.frombuffer(memory, np.uint8)[places[:, np.newaxis] + _BYTES_OF_SIZE] = each


def encode_bare_units(bounds: Places, sizes: Places) -> memoryview:
    """Returns the queue units of records, given their bounds as of :func:`encode_bare`, and their sizes."""
    units = np.zeros(len(sizes), CQ_UNIT.dtype)
    units["phy_offset"] = bounds[:-1]
    units["size_bytes"] = sizes
    return units.data.cast("B")


@lru_cache(maxsize=64)
def _row_dtype(head: Layout, body_bytes: int, tail_bytes: int) -> np.dtype[Any]:
    return np.dtype([("head", head.dtype), ("body", f"V{body_bytes}"), ("tail", f"V{tail_bytes}")])
