"""The partitions of a batch read: what each task reads, and with what it reads. No Spark in here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from seglog.errors import CorruptError
from seglog.spark.source.batches import Constants, iter_batches
from seglog.spark.source.columns import Wanted
from seglog.spark.source.log_plan import LogPlan, LogSplit, Loss, plan_log
from seglog.spark.source.options import Options
from seglog.spark.source.selection import Selection
from seglog.spark.source.split_rows import SplitRows, Window
from seglog.storage.audit.splits import MIN_SPLIT_BYTES
from seglog.storage.files import RealFiles
from seglog.storage.format.names import COMMIT_LOG, segment_file_name
from seglog.storage.geometry import StoreGeometry


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
        NotAStoreError: Something else is there.
        UnsupportedStoreError: A store is of another kind.
    """
    plans = [_plan(path, options) for path in options.paths]
    total = sum(split.end - split.start for plan in plans for split in plan.splits)
    if sum(len(plan.splits) for plan in plans) < options.min_partitions:
        shorter = max(MIN_SPLIT_BYTES, -(-total // options.min_partitions))
        plans = [plan.cut_again(shorter) for plan in plans]
    return [
        Piece(store, plan.root, plan.geometry, split)
        for store, plan in enumerate(plans)
        for split in plan.splits
    ]


def read_piece(piece: Piece, options: Options, wanted: Sequence[Wanted]) -> Iterator[pa.RecordBatch]:
    """Yields the messages of a piece.

    Raises:
        CorruptError: A part of it cannot be read, and ``failOnDataLoss`` is on.
    """

    def lose(loss: Loss) -> None:
        if options.fail_on_data_loss:
            raise _error(loss, piece.geometry)

    rows = SplitRows(
        RealFiles(),
        piece.root,
        piece.geometry,
        verify=options.verify,
        batch_rows=options.batch_rows,
        lose=lose,
    )
    selection = Selection(options.topics)
    constants = Constants(options.broker_name(piece.store), str(piece.root))
    try:
        chosen = _choose(rows.windows(piece.split), selection, rows.queues.names)
        yield from iter_batches(chosen, rows.queues.names, wanted, constants, options.batch_rows)
    finally:
        rows.close()


def _plan(path: str, options: Options) -> LogPlan:
    plan = plan_log(
        Path(path).absolute(), RealFiles(), split_bytes=options.max_partition_bytes, verify=options.verify
    )
    if plan.losses and options.fail_on_data_loss:
        raise _error(plan.losses[0], plan.geometry)
    return plan


def _choose(
    windows: Iterator[Window], selection: Selection, queues: Sequence[tuple[str, int]]
) -> Iterator[Window]:
    for window in windows:
        rows = selection.choose(window.rows, queues)
        if len(rows):
            yield Window(window.memory, window.phy_offset, rows)


def _error(loss: Loss, geometry: StoreGeometry) -> CorruptError:
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
