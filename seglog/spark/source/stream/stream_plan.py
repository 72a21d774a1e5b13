"""The position of a stream, and the end of its next batch. Uses no Spark.

A stream follows the log, so that a message is read once even if its queue is lost, and new queues and topics
need no discovery. :mod:`seglog.spark.source.stream.stream_offset` has the format of its offset,
:mod:`seglog.spark.source.stream.known_stores` finds the store of each position in it. A batch ends after
complete records, because a writer may be appending. Each plan checks whether the log still is the one that
was read (:mod:`seglog.spark.source.stream.continuity`), also for a batch that was planned before a restart
and is read again after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

from seglog.clock import Clock, SystemClock
from seglog.errors import InvalidArgumentError
from seglog.spark.remote_files import locate
from seglog.spark.source.read.log_plan import LogPlan, check_log_names, cut_file, missing_files
from seglog.spark.source.read.losses import Loss, report_losses
from seglog.spark.source.read.queue_spans import QueueSpans, spans_of_times
from seglog.spark.source.read.read_plan import Piece, pieces_of
from seglog.spark.source.read.store_times import files_of_times
from seglog.spark.source.read.unknown_topics import warn_of_unknown_topics
from seglog.spark.source.stream.continuity import is_same_log, missing_since, resume
from seglog.spark.source.stream.known_stores import KnownPlaces, find_places
from seglog.spark.source.stream.noted_selection import as_begun, noted
from seglog.spark.source.stream.store_view import FollowedStore, StoreView
from seglog.spark.source.stream.stream_offset import (
    AlreadyRead,
    Key,
    LastRecord,
    StoreOffset,
    StreamOffset,
    as_json,
    by_key,
    describe_record,
    is_there,
)
from seglog.spark.source.stream.stream_steps import Step, step_by_units, step_by_walk
from seglog.spark.source.wanted.identity import store_key
from seglog.spark.source.wanted.options import Options
from seglog.spark.source.wanted.selection import MOST, Selection

WALKED_BYTES: Final = 64 << 20
"""A stretch up to this long is walked; in a longer one, queue units show where a batch ends."""


@dataclass(slots=True)
class StreamPlan:
    """Plans the batches of a stream.

    Attributes:
        options: The options, with the starting position of the checkpoint.
        walked_bytes: Longest stretch that is walked to find the end of a batch.
        clock: Measures how long a batch has waited for messages.
    """

    options: Options
    walked_bytes: int = WALKED_BYTES
    clock: Clock = field(default_factory=SystemClock)
    _targets: dict[str, int] = field(default_factory=dict)
    _holes: dict[tuple[str, int, int], tuple[Loss, ...]] = field(default_factory=dict)
    _checked: set[str] = field(default_factory=set)
    _told: set[Loss] = field(default_factory=set)
    _last_batch_ms: float | None = None

    def initial(self) -> StreamOffset:
        """Returns the position of a new stream: ``startingOffsets``, by default the end of the log.

        For offsets by queue it is the first of their messages; messages before them are left out.
        """
        warn_of_unknown_topics(self.options)
        return self._noted({store.key: self._initial(store) for store in self._stores()}, {})

    def stop_at_end(self) -> None:
        """From now on ignores messages that are written after this call."""
        for store in self._stores():
            with closing(self._look(store, {})) as view:
                self._targets[store.key] = view.end.phy_offset

    def advance(self, start: StreamOffset, max_messages: int | None) -> StreamOffset:
        """Returns the end of the next batch.

        Args:
            start: Start of the batch.
            max_messages: Most messages of the batch, None for all.

        Raises:
            CorruptError: Something was lost, and ``failOnDataLoss`` is on.
        """
        end: StreamOffset = {}
        self.options = as_begun(self.options, start)
        stores = list(self._stores())
        known = self._known(stores, start)
        left, total = max_messages, 0
        for number, store in enumerate(stores):
            share = None if left is None else -(-left // (len(stores) - number))
            begin = self._start_of(store, known.of_stores)
            with closing(self._look(store, by_key(begin["queues"]))) as view:
                end[store.key], taken = self._advance(view, begin, share)
            left = None if left is None else left - taken
            total += taken
        return start if self._waits(total) else self._noted(end, known.of_absent)

    def pieces(self, start: StreamOffset, end: StreamOffset) -> list[Piece]:
        """Returns the pieces of the tasks of a batch.

        Raises:
            CorruptError: Something was lost, and ``failOnDataLoss`` is on.
        """
        self.options = as_begun(as_begun(self.options, start), end)
        stores = list(self._stores())
        begins, ends = self._known(stores, start), self._known(stores, end)
        _check_absent(begins.of_absent, ends.of_absent)
        found = [
            self._plan(store, self._start_of(store, begins.of_stores), ends.of_stores.get(store.key))
            for store in stores
        ]
        spans = [one for _plan, one in found]
        return [
            replace(piece, spans=spans[piece.store], tells_tombstones=True)
            for piece in pieces_of([plan for plan, _spans in found], self.options)
        ]

    def forget(self, end: StreamOffset) -> None:
        """Called when a batch is done: its data is no longer needed."""
        self._holes = {
            key: holes
            for key, holes in self._holes.items()
            if key[0] not in end or key[2] > end[key[0]]["physicalOffset"]
        }

    def _stores(self) -> Iterator[FollowedStore]:
        for number, path in enumerate(self.options.paths):
            name = self.options.broker_name(number)
            store = FollowedStore(store_key(path), path, name, *locate(path))
            if path not in self._checked:
                check_log_names(store.files, store.root)
                self._checked.add(path)
            yield store

    def _known(self, stores: Sequence[FollowedStore], offset: StreamOffset) -> KnownPlaces:
        def has_record(store: FollowedStore, last: LastRecord) -> bool:
            with closing(self._look(store, {})) as view:
                return is_there(view.reader, last)

        return find_places(stores, offset, has_record)

    def _noted(self, found: StreamOffset, absent: StreamOffset) -> StreamOffset:
        """Returns an offset with all that a restart must know; absent stores continue from it later."""
        names = {
            store_key(path): self.options.broker_name(number)
            for number, path in enumerate(self.options.paths)
        }
        offset: StreamOffset = {}
        for key, at in found.items():
            offset[key] = {**at, "wanted": noted(self.options)}
            if (name := names[key]) is not None:
                offset[key]["brokerName"] = name
        return offset | {key: {**at, "isAbsent": True} for key, at in absent.items()}

    def _look(self, store: FollowedStore, hints: Mapping[Key, int]) -> StoreView:
        return StoreView(store, hints, verify=self.options.verify)

    def _waits(self, messages: int) -> bool:
        """Returns whether a batch with so many messages waits for more, as ``minOffsetsPerTrigger`` says."""
        least, now_ms = self.options.min_offsets_per_trigger, self.clock.monotonic_ms()
        if least is None or self._targets:
            return False
        last_ms = self._last_batch_ms
        if last_ms is None or messages >= least or now_ms - last_ms >= self.options.max_trigger_delay_ms:
            self._last_batch_ms = now_ms
            return False
        return True

    def _start_of(self, store: FollowedStore, start: StreamOffset) -> StoreOffset:
        """Returns the position of a stream in a store; a new store is read from its start."""
        if store.key in start:
            return start[store.key]
        with closing(self._look(store, {})) as view:
            return _earliest(view)

    def _initial(self, store: FollowedStore) -> StoreOffset:
        starting, times_ms = self.options.starting, self.options.selection.store_times_ms
        with closing(self._look(store, {})) as view:
            if self.options.starting_by_ms:
                return _at_times(view, self.options)
            if self.options.starting_ms is not None:
                files = files_of_times(view.reader, view.listing.log_files, times_ms)
                return _at_place(view, files[0].first_offset) if files else _latest(view)
            if starting == "earliest":
                return _earliest(view)
            if isinstance(starting, dict):
                return _at_offsets(view, self.options.selection)
            return _latest(view)

    def _advance(self, view: StoreView, start: StoreOffset, most: int | None) -> tuple[StoreOffset, int]:
        """Returns the end of the next batch of a store, and its number of messages."""
        key, already = view.store.key, start.get("alreadyRead")
        if not is_same_log(view, start):
            start, already = self._resumed(view, start)
        elif already is not None and start["physicalOffset"] >= already["end"]:
            already = None
        limit = max(self._targets.get(key, MOST), start["physicalOffset"])
        step = self._step(view, start, self._selection(already), limit, most)
        if step.reaches_end:
            # The end that the walk found is newer than the queues: units that lead past it are lost messages.
            self._report(view, view.lost_behind(step.place))
        self._report(view, step.holes or ())
        end = _offset_behind(view, start, step)
        self._holes[key, start["physicalOffset"], end["physicalOffset"]] = step.holes or ()
        if already is not None:
            floors = by_key(already["queues"])
            known = by_key(end["queues"])
            end["queues"] = as_json(known | {key: max(at, known.get(key, 0)) for key, at in floors.items()})
            end["alreadyRead"] = already
        return end, step.taken

    def _resumed(self, view: StoreView, start: StoreOffset) -> tuple[StoreOffset, AlreadyRead]:
        """Returns the position of a stream in a log that is not the one it read."""
        found = resume(view, start, self.options.selection)
        self._report(view, found.losses)
        floors = as_json(found.floors)
        if view.store.key in self._targets:
            self._targets[view.store.key] = view.end.phy_offset
        begun: StoreOffset = {"physicalOffset": found.begin, "storeTimestamp": 0, "queues": floors}
        return begun, {"begin": found.begin, "end": view.end.phy_offset, "queues": floors}

    def _step(
        self, view: StoreView, start: StoreOffset, selection: Selection, limit: int, most: int | None
    ) -> Step:
        """Returns how far a batch extends from its start."""
        place = start["physicalOffset"]
        last = view.queues.last_message
        is_short = last is not None and last[2] - place <= self.walked_bytes
        if is_short or view.end.is_walked or not self._knows_queues(view, start):
            return step_by_walk(view, start, selection, limit, most)
        return step_by_units(view, start, selection, min(limit, view.end.phy_offset), most)

    def _knows_queues(self, view: StoreView, start: StoreOffset) -> bool:
        """Returns whether all queues of the stream's offset still exist."""
        return by_key(start["queues"]).keys() <= {queue.key for queue in view.queues.ends}

    def _selection(self, already: AlreadyRead | None) -> Selection:
        return self.options.selection if already is None else _spans(already).of(self.options.selection)

    def _report(self, view: StoreView, losses: Iterable[Loss]) -> None:
        selection = self.options.selection
        concerning = [of for loss in losses if (of := loss.of(selection)) is not None]
        fails = self.options.fail_on_data_loss
        report_losses(view.store.path, concerning, view.geometry, fails=fails, told=self._told)

    def _plan(
        self, store: FollowedStore, start: StoreOffset, end: StoreOffset | None
    ) -> tuple[LogPlan, QueueSpans | None]:
        if end is None:  # the store was added after the batch was planned
            with closing(self._look(store, {})) as view:
                return LogPlan(store.root, view.geometry, (), (), 0), None
        with closing(self._look(store, by_key(end["queues"]))) as view:
            extent, spans = self._extent(view, start, end)
            holes = self._holes.get((store.key, extent.start, extent.stop), ())
            files, segment = view.listing.log_files, view.geometry.segment_size_bytes
            inside = [
                one
                for one in files
                if extent.start <= one.first_offset + segment and one.first_offset <= extent.stop
            ]
            self._report(view, missing_files(inside, segment))
            splits = [
                split
                for file in files
                for split in cut_file(file, segment, extent, holes, self.options.max_partition_bytes)
            ]
            return LogPlan(store.root, view.geometry, tuple(splits), holes, extent.stop), spans

    def _extent(
        self, view: StoreView, start: StoreOffset, end: StoreOffset
    ) -> tuple[range, QueueSpans | None]:
        """Returns the stretch of the log of a batch, and its queue offsets, None for all."""
        if not is_same_log(view, end):
            return self._extent_by_queues(view, start, end)
        already = end.get("alreadyRead")
        begin = start["physicalOffset"]
        if already is not None and start.get("alreadyRead") != already:
            begin = already["begin"]
        elif begin < view.first_phy_offset:
            self._report(view, missing_since(view, start, end))
        begin = max(begin, view.first_phy_offset)
        spans = None if already is None else _spans(already)
        return range(begin, max(begin, end["physicalOffset"])), spans

    def _extent_by_queues(
        self, view: StoreView, start: StoreOffset, end: StoreOffset
    ) -> tuple[range, QueueSpans]:
        """Returns stretch and queue offsets of a batch that was planned in a log that no longer exists."""
        selection = self.options.selection
        behind = resume(view, end, selection)
        self._report(view, behind.losses)
        if is_same_log(view, start):
            begin, floors = start["physicalOffset"], by_key(start["queues"])
        else:
            before = resume(view, start, selection)
            self._report(view, before.losses)
            begin, floors = before.begin, dict(before.floors)
        spans = QueueSpans(floors, behind.floors)
        return range(begin, max(begin, view.end.phy_offset)), spans


