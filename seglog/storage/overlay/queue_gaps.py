"""Messages of a queue that the log lost without a hole: the queue's units lead to places with other records.

This is the trace of a log file that was replaced by a file of another store, or by an older copy. The queue's
units still have the places of its own messages. Retention explains only places before the first file of the
log. A unit is believed if its place is in the log, and between the places of the queue's records before and
behind it, because places ascend with queue offsets. Units behind the queue's last record are not believed:
RocketMQ cuts a log after a crash and leaves old units there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from seglog.storage.directory.queue_files import unit_finding
from seglog.storage.findings.findings import Finding
from seglog.storage.format.names import LMQ_PREFIX
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES, PRE_BLANK_BYTES, Units
from seglog.storage.format.record.record import MIN_RECORD_BYTES
from seglog.storage.kernels.walk import Rows
from seglog.storage.walk.behind_damage import Hole
from seglog.storage.walk.growable_rows import parts

_MAX_I64: Final = (1 << 63) - 1
_LOOKED_AT: Final = 1 << 16
"""Rows that are examined in one step, so that temporary arrays stay small."""

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class QueueGap:
    """Consecutive messages of a queue at whose places the log has other records.

    Attributes:
        offsets: Their queue offsets.
        phy_offset: Former physical offset of the first message's record.
        size_bytes: Bytes from there to the former end of the last message's record.
    """

    offsets: range
    phy_offset: int
    size_bytes: int


def find_gaps(
    topic: str,
    rows: Rows,
    own: Rows,
    first_slot: int,
    stored: Units,
    log: tuple[int, int],
    holes: Sequence[Hole],
) -> list[QueueGap]:
    """Returns the messages of a queue's units at whose places the log has other records.

    Messages in holes are not among them: :func:`~seglog.storage.overlay.lost_messages.lost_in_holes` returns
    those.

    Args:
        topic: The queue's topic; gaps of ``%LMQ%`` queues, whose messages belong to other queues, and gaps of
            queues without a record need those of others (:mod:`seglog.storage.overlay.replaced_files`).
        rows: The queue's records that have a place in it.
        own: All its records.
        first_slot: Queue offset of ``stored[0]``.
        stored: Units of the queue's files.
        log: Start and end of the log.
        holes: Its unreadable stretches.
    """
    if topic.startswith(LMQ_PREFIX) or not len(rows):
        return []
    start, end = log
    end_slot = int(rows["queue_offset"].max()) - first_slot
    numbers = _without_row(rows, first_slot, stored[: max(0, end_slot)])
    sizes = stored["size_bytes"][numbers]
    numbers = numbers[(sizes >= MIN_RECORD_BYTES) & (sizes != PRE_BLANK_BYTES)]
    places, sizes = stored["phy_offset"][numbers], stored["size_bytes"][numbers]
    ends = places + sizes
    is_lost = (places >= start) & (ends > places) & (ends <= end)  # whole within the log, and not expired
    numbers, places = numbers[is_lost], places[is_lost]
    if len(numbers):
        is_lost = ~_are_among(places, own)  # a record of the queue that exists, but has another offset now
        numbers, places = numbers[is_lost], places[is_lost]
    if not len(numbers):
        return []
    order = np.argsort(rows["queue_offset"], kind="stable")
    slots, of_rows = rows["queue_offset"][order], rows["phy_offset"][order]
    edges = np.concatenate([[-1], of_rows, [_MAX_I64]])
    at = np.searchsorted(slots, first_slot + numbers)
    before, behind = edges[at], edges[at + 1]
    is_lost = (before < places) & (places < behind)
    for hole in holes:
        # A jump over a hole is reported with the hole. Before the queue's first record, only units that lead
        # into the hole belong to it.
        is_told = (before < hole.end) & (hole.phy_offset < behind)
        leads_in = (places < hole.end) & (hole.phy_offset < places + stored["size_bytes"][numbers])
        is_lost &= ~np.where(before < 0, leads_in, is_told)
    numbers, places = numbers[is_lost], places[is_lost]
    if not len(numbers):
        return []
    # The lost places must also ascend among themselves; of units in disorder none is believed.
    earlier = np.maximum.accumulate(np.concatenate([[-1], places[:-1]]))
    later = np.minimum.accumulate(np.concatenate([places[1:], [_MAX_I64]])[::-1])[::-1]
    numbers = numbers[(earlier < places) & (places < later)]
    if not len(numbers):
        return []
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    return [
        QueueGap(
            range(first_slot + int(run[0]), first_slot + int(run[-1]) + 1),
            int(stored["phy_offset"][run[0]]),
            int(stored["phy_offset"][run[-1]] + stored["size_bytes"][run[-1]] - stored["phy_offset"][run[0]]),
        )
        for run in runs
    ]


def gap_finding(
    queue: str, name: str, gap: QueueGap, index: int, file_size_bytes: int, unit_bytes: int = CQ_UNIT_BYTES
) -> Finding:
    """Returns the finding about a gap.

    Args:
        queue: Folder of the queue.
        name: Topic and number of the queue.
        gap: The gap.
        index: Number of the first unit of its messages.
        file_size_bytes: Length of a file of the queue.
        unit_bytes: Length of a unit.
    """
    told = f"other records; lost: {name} {gap.offsets.start}..{gap.offsets.stop - 1}"
    expected = f"records of the queue from {gap.phy_offset} on"
    count = len(gap.offsets)
    return unit_finding(
        "queue-gap", queue, index, file_size_bytes, count, unit_bytes, expected=expected, found=told
    )


def _without_row(rows: Rows, first_slot: int, stored: Units) -> _Ints:
    """Returns the numbers of the units at queue offsets without a record."""
    has_row = np.zeros(len(stored), np.bool_)
    for some in parts(rows, _LOOKED_AT):
        at = some["queue_offset"] - first_slot
        has_row[at[(at >= 0) & (at < len(stored))]] = True
    return np.flatnonzero(~has_row)


def _are_among(places: _Ints, own: Rows) -> npt.NDArray[np.bool_]:
    """Returns which of some places are those of records; there may be far more records than places."""
    order = np.argsort(places)
    ascending = places[order]
    found = np.zeros(len(places), np.bool_)
    for some in parts(own, _LOOKED_AT):
        low, high = (np.searchsorted(ascending, some["phy_offset"], side) for side in ("left", "right"))
        for first, behind in set(zip(low[low < high].tolist(), high[low < high].tolist(), strict=True)):
            found[order[first:behind]] = True
    return found
