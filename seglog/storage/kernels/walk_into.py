"""Walks records natively into memory that is used again, and finds their keys on the way.

Memory that was just given back costs the system more than the walk of a window does, and a record is in the
processor's caches right after its checksums. The buffer may be the map of a file that another process cuts.

There is no Python kernel of this: without the native ones callers walk windows and ask for their keys, which
gives the same (:func:`seglog.storage.kernels.walk.walk`,
:func:`seglog.storage.kernels.index_keys.index_keys`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from seglog.storage.format.index.index_build import KEY_ROW, KeyRows
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.kernels.index_keys import RecordKeys
from seglog.storage.kernels.walk import QueueTable, Rows

KEYS_ROOM: Final = 1 << 16
"""More keys than a record can have, whose properties are shorter than 32 KiB."""

NativeInto: TypeAlias = Callable[
    [memoryview, int, int, int, bool, Callable[[bytes, int], int], memoryview, memoryview | None, bool],
    tuple[int, list[int], int, bool, int, list[int], int, int],
]

native_into: NativeInto | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_into = _native.walk_into


class Walked(NamedTuple):
    """What a walk saw.

    Attributes:
        row_count: How many rows were written.
        keys: Keys of these records, valid until their memory is used again; none where they are not wanted.
        saying_more: Where in the buffer those of them are whose properties say more about queues.
        position: Where in the buffer the walk stopped.
        is_full: Whether it stopped for lack of room.
    """

    row_count: int
    keys: RecordKeys
    saying_more: list[int]
    position: int
    is_full: bool


def new_keys() -> KeyRows:
    """Returns memory for the keys of a walk."""
    return np.empty(KEYS_ROOM, KEY_ROW)


def walk_into(
    buffer: memoryview,
    phy_offset: int,
    start: int,
    until: int,
    queues: QueueTable,
    rows: Rows,
    keys: KeyRows | None,
    *,
    verify: bool,
    tags: bool,
) -> Walked:
    """Walks records from ``start`` up to the first one at or behind ``until``, as far as they are right.

    Args:
        buffer: A stretch of one segment; memory of any kind.
        phy_offset: Physical offset of its first byte.
        start: Where in it a record may start.
        until: Where in it to end; the last record may continue after it.
        queues: Numbers queues; new ones are added.
        rows: ``(n,) ROW``, written to.
        keys: ``(KEYS_ROOM,) KEY_ROW``, written to; None if keys are not wanted.
        verify: Whether to compute checksums.
        tags: Whether tags are keys.

    Raises:
        TruncatedError: The buffer is a map, and a byte of it cannot be read any more.
    """
    if native_into is None:
        raise RuntimeError("there are no native kernels to walk with")
    room = None if keys is None else keys.data.cast("B")
    count, saying_more, position, is_full, key_count, lost, with_crc, placeholders = native_into(
        buffer, phy_offset, start, until, verify, queues.number, rows.data.cast("B"), room, tags
    )
    found = RecordKeys(
        np.empty(0, KEY_ROW) if keys is None else keys[:key_count],
        tuple(phy_offset + at for at in lost),
        with_crc,
        placeholders,
    )
    return Walked(count, found, saying_more, position, is_full)
