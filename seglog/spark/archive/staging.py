"""The rows of a run: read from the store, written beside the archive, and looked at before they count."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seglog.spark import register
from seglog.spark.archive import columns
from seglog.spark.archive.continuity import LoggedQueue
from seglog.spark.archive.folder import Key
from seglog.spark.archive.manifest import SUPERSEDED, Interval, LastRecord, Missing
from seglog.spark.archive.measured import OF_QUEUE, PARTS
from seglog.spark.archive.record_crc import record_crc
from seglog.spark.archive.store_facts import FoundRecord
from seglog.spark.small_frames import small_frame
from seglog.storage.format.record import decode_message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, Row, SparkSession

_WANTED: Final = """min(physicalOffset) AS place, bool_or(coalesce(turned, false)) AS turned,
    max_by(struct(queueOffset, physicalOffset, recordCrc, bornTimestamp, storeTimestamp, bornHost, storeHost,
                  placeholder), queueOffset) AS last"""
_INTERVALS: Final = PARTS.format(keys=OF_QUEUE, wanted=_WANTED)
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
Places: TypeAlias = npt.NDArray[np.int64]


@dataclass(slots=True)
class Found:
    """What rows of a run hold.

    Attributes:
        intervals: Queue offsets, sorted.
        last: The last record of each queue.
        messages: How many messages.
        placeholders: How many placeholders.
        size_bytes: How much their records take.
        places: Lowest place in the log of each interval.
        turned: Queues of which offsets and places in the log do not go up together.
    """

    intervals: list[Interval] = field(default_factory=list)
    last: dict[Key, LastRecord] = field(default_factory=dict)
    messages: int = 0
    placeholders: int = 0
    size_bytes: int = 0
    places: list[int] = field(default_factory=list)
    turned: set[Key] = field(default_factory=set)


class StoreRows:
    """The rows of one store that an archive wants.

    Args:
        spark: The session.
        root: The store directory.
        topics: Topics that are wanted; all but the broker's own if empty.
        verify: Whether to compute checksums.
    """

    def __init__(self, spark: SparkSession, root: Path, topics: Sequence[str], *, verify: bool) -> None:
        register(spark)
        self._spark = spark
        self._root = root
        self._topics = topics
        self._verify = verify

    def is_wanted(self, topic: str) -> bool:
        """Whether messages of a topic are wanted."""
        return topic in self._topics if self._topics else not columns.is_brokers_own(topic)

    def after(self, offsets: Mapping[Key, int], *, strict: bool) -> DataFrame:
        """Returns the records that are wanted, of queues that are named those from an offset on.

        Args:
            offsets: By topic and number of the queue.
            strict: Whether a stretch of the log that cannot be read ends the job.
        """
        reader = self._records().option("verify", str(self._verify).lower())
        reader = reader.option("failOnDataLoss", str(strict).lower())
        if self._topics:
            reader = reader.option("topic", ",".join(self._topics))
        if offsets:
            by_topic: dict[str, dict[str, int]] = {}
            for (topic, queue_id), offset in offsets.items():
                if not self._topics or topic in self._topics:
                    by_topic.setdefault(topic, {})[str(queue_id)] = offset
            reader = reader.option("startingOffsets", json.dumps(by_topic))
        rows = reader.load(str(self._root)).where(columns.TAKES_SLOT)
        return rows if self._topics else rows.where(columns.IS_NOT_BROKERS_OWN)

    def look_up(self, asked: Sequence[LastRecord]) -> dict[Key, LoggedQueue]:
        """Returns what the log says of queues of which the last archived record is asked for."""
        keys = [(one.topic, one.queue_id, one.queue_offset) for one in asked]
        reader = self._records().option("failOnDataLoss", "false")
        reader = reader.option("topic", ",".join(sorted({one.topic for one in asked})))
        rows = reader.load(str(self._root)).where(columns.TAKES_SLOT)
        frame = small_frame(self._spark, "topic string, queueId int, asked bigint", keys)
        found = self._spark.sql(_LOOK_UP, rows=rows.join(frame, ["topic", "queueId"])).collect()
        return {(row["topic"], row["queueId"]): _logged(row) for row in found}

    def _records(self) -> DataFrameReader:
        reader = self._spark.read.format("seglog").schema(columns.READ)
        return reader.options(includePlaceholders="true", innerBatches="records")

    def write(self, rows: DataFrame, staged: Path, number: int, name: str) -> None:
        """Writes records as a run of an archive has them, in place of what was there."""
        from pyspark.sql.functions import lit

        made = rows.withColumns({"store": lit(name), "run": lit(number)})
        made = made.selectExpr("*", *(f"{text} AS {column}" for column, text in columns.MADE.items()))
        writer = made.select(*columns.names_of(columns.COLUMNS)).write.mode("overwrite")
        writer.option("compression", "zstd").partitionBy(*columns.PARTITIONS).parquet(str(staged))

    def look_at(self, staged: Path) -> Found:
        """Returns what was written."""
        rows = self._staged(staged).selectExpr("*", f"{columns.SLOTS} AS slots")
        found = Found()
        for row in sorted(self._spark.sql(_INTERVALS, rows=rows).collect()):
            key = row["topic"], row["queueId"]
            found.intervals.append(Interval(*key, row["first"], row["end"]))
            found.places.append(row["place"])
            found.last[key] = LastRecord(*key, *row["last"])
            found.messages += row["messages"]
            found.placeholders += row["placeholders"]
            found.size_bytes += row["bytes"]
            if row["turned"]:
                found.turned.add(key)
        return found

    def keep_served(
        self, staged: Path, rows: DataFrame, turned: Collection[Key], served: Mapping[Key, tuple[int, Places]]
    ) -> tuple[DataFrame, list[Missing]]:
        """Leaves records out whose queue offset another record has.

        Args:
            staged: What was written.
            rows: What it was written from.
            turned: The queues that have such records.
            served: First offset of each of these queues, and the places that its files lead to from there on.
                Of a queue without files the last record of each offset stays.

        Returns:
            The other records, and where those are that were left out.
        """
        keys = small_frame(self._spark, "topic string, queueId int", turned)
        known = self._staged(staged).join(keys, ["topic", "queueId"])
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

    def _staged(self, staged: Path) -> DataFrame:
        return self._spark.read.schema(columns.COLUMNS).parquet(str(staged))


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
