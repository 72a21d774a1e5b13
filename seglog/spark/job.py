"""The part of an audit that runs on Spark: every split is walked by some task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from seglog.spark.arrow import from_table, spark_schema, to_batch
from seglog.storage.audit.split_scan import SplitScan
from seglog.storage.audit.splits import DEFAULT_SPLIT_BYTES
from seglog.storage.files import RealFiles

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from seglog.storage.audit.plan import AuditPlan
    from seglog.storage.audit.stretches import Stretch


def scan_on_spark(plan: AuditPlan, spark: SparkSession) -> Iterator[Stretch]:
    """Yields what all splits of a plan see, the stretches of one split in order."""
    if plan.splits:
        yield from from_table(stretches_frame(plan, spark).toArrow())


def stretches_frame(plan: AuditPlan, spark: SparkSession) -> DataFrame:
    """Returns the table of stretches: :data:`seglog.spark.arrow.STRETCH`, not computed yet."""
    splits, root, geometry, verify = plan.splits, plan.root, plan.geometry, plan.verify
    batch_topics = plan.batch_topics

    def scan_splits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        scan = SplitScan(RealFiles(), root, geometry, batch_topics, verify=verify)
        try:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield to_batch(scan.run(splits[number]))
        finally:
            scan.close()

    numbers = spark.range(0, len(splits), 1, _task_count(plan, spark.sparkContext.defaultParallelism))
    return numbers.mapInArrow(scan_splits, spark_schema())


def _task_count(plan: AuditPlan, parallelism: int) -> int:
    """Returns one task for each split, or for as many small ones as make a split of the default length."""
    log_bytes = sum(split.end - split.start for split in plan.splits)
    return min(len(plan.splits), max(parallelism, -(-log_bytes // DEFAULT_SPLIT_BYTES)))
