"""Appends the rows of an export to a store, and reports the new queue offset of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from seglog.errors import InvalidArgumentError
from seglog.storage.format.names import check_queue_id, check_topic
from seglog.storage.format.record import Host, tags_code
from seglog.storage.format.record import properties as props
from seglog.storage.format.record import sys_flag as flags
from seglog.storage.format.system_names import is_transit_topic
from seglog.storage.reads import MessageRow
from seglog.storage.store import MessageStore

_OWN_FLAGS: Final = flags.BORN_HOST_V6 | flags.STORE_HOST_V6


@dataclass(frozen=True, slots=True)
class Moved:
    """A run of queue offsets that moved together.

    Attributes:
        first: The first old offset.
        count: Number of offsets.
        new_first: The first new offset.
    """

    topic: str
    queue_id: int
    first: int
    count: int
    new_first: int


class Import:
    """Appends messages to a store, each to its topic and queue, and records their new offsets.

    Birth, flags, keys, properties and body are kept; place, store time and store host are new.

    Args:
        store: The store, open for writing.
    """

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._runs: dict[tuple[str, int], list[Moved]] = {}

    @property
    def count(self) -> int:
        """Number of messages that were appended."""
        return sum(run.count for run in self.moved)

    @property
    def moved(self) -> list[Moved]:
        """The old and new offsets, by topic and queue, in the order of appending."""
        return [run for key in sorted(self._runs) for run in self._runs[key]]

    def add(self, row: MessageRow) -> None:
        """Appends one message.

        Raises:
            InvalidArgumentError: It is of a topic of RocketMQ's own.
            StoreError: :meth:`~seglog.storage.store.MessageStore.append` refuses the message.
        """
        check_row(row)
        put = self._store.append(
            row.topic,
            row.queueId,
            row.body,
            row.properties,
            tags_code(row.named.get(props.TAGS, "")),
            sys_flag=row.sysFlag & ~_OWN_FLAGS,
            flag=row.flag,
            born_timestamp_ms=row.bornTimestamp,
            born_host=Host.parse(row.bornHost),
            reconsume_times=row.reconsumeTimes,
            prepared_transaction_offset=row.preparedTransactionOffset,
        )
        runs = self._runs.setdefault((row.topic, row.queueId), [])
        if runs:
            last = runs[-1]
            if (row.queueOffset - last.first, put.queue_offset - last.new_first) == (last.count, last.count):
                runs[-1] = replace(last, count=last.count + 1)
                return
        runs.append(Moved(row.topic, row.queueId, row.queueOffset, 1, put.queue_offset))


def check_row(row: MessageRow) -> None:
    """Refuses a message that cannot be imported.

    Raises:
        InvalidNameError: No store can have its topic or queue.
        InvalidArgumentError: Its topic is RocketMQ's own.
    """
    check_topic(row.topic)
    check_queue_id(row.queueId)
    if is_transit_topic(row.topic):
        raise InvalidArgumentError(
            f"{row.topic} is RocketMQ's own: what was imported into it would be delivered again",
            help="export the topics that consumers read",
        )
