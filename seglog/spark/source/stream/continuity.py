"""Whether a log still is the one that a stream read, and how the stream goes on if it is not.

The record before a stream's place is there with all its bytes: the log is the same, and what follows the
place was not read. Else the queues say what became of it:

- *Retention* took what was read, or *compaction*, *restore* or *undo* wrote the log anew. The last record
  that was read is in its queue still, or in front of what the queue has, and no queue ends before the place
  of the stream in it. The stream goes on by queue offsets. Messages that it did not read and that are not
  there are lost, but for those that a compaction dropped: the store keeps which queue offsets these were.
- The log was *cut* or *rolled back* to an older state, and possibly written on. A queue ends before the
  stream's place in it, or has another message under the last queue offset that was read of it. With
  ``failOnDataLoss`` that ends the query. Without it the stream goes on at the messages that were stored later
  than the last one that it had read: those have queue offsets that it read before, but are other messages.
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
    "put the newer log back from a copy; or go on with option"
    '("failOnDataLoss", "false"): what was not read yet is read; or begin with a new checkpointLocation'
)


@dataclass(frozen=True, slots=True)
class Resumption:
    """How a stream goes on in a log that is not the one it read.

    Attributes:
        begin: The place from which on there may be messages that it has not read.
        floors: Of each queue, the first queue offset that it has not read.
        losses: What is lost.
    """

    begin: int
    floors: Mapping[Key, int]
    losses: tuple[Loss, ...]


def is_same_log(view: StoreView, at: StoreOffset) -> bool:
    """Returns whether the log up to the place of a stream is the one that it read.

    Args:
        view: The store.
        at: How far the stream has come.
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
    """Returns how a stream goes on by queue offsets.

    Args:
        view: The store.
        at: How far the stream has come.
        selection: Which messages are wanted; the losses of others are none.
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
    """Returns what retention took of a batch since it was planned.

    Args:
        view: The store.
        at: Where the batch starts.
        end: Where it ends.
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
    """Yields what was not read and is not there, but for what a compaction dropped."""
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
    """Returns whether queues continue at a stream's place in the log where they continue by its offsets."""
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
    """Returns whether queues have other messages under offsets that were read.

    The last record that was read is known by its store time. The last message that was read of another queue
    cannot have been stored later.
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
    """Returns how a stream goes on in a log that was cut, and possibly written on."""
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
    """Returns the place of the first message where queues continue; the end of the log without one."""
    queues, begin = view.fitting_queues, view.end.phy_offset
    for queue, end in queues.ends.items():
        number = queues.number_of(queue, floors.get(queue.key, 0))
        number = max(number, queues.first_at(queue, view.first_phy_offset))
        if number < end:
            begin = min(begin, int(queues.units(queue, number, number + 1)["phy_offset"][0]))
    return max(begin, view.first_phy_offset)
