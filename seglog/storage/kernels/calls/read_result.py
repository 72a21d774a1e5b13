"""What a read found, not decoded yet: stretches of the log, and where records end in them.

Records that are neighbours in the log come as one stretch, a *run*; the native pull makes neither runs nor
records before they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from seglog.storage.format.get_status import GetStatus
from seglog.storage.kernels import KERNELS, NATIVE

if TYPE_CHECKING:
    from seglog.storage.format.record.message import Message


class PythonReadResult:
    """Records of one read; ``_native.ReadResult`` is the same.

    Args:
        status: How the read ended.
        next_offset: Queue offset to ask for next.
        min_offset: Of the queue.
        max_offset: Of the queue.
        runs: Stretches of whole records.
        lost: Queue offsets of messages that were stepped over.
        sizes: Bytes of each record; None if every run is one record.

    Attributes:
        decoded: The messages, once they were asked for.
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
        status: GetStatus,
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
        self.decoded: list[Message] | None = None

    def __len__(self) -> int:
        return len(self.runs) if self._sizes is None else len(self._sizes)

    @property
    def records(self) -> list[memoryview]:
        """Each record by itself."""
        if self._records is None:
            self._records = list(self.runs) if self._sizes is None else split(self.runs, self._sizes)
        return self._records


def split(runs: Sequence[memoryview], sizes: Sequence[int]) -> list[memoryview]:
    """Returns the records of runs, given how long each is.

    Raises:
        ValueError: They do not fill the runs.
    """
    records: list[memoryview] = []
    left = iter(sizes)
    for run in runs:
        at = 0
        while at < len(run):
            size = next(left, 0)
            if size <= 0 or size > len(run) - at:
                raise ValueError("the records do not fill the runs")
            records.append(run[at : at + size])
            at += size
    if len(records) != len(sizes):
        raise ValueError("the records do not fill the runs")
    return records


ReadResult: TypeAlias = PythonReadResult
if KERNELS == NATIVE and not TYPE_CHECKING:
    from seglog.storage.kernels import _native

    ReadResult = _native.ReadResult
