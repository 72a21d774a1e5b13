"""Records that say more about queues than their head does: inner batches, and records in further queues.

Their properties are needed for that, which a walk does not keep. So every window that was walked is
searched for the names of those properties, which costs little beside the walk, and only records that hold
one are looked into.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from seglog.errors import CorruptError
from seglog.storage.format.batch_consume_queue import batch_range
from seglog.storage.format.lmq import multi_queues
from seglog.storage.format.record import Damage, examine
from seglog.storage.format.sys_flag import takes_queue_offset
from seglog.storage.kernels.walk import ROW, QueueTable, Rows

_NAMES: Final = b"INNER_"
"""What INNER_NUM, INNER_BASE and INNER_MULTI_DISPATCH begin with."""


class InnerRecords:
    """What the properties of a log's records say about queues.

    Attributes:
        ranges: Base queue offset and number of messages by physical offset, for records that say so.
    """

    def __init__(self) -> None:
        self.ranges: dict[int, tuple[int, int]] = {}
        self._further: list[tuple[int, ...]] = []

    def note(self, window: memoryview, phy_offset: int, rows: Rows, queues: QueueTable) -> None:
        """Looks through a window of the log.

        Args:
            window: The bytes.
            phy_offset: Of the first byte.
            rows: The records in it, by growing offset.
            queues: Numbers queues; further ones are added.
        """
        if not len(rows):
            return
        raw = bytes(window)
        starts = rows["phy_offset"]
        at = raw.find(_NAMES)
        while at >= 0:
            row = rows[int(np.searchsorted(starts, phy_offset + at, "right")) - 1]
            end = int(row["phy_offset"]) + int(row["size_bytes"]) - phy_offset
            if at >= end:
                return  # behind the last record
            self._look_into(window, int(row["phy_offset"]) - phy_offset, row, queues)
            at = raw.find(_NAMES, end)

    def take_further(self) -> Rows:
        """Returns rows for the further queues of the records noted since the last call, in log order."""
        taken, self._further = self._further, []
        return np.array(taken, ROW)

    def _look_into(self, window: memoryview, at: int, row: np.void, queues: QueueTable) -> None:
        phy_offset = int(row["phy_offset"])
        record = examine(window, at, phy_offset, verify=False)
        if isinstance(record, Damage) or not takes_queue_offset(record.sys_flag):
            return
        start = at + record.properties_at
        properties = bytes(window[start : start + record.properties_bytes])
        try:
            base, count = batch_range(properties, record.queue_offset)
        except CorruptError:
            base, count = record.queue_offset, 1
        if (base, count) != (record.queue_offset, 1):
            self.ranges[phy_offset] = base, count
        topic = record.topic.decode("utf-8", "replace")
        placed = set()
        for name, queue_id, queue_offset in multi_queues(topic, record.queue_id, properties):
            number = queues.number(name.encode(), queue_id)
            if number in placed:
                continue
            placed.add(number)
            self._further.append(
                (
                    phy_offset,
                    queue_offset,
                    record.tags_code,
                    record.store_timestamp_ms,
                    record.size_bytes,
                    number,
                    record.sys_flag,
                )
            )
