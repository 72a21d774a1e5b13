"""The slots of queues: which there should be, which have no message, and which retention took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog.spark.reconcile import verdicts
from seglog.spark.reconcile.facts import StoreFacts
from seglog.spark.small_frames import small_frame
from seglog.storage.format.system_names import is_business_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from seglog.spark.reconcile.records import Records

SLOT: Final = ("store", "topic", "queueId")
"""Columns that name a queue."""
_NOTHING: Final = {"physicalOffset": "bigint", "storeTimestamp": "bigint", "msgId": "string"}


@dataclass(frozen=True, slots=True)
class SlotRange:
    """The slots of one queue.

    Attributes:
        start: The first, or the least offset of a group before it.
        has_gaps: Whether some may have no record.
    """

    store: str
    topic: str
    queue_id: int
    start: int
    min_offset: int
    max_offset: int
    has_gaps: bool


def slot_ranges(stores: Sequence[StoreFacts]) -> Iterator[SlotRange]:
    """Yields the slots of all queues that producers send to."""
    for facts in stores:
        least: dict[tuple[str, int], int] = {}
        for at in facts.tables.offsets:
            key = at.topic, at.queue_id
            least[key] = min(at.offset, least.get(key, at.offset))
        for key, queue in facts.queues.items():
            if is_business_topic(queue.topic):
                count = queue.max_offset - queue.min_offset
                is_plain = queue.kind == "plain" and not facts.has_tombstones
                is_whole = is_plain and queue.records == count and not (queue.gaps or queue.backwards)
                start = min(queue.min_offset, least.get(key, queue.min_offset))
                yield SlotRange(
                    facts.store, *key, start, queue.min_offset, queue.max_offset, has_gaps=not is_whole
                )


def lost_slots(spark: SparkSession, records: Records, ranges: Sequence[SlotRange]) -> DataFrame:
    """Returns slots between a queue's ends that have no message; most queues are known to have none.

    Args:
        spark: The session.
        records: What the stores have.
        ranges: The slots of their queues.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    odd = [one for one in ranges if one.has_gaps]
    key = "store string, topic string, queueId int"
    wanted = small_frame(spark, key, [(one.store, one.topic, one.queue_id) for one in odd])
    ends = small_frame(
        spark,
        f"{key}, queueOffset bigint",
        [
            (one.store, one.topic, one.queue_id, offset)
            for one in odd
            for offset in (one.min_offset - 1, one.max_offset)
        ],
    )
    if not odd:
        return _slots(ends.withColumn("slot", sql.col("queueOffset")), verdicts.LOST)
    found = records.in_queues({one.topic for one in odd}).select(*SLOT, "queueOffset")
    there = found.join(wanted, list(SLOT)).unionByName(ends)
    before = sql.lag("queueOffset").over(Window.partitionBy(*SLOT).orderBy("queueOffset"))
    gaps = there.withColumn("before", before).where(sql.col("queueOffset") - sql.col("before") > 1)
    missing = sql.explode(sql.sequence(sql.col("before") + 1, sql.col("queueOffset") - 1))
    return _slots(gaps.withColumn("slot", missing), verdicts.LOST)


def expired_slots(spark: SparkSession, ranges: Sequence[SlotRange]) -> DataFrame:
    """Returns slots that retention took and that some group had not come to."""
    from pyspark.sql import functions as sql

    taken = small_frame(
        spark,
        "store string, topic string, queueId int, start bigint, stop bigint",
        [
            (one.store, one.topic, one.queue_id, one.start, one.min_offset - 1)
            for one in ranges
            if one.start < one.min_offset
        ],
    )
    slot = sql.explode(sql.sequence("start", "stop"))
    return _slots(taken.withColumn("slot", slot), verdicts.EXPIRED)


def _slots(found: DataFrame, base: str) -> DataFrame:
    from pyspark.sql import functions as sql

    nothing = [sql.lit(None).cast(kind).alias(name) for name, kind in _NOTHING.items()]
    return found.select(*SLOT, sql.col("slot").alias("queueOffset"), *nothing, sql.lit(base).alias("base"))
