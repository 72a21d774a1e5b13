"""Readers of the data source for PySpark: they hand out partitions, and read one.

PySpark makes a reader in a process of its own to plan, and sends it to the tasks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from typing_extensions import override

from seglog.spark.source.read.pushdown import push
from seglog.spark.source.read.read_plan import Piece, plan_pieces, read_piece
from seglog.spark.source.tables import TablePiece, plan_table, read_table

if TYPE_CHECKING:
    import pyarrow as pa

    from seglog.spark.source.values.columns import Wanted
    from seglog.spark.source.wanted.options import Options


class PiecePartition(InputPartition):
    """A partition: one piece of a store."""

    def __init__(self, piece: Piece) -> None:
        super().__init__(piece)
        self.piece = piece


class MessageReader(DataSourceReader):
    """Reads messages in batch.

    Args:
        options: What was asked for.
        wanted: Columns.
    """

    def __init__(self, options: Options, wanted: Sequence[Wanted]) -> None:
        self._options = options
        self._wanted = wanted
        self._selection = options.selection

    @override
    def partitions(self) -> list[InputPartition]:
        """Returns one partition for each piece."""
        return [PiecePartition(piece) for piece in plan_pieces(self._options)]

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the messages of a partition; PySpark makes one of its own where there is none."""
        if isinstance(partition, PiecePartition):
            yield from read_piece(partition.piece, self._options, self._selection, self._wanted)


class PushingReader(MessageReader):
    """Takes filters over from Spark too."""

    @override
    def pushFilters(self, filters: list[Filter]) -> list[Filter]:
        """Takes what it can of the filters, and returns the others."""
        self._selection, left = push(self._selection, filters)
        return left


def message_reader(options: Options, wanted: Sequence[Wanted]) -> MessageReader:
    """Returns a reader that takes filters over where the session lets it.

    PySpark refuses a reader that could where ``spark.sql.python.filterPushdown.enabled`` is off, and gives a
    data source nothing of that setting. But only where it is on it plans in a process of this module.
    """
    pushes = "pyspark.sql.worker.data_source_pushdown_filters" in sys.modules
    return PushingReader(options, wanted) if pushes else MessageReader(options, wanted)


class TablePartition(InputPartition):
    """A partition of a table: one piece of it."""

    def __init__(self, piece: TablePiece) -> None:
        super().__init__(piece)
        self.piece = piece


class TableReader(DataSourceReader):
    """Reads another table than the messages.

    Args:
        options: What was asked for.
        names: Columns.
    """

    def __init__(self, options: Options, names: list[str]) -> None:
        self._options = options
        self._names = names

    @override
    def partitions(self) -> list[InputPartition]:
        """Returns one partition for each piece."""
        return [TablePartition(piece) for piece in plan_table(self._options)]

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of a partition."""
        if isinstance(partition, TablePartition):
            yield from read_table(partition.piece, self._options, self._names)
