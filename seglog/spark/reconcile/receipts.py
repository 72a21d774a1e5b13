"""Receipts: the broker's answers to producers, as a table that is compared with the stores.

Columns, in letters of any case: ``msgId`` (a UNIQ_KEY, or the id that holds host and place), ``topic``,
``queueId``, ``queueOffset``. Either the id or the other three must be given; other columns are ignored.

A receipt without a record is a lost message, unless retention removed its slot, or its slot is already
counted as lost. A receipt with nothing but an id may belong to a message whose slot is counted as lost: the
message is counted twice then. Queues of several stores have the same names: a place exists if one of the
stores has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from seglog.errors import InvalidArgumentError
from seglog.spark.reconcile import verdicts
from seglog.spark.reconcile.hashes import hash_of
from seglog.spark.reconcile.slots import SlotRange
from seglog.spark.small_frames import small_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from seglog.spark.reconcile.records import Records

COLUMNS: Final = {"msgId": "string", "topic": "string", "queueId": "int", "queueOffset": "bigint"}
_PLACE: Final = ("topic", "queueId", "queueOffset")


def load_receipts(spark: SparkSession, path: str) -> DataFrame:
    """Reads receipts.

    Args:
        spark: The session.
        path: A file or folder of Parquet, CSV with a header line, or JSON lines; the suffix selects the
            format.

    Raises:
        InvalidArgumentError: The table has neither ids nor places.
    """
    reader, ending = spark.read, PurePath(path).suffix
    if ending == ".csv":
        return as_receipts(reader.option("header", "true").csv(path))
    return as_receipts(reader.json(path) if ending in (".json", ".jsonl") else reader.parquet(path))


def as_receipts(frame: DataFrame) -> DataFrame:
    """Returns the columns :data:`COLUMNS` of a table, each receipt once.

    Raises:
        InvalidArgumentError: The table has neither ids nor places.
    """
    from pyspark.sql import functions as sql

    given = {name.lower(): name for name in frame.columns}
    if "msgid" not in given and any(name.lower() not in given for name in _PLACE):
        raise InvalidArgumentError(
            f"receipts have the columns {', '.join(frame.columns)}",
            help="they need msgId, or topic, queueId and queueOffset",
        )
    columns = []
    for name, kind in COLUMNS.items():
        value = sql.col(f"`{given[name.lower()]}`") if name.lower() in given else sql.lit(None)
        columns.append(value.cast(kind).alias(name))
    return frame.select(*columns).distinct()


def lost_receipts(
    spark: SparkSession, receipts: DataFrame, records: Records, ranges: Sequence[SlotRange], gone: DataFrame
) -> DataFrame:
    """Returns the receipts without a record, as messages that are lost.

    Args:
        spark: The session.
        receipts: The receipts, from :func:`load_receipts`.
        records: The messages in the stores.
        ranges: The slots of the queues.
        gone: Ranges of slots without a message; ``base`` is the reason.
    """
    from pyspark.sql import functions as sql

    ids = {"one": hash_of(sql.col("msgId"), 0), "other": hash_of(sql.col("msgId"), 1)}
    known, place = records.all(), sql.col("offsetMsgId")
    known = known.select(*[column.alias(name) for name, column in ids.items()]).unionByName(
        known.select(hash_of(place, 0).alias("one"), hash_of(place, 1).alias("other"))
    )
    unknown = receipts.where("msgId IS NOT NULL").withColumns(ids).join(known, ["one", "other"], "left_anti")
    unknown = unknown.drop("one", "other").unionByName(receipts.where("msgId IS NULL"))
    ends: dict[tuple[str, int], tuple[int, int]] = {}
    for one in ranges:
        low, high = ends.get((one.topic, one.queue_id), (0, 0))
        ends[one.topic, one.queue_id] = max(low, one.min_offset), max(high, one.max_offset)
    queues = small_frame(
        spark,
        "topic string, queueId int, minOffset bigint, maxOffset bigint",
        [(*key, *both) for key, both in ends.items()],
    )
    found = _with_told(unknown, gone.where(gone["base"] == verdicts.LOST))
    found = found.join(queues, ["topic", "queueId"], "left")
    is_behind = sql.col("queueOffset") >= sql.coalesce(sql.col("maxOffset"), sql.lit(0))
    is_expired = sql.coalesce(sql.col("queueOffset") < sql.col("minOffset"), sql.lit(False))
    is_lost = (sql.col("msgId").isNotNull() | is_behind) & ~is_expired & ~sql.col("told")
    nothing = sql.lit(None)
    return found.where(is_lost).select(
        nothing.cast("string").alias("store"),
        *_PLACE,
        nothing.cast("bigint").alias("physicalOffset"),
        nothing.cast("bigint").alias("storeTimestamp"),
        "msgId",
        sql.lit(verdicts.LOST).alias("base"),
    )


def _with_told(receipts: DataFrame, gaps: DataFrame) -> DataFrame:
    """Adds ``told``: whether the slot of a receipt is in one of the ranges.

    A join by range would compare each receipt of a queue with each range of it. Here both are sorted, and a
    slot is in a range if a range that begins at or before it ends after it.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    marks = gaps.select(*_PLACE, "endOffset", sql.lit(False).alias("asks"))
    asked = receipts.withColumn("asks", sql.lit(True)).unionByName(marks, allowMissingColumns=True)
    # Receipts without a place are in no range: they are distributed by their ids.
    spread = sql.when(sql.col("queueOffset").isNull(), hash_of(sql.col("msgId"), 0))
    up_to = Window.partitionBy("topic", "queueId", spread).orderBy("queueOffset")
    furthest = sql.max("endOffset").over(up_to)  # a window by range: rows that begin at this slot count too
    told = sql.coalesce(furthest > sql.col("queueOffset"), sql.lit(False))
    return asked.withColumn("told", told).where("asks").drop("asks", "endOffset")
