"""The partitions of a batch read: the part of each task, and how the task reads it. Uses no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from seglog.spark.remote_files import locate
from seglog.spark.source.read.batches import Constants, Messages, is_wide, iter_messages, tombstone_losses
from seglog.spark.source.read.frames import RowFrames, can_be_mapped, column_frames
from seglog.spark.source.read.log_plan import LogPlan, LogSplit, plan_log
from seglog.spark.source.read.losses import Loss, report_losses
from seglog.spark.source.read.queue_path import QueuePath
from seglog.spark.source.read.queue_spans import QueueSpans, spans_of_times
from seglog.spark.source.read.queue_units import look_at_store
from seglog.spark.source.read.split_rows import SplitRows, Window
from seglog.spark.source.read.unknown_topics import warn_of_unknown_topics
from seglog.spark.source.values.columns import Wanted
from seglog.spark.source.wanted.options import Options
from seglog.spark.source.wanted.selection import MOST, Chooser, Selection
from seglog.storage.directory import LogReader, StoreGeometry
from seglog.storage.splits import MIN_SPLIT_BYTES


@dataclass(frozen=True, slots=True)
class Piece:
    """The part that one task reads.

    Attributes:
        store: Index of its store among the paths.
        root: The store directory.
        geometry: Lengths of its files.
        split: The range of its log.
        spans: Queue offsets to read; None for all.
        tells_tombstones: Whether a tombstone is reported as a loss, as for streams, which read it for the
            first time; for a batch read it is a known loss, as for `seglog check`.
    """

    store: int
    root: Path
    geometry: StoreGeometry
    split: LogSplit
    spans: QueueSpans | None = None
    tells_tombstones: bool = False


def plan_pieces(options: Options) -> list[Piece]:
    """Returns the parts of the tasks of a read, those of one store in log order.

    Raises:
        CorruptError: A part of a log cannot be read, and ``failOnDataLoss`` is on.
        NotFoundError: There is nothing at a path.
        NotAStoreError: A path is not a store.
        UnsupportedStoreError: A store of another kind.
    """
    warn_of_unknown_topics(options)
    pieces = pieces_of([_plan(path, options) for path in options.paths], options)
    if not options.starting_by_ms and not options.ending_by_ms:
        return pieces
    spans = [_spans(path, options) for path in options.paths]
    return [replace(piece, spans=spans[piece.store]) for piece in pieces]


def pieces_of(plans: Sequence[LogPlan], options: Options) -> list[Piece]:
    """Returns the splits of the stores' plans as pieces, at least as many as requested."""
    total = sum(split.end - split.start for plan in plans for split in plan.splits)
    if sum(len(plan.splits) for plan in plans) < options.min_partitions:
        shorter = max(MIN_SPLIT_BYTES, -(-total // options.min_partitions))
        plans = [plan.cut_again(shorter) for plan in plans]
    return [
        Piece(store, plan.root, plan.geometry, split)
        for store, plan in enumerate(plans)
        for split in plan.splits
    ]


def read_piece(
    piece: Piece,
    options: Options,
    selection: Selection,
    wanted: Sequence[Wanted],
    *,
    gives_frames: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yields the messages of a piece.

    Args:
        piece: The piece to read.
        options: How to read it.
        selection: The selected messages.
        wanted: Columns.
        gives_frames: Whether to yield frames (:mod:`seglog.spark.source.read.frames`) instead.

    Raises:
        CorruptError: A part of it cannot be read, and ``failOnDataLoss`` is on.
    """
    path = options.paths[piece.store]
    constants = Constants(options.broker_name(piece.store), path)
    with messages_of(piece, options, selection, is_wide=is_wide(wanted) and not gives_frames) as read:
        if gives_frames and can_be_mapped(path, piece.root):
            frames = RowFrames(piece.root, piece.geometry.segment_size_bytes, read.names, wanted, constants)
            yield from frames.of(read.found)
            return
        for messages in read.found:
            batch = messages.batch(wanted, constants)
            if gives_frames:
                yield from column_frames(batch)
            else:
                yield batch


@dataclass(frozen=True, slots=True)
class PieceMessages:
    """The messages of a piece, whose columns are made on request.

    Attributes:
        found: The messages, in groups of messages that are adjacent in the log.
        names: Topic and queue id of the queues that their rows belong to; grows.
    """

    found: Iterator[Messages]
    names: Sequence[tuple[str, int]]


@contextmanager
def messages_of(
    piece: Piece, options: Options, selection: Selection, *, is_wide: bool
) -> Iterator[PieceMessages]:
    """Opens a piece, and yields its messages within the ``with`` statement.

    Args:
        piece: The piece to read.
        options: How to read it.
        selection: The selected messages.
        is_wide: Whether requested columns are about as long as the records that are read for them.

    Raises:
        CorruptError: A part of it cannot be read, and ``failOnDataLoss`` is on; raised while messages are
            read.
    """
    path = options.paths[piece.store]

    def lose(loss: Loss) -> None:
        report_losses(path, [loss], piece.geometry, fails=options.fail_on_data_loss)

    if piece.spans is not None:
        selection = piece.spans.of(selection)
    files, _root = locate(path)
    # A window grows until it holds a batch of narrow rows; for whole messages the first window is long
    # enough.
    window_rows = 1 if is_wide else options.batch_rows
    rows = SplitRows(files, piece.root, piece.geometry, verify=options.verify, batch_rows=window_rows)
    names = rows.queues.names
    try:
        windows: Iterable[Window] | None = None
        if options.access_path != "scan" and selection.names_queues:
            queues = QueuePath(files, piece.root, piece.geometry, rows, selection)
            windows = queues.windows(piece.split, options.access_path)
        if windows is None:
            windows = rows.windows(piece.split, lose)
        unwraps = options.inner_batches == "messages"
        # A stream continues after whole records: it has read all messages of an inner batch, or none.
        wanted_messages = options.selection if piece.tells_tombstones else selection
        chooser = Chooser(selection, names, unwraps=unwraps and not piece.tells_tombstones)
        chosen = _choose(windows, chooser)
        if piece.tells_tombstones:
            chosen = _telling_tombstones(chosen, names, lose)
        found = iter_messages(
            chosen,
            names,
            options.batch_rows,
            inflates=options.decompress,
            has_placeholders=options.include_placeholders,
            unwraps=Chooser(wanted_messages, names) if unwraps else None,
        )
        yield PieceMessages(found, names)
    finally:
        rows.close()


def _plan(path: str, options: Options) -> LogPlan:
    files, root = locate(path)
    selection = options.selection
    plan = plan_log(
        root,
        files,
        split_bytes=options.max_partition_bytes,
        verify=options.verify,
        times_ms=selection.store_times_ms,
    )
    losses = [of for loss in plan.losses if (of := loss.of(selection)) is not None]
    report_losses(path, losses, plan.geometry, fails=options.fail_on_data_loss)
    return plan


def _spans(path: str, options: Options) -> QueueSpans:
    """Returns the queue offsets of a store for the times by queue."""
    files, root = locate(path)
    listing, queues = look_at_store(files, root)
    first = listing.log_files[0].first_offset if listing.log_files else 0
    with closing(LogReader(files, root, listing.geometry.segment_size_bytes)) as reader:
        return spans_of_times(
            reader, queues, range(first, MOST), options.starting_by_ms, options.ending_by_ms
        )


def _choose(windows: Iterable[Window], chooser: Chooser) -> Iterator[Window]:
    for window in windows:
        rows = chooser.choose(window.rows)
        if len(rows):
            yield Window(window.memory, window.phy_offset, rows)


def _telling_tombstones(
    windows: Iterator[Window], queues: Sequence[tuple[str, int]], lose: Callable[[Loss], None]
) -> Iterator[Window]:
    for window in windows:
        for loss in tombstone_losses(window, queues):
            lose(loss)
        yield window