def _check_absent(before: StreamOffset, behind: StreamOffset) -> None:
    """Refuses a batch planned before a restart if a store with messages in it is no longer read.

    Raises:
        InvalidArgumentError: There is such a store.
    """
    for key, at in behind.items():
        if not at.get("isAbsent", False) and before.get(key, {}) != at:
            raise InvalidArgumentError(
                f"a batch that this stream has planned, but not done, has messages of {key}, which is not"
                " among the paths",
                help="run the stream once with that store, then without it; or begin with a new"
                " checkpointLocation",
            )


def _spans(already: AlreadyRead) -> QueueSpans:
    return QueueSpans(starting=by_key(already["queues"]))


def _offset_behind(view: StoreView, start: StoreOffset, step: Step) -> StoreOffset:
    """Returns the offset of a stream after a step.

    It continues where its last record ends, not after a filler: the record before it must be the one it was.
    """
    last_phy_offset = step.last_phy_offset
    if last_phy_offset < 0 and "lastRecord" not in start and step.place == view.end.phy_offset:
        last_phy_offset = view.end.last_phy_offset
    described = describe_record(view.reader, last_phy_offset) if last_phy_offset >= 0 else None
    end: StoreOffset = {**start, "queues": as_json(step.queues)}
    end.pop("alreadyRead", None)
    if described is not None:
        record, end["storeTimestamp"] = described
        end["lastRecord"] = record
        end["physicalOffset"] = record["physicalOffset"] + record["size"]
    return end


