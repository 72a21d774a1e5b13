"""Finds which delayed messages have been delivered since the table of their offsets was saved.

A delivery is a record of the log itself: the body and the properties of the waiting record, REAL_TOPIC and
REAL_QID included, in the queue that they name. Those of a level come in the order in which they waited. So
behind the place where the log ended at the save, the deliveries of a level are its next messages, and what of
them stands in the log need not be delivered again. Only records of one size in one queue are looked at.

That place must be known: farther back might stand an older message that equals a waiting one in every byte.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seglog.errors import InvalidArgumentError, NotFoundError
from seglog.storage.format import properties as props
from seglog.storage.format.message import Message
from seglog.storage.format.names import SCHEDULE_TOPIC
from seglog.storage.queue_view import QueueView
from seglog.storage.store import MessageStore

_BATCH: int = 64


class Deliveries:
    """Looks for the deliveries of one level.

    Args:
        store: Where they are.
        log_end: They lie behind this physical offset.
    """

    def __init__(self, store: MessageStore, log_end: int) -> None:
        self._store = store
        self._log_end = log_end
        self._views: dict[tuple[str, int], QueueView | None] = {}
        self._next: dict[tuple[str, int], int] = {}

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
        target = target_of(waiting)
        if target is None:
            return False
        if target not in self._views:
            self._views[target] = _view(self._store, *target)
        view = self._views[target]
        if view is None:
            return False
        start = self._next.get(target)
        if start is None:
            start = _first_behind(view, self._log_end)
        for queue_offset in _iter_candidates(view, start, _sizes(waiting, target[0])):
            (unit,) = view.units(queue_offset, 1).tolist()
            if self._is_delivery(unit[0], waiting):
                self._next[target] = queue_offset + 1
                return True
        return False

    def _is_delivery(self, phy_offset: int, waiting: Message) -> bool:
        try:
            found = self._store.message_at(phy_offset)
        except NotFoundError:
            return False
        return found.phy_offset > waiting.phy_offset and _content(found) == _content(waiting)


def target_of(message: Message) -> tuple[str, int] | None:
    """Returns the topic and queue that a waiting message goes to, None if it names none."""
    topic = props.find_property(message.properties_raw, props.REAL_TOPIC.encode())
    queue_id = props.find_property(message.properties_raw, props.REAL_QUEUE_ID.encode())
    if topic is None or queue_id is None or not queue_id.isdigit() or len(queue_id) > 10:
        return None
    return topic.decode("utf-8", "replace"), int(queue_id)


def _view(store: MessageStore, topic: str, queue_id: int) -> QueueView | None:
    try:
        return store.queue(topic, queue_id)
    except (NotFoundError, InvalidArgumentError):  # no queue, or one with a unit for each batch
        return None


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


def _iter_candidates(view: QueueView, queue_offset: int, sizes: tuple[int, ...]) -> Iterator[int]:
    for first, units in view.iter_units(queue_offset):
        rows = np.flatnonzero(np.isin(units["size_bytes"], sizes)).tolist()
        del units  # it may share memory with the file
        yield from (first + row for row in rows)


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
