"""Walks a long stretch of a segment natively, in pieces side by side, as far as records are whole and right.

Where a piece begins is known only for the first: a thread looks for the first record behind a border that
proves itself, and walks from there to the next border. That it found what a walk from the start would have
come to is proven by its neighbour, whose walk must end just there; if it does not, a walk continues from that
end and what was found behind it does not count. So rows, and where they end, are those of one walk.

The buffer may be the map of a file that another process cuts: see :func:`walk_ahead`.

There is no Python kernel of this: without the native ones nothing is gained by it, and callers walk windows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise, takewhile
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from seglog.storage.format.record.record import MIN_RECORD_BYTES
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.kernels.walk import ROW, QueueTable, Rows

PIECE_BYTES: Final = 4 << 20
MAX_PIECES: Final = 8
"""Bounds what is handed over at a time: 16 MiB of rows where records are the smallest."""
THREADS: Final = min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)

NativeStretch: TypeAlias = Callable[
    [memoryview, int, int, int, bool, bool, memoryview],
    tuple[int, list[int], int, int, list[tuple[bytes, int]]],
]

native_stretch: NativeStretch | None = None
if KERNELS == NATIVE:
    from seglog.storage.kernels import _native

    native_stretch = _native.walk_stretch


class Ahead(NamedTuple):
    """What a walk saw.

    Attributes:
        rows: ``(n,) ROW``, the records in log order; valid until the next walk of the same walkers.
        saying_more: Where in the buffer those of them are whose properties say more about queues.
        position: Where in the buffer the walk stopped: at the end of the stretch, or before.
        is_whole: Whether it came to the end of the stretch.
    """

    rows: Rows
    saying_more: list[int]
    position: int
    is_whole: bool


class _Piece(NamedTuple):
    rows: Rows
    saying_more: list[int]
    begin: int
    position: int
    queues: list[tuple[bytes, int]]


class _Walk(Protocol):
    """Walks one span of the buffer."""

    def __call__(self, start: int, end: int, /, *, resync: bool) -> _Piece: ...


class Walkers:
    """Threads that walk side by side, made when they are first needed.

    Args:
        threads: How many.
        piece_bytes: How much of a log is a piece.
    """

    def __init__(self, threads: int = THREADS, piece_bytes: int = PIECE_BYTES) -> None:
        self._threads = threads
        self._piece_bytes = piece_bytes
        self._pool: ThreadPoolExecutor | None = None
        self._pieces = 1
        self._rows: Rows = np.empty(0, ROW)  # kept: new memory costs more than the walk of it

    def walk_ahead(
        self,
        buffer: memoryview,
        phy_offset: int,
        start: int,
        queues: QueueTable,
        has_data: Callable[[int], bool] = lambda _phy_offset: True,
        *,
        verify: bool = True,
    ) -> Ahead:
        """Walks the next stretch: one piece at first and behind what stopped a walk, then more.

        Args:
            buffer: A segment, or its front; memory of any kind.
            phy_offset: Physical offset of its first byte.
            start: Where in it a record may start.
            queues: Numbers queues; new ones are added.
            has_data: Returns whether anything was ever written at a physical offset. A map of a file that
                is not touched elsewhere takes no memory for it.
            verify: Whether to compute checksums.

        Raises:
            TruncatedError: The buffer is a map, and a byte of it cannot be read any more; nothing was
                changed.
        """
        count = min(self._pieces, -(-(len(buffer) - start) // self._piece_bytes))
        later = (start + number * self._piece_bytes for number in range(1, count))
        borders = [start, *takewhile(lambda border: has_data(phy_offset + border), later)]
        end = min(borders[-1] + self._piece_bytes, len(buffer))
        kept = self._walk_pieces(buffer, phy_offset, [*borders, end], verify=verify)
        position = kept[-1].position
        is_whole = position >= end
        self._pieces = min(2 * self._pieces, MAX_PIECES) if is_whole else 1
        saying_more = [at for piece in kept for at in piece.saying_more]
        return Ahead(self._joined(kept, queues), saying_more, position, is_whole)

    def _joined(self, pieces: list[_Piece], queues: QueueTable) -> Rows:
        """Returns the rows of all, moved together in their memory."""
        end = 0
        for piece in pieces:
            count = len(piece.rows)
            numbers = [queues.number(topic, queue_id) for topic, queue_id in piece.queues]
            if numbers != list(range(len(numbers))):
                piece.rows["queue"] = np.array(numbers, np.int32)[piece.rows["queue"]]
            self._rows[end : end + count] = piece.rows
            end += count
        return self._rows[:end]

    def close(self) -> None:
        """Ends the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _walk_pieces(
        self, buffer: memoryview, phy_offset: int, borders: list[int], *, verify: bool
    ) -> list[_Piece]:
        """Returns the pieces that belong together, from the first on."""
        spans = list(pairwise(borders))
        room = (borders[1] - borders[0]) // MIN_RECORD_BYTES + 1
        if len(self._rows) < room * len(spans):
            self._rows = np.empty(room * len(spans), ROW)
        places = {end: self._rows[number * room :][:room] for number, (_start, end) in enumerate(spans)}

        def walk(start: int, end: int, *, resync: bool) -> _Piece:
            place = places[end]
            found = _native_stretch()(buffer, phy_offset, start, end, verify, resync, place.data.cast("B"))
            return _Piece(place[: found[0]], *found[1:])

        if len(spans) == 1:
            return [walk(*spans[0], resync=False)]
        futures = [self._submit(walk, span, resync=span[0] > borders[0]) for span in spans]
        try:
            kept = [futures[0].result()]
            for (start, end), future in zip(spans[1:], futures[1:], strict=True):
                position = kept[-1].position
                if position < start:
                    break  # something else than a record is there
                if position >= end:
                    continue  # one record takes all of it
                piece = future.result()
                kept.append(piece if piece.begin == position else walk(position, end, resync=False))
        finally:
            for future in futures:
                future.cancel()
        return kept

    def _submit(self, walk: _Walk, span: tuple[int, int], *, resync: bool) -> Future[_Piece]:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, "seglog-walk")
        return self._pool.submit(walk, *span, resync=resync)


def _native_stretch() -> NativeStretch:
    if native_stretch is None:
        raise RuntimeError("there are no native kernels to walk ahead with")
    return native_stretch
