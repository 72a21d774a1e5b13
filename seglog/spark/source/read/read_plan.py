"""The partitions of a batch read: what each task reads, and with what it reads. No Spark in here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from seglog.errors import CorruptError
from seglog.spark.remote_files import locate
from seglog.spark.source.read.batches import Constants, iter_batches
from seglog.spark.source.read.log_plan import LogPlan, LogSplit, Loss, plan_log
from seglog.spark.source.read.queue_path import QueuePath
from seglog.spark.source.read.split_rows import SplitRows, Window
from seglog.spark.source.values.columns import Wanted
from seglog.spark.source.wanted.options import Options
from seglog.spark.source.wanted.selection import Chooser, Selection
from seglog.storage.directory import StoreGeometry
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.splits import MIN_SPLIT_BYTES


@dataclass(frozen=True, slots=True)
class Piece:
    """What one task reads.

    Attributes:
        store: Place of its store among the paths.
        root: The store directory.
        geometry: Lengths of its files.
        split: The range of its log.
    """

    store: int
    root: Path
    geometry: StoreGeometry
    split: LogSplit


def plan_pieces(options: Options) -> list[Piece]:
    """Returns what the tasks of a read read, those of one store in log order.

    Raises:
        CorruptError: A part of a log cannot be read, and ``failOnDataLoss`` is on.
        NotFoundError: There is nothing at a path.
        NotAStoreError: The path leads to something else.
        UnsupportedStoreError: A store is of another kind.
    """
    return pieces_of([_plan(path, options) for path in options.paths], options)


def pieces_of(plans: Sequence[LogPlan], options: Options) -> list[Piece]:
    """Returns the splits of the stores' plans as pieces, at least as many as are wanted."""
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
    piece: Piece, options: Options, selection: Selection, wanted: Sequence[Wanted]
) -> Iterator[pa.RecordBatch]:
    """Yields the messages of a piece.

    Args:
        piece: What to read.
        options: How.
        selection: Which messages.
        wanted: Columns.

    Raises:
        CorruptError: A part of it cannot be read, and ``failOnDataLoss`` is on.
    """

    def lose(loss: Loss) -> None:
        if options.fail_on_data_loss:
            raise loss_error(loss, piece.geometry)

    path = options.paths[piece.store]
    files, _root = locate(path)
    rows = SplitRows(files, piece.root, piece.geometry, verify=options.verify, batch_rows=options.batch_rows)
    names = rows.queues.names
    constants = Constants(options.broker_name(piece.store), path)
    try:
        windows: Iterable[Window] | None = None
        if options.access_path != "scan" and selection.names_queues:
            queues = QueuePath(files, piece.root, piece.geometry, rows, selection)
            windows = queues.windows(piece.split, options.access_path)
        if windows is None:
            windows = rows.windows(piece.split, lose)
        chosen = _choose(windows, Chooser(selection, names))
        yield from iter_batches(
            chosen, names, wanted, constants, options.batch_rows, inflates=options.decompress
        )
    finally:
        rows.close()


def _plan(path: str, options: Options) -> LogPlan:
    files, root = locate(path)
    plan = plan_log(root, files, split_bytes=options.max_partition_bytes, verify=options.verify)
    if plan.losses and options.fail_on_data_loss:
        raise loss_error(plan.losses[0], plan.geometry)
    return plan


def _choose(windows: Iterable[Window], chooser: Chooser) -> Iterator[Window]:
    for window in windows:
        rows = chooser.choose(window.rows)
        if len(rows):
            yield Window(window.memory, window.phy_offset, rows)


def loss_error(loss: Loss, geometry: StoreGeometry) -> CorruptError:
    """Returns the error that a loss is where ``failOnDataLoss`` is on."""
    position = loss.phy_offset % geometry.segment_size_bytes
    error = CorruptError(
        loss.why,
        file=f"{COMMIT_LOG}/{segment_file_name(loss.phy_offset - position)}",
        position_bytes=position,
        expected=loss.expected,
        found=loss.found,
    )
    error.help = 'read what is left with option("failOnDataLoss", "false"); `seglog check` says what is lost'
    return error
