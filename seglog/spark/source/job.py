"""Messages as a frame without the data source: for jobs that read the same stores several times.

Each frame of a data source is planned again, in Python processes of its own. Here the driver plans once, and
each task reads several short pieces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from seglog.spark.source.read.read_plan import Piece, plan_pieces, read_piece
from seglog.spark.source.values.columns import Wanted, spark_columns
from seglog.spark.source.wanted.options import parse_options
from seglog.spark.task_memory import keep_modules
from seglog.storage.splits import DEFAULT_SPLIT_BYTES

if TYPE_CHECKING:
    from collections.abc import Collection

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class MessageFrames:
    """Frames of the messages of stores; unreadable parts are left out.

    Args:
        spark: The session.
        paths: The store directories.
        verify: Whether to compute checksums; records with any other damage count as undamaged.

    Raises:
        As for :func:`~seglog.spark.source.read.read_plan.plan_pieces`.
    """

    def __init__(self, spark: SparkSession, paths: Sequence[str], *, verify: bool = True) -> None:
        self._spark = spark
        # Offsets of groups count placeholders too: brokers serve them.
        given = {
            "paths": json.dumps(paths),
            "failOnDataLoss": "false",
            "verify": str(verify).lower(),
            "includePlaceholders": "true",
            "innerBatches": "records",
        }
        self._options = parse_options(given)
        self._pieces = plan_pieces(self._options)

    def of(self, wanted: Sequence[Wanted], topics: Collection[str] | None = None) -> DataFrame:
        """Returns columns of the messages of topics; None for all topics."""
        named = None if topics is None else frozenset(topics)
        options, pieces = replace(self._options, topics=named), self._pieces

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            keep_modules()
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from read_piece(pieces[number], options, options.selection, wanted)

        tasks = _task_count(pieces, self._spark.sparkContext.defaultParallelism)
        numbers = self._spark.range(0, len(pieces), 1, tasks)
        return numbers.mapInArrow(read, spark_columns(wanted))


def _task_count(pieces: Sequence[Piece], parallelism: int) -> int:
    log_bytes = sum(piece.split.end - piece.split.start for piece in pieces)
    return max(1, min(len(pieces), max(parallelism, -(-log_bytes // DEFAULT_SPLIT_BYTES))))
