"""Readers of the data source for PySpark: they hand out partitions, and read one.

PySpark makes a reader in a process of its own to plan, and sends it to the tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from typing_extensions import override

from seglog.spark.source.read_plan import Piece, plan_pieces, read_piece

if TYPE_CHECKING:
    import pyarrow as pa

    from seglog.spark.source.columns import Wanted
    from seglog.spark.source.options import Options


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

    @override
    def partitions(self) -> list[InputPartition]:
        """Returns one partition for each piece."""
        return [PiecePartition(piece) for piece in plan_pieces(self._options)]

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the messages of a partition; PySpark makes one of its own where there is none."""
        if isinstance(partition, PiecePartition):
            yield from read_piece(partition.piece, self._options, self._wanted)
