"""How far a stream has come, and how far its next batch goes. No Spark in here.

A stream follows the log, so that a message is read once even if its queue is lost, and queues and topics
that are new need no discovery. Its offset says for each store where it continues in the log, and, for people
and for the rule that parts a later life of the log from an older one, the queue offset where each queue
continues:

    {"broker-a": {"physicalOffset": 4096, "storeTimestamp": 1700000000000, "queues": {"orders": {"0": 17}}}}

Stores are called by ``brokerName``, else by path. Only what is whole is before the end of a batch: a writer
may be at work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypedDict

import numpy as np

from seglog.errors import CorruptError, InvalidArgumentError
from seglog.spark.remote_files import locate
from seglog.spark.source.read.log_plan import LogPlan, Loss, check_log_names, cut_file, find_end
from seglog.spark.source.read.read_plan import Piece, loss_error, pieces_of
from seglog.spark.source.wanted.options import Options
from seglog.spark.source.wanted.selection import MOST, Chooser
from seglog.storage.directory import Listing, LogReader, list_store
from seglog.storage.files import Files
from seglog.storage.kernels.walk import QueueTable, Rows, are_dispatched, places
from seglog.storage.walk import LogScan


class StoreOffset(TypedDict):
    """How far a stream has come in one store."""

    physicalOffset: int
    storeTimestamp: int
    queues: dict[str, dict[str, int]]


StreamOffset: TypeAlias = dict[str, StoreOffset]


@dataclass(frozen=True, slots=True)
class _Store:
    """A store that is followed."""

    name: str
    files: Files
    root: Path


@dataclass(slots=True)
class _Walked:
    """A stretch of a log as the driver walked it.

    Attributes:
        end: Where it ends.
        holes: Stretches of it without records.
    """

    end: StoreOffset
    holes: tuple[Loss, ...]


@dataclass(slots=True)
class StreamPlan:
    """Plans the batches of a stream.

    Attributes:
        options: What was asked for.
    """

    options: Options
    _targets: dict[str, int] = field(default_factory=dict)
    _walked: dict[tuple[str, int, int], tuple[Loss, ...]] = field(default_factory=dict)
    _checked: set[str] = field(default_factory=set)

    def initial(self) -> StreamOffset:
        """Returns where a new stream begins: at ``startingOffsets``, by default after what is stored.

        From offsets by queue the log is read from its start; what is before them is left out.
        """
        begin: StreamOffset = {}
        for store in self._stores():
            listing = list_store(store.files, store.root)
            first = listing.log_files[0].first_offset if listing.log_files else 0
            begin[store.name] = {"physicalOffset": first, "storeTimestamp": 0, "queues": {}}
        if self.options.starting in (None, "latest"):
            return self.advance(begin, None)
        return begin

    def stop_at_end(self) -> None:
        """Takes nothing from now on that was written after this."""
        for store in self._stores():
            listing = list_store(store.files, store.root)
            segment = listing.geometry.segment_size_bytes
            self._targets[store.name], _holes = find_end(
                store.files, store.root, listing.log_files, segment, verify=self.options.verify
            )

    def advance(self, start: StreamOffset, max_messages: int | None) -> StreamOffset:
        """Returns where the next batch ends.

        Args:
            start: Where it starts.
            max_messages: How many messages it may have, None for all.

        Raises:
            CorruptError: Something was lost, and ``failOnDataLoss`` is on.
        """
        end: StreamOffset = {}
        stores = list(self._stores())
        left = max_messages
        for number, store in enumerate(stores):
            share = None if left is None else -(-left // (len(stores) - number))
            begin = start.get(store.name, _nothing())
            found, taken = self._walk(store, begin, MOST, share)
            self._walked[store.name, begin["physicalOffset"], found.end["physicalOffset"]] = found.holes
            end[store.name] = found.end
            left = None if left is None else left - taken
        return end

    def pieces(self, start: StreamOffset, end: StreamOffset) -> list[Piece]:
        """Returns what the tasks of a batch read.

        Raises:
            CorruptError: Something was lost, and ``failOnDataLoss`` is on.
        """
        plans = [self._plan(store, start.get(store.name, _nothing()), end) for store in self._stores()]
        return pieces_of(plans, self.options)

    def forget(self, end: StreamOffset) -> None:
        """Called when a batch is done: what is known of it is not needed any more."""
        self._walked = {key: holes for key, holes in self._walked.items() if key[2] > _place(end, key[0])}

    def _stores(self) -> Iterator[_Store]:
        for number, path in enumerate(self.options.paths):
            store = _Store(self.options.broker_name(number) or path, *locate(path))
            if path not in self._checked:
                check_log_names(store.files, store.root)
                self._checked.add(path)
            yield store

    def _plan(self, store: _Store, start: StoreOffset, end: StreamOffset) -> LogPlan:
        if store.name not in end:
            raise InvalidArgumentError(
                f"the checkpoint of this stream knows nothing of {store.name}",
                help="begin with a new checkpointLocation, or read the same stores by the same names",
            )
        extent = range(start["physicalOffset"], _place(end, store.name))
        holes = self._walked.get((store.name, extent.start, extent.stop))
        if holes is None:
            holes = self._walk(store, start, extent.stop, None)[0].holes
        listing = list_store(store.files, store.root)
        segment = listing.geometry.segment_size_bytes
        splits = [
            split
            for file in listing.log_files
            for split in cut_file(file, segment, extent, holes, self.options.max_partition_bytes)
        ]
        return LogPlan(store.root, listing.geometry, tuple(splits), holes, extent.stop)

    def _walk(
        self, store: _Store, start: StoreOffset, end: int, max_messages: int | None
    ) -> tuple[_Walked, int]:
        """Walks on from a place; returns what was walked, and how many messages are in it."""
        listing = list_store(store.files, store.root)
        segment = listing.geometry.segment_size_bytes
        reader = LogReader(store.files, store.root, segment)
        scan = LogScan(reader, listing.log_files, segment, verify=self.options.verify)
        end = min(end, self._targets.get(store.name, end))
        begin, retained = self._resume(scan, listing, start)
        steps = _Steps(begin, Chooser(self.options.selection, scan.queues.names), scan.queues)
        try:
            for rows in scan.iter_rows():
                if not steps.add(rows, end, max_messages):
                    break
            else:
                steps.reach(min(scan.end_phy_offset, end))
        finally:
            scan.close()
        holes = retained + tuple(
            Loss(hole.phy_offset, hole.end, hole.why, hole.expected, hole.found)
            for hole in scan.holes
            if hole.phy_offset < steps.end
        )
        if holes and self.options.fail_on_data_loss:
            raise loss_error(holes[0], listing.geometry)
        return _Walked(steps.offset(), holes), steps.taken

    def _resume(
        self, scan: LogScan, listing: Listing, start: StoreOffset
    ) -> tuple[StoreOffset, tuple[Loss, ...]]:
        """Puts a scan where a stream continues, or after what retention took since."""
        place = start["physicalOffset"]
        first = listing.log_files[0].first_offset if listing.log_files else place
        # Files have their whole length from the start, so none ends before what was read of it.
        last = listing.log_files[-1] if listing.log_files else None
        end = place if last is None else last.first_offset + last.size_bytes
        if place > end and self.options.fail_on_data_loss:
            raise CorruptError("log-shorter", expected=f"a log up to {place}", found=f"files up to {end}")
        queues = {
            (topic, int(queue_id)): queue_offset
            for topic, found in start["queues"].items()
            for queue_id, queue_offset in found.items()
        }
        scan.resume(max(place, first), (place - 1, start["storeTimestamp"]), queues)
        retained = (Loss(place, first, "retention", "messages", "none"),) if place < first else ()
        return {**start, "physicalOffset": max(place, first)}, retained


class _Steps:
    """Follows a walk row by row, as far as a batch goes."""

    def __init__(self, start: StoreOffset, chooser: Chooser, queues: QueueTable) -> None:
        self.end = start["physicalOffset"]
        self.taken = 0
        self._chooser = chooser
        self._queues = queues
        self._store_ms = start["storeTimestamp"]
        self._next = {topic: dict(found) for topic, found in start["queues"].items()}

    def add(self, rows: Rows, end: int, max_messages: int | None) -> bool:
        """Takes rows that follow; returns whether the batch may continue after them."""
        is_whole = True
        inside = int(np.searchsorted(rows["phy_offset"], end))
        if inside < len(rows):
            rows, is_whole = rows[:inside], False
        chosen = self._chooser.choose(rows[are_dispatched(rows)])
        if max_messages is not None and self.taken + len(chosen) >= max_messages:
            last = chosen[max_messages - self.taken - 1]["phy_offset"]
            rows = rows[: int(np.searchsorted(rows["phy_offset"], last)) + 1]
            chosen, is_whole = chosen[: max_messages - self.taken], False
        self.taken += len(chosen)
        if len(rows):
            self._take(rows)
        return is_whole

    def reach(self, end: int) -> None:
        """Takes what is left up to where the log continues: a filler, or a hole."""
        self.end = max(self.end, end)

    def offset(self) -> StoreOffset:
        """Returns where the batch ends."""
        return {"physicalOffset": self.end, "storeTimestamp": self._store_ms, "queues": self._next}

    def _take(self, rows: Rows) -> None:
        self.end = int(rows["phy_offset"][-1]) + int(rows["size_bytes"][-1])
        self._store_ms = int(rows["store_timestamp_ms"][-1])
        own = rows[places(rows)][::-1]
        numbers, last = np.unique(own["queue"], return_index=True)
        following = own["queue_offset"][last] + 1
        for number, queue_offset in zip(numbers.tolist(), following.tolist(), strict=True):
            topic, queue_id = self._queues.names[number]
            self._next.setdefault(topic, {})[str(queue_id)] = queue_offset


def _nothing() -> StoreOffset:
    return {"physicalOffset": 0, "storeTimestamp": 0, "queues": {}}


def _place(offset: Mapping[str, StoreOffset], name: str) -> int:
    return offset[name]["physicalOffset"] if name in offset else 0
