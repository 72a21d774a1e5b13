"""The rows of a run: tasks read them from the store, write them to staged files, and return their numbers."""

from __future__ import annotations

import json
import pickle
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seglog.spark import register
from seglog.spark.archive import columns
from seglog.spark.archive.continuity import LoggedQueue
from seglog.spark.archive.folder import Key
from seglog.spark.archive.made.run_files import RunTarget, write_rows
from seglog.spark.archive.made.stretches import Found, Noted, put_together
from seglog.spark.archive.manifest import SUPERSEDED, LastRecord, Missing
from seglog.spark.archive.record_crc import record_crc
from seglog.spark.archive.store_facts import FoundRecord
from seglog.spark.numbered_tasks import run_numbered
from seglog.spark.small_frames import small_frame
from seglog.spark.source.read.read_plan import plan_pieces, read_piece
from seglog.spark.source.wanted.options import parse_options
from seglog.storage.format.record import decode_message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, Row, SparkSession

_LOOK_UP: Final = """
    SELECT topic, queueId, min(queueOffset) AS first, max(queueOffset) AS last,
           max_by(record, physicalOffset) FILTER (WHERE queueOffset = asked) AS record,
           max(physicalOffset) FILTER (WHERE queueOffset = asked) AS place,
           max(physicalOffset) FILTER (WHERE queueOffset <= asked) AS lastBelow,
           min_by(storeTimestamp, queueOffset) FILTER (WHERE queueOffset > asked) AS nextTime
    FROM {rows} GROUP BY topic, queueId
"""
_NO_PLACES: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("queueId", pa.int32()),
        ("queueOffset", pa.int64()),
        ("physicalOffset", pa.int64()),
    ]
).empty_table()
_OPTIONS: Final = {"includePlaceholders": "true", "innerBatches": "records"}
Places: TypeAlias = npt.NDArray[np.int64]


