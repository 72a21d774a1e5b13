"""The stream reader of the data source, for PySpark 4.2 and newer: older ones cannot limit a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from typing_extensions import override

from seglog.spark.source.read.read_plan import read_piece
from seglog.spark.source.read.readers import PiecePartition
from seglog.spark.source.stream.stream_offset import StreamOffset
from seglog.spark.source.stream.stream_plan import StreamPlan
from seglog.spark.task_memory import keep_modules

if TYPE_CHECKING:
    import pyarrow as pa

    from seglog.spark.source.values.columns import Wanted
    from seglog.spark.source.wanted.options import Options


class MessageStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads messages as they are stored.

    Args:
        options: The options of the read.
        wanted: Columns.
    """

    def __init__(self, options: Options, wanted: Sequence[Wanted]) -> None:
        self._options = options
        self._wanted = wanted
        self._plan = StreamPlan(options)

    @override
    def initialOffset(self) -> dict[str, object]:
        """Returns the position of a new stream."""
        return cast(dict[str, object], self._plan.initial())

    @override
    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns the limit of ``maxOffsetsPerTrigger``."""
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    @override
    def prepareForTriggerAvailableNow(self) -> None:
        """From now on ignores messages that are written after this call."""
        self._plan.stop_at_end()

    @override
    def latestOffset(self, start: dict[str, object], limit: ReadLimit) -> dict[str, object]:
        """Returns the end of the next batch."""
        max_messages = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return cast(dict[str, object], self._plan.advance(cast(StreamOffset, start), max_messages))

    @override
    def partitions(self, start: dict[str, object], end: dict[str, object]) -> list[InputPartition]:
        """Returns one partition for each piece of a batch."""
        pieces = self._plan.pieces(cast(StreamOffset, start), cast(StreamOffset, end))
        return [PiecePartition(piece, self._plan.options.selection) for piece in pieces]

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the messages of a partition."""
        keep_modules()
        if isinstance(partition, PiecePartition):
            yield from read_piece(partition.piece, self._options, partition.selection, self._wanted)

    @override
    def commit(self, end: dict[str, object]) -> None:
        """Called when a batch is done."""
        self._plan.forget(cast(StreamOffset, end))
