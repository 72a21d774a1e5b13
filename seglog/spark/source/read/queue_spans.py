"""Ranges of queue offsets to read from single queues: for a continued stream, or from a store time on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from seglog.spark.source.read.queue_units import Key, StoreQueues
from seglog.spark.source.read.store_times import first_stored_from
from seglog.spark.source.wanted.selection import LEAST, MOST, Selection
from seglog.storage.directory import LogReader


@dataclass(frozen=True, slots=True)
class QueueSpans:
    """The queue offsets to read from the queues of one store.

    Attributes:
        starting: First queue offset to read, by topic and queue id; other queues are read from their start.
        ending: First queue offset not to read, in the same way.
    """

    starting: Mapping[Key, int] = field(default_factory=dict)
    ending: Mapping[Key, int] = field(default_factory=dict)

    def of(self, selection: Selection) -> Selection:
        """Returns the part of a selection that is in the ranges."""
        starting, ending = dict(selection.starting), dict(selection.ending)
        for key, at in self.starting.items():
            starting[key] = max(at, starting.get(key, LEAST))
        for key, at in self.ending.items():
            ending[key] = min(at, ending.get(key, MOST))
        return replace(selection, starting=starting, ending=ending)


def spans_of_times(
    reader: LogReader,
    queues: StoreQueues,
    log: range,
    starting_ms: Mapping[Key, int],
    ending_ms: Mapping[Key, int],
) -> QueueSpans:
    """Returns the queue offsets of the messages that were stored from a time on, and before one.

    A queue without a message that is late enough begins at its end.

    Args:
        reader: The log.
        queues: The queues of the store.
        log: Start and end of the log.
        starting_ms: Store time of the first selected messages, by queue.
        ending_ms: Store time from which on messages are not selected, by queue.
    """

    def offsets(times_ms: Mapping[Key, int]) -> dict[Key, int]:
        found: dict[Key, int] = {}
        for queue in queues.ends:
            if queue.key in times_ms:
                end = queues.number_at(queue, log.stop)
                room = range(min(queues.first_at(queue, log.start), end), end)
                number = first_stored_from(reader, queues, queue, room, times_ms[queue.key])
                found[queue.key] = queues.queue_offset(queue, number)
        return found

    return QueueSpans(offsets(starting_ms), offsets(ending_ms))