class StoreRows:
    """The rows of one store that will be archived.

    Args:
        spark: The session.
        root: The store directory.
        topics: Topics to archive; all but the broker's own if empty.
        verify: Whether to compute checksums.
    """

    def __init__(self, spark: SparkSession, root: Path, topics: Sequence[str], *, verify: bool) -> None:
        register(spark)
        self._spark = spark
        self._root = root
        self._topics = topics
        self._verify = verify

    def is_wanted(self, topic: str) -> bool:
        """Returns whether messages of a topic are archived."""
        return topic in self._topics if self._topics else not columns.is_brokers_own(topic)

    @property
    def is_own_wanted(self) -> bool:
        """Whether topics of the broker are archived: only if the caller named some."""
        return bool(self._topics)

    def after(self, offsets: Mapping[Key, int], *, strict: bool) -> DataFrame:
        """Returns the wanted records; of the given queues only records from an offset on.

        Args:
            offsets: The first wanted queue offset, by topic and queue id.
            strict: Whether a stretch of the log that cannot be read ends the job.
        """
        rows = self._records(self._options(offsets, strict=strict)).load(str(self._root))
        rows = rows.where(columns.TAKES_SLOT)
        return rows if self._topics else rows.where(columns.IS_NOT_BROKERS_OWN)

    def _options(self, offsets: Mapping[Key, int], *, strict: bool) -> dict[str, str]:
        given = {**_OPTIONS, "verify": str(self._verify).lower(), "failOnDataLoss": str(strict).lower()}
        if self._topics:
            given["topic"] = ",".join(self._topics)
        if offsets:
            by_topic: dict[str, dict[str, int]] = {}
            for (topic, queue_id), offset in offsets.items():
                if not self._topics or topic in self._topics:
                    by_topic.setdefault(topic, {})[str(queue_id)] = offset
            given["startingOffsets"] = json.dumps(by_topic)
        return given

    def write_after(self, offsets: Mapping[Key, int], target: RunTarget, *, strict: bool) -> Found:
        """Writes the result of :meth:`after` as rows of a run, in tasks that read the log themselves.

        The rows do not go through Java, which would take ten times as long as reading and writing them.

        Raises:
            CorruptError: A stretch of the log cannot be read, and ``strict`` is on.
        """
        options = parse_options({**self._options(offsets, strict=strict), "path": str(self._root)})
        pieces = plan_pieces(options)

        def write(number: int) -> Noted:
            batches = read_piece(pieces[number], options, options.selection, columns.WANTED)
            return write_rows(target, number, batches)

        return put_together(run_numbered(self._spark, len(pieces), len(pieces), write))

    def write(self, rows: DataFrame, target: RunTarget) -> Found:
        """Writes chosen records as rows of a run."""
        from pyspark import TaskContext

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            task = context.partitionId() if context is not None else 0
            noted = pickle.dumps(write_rows(target, task, batches))
            yield pa.RecordBatch.from_arrays([pa.array([noted], pa.binary())], ["noted"])

        # Joins may have changed the order: each task takes adjacent rows, in the order of the log.
        ordered = rows.repartitionByRange("physicalOffset").sortWithinPartitions("physicalOffset")
        noted = ordered.mapInArrow(write, "noted binary").collect()
        return put_together(pickle.loads(row["noted"]) for row in noted)  # noqa: S301 - made above

    def look_up(self, asked: Sequence[LastRecord]) -> dict[Key, LoggedQueue]:
        """Returns the facts of the log about queues, for the offsets of their last archived records."""
        keys = [(one.topic, one.queue_id, one.queue_offset) for one in asked]
        topics = ",".join(sorted({one.topic for one in asked}))
        reader = self._records({**_OPTIONS, "failOnDataLoss": "false", "topic": topics})
        rows = reader.load(str(self._root)).where(columns.TAKES_SLOT)
        frame = small_frame(self._spark, "topic string, queueId int, asked bigint", keys)
        found = self._spark.sql(_LOOK_UP, rows=rows.join(frame, ["topic", "queueId"])).collect()
        return {(row["topic"], row["queueId"]): _logged(row) for row in found}

    def _records(self, options: Mapping[str, str]) -> DataFrameReader:
        return self._spark.read.format("seglog").schema(columns.READ).options(**options)

    def keep_served(
        self,
        files: Sequence[Path],
        rows: DataFrame,
        turned: Collection[Key],
        served: Mapping[Key, tuple[int, Places]],
    ) -> tuple[DataFrame, list[Missing]]:
        """Leaves out records whose queue offset another record has.

        Args:
            files: The files that were written.
            rows: The rows from which they were written.
            turned: The queues that have such records.
            served: First offset of each of these queues, and the places in its units from there on.
                For a queue without files the last record of each offset is kept.

        Returns:
            The other records, and the places of those that were left out.
        """
        keys = small_frame(self._spark, "topic string, queueId int", turned)
        known = (
            self._spark.read.schema(columns.COLUMNS)
            .parquet(*map(str, files))
            .join(keys, ["topic", "queueId"])
        )
        known = known.select("topic", "queueId", "queueOffset", "physicalOffset")
        of_files = self._spark.createDataFrame(_served_table(served), known.schema)
        with_files = of_files.select("topic", "queueId").distinct()
        last = known.join(with_files, ["topic", "queueId"], "anti").groupBy("topic", "queueId", "queueOffset")
        kept = of_files.unionByName(last.agg({"physicalOffset": "max"}).toDF(*known.columns)).persist()
        try:
            gone = known.join(kept, known.columns, "anti").groupBy("topic", "queueId")
            places = gone.agg({"physicalOffset": "min"}).toDF("topic", "queueId", "first").collect()
            ends = gone.agg({"physicalOffset": "max"}).toDF("topic", "queueId", "last").collect()
            own = kept.toArrow()
        finally:
            kept.unpersist()
        last_of = {(row["topic"], row["queueId"]): row["last"] for row in ends}
        named = [
            Missing(*key, -1, -1, SUPERSEDED, row["first"], last_of[key] + 1)
            for row in places
            for key in [(row["topic"], row["queueId"])]
        ]
        others = rows.join(keys, ["topic", "queueId"], "anti")
        chosen = rows.join(self._spark.createDataFrame(own, kept.schema), known.columns, "semi")
        return others.unionByName(chosen), named


def _served_table(served: Mapping[Key, tuple[int, Places]]) -> pa.Table:
    columns_of = [
        {
            "topic": pa.repeat(topic, len(places)),
            "queueId": pa.repeat(pa.scalar(queue_id, pa.int32()), len(places)),
            "queueOffset": pa.array(np.arange(first, first + len(places))),
            "physicalOffset": pa.array(places.astype(np.int64)),
        }
        for (topic, queue_id), (first, places) in served.items()
    ]
    return pa.concat_tables([_NO_PLACES, *(pa.table(one, _NO_PLACES.schema) for one in columns_of)])


def _logged(row: Row) -> LoggedQueue:
    record: Any = row["record"]
    found = None
    if record is not None:
        found = FoundRecord(row["place"], record_crc(record), decode_message(bytes(record)))
    below = row["lastBelow"] if row["lastBelow"] is not None else -1
    return LoggedQueue(row["first"], row["last"], found, below, row["nextTime"])
