"""Checks whether a log is still the one that a stream read, and decides how the stream continues if not.

If the record before a stream's position still exists with all its bytes, the log is the same, and everything
after the position was not read. Otherwise the queues show what happened:

- *Retention* removed records that were read, or *compaction*, *restore* or *undo* rewrote the log. The last
  record that was read is still in its queue, or before the start of the queue, and no queue ends before the
  stream's position in it. The stream continues by queue offsets. Messages that it did not read and that no
  longer exist are lost, except those that a compaction dropped: the store records their queue offsets.
- The log was *cut* or *rolled back* to an older state, and possibly written again. A queue ends before the
  stream's position in it, or has another message at the last queue offset that was read. With
  ``failOnDataLoss`` this ends the query. Without it the stream continues with messages that were stored later
  than the last one that it had read: their queue offsets were read before, but they are other messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from seglog.spark.source.read.losses import Loss
from seglog.spark.source.read.queue_units import Queue
from seglog.spark.source.read.store_times import first_stored_from
from seglog.spark.source.stream.store_view import StoreView
from seglog.spark.source.stream.stream_offset import NO_QUEUE, Key, StoreOffset, by_key, is_there
from seglog.spark.source.wanted.selection import Selection
from seglog.storage.overlay import UNIT, LostMessages
from seglog.storage.small_files import dropped_offsets

RETENTION: Final = "retention"
CUT: Final = "log-shorter"
ROLLED_BACK: Final = "log-rolled-back"
QUEUE_GONE: Final = "queue-missing"
_GO_ON: Final = (
    "put the newer log back from a copy; or continue with option"
    '("failOnDataLoss", "false"): what was not read yet is read; or begin with a new checkpointLocation'
)


@dataclass(frozen=True, slots=True)
class Resumption:
    """How a stream continues in a log that is not the one it read.

    Attributes:
        begin: The place from which on there may be messages that it has not read.
        floors: The first queue offset of each queue that it has not read.
        losses: The lost messages.
    """

    begin: int
    floors: Mapping[Key, int]
    losses: tuple[Loss, ...]


def is_same_log(view: StoreView, at: StoreOffset) -> bool:
    """Returns whether the log up to the position of a stream is the one that it read.

    Args:
        view: The store.
        at: The position of the stream.
    """
    place, last = at["physicalOffset"], at.get("lastRecord")
    if place < view.first_phy_offset:
        return False
    if last is None:
        return place <= max(view.files_end, view.first_phy_offset)
    if last["physicalOffset"] < view.first_phy_offset:
        return _is_place_of_queues(view, at)
    return is_there(view.reader, last)


def resume(view: StoreView, at: StoreOffset, selection: Selection) -> Resumption:
    """Returns how a stream continues by queue offsets.

    Args:
        view: The store.
        at: The position of the stream.
        selection: The selected messages; losses of other messages are left out.
    """
    known = by_key(at["queues"])
    has = {queue: view.range_of(queue) for queue in view.fitting_queues.ends}
    ends = {queue.key: found.stop for queue, found in has.items()}
    if any(ends[key] < floor for key, floor in known.items() if key in ends) or _is_replaced(view, at, has):
        return _after_rollback(view, at, has)
    floors = known | {queue.key: known.get(queue.key, 0) for queue in has}
    losses: list[Loss] = []
    if missing := tuple(_missing(view, has, floors)):
        stretch = at["physicalOffset"], max(view.first_phy_offset, at["physicalOffset"])
        losses.append(Loss(*stretch, RETENTION, "messages", "none", missing))
    for topic, number in sorted(known.keys() - ends.keys()):
        if selection.of_queue(topic, number) is None:
            continue
        expected = f"{topic}/{number} from {known[topic, number]} on"
        losses.append(Loss(at["physicalOffset"], at["physicalOffset"], QUEUE_GONE, expected, "no queue"))
    return Resumption(_begin(view, floors), floors, tuple(losses))


def missing_since(view: StoreView, at: StoreOffset, end: StoreOffset) -> tuple[Loss, ...]:
    """Returns the messages of a batch that retention removed after the batch was planned.

    Args:
        view: The store.
        at: Start of the batch.
        end: End of the batch.
    """
    floors, ceilings = by_key(at["queues"]), by_key(end["queues"])
    has = {queue: view.range_of(queue) for queue in view.fitting_queues.ends if queue.key in ceilings}
    has = {queue: range(min(found.start, ceilings[queue.key]), found.stop) for queue, found in has.items()}
    missing = tuple(_missing(view, has, {queue.key: floors.get(queue.key, 0) for queue in has}))
    stretch = at["physicalOffset"], view.first_phy_offset
    return (Loss(*stretch, RETENTION, "messages", "none", missing),) if missing else ()


def _missing(
    view: StoreView, has: Mapping[Queue, range], floors: Mapping[Key, int]
) -> Iterator[LostMessages]:
    """Yields messages that were not read and no longer exist, without those that a compaction dropped."""
    dropped = dropped_offsets(view.store.files, view.store.root)
    for queue, found in sorted(has.items()):
        floor = floors[queue.key]
        if found.start <= floor:
            continue
        left = [range(floor, found.start)]
        for gone in dropped.get(queue.key, ()):
            left = [part for one in left for part in _without(one, gone)]
        yield from (LostMessages(*queue.key, part, UNIT) for part in left)


def _without(one: range, other: range) -> list[range]:
    parts = range(one.start, min(one.stop, other.start)), range(max(one.start, other.stop), one.stop)
    return [part for part in parts if part]


def _is_place_of_queues(view: StoreView, at: StoreOffset) -> bool:
    """Returns whether the stream's place in the log agrees with its offsets in all queues."""
    place, queues = at["physicalOffset"], view.queues
    known = by_key(at["queues"])
    for queue in queues.ends:
        floor = known.get(queue.key)
        if floor is None:
            continue
        number = queues.first_at(queue, place)
        if queues.queue_offset(queue, number) != floor:
            return False
    return True


