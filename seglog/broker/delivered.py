"""Finds which delayed messages have been delivered since the table of their offsets was saved.

A delivery is a record of the log itself: the body and the properties of the waiting record, REAL_TOPIC and
REAL_QID included, in the queue that they name. Those of a level come in the order in which they waited. So
behind the place where the log ended at the save, the deliveries of a level are its next messages, and what of
them stands in the log need not be delivered again. Only records of one size in one queue are looked at.

That place must be known: farther back might stand an older message that equals a waiting one in every byte.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

import numpy as np

from seglog.errors import InvalidArgumentError, NotFoundError
from seglog.storage.format import properties as props
from seglog.storage.format.message import Message
from seglog.storage.format.names import SCHEDULE_TOPIC
from seglog.storage.queue_view import QueueView
from seglog.storage.store import MessageStore

_BATCH: Final = 64


class Deliveries:
    """Looks for the deliveries of one level.

    Args:
        store: Where they are.
        log_end: They lie behind this physical offset.
    """

    def __init__(self, store: MessageStore, log_end: int) -> None:
        self._store = store
        self._log_end = log_end
        self._targets: dict[tuple[str, int], _Target | None] = {}

    def first_missing(self, queue_id: int, queue_offset: int) -> int:
        """Returns the offset of the first message that was not delivered.

        Args:
            queue_id: Of the delay topic.
            queue_offset: What comes before was delivered.
        """
        while True:
            found = self._store.get(SCHEDULE_TOPIC, queue_id, queue_offset, _BATCH)
            for message in found.messages:
                if not self._take(message):
                    return message.queue_offset
                queue_offset = message.queue_offset + 1
            if not found.messages:
                return queue_offset

    def _take(self, waiting: Message) -> bool:
        """Returns whether a message was delivered; what was found is not found again for another."""
        target = self._target(waiting)
        if target is None:
            return False
        for row in target.rows(_sizes(waiting, target.topic), waiting.phy_offset):
            if self._is_delivery(target.phy_offsets[row], waiting):
                target.next_row = row + 1
                return True
        return False

    def _target(self, waiting: Message) -> _Target | None:
        key = target_of(waiting)
        if key is None:
            return None
        if key not in self._targets:
            try:
                self._targets[key] = _Target(self._store.queue(*key), self._log_end)
            except (NotFoundError, InvalidArgumentError):  # no queue, or one with a unit for each batch
                self._targets[key] = None
        return self._targets[key]

    def _is_delivery(self, phy_offset: int, waiting: Message) -> bool:
        try:
            found = self._store.message_at(phy_offset)
        except NotFoundError:
            return False
        return _content(found) == _content(waiting)


class _Target:
    """A queue that deliveries went to, from a place of the log on.

    Attributes:
        next_row: The first unit that was not taken for a delivery.
        phy_offsets: Of the units.
    """

    def __init__(self, view: QueueView, log_end: int) -> None:
        self.topic = view.topic
        self.next_row = 0
        units = view.units(_first_behind(view, log_end)).copy()
        self.phy_offsets: list[int] = units["phy_offset"].tolist()
        self._size_bytes = units["size_bytes"]
        self._rows: dict[tuple[int, ...], list[int]] = {}

    def rows(self, sizes: tuple[int, ...], phy_offset: int) -> Iterator[int]:
        """Yields the units that are left of records with one of some sizes behind a place of the log."""
        if sizes not in self._rows:
            self._rows[sizes] = np.flatnonzero(np.isin(self._size_bytes, sizes)).tolist()
        rows = self._rows[sizes]
        first = max(self.next_row, bisect_left(self.phy_offsets, phy_offset))
        for at in range(bisect_left(rows, first), len(rows)):
            yield rows[at]


def target_of(message: Message) -> tuple[str, int] | None:
    """Returns the topic and queue that a waiting message goes to, None if it names none."""
    topic = props.find_property(message.properties_raw, props.REAL_TOPIC.encode())
    queue_id = props.find_property(message.properties_raw, props.REAL_QUEUE_ID.encode())
    if topic is None or queue_id is None or not queue_id.isdigit() or len(queue_id) > 10:
        return None
    return topic.decode("utf-8", "replace"), int(queue_id)


def _first_behind(view: QueueView, phy_offset: int) -> int:
    """Returns the queue offset of the first unit that lies behind a place of the log."""
    low, high = view.min_offset, view.max_offset
    while low < high:
        middle = (low + high) // 2
        if int(view.units(middle, 1)["phy_offset"][0]) < phy_offset:
            low = middle + 1
        else:
            high = middle
    return low


def _sizes(waiting: Message, topic: str) -> tuple[int, ...]:
    """Returns the sizes that a delivery's record can have: the check of whole records may be switched."""
    size = waiting.size_bytes - len(SCHEDULE_TOPIC) + len(topic.encode())
    raw = waiting.properties_raw
    size -= len(raw) - len(props.without_crc_property(raw))
    return size, size + props.CRC_PROPERTY_BYTES


def _content(message: Message) -> tuple[object, ...]:
    """Returns what a delivery takes over; a Java broker writes the properties in another order."""
    return (
        props.decode_properties(props.without_crc_property(message.properties_raw)),
        message.born_timestamp_ms,
        message.born_host,
        message.reconsume_times,
        message.sys_flag,
        message.flag,
        message.body,
    )
