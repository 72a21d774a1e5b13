"""The phases of a compaction on Spark: a job each, two shuffles, and no record ever on the driver.

What is shuffled: of every record with a key 37 bytes (queue, hash, place), then 9 of every record that goes;
packed, many records in one value, so that neither Java nor Python takes a step for each. Everything else
goes by files beside the new store, which every machine must see; what is run twice writes the same bytes
under the same name.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
import pyarrow as pa

from seglog.doctor.check import CheckReport, Seen, SplitOutcome
from seglog.spark.audit.outcome_rows import from_table, spark_schema, to_batch
from seglog.spark.audit.stores import audit_store
from seglog.spark.compact.phases import LOSER, decide_part, keyed_rows, losers_of
from seglog.spark.compact.records import Asked, Key
from seglog.spark.compact.summary import QueuePart
from seglog.spark.compact.swap import files_around
from seglog.spark.compact.task import Task, scan_split
from seglog.spark.compact.writing import SegmentPlan, WrittenSegment, write_segment
from seglog.spark.task_memory import keep_modules
from seglog.storage.audit import AuditPlan
from seglog.storage.files import RestoringFiles
from seglog.storage.kernels.key_winners import KEYED
from seglog.storage.splits import DEFAULT_SPLIT_BYTES, Stretch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHARE_BYTES: Final = 512 << 20
"""Log whose keyed records one task compares: some millions, 45 bytes each."""
_TASKS_A_CORE: Final = 4
_MOST_A_TASK: Final = 16
"""Pieces of work that a task does one after the other, and does again if it is killed."""
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
_PACKED: Final = pa.schema([("share", pa.int32()), ("part", pa.int32()), ("rows", pa.binary())])
_PACKED_SPARK: Final = "share int, part int, rows binary"
"""Rows of one dtype, packed, and which task takes them."""
T = TypeVar("T")
R = TypeVar("R")


class SparkRunner:
    """Runs the phases in a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def scan(self, plan: AuditPlan, asked: Asked, staged: Path | None) -> Iterator[Stretch]:
        """Walks the log."""
        plan = replace(plan, queue_files={}, batch_files={}, log_files=[], findings=[])  # what tasks need

        def walk(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            keep_modules()
            files = files_around(plan.root)
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    stretches = tuple(scan_split(files, plan, asked, number, staged))
                    outcome = SplitOutcome(number, (), stretches, (Seen(),) * len(stretches))
                    yield to_batch(0, outcome, ())

        table = self._numbers(len(plan.splits)).mapInArrow(walk, spark_schema()).toArrow()
        outcomes = [outcome for _store, outcome, _findings in from_table(table) if outcome is not None]
        for outcome in sorted(outcomes, key=lambda one: one.split):
            yield from outcome.stretches

    def check(self, root: Path) -> CheckReport:
        """Checks a store."""
        return audit_store(root, spark=self._spark)

    def decide(self, task: Task, staged: Path | None) -> Sequence[QueuePart]:
        """Runs phases 2 to 4 as one job."""

        def decide_parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            keep_modules()
            files = files_around(task.root)
            for part, packed in sorted(_by_part(batches).items()):
                losers = np.frombuffer(b"".join(packed), LOSER)
                found = decide_part(files, task, part, losers, staged)
                yield pa.RecordBatch.from_pylist([asdict(one) for one in found], _QUEUE_PART)

        shares = min(task.parts, self._shares(task, DEFAULT_SPLIT_BYTES))
        frame = self._losers(task, staged, shares).repartitionById(shares, "share")
        table = frame.mapInArrow(decide_parts, _QUEUE_PART_SPARK).toArrow()
        found = [QueuePart(**row | {name: tuple(row[name]) for name in _LISTS}) for row in table.to_pylist()]
        return sorted(found, key=lambda one: (one.part, one.topic, one.queue_id))

    def write_segments(
        self, task: Task, staged: Path, plans: Sequence[SegmentPlan], begins: Mapping[Key, int]
    ) -> Sequence[WrittenSegment]:
        """Runs phase 5 as one job, a task for each segment."""
        return self.each(staged, lambda files, plan: write_segment(files, task, staged, plan, begins), plans)

    def each(self, staged: Path, do: Callable[[RestoringFiles, T], R], work: Sequence[T]) -> Sequence[R]:
        """Runs a function as one job, a task for some pieces of work."""
        pieces = [pickle.dumps(one) for one in work]  # a task makes objects of its own ones only

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            keep_modules()
            files = files_around(staged.parent)
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    piece = pickle.loads(pieces[number])  # noqa: S301 - made above
                    made = pickle.dumps(do(files, piece))
                    yield pa.RecordBatch.from_arrays(
                        [pa.array([number]), pa.array([made])], ["number", "made"]
                    )

        if not work:
            return []
        table = self._numbers(len(work)).mapInArrow(run, "number bigint, made binary").toArrow()
        results = dict(zip(table["number"].to_pylist(), table["made"].to_pylist(), strict=True))
        return [pickle.loads(results[number]) for number in range(len(work))]  # noqa: S301 - by our tasks

    def _losers(self, task: Task, staged: Path | None, takers: int) -> DataFrame:
        """Returns who is superseded, and a row without any for each part, so that none is missing.

        Args:
            task: The compaction.
            staged: The store that is being made.
            takers: How many tasks decide: a part is decided by that whose number it leaves behind a division.
        """
        sentinels = self._spark.range(task.parts).selectExpr(
            f"cast(id % {takers} as int) as share", "cast(id as int) as part", "cast('' as binary) as rows"
        )
        if not any(policy.compact for policy in task.policies.values()):
            return sentinels
        shares = self._shares(task, _SHARE_BYTES)

        def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            keep_modules()
            for batch in batches:
                for part in batch.column(0).to_pylist():
                    rows = keyed_rows(files_around(task.root), task, part, staged)
                    share = rows["key_high"].view(np.uint64) % np.uint64(shares)
                    yield _packed(rows, share.astype(np.int64), shares, partial(_of_share, part))

        def compare(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            keep_modules()
            packed = [value for values in _by_part(batches).values() for value in values]
            losers = losers_of(np.frombuffer(b"".join(packed), KEYED))
            yield _packed(
                losers, losers["part"].astype(np.int64), task.parts, lambda one: (one % takers, one)
            )

        keyed = self._numbers(task.parts).mapInArrow(scan, _PACKED_SPARK)
        return keyed.repartitionById(shares, "share").mapInArrow(compare, _PACKED_SPARK).union(sentinels)

    def _shares(self, task: Task, share_bytes: int) -> int:
        log_bytes = sum(split.end - split.start for split in task.splits)
        return max(self._spark.sparkContext.defaultParallelism, -(-log_bytes // share_bytes))

    def _numbers(self, count: int) -> DataFrame:
        parallelism = self._spark.sparkContext.defaultParallelism
        tasks = max(_TASKS_A_CORE * parallelism, count // _MOST_A_TASK)
        return self._spark.range(0, count, 1, max(1, min(count, tasks)))


def _of_share(part: int, share: int) -> tuple[int, int]:
    return share, part


def _packed(
    rows: np.ndarray[tuple[int], np.dtype[np.void]],
    group: np.ndarray[tuple[int], np.dtype[np.int64]],
    groups: int,
    place: Callable[[int], tuple[int, int]],
) -> pa.RecordBatch:
    """Returns rows as one value for each of their groups that has any.

    Args:
        rows: ``(n,)``, of any dtype.
        group: ``(n,)``, which each belongs to.
        groups: How many there are.
        place: Returns share and part of a group.
    """
    order = np.argsort(group, kind="stable")
    ordered = rows[order]
    starts = np.searchsorted(group[order], np.arange(groups + 1)).tolist()
    found = [
        (*place(one), ordered[starts[one] : starts[one + 1]].tobytes())
        for one in range(groups)
        if starts[one + 1] > starts[one]
    ]
    columns = list(zip(*found, strict=True)) or [(), (), ()]
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, _PACKED.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_PACKED)


def _by_part(batches: Iterator[pa.RecordBatch]) -> dict[int, list[bytes]]:
    """Returns the packed rows of each part."""
    found: dict[int, list[bytes]] = {}
    for batch in batches:
        for part, packed in zip(batch.column(1).to_pylist(), batch.column(2).to_pylist(), strict=True):
            found.setdefault(part, []).append(packed)
    return found