def _is_replaced(view: StoreView, at: StoreOffset, has: Mapping[Queue, range]) -> bool:
    """Returns whether queues have other messages at offsets that were read.

    The last record that was read is recognized by its store time. The last message that was read of another
    queue cannot have been stored later.
    """
    last = at.get("lastRecord")
    if last is None or last["queueOffset"] == NO_QUEUE:
        return False
    last_key = last["topic"], last["queueId"]
    known = by_key(at["queues"])
    for queue, found in has.items():
        offset = last["queueOffset"] if queue.key == last_key else known.get(queue.key, 0) - 1
        if offset not in found:
            continue
        row = view.row_at(queue, view.fitting_queues.number_of(queue, offset))
        if row is None:
            continue
        is_later = row.store_timestamp_ms > at["storeTimestamp"]
        if is_later or (queue.key == last_key and row.store_timestamp_ms != at["storeTimestamp"]):
            return True
    return all(queue.key != last_key for queue in has)


def _after_rollback(view: StoreView, at: StoreOffset, has: Mapping[Queue, range]) -> Resumption:
    """Returns how a stream continues in a log that was cut, and possibly written again."""
    known = by_key(at["queues"])
    floors: dict[Key, int] = {}
    gone: list[LostMessages] = []
    for queue, found in sorted(has.items()):
        floor = known.get(queue.key, 0)
        parted = _parted_at(view, queue, found, at["storeTimestamp"])
        floors[queue.key] = min(floor, parted)
        if parted < floor:
            gone.append(LostMessages(*queue.key, range(parted, floor), UNIT))
    gone += [
        LostMessages(*key, range(floor), UNIT) for key, floor in sorted(known.items()) if key not in floors
    ]
    place, end = at["physicalOffset"], view.end.phy_offset
    last = at.get("lastRecord")
    if not gone and last is not None and last["queueOffset"] != NO_QUEUE:
        only = range(last["queueOffset"], last["queueOffset"] + 1)
        gone = [LostMessages(last["topic"], last["queueId"], only, UNIT)]
    why = CUT if end < place else ROLLED_BACK
    begin = min(end, place if last is None else last["physicalOffset"])
    found_now = f"a log that ends at {end}" if end < place else "other records"
    losses = [Loss(begin, place, why, f"the log that was read up to {place}", found_now, tuple(gone), _GO_ON)]
    if missing := tuple(_missing(view, has, floors)):
        losses.append(Loss(begin, view.first_phy_offset, RETENTION, "messages", "none", missing))
    return Resumption(_begin(view, floors), floors, tuple(losses))


def _parted_at(view: StoreView, queue: Queue, found: range, newest_ms: int) -> int:
    """Returns the queue offset of the first message of a queue that was stored after a time."""
    queues = view.fitting_queues
    room = range(queues.number_of(queue, found.start), queues.number_of(queue, found.stop))
    return queues.queue_offset(queue, first_stored_from(view.reader, queues, queue, room, newest_ms + 1))


def _begin(view: StoreView, floors: Mapping[Key, int]) -> int:
    """Returns the place of the first message at which queues continue; the end of the log without one."""
    queues, begin = view.fitting_queues, view.end.phy_offset
    for queue, end in queues.ends.items():
        number = queues.number_of(queue, floors.get(queue.key, 0))
        number = max(number, queues.first_at(queue, view.first_phy_offset))
        if number < end:
            begin = min(begin, int(queues.units(queue, number, number + 1)["phy_offset"][0]))
    return max(begin, view.first_phy_offset)
