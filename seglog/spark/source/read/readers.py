"""Readers of the data source for PySpark: they return partitions, and read one.

PySpark makes a reader in a separate process to plan, and sends it to the tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from typing_extensions import override

from seglog.spark.source.read.frames import column_frames
from seglog.spark.source.read.read_plan import Piece, plan_pieces, read_piece
from seglog.spark.source.tables import TablePiece, plan_table, read_table
from seglog.spark.task_memory import keep_modules

if TYPE_CHECKING:
    import pyarrow as pa

    from seglog.spark.source.values.columns import Wanted
    from seglog.spark.source.wanted.options import Options
    from seglog.spark.source.wanted.selection import Selection


class PiecePartition(InputPartition):
    """A partition: one piece of a store, and the selection of its messages."""

    def __init__(self, piece: Piece, selection: Selection) -> None:
        super().__init__(piece)
        self.piece = piece
        self.selection = selection


class MessageReader(DataSourceReader):
    """Reads messages in batch.

    Supports no filter pushdown: Spark 4.1 to 4.3 keeps the filters that a reader accepted for one query with
    the table, and applies them to every later query of the frame, and to all its uses in one query. Rows that
    those need would be lost silently. Options select messages instead.

    Args:
        options: The options of the read.
        wanted: Columns.
        gives_frames: Whether the columnar reader reads the result, which needs frames.
    """

    def __init__(self, options: Options, wanted: Sequence[Wanted], *, gives_frames: bool = False) -> None:
        self._options = options
        self._wanted = wanted
        self._gives_frames = gives_frames
        self._selection = options.selection

    @override
    def partitions(self) -> list[InputPartition]:
        """Returns one partition for each piece."""
        return [PiecePartition(piece, self._selection) for piece in plan_pieces(self._options)]

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the messages of a partition; PySpark makes an empty partition if there is none."""
        keep_modules()
        if isinstance(partition, PiecePartition):
            yield from read_piece(
                partition.piece,
                self._options,
                partition.selection,
                self._wanted,
                gives_frames=self._gives_frames,
            )


class TablePartition(InputPartition):
    """A partition of a table: one piece of it."""

    def __init__(self, piece: TablePiece) -> None:
        super().__init__(piece)
        self.piece = piece


class TableReader(DataSourceReader):
    """Reads another table than the messages.

    Args:
        options: The options of the read.
        names: Columns, by their names in the result.
        gives_frames: Whether the columnar reader reads the result, which needs frames.
    """

    def __init__(self, options: Options, names: Mapping[str, str], *, gives_frames: bool = False) -> None:
        self._options = options
        self._names = names
        self._gives_frames = gives_frames

    @override
    def partitions(self) -> list[InputPartition]:
        """Returns one partition for each piece."""
        return [TablePartition(piece) for piece in plan_table(self._options)]

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a partition."""
        if isinstance(partition, TablePartition):
            for batch in read_table(partition.piece, self._options, self._names):
                if self._gives_frames:
                    yield from column_frames(batch)
                else:
                    yield batch
