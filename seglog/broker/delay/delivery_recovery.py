"""Finds the delayed messages that were delivered since the table of their offsets was saved.

A delivery is a record of the log: the body and the properties of the waiting record, REAL_TOPIC and REAL_QID
included, in the queue that they name. If such a record is behind the end that the log had at the save, its
message need not be delivered again. Equal messages are counted: each delivery accounts for one of them. Only
records of a size that a delivery can have are read, each once.

The end of the log at the save must be known: an older message may equal a waiting one in every byte.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from hashlib import blake2b
from typing import Final, TypeAlias

import numpy as np

from seglog.errors import InvalidArgumentError, NotFoundError
from seglog.storage.format.names import SCHEDULE_TOPIC
from seglog.storage.format.record import Message
from seglog.storage.format.record import properties as props
from seglog.storage.reads import QueueView
from seglog.storage.store import MessageStore

MOST_MISSING: Final = 1_000
"""After so many undelivered messages in a row no later one of the level was delivered."""
_BATCH: Final = 64
_Content: TypeAlias = tuple[object, ...]


class Deliveries:
    """Looks for the deliveries of one level.

    Args:
        store: Holds them.
        log_end: Physical offset behind which they are.
    """

    def __init__(self, store: MessageStore, log_end: int) -> None:
        self._store = store
        self._log_end = log_end
        self._targets: dict[tuple[str, int], _Target | None] = {}

    def find(self, queue_id: int, queue_offset: int) -> set[int]:
        """Returns the offsets of messages that were delivered.

        The messages of a level are delivered in order, but failures leave gaps: a message without a
        destination, a delivery that was lost in a power failure. The search ends after many undelivered
        messages in a row.

        Args:
            queue_id: Of the delay topic.
            queue_offset: Where to begin.
        """
        delivered: set[int] = set()
        missing = 0
        while missing < MOST_MISSING:
            found = self._store.get(SCHEDULE_TOPIC, queue_id, queue_offset, _BATCH)
            if found.next_offset <= queue_offset:
                break
            for message in found.messages:
                if self._take(message):
                    delivered.add(message.queue_offset)
                    missing = 0
                else:
                    missing += 1
            queue_offset = found.next_offset
        return delivered

    def _take(self, waiting: Message) -> bool:
        """Returns whether a message was delivered; each delivery found is used for one message only."""
        key = target_of(waiting)
        if key is None:
            return False
        if key not in self._targets:
            try:
                self._targets[key] = _Target(self._store, self._store.queue(*key), self._log_end)
            except (NotFoundError, InvalidArgumentError):  # no such queue, or a batch queue
                self._targets[key] = None
        target = self._targets[key]
        return target is not None and target.take(waiting)


class _Target:
    """A queue with deliveries, from a place in the log on."""

    def __init__(self, store: MessageStore, view: QueueView, log_end: int) -> None:
        self._store = store
        self._topic = view.topic
        self._units = view.units(_first_behind(view, log_end)).copy()
        self._by_size: dict[tuple[int, ...], dict[_Content, deque[int]]] = {}

    def take(self, waiting: Message) -> bool:
        """Returns whether an unused delivery of such a message is behind it, and marks the first as used."""
        sizes = _sizes(waiting, self._topic)
        if sizes not in self._by_size:
            self._by_size[sizes] = self._read(sizes)
        places = self._by_size[sizes].get(_content(waiting))
        while places:
            if places.popleft() > waiting.phy_offset:
                return True
        return False

    def _read(self, sizes: tuple[int, ...]) -> dict[_Content, deque[int]]:
        """Returns the places of records of some sizes, by their contents."""
        found: dict[_Content, deque[int]] = {}
        for phy_offset in self._units["phy_offset"][np.isin(self._units["size_bytes"], sizes)].tolist():
            with suppress(NotFoundError):
                message = self._store.message_at(phy_offset)
                if props.find_property(message.properties_raw, props.REAL_TOPIC.encode()) is not None:
                    found.setdefault(_content(message), deque()).append(phy_offset)
        return found


def target_of(message: Message) -> tuple[str, int] | None:
    """Returns the topic and queue that a waiting message names as its destination, None if it names none."""
    topic = props.find_property(message.properties_raw, props.REAL_TOPIC.encode())
    queue_id = props.find_property(message.properties_raw, props.REAL_QUEUE_ID.encode())
    if topic is None or queue_id is None or not queue_id.isdigit() or len(queue_id) > 10:
        return None
    return topic.decode("utf-8", "replace"), int(queue_id)


def _first_behind(view: QueueView, phy_offset: int) -> int:
    """Returns the queue offset of the first unit behind a place in the log."""
    low, high = view.min_offset, view.max_offset
    while low < high:
        middle = (low + high) // 2
        if int(view.units(middle, 1)["phy_offset"][0]) < phy_offset:
            low = middle + 1
        else:
            high = middle
    return low


def _sizes(waiting: Message, topic: str) -> tuple[int, ...]:
    """Returns the sizes that a delivery's record can have: record CRCs may have been switched on or off."""
    size = waiting.size_bytes - len(SCHEDULE_TOPIC) + len(topic.encode())
    raw = waiting.properties_raw
    size -= len(raw) - len(props.without_crc_property(raw))
    return size, size + props.CRC_PROPERTY_BYTES


def _content(message: Message) -> _Content:
    """Returns the parts that a delivery copies; a Java broker writes the properties in another order."""
    return (
        frozenset(props.decode_properties(props.without_crc_property(message.properties_raw)).items()),
        message.born_timestamp_ms,
        message.born_host,
        message.reconsume_times,
        message.sys_flag,
        message.flag,
        blake2b(message.body, digest_size=16).digest(),  # the bodies of several seconds may take much memory
    )
