"""Records whose properties name further queues or messages: inner batches, and records in LMQ queues.

A walk does not keep properties; it reports the records that have such a property name, and only those are
read again here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seglog.errors import CorruptError
from seglog.storage.format.queue.batch_consume_queue import batch_range
from seglog.storage.format.queue.lmq import multi_queues
from seglog.storage.format.record import Damage, examine, takes_queue_offset
from seglog.storage.kernels.walk import ROW, QueueTable, Rows


class InnerRecords:
    """The facts about queues in the properties of a log's records.

    Attributes:
        ranges: Base queue offset and number of messages by physical offset, for inner batches.
    """

    def __init__(self) -> None:
        self.ranges: dict[int, tuple[int, int]] = {}
        self._further: list[tuple[int, ...]] = []

    def note(self, window: memoryview, phy_offset: int, positions: Sequence[int], queues: QueueTable) -> None:
        """Reads the properties of the records of a window that have such property names.

        Args:
            window: The bytes.
            phy_offset: Physical offset of the first byte.
            positions: Positions of those records in the window, in order.
            queues: Numbers queues; further queues are added.
        """
        for at in positions:
            self._look_into(window, at, phy_offset + at, queues)

    def take_further(self) -> Rows:
        """Returns rows for the further queues of the records noted since the last call, in log order."""
        taken, self._further = self._further, []
        return np.array(taken, ROW)

    def _look_into(self, window: memoryview, at: int, phy_offset: int, queues: QueueTable) -> None:
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
