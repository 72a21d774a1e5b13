"""The phases of a compaction on Spark: three jobs, two shuffles, and no record ever on the driver.

What is shuffled: of every record with a key 42 bytes (queue, hash, place, time), then 9 of every record that
goes. Segments and queues are written by tasks straight into the folder of the new store, which every
machine must see; what is run twice writes the same bytes under the same name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seglog.doctor.check import CheckReport
from seglog.spark.audit.job import StoreWalk, walk_on_spark
from seglog.spark.audit.stores import audit_store
from seglog.spark.compact.phases import KEYED, LOSER, decide_part, keyed_rows, losers_of
from seglog.spark.compact.queues import write_queue
from seglog.spark.compact.records import Key
from seglog.spark.compact.summary import QueuePart
from seglog.spark.compact.swap import files_around
from seglog.spark.compact.task import Task
from seglog.spark.compact.writing import QueueSlice, SegmentPlan, WrittenSegment, write_segment
from seglog.storage.audit import AuditPlan
from seglog.storage.index_check import IndexFacts
from seglog.storage.splits import DEFAULT_SPLIT_BYTES, Stretch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHARE_BYTES: Final = 512 << 20
"""Log whose keyed records one task compares: some millions, 52 bytes each."""
_SPARK_NAMES: Final = {"i4": "int", "i8": "bigint", "i1": "tinyint", "b1": "boolean"}
_SENTINEL: Final = -1
_NO_INDEX: Final = IndexFacts((), (), has_tags=False, end_phy_offset=0)
"""Of the old store only the log is walked: its index is not taken over."""
_QUEUE_PART: Final = pa.schema(
    [
        ("part", pa.int32()),
        ("topic", pa.string()),
        ("queue_id", pa.int32()),
        ("records", pa.list_(pa.int64())),
        ("size_bytes", pa.list_(pa.int64())),
        ("first_offset", pa.int64()),
        ("last_gone_offset", pa.int64()),
        ("all_placeholder_bytes", pa.int64()),
        ("later_placeholder_bytes", pa.int64()),
        ("undelivered", pa.list_(pa.int64())),
    ]
)
_LISTS: Final = ("records", "size_bytes", "undelivered")
_QUEUE_PART_SPARK: Final = (
    "part int, topic string, queue_id int, records array<bigint>, size_bytes array<bigint>,"
    " first_offset bigint, last_gone_offset bigint, all_placeholder_bytes bigint,"
    " later_placeholder_bytes bigint, undelivered array<bigint>"
)
_WRITTEN: Final = pa.schema(
    [
        ("first", pa.int64()),
        ("used_bytes", pa.int64()),
        ("records", pa.int64()),
        ("crc", pa.int64()),
        (
            "slices",
            pa.list_(
                pa.struct(
                    [
                        ("segment", pa.int64()),
                        ("topic", pa.string()),
                        ("queue_id", pa.int32()),
                        ("start", pa.int64()),
                        ("units", pa.int64()),
                    ]
                )
            ),
        ),
    ]
)
_WRITTEN_SPARK: Final = (
    "first bigint, used_bytes bigint, records bigint, crc bigint,"
    " slices array<struct<segment: bigint, topic: string, queue_id: int, start: bigint, units: bigint>>"
)


class SparkRunner:
    """Runs the phases in a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def scan(self, plan: AuditPlan) -> Iterator[Stretch]:
        """Walks the log."""
        tasks_need = replace(plan, queue_files={}, batch_files={}, log_files=[], findings=[])
        walk = StoreWalk(tasks_need, frozenset(), _NO_INDEX, is_closed=True, store=str(plan.root))
        (walked,) = walk_on_spark([walk], self._spark)
        for outcome in walked.outcomes:
            yield from outcome.stretches

    def check(self, root: Path) -> CheckReport:
        """Checks a store."""
        return audit_store(root, spark=self._spark)

    def decide(self, task: Task, staged: Path | None) -> Sequence[QueuePart]:
        """Runs phases 1 to 3 as one job."""

        def decide_parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            files = files_around(task.root)
            rows = _array(batches, LOSER)
            for part in np.unique(rows["part"]).tolist():
                losers = rows[(rows["part"] == part) & (rows["row"] != _SENTINEL)]
                found = decide_part(files, task, part, losers, staged)
                yield pa.RecordBatch.from_pylist([asdict(one) for one in found], _QUEUE_PART)

        shares = self._shares(task, DEFAULT_SPLIT_BYTES)
        frame = self._losers(task).repartition(min(task.parts, shares), "part")
        table = frame.mapInArrow(decide_parts, _QUEUE_PART_SPARK).toArrow()
        found = [QueuePart(**row | {name: tuple(row[name]) for name in _LISTS}) for row in table.to_pylist()]
        return sorted(found, key=lambda one: (one.part, one.topic, one.queue_id))

    def write_segments(
        self, task: Task, staged: Path, plans: Sequence[SegmentPlan], begins: Mapping[Key, int]
    ) -> Sequence[WrittenSegment]:
        """Runs phase 4 as one job, a task for each segment."""

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    made = write_segment(files_around(task.root), task, staged, plans[number], begins)
                    row = asdict(made) | {"slices": [one._asdict() for one in made.slices]}
                    yield pa.RecordBatch.from_pylist([row], _WRITTEN)

        table = self._numbers(len(plans)).mapInArrow(write, _WRITTEN_SPARK).toArrow()
        written = [
            WrittenSegment(**row | {"slices": tuple(QueueSlice(**one) for one in row["slices"])})
            for row in table.to_pylist()
        ]
        return sorted(written, key=lambda one: one.first)

    def write_queues(
        self, staged: Path, queues: Mapping[Key, Sequence[QueueSlice]], file_bytes: int
    ) -> Mapping[Key, int]:
        """Runs phase 5 as one job, a task for some queues."""
        keys = sorted(queues)

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                numbers = batch.column(0)
                files = files_around(staged.parent)
                counts = []
                for topic, queue_id in (keys[number] for number in numbers.to_pylist()):
                    slices = queues[topic, queue_id]
                    counts.append(write_queue(files, staged, topic, queue_id, slices, file_bytes))
                yield pa.RecordBatch.from_arrays([numbers, pa.array(counts, pa.int64())], ["queue", "units"])

        table = self._numbers(len(keys)).mapInArrow(write, "queue bigint, units bigint").toArrow()
        return {keys[row["queue"]]: row["units"] for row in table.to_pylist()}

    def _losers(self, task: Task) -> DataFrame:
        """Returns who is superseded, and a row without meaning for each part, so that none is missing."""
        sentinels = self._spark.range(task.parts).selectExpr(
            "cast(id as int) as part", f"{_SENTINEL} as row", "cast(0 as tinyint) as verdict"
        )
        if not any(policy.compact for policy in task.policies.values()):
            return sentinels

        def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for part in batch.column(0).to_pylist():
                    yield _batch(keyed_rows(files_around(task.root), task, part))

        def compare(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield _batch(losers_of(task, _array(batches, KEYED)))

        keyed = self._numbers(task.parts).mapInArrow(scan, _schema(KEYED))
        shared = keyed.repartition(self._shares(task, _SHARE_BYTES), "queue", "key_high", "key_low")
        return shared.mapInArrow(compare, _schema(LOSER)).union(sentinels)

    def _shares(self, task: Task, share_bytes: int) -> int:
        log_bytes = sum(split.end - split.start for split in task.splits)
        return max(self._spark.sparkContext.defaultParallelism, -(-log_bytes // share_bytes))

    def _numbers(self, count: int) -> DataFrame:
        parallelism = self._spark.sparkContext.defaultParallelism
        return self._spark.range(0, count, 1, max(1, min(count, 4 * parallelism)))


def _schema(dtype: np.dtype[np.void]) -> str:
    return ", ".join(f"{name} {_SPARK_NAMES[dtype[name].str[1:]]}" for name in dtype.names or ())


def _batch(rows: npt.NDArray[np.void]) -> pa.RecordBatch:
    """Returns a structured array as columns."""
    names = rows.dtype.names or ()
    return pa.RecordBatch.from_arrays([pa.array(np.ascontiguousarray(rows[name])) for name in names], names)


def _array(batches: Iterator[pa.RecordBatch], dtype: np.dtype[np.void]) -> npt.NDArray[np.void]:
    """Returns columns as one structured array."""
    parts = [np.zeros(0, dtype)]
    for batch in batches:
        rows = np.zeros(batch.num_rows, dtype)
        for number, name in enumerate(dtype.names or ()):
            rows[name] = batch.column(number).to_numpy(zero_copy_only=False)
        parts.append(rows)
    return np.concatenate(parts)
