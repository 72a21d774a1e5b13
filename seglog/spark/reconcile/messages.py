"""One verdict for each group and message: what became of it.

A **message** is

* a slot of a queue of a topic that producers send to (not ``%RETRY%``, ``%DLQ%``, ``%LMQ%`` or another topic
  of the broker's own), from the queue's first message, or from the least offset that a group has before that,
  to its end; each message of a batch has a slot;
* a half message that waits for its end, and a message that waits in the delay topic or the timer wheel, for
  the topic in ``REAL_TOPIC``;
* what a receipt names and no record has, unless its slot is one of the above or retention took it.

The **groups** of a message are those that have an offset in a queue of its topic on any of the stores; a
topic that no group consumes has one, without a name. Each message has one row for each of its groups, with
the first verdict of :data:`~seglog.spark.reconcile.verdicts.MESSAGE_VERDICTS` that fits. So there are as many
rows as the sum over topics of messages times groups; :mod:`seglog.spark.reconcile.counts` holds that to it.

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
from seglog.spark.reconcile.slots import SLOT, SlotRange, expired_slots, lost_slots, slot_ranges
from seglog.spark.small_frames import sent_if_small, small_frame

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

NOBODY: Final = ""
"""The group of a topic that none consumes."""


def message_verdicts(
    spark: SparkSession,
    stores: Sequence[StoreFacts],
    receipts: DataFrame | None = None,
    *,
    verify: bool = True,
) -> DataFrame:
    """Returns ``group``, the columns of :data:`~seglog.spark.reconcile.records.MESSAGE`, and ``verdict``.

    Copies and duplicates are looked for now, which reads the log once; the verdicts are not computed yet.

    Args:
        spark: A session.
        stores: What is known of the stores.
        receipts: The answers to producers, as :func:`~seglog.spark.reconcile.receipts.load_receipts` has it.
        verify: Whether to compute checksums.
    """
    from pyspark.sql import functions as sql

    records = Records(spark, stores, verify=verify)
    ranges = list(slot_ranges(stores))
    groups = subscribers(stores)
    present = _with_duplicates(spark, records.in_queues())
    gone = lost_slots(spark, records, ranges).unionByName(expired_slots(spark, ranges))
    in_slots = present.unionByName(gone, allowMissingColumns=True)
    in_slots = in_slots.join(_offsets(spark, stores, ranges, groups), list(SLOT), "left")
    others = records.waiting()
    if receipts is not None:
        others = others.unionByName(lost_receipts(spark, receipts, records, ranges, gone))
    by_topic = small_frame(
        spark,
        "topic string, group string",
        [(topic, group) for topic, named in groups.items() for group in named],
    )
    others = others.join(by_topic, "topic", "left")
    rows = _with_copies(in_slots, sent_if_small(spark, records.copies())).unionByName(
        others, allowMissingColumns=True
    )
    group = sql.coalesce(sql.col("group"), sql.lit(NOBODY)).alias("group")
    return rows.select(group, *MESSAGE, _verdict().alias("verdict"))


def _with_duplicates(spark: SparkSession, found: DataFrame) -> DataFrame:
    """Adds ``base``: that an earlier message of the topic has the same UNIQ_KEY; and hashes of that."""
    from pyspark.sql import functions as sql

    unique = sql.when(sql.col("msgId") != sql.col("offsetMsgId"), sql.col("msgId"))
    of_topic = sql.concat_ws("\0", "topic", unique)
    names = {"first": hash_of(sql.when(unique.isNotNull(), of_topic), 0)}
    names["second"] = hash_of(sql.when(unique.isNotNull(), of_topic), 1)
    place = sql.struct("storeTimestamp", "store", "physicalOffset")
    named = found.withColumns(names)
    # Two numbers are counted in no time; places are looked at where there is something to find.
    counted = named.where(sql.col("first").isNotNull()).groupBy(*names).count().where("count > 1")
    often = sent_if_small(spark, counted.drop("count"))
    original = (
        named.join(often, list(names))
        .groupBy(*names)
        .agg(sql.min(place).alias("original"), sql.max(place).alias("newest"))
        .where(sql.col("original") != sql.col("newest"))  # else the slots of one batch
        .drop("newest")
    )
    named = named.join(sent_if_small(spark, original), list(names), "left")
    is_again = sql.col("original").isNotNull() & (place != sql.col("original"))
    named = named.withColumn("base", sql.when(is_again, sql.lit(verdicts.DUPLICATED)))
    own = {"one": hash_of(unique, 0), "other": hash_of(unique, 1)}
    return named.withColumns(own).drop("original", *names)


def _offsets(
    spark: SparkSession,
    stores: Sequence[StoreFacts],
    ranges: Sequence[SlotRange],
    groups: dict[str, list[str]],
) -> DataFrame:
    """Returns ``offset`` for every queue and group, null where a group has none."""
    known = {
        (facts.store, at.topic, at.queue_id, at.group): at.offset
        for facts in stores
        for at in facts.tables.offsets
    }
    rows = [
        (one.store, one.topic, one.queue_id, group, known.get((one.store, one.topic, one.queue_id, group)))
        for one in ranges
        for group in groups.get(one.topic, [NOBODY])
    ]
    return small_frame(spark, "store string, topic string, queueId int, group string, offset bigint", rows)


def _with_copies(rows: DataFrame, copies: DataFrame) -> DataFrame:
    """Adds ``state``: 2 where the group has a dead copy of the message, 1 where one waits."""
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


def _verdict() -> Column:
    from pyspark.sql import functions as sql

    base, state = sql.col("base"), sql.col("state")
    is_past = sql.col("queueOffset") < sql.col("offset")
    return (
        sql.when((base == verdicts.EXPIRED) & is_past, verdicts.DELIVERED)
        .when(base.isNotNull(), base)
        .when(state == 2, verdicts.DEAD)
        .when(state == 1, verdicts.RETRYING)
        .when(is_past, verdicts.DELIVERED)
        .otherwise(verdicts.PENDING)
    )
