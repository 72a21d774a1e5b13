"""One verdict for each group and message. Adjacent slots that share a verdict are one row.

A **message** is

* a slot of a queue of a topic that producers send to (not ``%RETRY%``, ``%DLQ%``, ``%LMQ%`` or another topic
  of the broker's own). The slots begin at the queue's first message, or at the least offset that a group has
  before it, and end at the queue's end. Each message of a batch has a slot of its own;
* a half message that waits for commit or rollback, and a message that waits in the delay topic or the timer
  wheel; its topic is the one in ``REAL_TOPIC``;
* the message of a receipt that has no record, unless its slot is one of the above or retention removed it.

The **groups** of a message are those that have an offset in a queue of its topic in any of the stores; a
topic that no group consumes has one group, with an empty name. For each of its groups a message has the first
verdict of :data:`~seglog.spark.reconcile.verdicts.MESSAGE_VERDICTS` that is true.

A row is a message with a record of its own, or a **range** of slots, ``queueOffset`` to before ``endOffset``:
adjacent slots that have no record, or the slots of one batch. A range is divided at the offset of a group if
the verdict changes there. ``messages`` is the number of messages of a row. The sum of ``messages`` must be
equal to the sum over topics of messages times groups, which :mod:`seglog.spark.reconcile.counts` checks.

Copies are matched with their message by UNIQ_KEY, ORIGIN_MESSAGE_ID and DLQ_ORIGIN_MESSAGE_ID.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from seglog.spark.reconcile import verdicts
from seglog.spark.reconcile.facts import StoreFacts, subscribers
from seglog.spark.reconcile.hashes import hash_of
from seglog.spark.reconcile.receipts import lost_receipts
from seglog.spark.reconcile.records import MESSAGE, Records
from seglog.spark.reconcile.slots import RANGE, SLOT, SlotRange, expired_slots, lost_slots, slot_ranges
from seglog.spark.small_frames import sent_if_small, small_frame

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

NO_GROUP: Final = ""
"""The group of a topic that no group consumes."""
COLUMNS: Final = ("group", *MESSAGE, "endOffset", "messages", "verdict")
"""``endOffset`` is null if ``queueOffset`` is null."""


def message_verdicts(
    spark: SparkSession,
    stores: Sequence[StoreFacts],
    receipts: DataFrame | None = None,
    *,
    verify: bool = True,
) -> DataFrame:
    """Returns the verdicts with the columns :data:`COLUMNS`.

    This call searches for copies and duplicates, which reads the log once; the verdicts are computed later.

    Args:
        spark: A session.
        stores: The facts about the stores.
        receipts: The receipts of producers, from :func:`~seglog.spark.reconcile.receipts.load_receipts`.
        verify: Whether to compute checksums.
    """
    from pyspark.sql import functions as sql

    records = Records(spark, stores, verify=verify)
    ranges = list(slot_ranges(stores))
    groups = subscribers(stores)
    gone = lost_slots(spark, records, ranges).unionByName(expired_slots(spark, ranges))
    offsets = _offsets(spark, stores, ranges, groups)
    copies = sent_if_small(spark, records.copies())
    single = _with_dropped(_with_duplicates(spark, records.single())).join(offsets, list(SLOT), "left")
    runs = _with_duplicates(spark, records.in_batches()).unionByName(gone, allowMissingColumns=True)
    runs = runs.join(offsets, list(SLOT), "left")
    others = records.waiting()
    if receipts is not None:
        others = others.unionByName(lost_receipts(spark, receipts, records, ranges, gone))
    by_topic = small_frame(
        spark,
        "topic string, group string",
        [(topic, group) for topic, named in groups.items() for group in named],
    )
    others = others.join(by_topic, "topic", "left")
    rows = _with_copies(single, copies).unionByName(_cut(_with_copies(runs, copies)))
    rows = rows.unionByName(others, allowMissingColumns=True)
    group = sql.coalesce(sql.col("group"), sql.lit(NO_GROUP))
    end = sql.coalesce("endOffset", sql.try_add("queueOffset", sql.lit(1)))
    count = sql.coalesce(sql.col("endOffset") - sql.col("queueOffset"), sql.lit(1))
    verdict = _verdict(sql.col("queueOffset") < sql.col("offset"))
    return rows.withColumns({"group": group, "endOffset": end, "messages": count, "verdict": verdict}).select(
        *COLUMNS
    )


def _with_duplicates(spark: SparkSession, found: DataFrame) -> DataFrame:
    """Adds ``base`` for messages whose UNIQ_KEY an earlier message of the topic has; and hashes of it."""
    from pyspark.sql import functions as sql

    unique = sql.when(sql.col("msgId") != sql.col("offsetMsgId"), sql.col("msgId"))
    of_topic = sql.concat_ws("\0", "topic", unique)
    names = {"first": hash_of(sql.when(unique.isNotNull(), of_topic), 0)}
    names["second"] = hash_of(sql.when(unique.isNotNull(), of_topic), 1)
    place = sql.struct("storeTimestamp", "store", "physicalOffset")
    named = found.withColumns(names)
    # Counting two numbers is fast; places are compared only for keys that occur more than once.
    counted = named.where(sql.col("first").isNotNull()).groupBy(*names).count().where("count > 1")
    often = sent_if_small(spark, counted.drop("count"))
    original = named.join(often, list(names)).groupBy(*names).agg(sql.min(place).alias("original"))
    named = named.join(sent_if_small(spark, original), list(names), "left")
    is_again = sql.col("original").isNotNull() & (place != sql.col("original"))
    named = named.withColumn("base", sql.when(is_again, sql.lit(verdicts.DUPLICATED)))
    own = {"one": hash_of(unique, 0), "other": hash_of(unique, 1)}
    return named.withColumns(own).drop("original", *names)


def _with_dropped(found: DataFrame) -> DataFrame:
    """Sets the verdict of placeholders, for all groups: a compaction dropped their messages."""
    from pyspark.sql import functions as sql

    base = sql.when(sql.col("placeholder"), sql.lit(verdicts.COMPACTED)).otherwise(sql.col("base"))
    return found.withColumn("base", base).drop("placeholder")


def _offsets(
    spark: SparkSession,
    stores: Sequence[StoreFacts],
    ranges: Sequence[SlotRange],
    groups: dict[str, list[str]],
) -> DataFrame:
    """Returns ``offset`` for every queue and group, null for a group without an offset there."""
    known = {
        (facts.store, at.topic, at.queue_id, at.group): at.offset
        for facts in stores
        for at in facts.tables.offsets
    }
    rows = [
        (one.store, one.topic, one.queue_id, group, known.get((one.store, one.topic, one.queue_id, group)))
        for one in ranges
        for group in groups.get(one.topic, [NO_GROUP])
    ]
    return small_frame(spark, "store string, topic string, queueId int, group string, offset bigint", rows)


def _with_copies(rows: DataFrame, copies: DataFrame) -> DataFrame:
    """Adds ``state``: 2 if the group has a dead-letter copy of the message, 1 if a copy waits."""
    from pyspark.sql import functions as sql

    name, place = sql.col("id"), sql.col("offsetMsgId")
    by_unique = copies.select(
        "group",
        hash_of(name, 0).alias("one"),
        hash_of(name, 1).alias("other"),
        sql.col("state").alias("known"),
    )
    by_place = by_unique.toDF("group", "placeOne", "placeOther", "placed")
    rows = rows.withColumns({"placeOne": hash_of(place, 0), "placeOther": hash_of(place, 1)})
    rows = rows.join(by_unique, ["group", "one", "other"], "left")
    rows = rows.join(by_place, ["group", "placeOne", "placeOther"], "left")
    return rows.withColumn("state", sql.greatest("known", "placed"))


def _cut(runs: DataFrame) -> DataFrame:
    """Divides ranges at the offsets of their groups, if the verdict changes there."""
    from pyspark.sql import functions as sql

    first, end, cut = (sql.col(name) for name in (*RANGE, "offset"))
    cuts = (cut > first) & (cut < end) & (_verdict(sql.lit(True)) != _verdict(sql.lit(False)))
    whole = sql.array(sql.struct(*RANGE))
    both = sql.array(
        sql.struct(first.alias("queueOffset"), cut.alias("endOffset")),
        sql.struct(cut.alias("queueOffset"), end.alias("endOffset")),
    )
    pieces = sql.explode(sql.when(cuts, both).otherwise(whole))
    return (
        runs.withColumn("piece", pieces)
        .withColumns({name: sql.col(f"piece.{name}") for name in RANGE})
        .drop("piece")
    )


def _verdict(is_past: Column) -> Column:
    """Returns the verdict about slots that are all before, or all at or after, the offset of their group."""
    from pyspark.sql import functions as sql

    base, state = sql.col("base"), sql.col("state")
    return (
        sql.when((base == verdicts.EXPIRED) & is_past, verdicts.PASSED)
        .when(base.isNotNull(), base)
        .when(state == 2, verdicts.DEAD)
        .when(state == 1, verdicts.RETRYING)
        .when(is_past, verdicts.DELIVERED)
        .otherwise(verdicts.PENDING)
    )
