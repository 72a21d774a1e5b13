"""What a read found, before anybody looked at it: stretches of the log, and where records end in them.

Records that are neighbours in the log come as one stretch, a *run*; the native pull makes neither runs nor
records before they are asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from seglog.storage.kernels import KERNELS, NATIVE


class PythonFound:
    """Records of one read; ``native.Found`` is the same.

    Args:
        status: How the read ended.
        next_offset: Queue offset to ask for next.
        min_offset: Of the queue.
        max_offset: Of the queue.
        runs: Stretches of whole records.
        lost: Queue offsets of messages that were stepped over.
        sizes: Bytes of each record; None if every run is one record.
    """

    __slots__ = (
        "_records",
        "_sizes",
        "decoded",
        "lost",
        "max_offset",
        "min_offset",
        "next_offset",
        "runs",
        "status",
    )

    def __init__(
        self,
        status: object,
        next_offset: int,
        min_offset: int,
        max_offset: int,
        runs: Sequence[memoryview] = (),
        lost: tuple[range, ...] = (),
        sizes: Sequence[int] | None = None,
    ) -> None:
        self.status = status
        self.next_offset = next_offset
        self.min_offset = min_offset
        self.max_offset = max_offset
        self.runs = list(runs)
        self.lost = lost
        self._sizes = sizes
        self._records: list[memoryview] | None = None
        self.decoded: list[object] | None = None

    def __len__(self) -> int:
        return len(self.runs) if self._sizes is None else len(self._sizes)

    @property
    def records(self) -> list[memoryview]:
        """Each record by itself."""
        if self._records is None:
            self._records = list(self.runs) if self._sizes is None else split(self.runs, self._sizes)
        return self._records


def split(runs: Sequence[memoryview], sizes: Sequence[int]) -> list[memoryview]:
    """Returns the records of runs, given how long each is."""
    if len(runs) == len(sizes):
        return list(runs)
    ends = list(itertools.accumulate(sizes))
    records: list[memoryview] = []
    begun = 0
    for run in runs:
        while len(records) < len(ends) and ends[len(records)] - begun <= len(run):
            end = ends[len(records)] - begun
            records.append(run[end - sizes[len(records)] : end])
        begun += len(run)
    return records


Found: TypeAlias = PythonFound
if KERNELS == NATIVE and not TYPE_CHECKING:
    from seglog.storage.kernels import _native

    Found = _native.Found
