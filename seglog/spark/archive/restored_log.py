"""Writes the segments of a restored log: tasks pack chunks of records, others copy chunks to segments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from seglog.errors import StoreError
from seglog.spark.archive.chunks import (
    CHUNKS,
    Chunk,
    PlacedSegment,
    RestoredSegment,
    place_chunks,
    write_chunks,
    write_placed,
)
from seglog.spark.archive.ordered_rows import ORDER
from seglog.spark.archive.restore_base import RestoreBase
from seglog.spark.making.derived import UNITS
from seglog.spark.making.each import run_each
from seglog.spark.making.index_files import KEYS
from seglog.storage.files import RestoringFiles, StoreRoot
from seglog.storage.format.names import COMMIT_LOG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHARE_BYTES: Final = 128 << 20
_CHUNK_ROW: Final = "partition int, number int, name string, size_bytes bigint, records bigint"
_CHUNK_SCHEMA: Final = pa.schema(
    [
        ("partition", pa.int32()),
        ("number", pa.int32()),
        ("name", pa.string()),
        ("size_bytes", pa.int64()),
        ("records", pa.int64()),
    ]
)


def write_log(
    spark: SparkSession, files: StoreRoot, staged: Path, rows: DataFrame, size_bytes: int, base: RestoreBase
) -> Sequence[RestoredSegment]:
    """Writes records into new segments, and beside these their queue units and keys.

    Args:
        spark: The session.
        files: Access to the store.
        staged: The new store.
        rows: The records with their order, from :func:`~.ordered_rows.ordered_rows`.
        size_bytes: Approximate bytes of the records.
        base: The base of the log.

    Raises:
        StoreError: A record does not fit into a segment, or a record was lost on the way.
    """
    for name in (COMMIT_LOG, CHUNKS, UNITS, KEYS):
        files.make_dirs(staged / name)
    folder = staged.parent.parent
    chunks = _chunks(rows, max(1, -(-size_bytes // _SHARE_BYTES)), folder, staged, base.segment_bytes)
    segments = place_chunks(chunks, base.first, base.segment_bytes)
    write = partial(_write, staged=staged, segment_bytes=base.segment_bytes, tags=base.tags)
    written = run_each(spark, folder, write, segments)
    records, asked = sum(one.derived.records for one in written), sum(chunk.records for chunk in chunks)
    if records != asked:
        raise StoreError(
            f"{staged}: expected {asked} records in the restored log, found {records}",
            help="no store was changed; run the restore again",
        )
    files.sync_dir(staged / COMMIT_LOG)
    return written


def _write(
    files: RestoringFiles, segment: PlacedSegment, *, staged: Path, segment_bytes: int, tags: bool
) -> RestoredSegment:
    return write_placed(files, staged, segment, segment_bytes, tags=tags)


def _chunks(rows: DataFrame, shares: int, folder: Path, staged: Path, segment_bytes: int) -> list[Chunk]:
    from pyspark.sql.functions import spark_partition_id

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = next(batches, None)
        if first is None or not first.num_rows:
            return
        partition = first.column(1)[0].as_py()

        def every() -> Iterator[pa.RecordBatch]:
            yield first
            yield from batches

        made = write_chunks(StoreRoot(folder), staged, partition, every(), segment_bytes)
        yield pa.RecordBatch.from_pylist([chunk._asdict() for chunk in made], _CHUNK_SCHEMA)

    ordered = rows.repartitionByRange(shares, *ORDER).sortWithinPartitions(*ORDER)
    ordered = ordered.select("record", spark_partition_id().alias("share"))
    return [Chunk(**row) for row in ordered.mapInArrow(write, _CHUNK_ROW).toArrow().to_pylist()]