def _earliest(view: StoreView) -> StoreOffset:
    return _at_place(view, view.first_phy_offset)


def _at_place(view: StoreView, place: int) -> StoreOffset:
    """Returns the offset of a stream that begins at a place of the log."""
    queues = view.queues
    at = {queue.key: queues.queue_offset(queue, queues.first_at(queue, place)) for queue in queues.ends}
    return {"physicalOffset": place, "storeTimestamp": 0, "queues": as_json(at)}


def _at_offsets(view: StoreView, selection: Selection) -> StoreOffset:
    """Returns the offset of a stream that begins at queue offsets: the place of their first message."""
    queues, first, place = view.queues, view.first_phy_offset, view.end.phy_offset
    for queue, end in queues.ends.items():
        span = selection.of_queue(*queue.key)
        if span is not None:
            number = max(queues.number_of(queue, span.first), queues.first_at(queue, first))
            if number < end:
                place = min(place, int(queues.units(queue, number, number + 1)["phy_offset"][0]))
    if view.end.is_walked:  # the queues do not fit the log: all of the log is read
        place = first
    return _at_place(view, max(place, first))


def _at_times(view: StoreView, options: Options) -> StoreOffset:
    """Returns the offset of a stream that begins at store times of queues: earlier messages count as read."""
    log = range(view.first_phy_offset, view.end.phy_offset)
    spans = spans_of_times(view.reader, view.queues, log, options.starting_by_ms, {})
    begun = _at_offsets(view, spans.of(options.selection))
    floors = as_json(by_key(begun["queues"]) | dict(spans.starting))
    already: AlreadyRead = {"begin": begun["physicalOffset"], "end": log.stop, "queues": floors}
    return {**begun, "queues": floors, "alreadyRead": already}


def _latest(view: StoreView) -> StoreOffset:
    """Returns the offset of a stream that begins at the end of the log."""
    queues, end = view.queues, view.end
    at = {
        queue.key: queues.queue_offset(queue, queues.first_at(queue, end.phy_offset)) for queue in queues.ends
    }
    begin: StoreOffset = {"physicalOffset": end.phy_offset, "storeTimestamp": 0, "queues": {}}
    step = Step(end.phy_offset, end.last_phy_offset, at | dict(end.following), 0, True, None)
    return _offset_behind(view, begin, step)
