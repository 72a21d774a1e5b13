"""Rows of records brought together by their queues, with what they come to."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from seglog.storage.format.record.sys_flag import INNER_BATCH
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.kernels.walk import ROW, Rows, are_dispatched

NativeGroup: TypeAlias = Callable[[memoryview, int, memoryview], list[tuple[int, int, int, int, int]] | None]

native_group: NativeGroup | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_group = _native.group_rows


class Group(NamedTuple):
    """The rows of one queue.

    Attributes:
        queue: Its number.
        rows: ``(n,) ROW``, in log order.
        size_bytes: Of the records together.
        least_ms: Their least store time.
        greatest_ms: Their greatest.
    """

    queue: int
    rows: Rows
    size_bytes: int
    least_ms: int
    greatest_ms: int


def group(rows: Rows, queue_count: int) -> list[Group] | None:
    """Returns the rows that have a place in a plain queue by their queues, ordered by the queues' numbers.

    None if some belong to inner batches, which have queues of another kind.

    Args:
        rows: ``(n,) ROW``, in log order.
        queue_count: How many queues there are.
    """
    if native_group is None:
        return _group(rows)
    grouped = np.empty(len(rows), ROW)
    if not len(rows):
        return []
    found = native_group(rows.data.cast("B"), queue_count, grouped.data.cast("B"))
    if found is None:
        return None
    groups: list[Group] = []
    end = 0
    for queue, count, *sums in found:
        groups.append(Group(queue, grouped[end : end + count], *sums))
        end += count
    return groups


def _group(rows: Rows) -> list[Group] | None:
    if (rows["sys_flag"] & INNER_BATCH).any():
        return None
    rows = rows[are_dispatched(rows)]
    rows = rows[np.argsort(rows["queue"], kind="stable")]
    starts = np.flatnonzero(np.diff(rows["queue"], prepend=-1))
    return [
        Group(
            int(part["queue"][0]),
            part,
            int(part["size_bytes"].sum(dtype=np.int64)),
            int(part["store_timestamp_ms"].min()),
            int(part["store_timestamp_ms"].max()),
        )
        for part in np.split(rows, starts[1:])
        if len(part)
    ]
