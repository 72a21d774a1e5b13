"""The slots of queues: the slots that should exist, those without a message, those that retention removed.

Slots without a message are ranges, ``queueOffset`` to before ``endOffset``: an abandoned group may have as
many expired slots as its topic had messages since.
"""

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
"""Columns that identify a queue."""
RANGE: Final = ("queueOffset", "endOffset")
"""The first slot of a row, and the slot after its last."""
_NOTHING: Final = {"physicalOffset": "bigint", "storeTimestamp": "bigint", "msgId": "string"}


@dataclass(frozen=True, slots=True)
class SlotRange:
    """The slots of one queue.

    Attributes:
        start: The first slot, or the least offset of a group before it.
        has_gaps: Whether some slots may have no record.
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
    """Returns the ranges between a queue's ends that have no message; most queues are known to have none.

    Args:
        spark: The session.
        records: The messages in the stores.
        ranges: The slots of the queues.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    odd = [one for one in ranges if one.has_gaps]
    if not odd:
        return _slots(_range_frame(spark, []), verdicts.LOST)
    key = "store string, topic string, queueId int"
    wanted = small_frame(spark, key, [(one.store, one.topic, one.queue_id) for one in odd])
    # An empty range at each end of a queue, because gaps are computed between ranges.
    ends = _range_frame(
        spark,
        [
            (one.store, one.topic, one.queue_id, offset, offset)
            for one in odd
            for offset in (one.min_offset, one.max_offset)
        ],
    )
    topics = {one.topic for one in odd}
    single, batches = (
        one.select(*SLOT, *RANGE) for one in (records.single(topics), records.in_batches(topics))
    )
    found = single.unionByName(batches)
    there = found.join(wanted, list(SLOT)).unionByName(ends)
    earlier = Window.partitionBy(*SLOT).orderBy("queueOffset").rowsBetween(Window.unboundedPreceding, -1)
    gaps = there.withColumn("before", sql.max("endOffset").over(earlier)).where("queueOffset > before")
    gaps = gaps.withColumns({"queueOffset": sql.col("before"), "endOffset": sql.col("queueOffset")})
    return _slots(gaps, verdicts.LOST)


def expired_slots(spark: SparkSession, ranges: Sequence[SlotRange]) -> DataFrame:
    """Returns slots that retention removed before some group reached them: one range for each queue."""
    taken = [
        (one.store, one.topic, one.queue_id, one.start, one.min_offset)
        for one in ranges
        if one.start < one.min_offset
    ]
    return _slots(_range_frame(spark, taken), verdicts.EXPIRED)


def _range_frame(spark: SparkSession, rows: Sequence[tuple[str, str, int, int, int]]) -> DataFrame:
    return small_frame(
        spark, "store string, topic string, queueId int, queueOffset bigint, endOffset bigint", rows
    )


def _slots(found: DataFrame, base: str) -> DataFrame:
    from pyspark.sql import functions as sql

    nothing = [sql.lit(None).cast(kind).alias(name) for name, kind in _NOTHING.items()]
    return found.select(*SLOT, *RANGE, *nothing, sql.lit(base).alias("base"))
