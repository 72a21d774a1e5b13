"""Rows of a frame on the driver, batch by batch: never more than one partition of them at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def local_batches(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a frame as batches of Arrow.

    Spark's own ``toLocalIterator`` sends rows one by one, and ``toArrow`` sends all at once. Here each batch
    is sent as one row, as bytes.

    Args:
        frame: The frame to compute; its session must stay open.
    """
    for row in frame.mapInArrow(_as_bytes, "batch binary").toLocalIterator():
        with pa.ipc.open_stream(row[0]) as stream:
            yield from stream


def _as_bytes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.RecordBatch.from_arrays(
            [pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=["batch"]
        )
