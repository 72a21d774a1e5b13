"""Messages of the log as frames: messages in their topics, their copies, and messages that wait.

All frames come from the data source. Topics that only the broker writes are selected by name, so that no
other records are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Final

from seglog.doctor.message import copy_names
from seglog.spark.reconcile import verdicts
from seglog.spark.reconcile.facts import StoreFacts
from seglog.spark.small_frames import small_frame
from seglog.spark.source.job import MessageFrames
from seglog.spark.source.values.columns import BIGINT, Wanted, named_columns, spark_columns
from seglog.storage.format.names import DLQ_PREFIX, HALF_TOPIC, RETRY_PREFIX, SCHEDULE_TOPIC
from seglog.storage.format.record import properties as props
from seglog.storage.format.system_names import TIMER_TOPIC, is_business_topic

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PLACE: Final = (
    *named_columns(["store", "topic", "queueId", "queueOffset", "physicalOffset", "msgId", "offsetMsgId"]),
    Wanted("storeTimestamp", BIGINT),
)
_WITH_PROPERTIES: Final = (*_PLACE, *named_columns(["properties"]))
_MARKS: Final = named_columns(["placeholder"])
MESSAGE: Final = ("store", "topic", "queueId", "queueOffset", "physicalOffset", "storeTimestamp", "msgId")
"""Columns of every message."""


class Records:
    """The messages of stores.

    Args:
        spark: The session.
        stores: The facts about the stores.
        verify: Whether to compute checksums; records with any other damage count as present.
    """

    def __init__(self, spark: SparkSession, stores: Sequence[StoreFacts], *, verify: bool = True) -> None:
        self._spark = spark
        self._stores = stores
        self._frames = MessageFrames(spark, [facts.store for facts in stores], verify=verify)

    def all(self) -> DataFrame:
        """Returns every record that has a place in a queue, with :data:`MESSAGE` and ``offsetMsgId``."""
        return self._read(_PLACE)

    def single(self, topics: Collection[str] | None = None) -> DataFrame:
        """Returns the messages of topics that producers send to, without topics that have batch queues.

        ``placeholder`` is true for placeholders, which replace messages that a compaction dropped.

        Args:
            topics: The topics to read; None for all.
        """
        from pyspark.sql import functions as sql

        found, batch = self._read((*_PLACE, *_MARKS), topics), self._batch_topics
        if batch:
            found = found.where(~found["topic"].isin(*batch))
        return self._inside(found.withColumn("endOffset", sql.try_add("queueOffset", sql.lit(1))))

    def in_batches(self, topics: Collection[str] | None = None) -> DataFrame:
        """Returns the messages of topics with batch queues; a record has one slot for each inner message.

        Args:
            topics: The topics to read; None for all.
        """
        from pyspark.sql import functions as sql

        batch = self._batch_topics if topics is None else self._batch_topics.intersection(topics)
        found = self._read(_WITH_PROPERTIES, batch)
        count = sql.coalesce(_number(props.INNER_NUM), sql.lit(1))
        first = sql.coalesce(_number(props.INNER_BASE), sql.col("queueOffset"))
        end = sql.coalesce(sql.try_add(first, count), first)
        found = found.withColumns({"queueOffset": first, "endOffset": end})
        return self._inside(found.drop("properties"))

    def copies(self) -> DataFrame:
        """Returns copies that show that a message is not delivered: ``group``, ``id``, ``state``.

        A message has one row for each id by which a copy names it; ``state`` is 2 for dead letters, 1 for
        copies in a retry topic, or in the delay topic on the way to it.
        """
        from pyspark.sql import functions as sql

        topics = {topic for facts in self._stores for topic in facts.topics if _is_copy_topic(topic)}
        found = self._read(_WITH_PROPERTIES, topics)
        topic, real = sql.col("topic"), _property(props.REAL_TOPIC)
        is_hop = topic == SCHEDULE_TOPIC
        where = sql.when(is_hop, real).otherwise(topic)
        group = sql.coalesce(
            _property(copy_names.ORIGIN_GROUP),
            sql.regexp_replace(where, f"^({RETRY_PREFIX}|{DLQ_PREFIX})", ""),
        )
        copy = where.startswith(RETRY_PREFIX) | where.startswith(DLQ_PREFIX)
        found = found.where(copy).withColumns({"group": group, "hops": is_hop, "where": where})
        done = self._done_copies()
        # A copy in the delay topic is done once the delay service passed it, a copy in a retry topic once its
        # group did.
        by = sql.when(sql.col("hops"), sql.lit("")).otherwise(sql.col("group"))
        found = found.withColumn("by", by).join(done, ["store", "topic", "queueId", "by"], "left")
        is_dead = topic.startswith(DLQ_PREFIX)
        waits = sql.col("queueOffset") >= sql.coalesce(sql.col("done"), sql.lit(0))
        names = sql.array(*[_property(name) for name in (props.UNIQ_KEY, *copy_names.ID_PROPERTIES)])
        return (
            found.where(is_dead | waits)
            .select("group", sql.explode(sql.array_compact(names)).alias("id"), is_dead.alias("dead"))
            .groupBy("group", "id")
            .agg(sql.max(sql.when(sql.col("dead"), 2).otherwise(1)).alias("state"))
        )

    def waiting(self) -> DataFrame:
        """Returns messages that are not in their topics yet, with :data:`MESSAGE`; ``base`` is the reason.

        Topic and queue id are those of the final queue; there is no queue offset in it yet.
        """
        found = [self._halves(), self._delayed(), self._in_wheel()]
        return reduce(lambda one, other: one.unionByName(other), found)

    def _halves(self) -> DataFrame:
        from pyspark.sql import functions as sql

        begun = self._small(
            "store string, queueId int, begin bigint",
            lambda facts: [(half.queue_id, half.begin) for half in facts.halves],
        )
        settled = self._small(
            "store string, queueId int, queueOffset bigint",
            lambda facts: [(half.queue_id, offset) for half in facts.halves for offset in half.settled],
        )
        found = self._read(_WITH_PROPERTIES, {HALF_TOPIC})
        found = found.join(begun, ["store", "queueId"]).where(sql.col("queueOffset") >= sql.col("begin"))
        found = found.join(settled, ["store", "queueId", "queueOffset"], "left_anti")
        return _for_topic(found, verdicts.UNCOMMITTED)

    def _delayed(self) -> DataFrame:
        from pyspark.sql import functions as sql

        done = self._small(
            "store string, queueId int, done bigint",
            lambda facts: [(level - 1, offset) for level, offset in (facts.tables.delays or {}).items()],
        )
        found = self._read(_WITH_PROPERTIES, {SCHEDULE_TOPIC}).join(done, ["store", "queueId"], "left")
        waits = sql.col("queueOffset") >= sql.coalesce(sql.col("done"), sql.lit(0))
        return _for_topic(found.where(waits), verdicts.SCHEDULED)

    def _in_wheel(self) -> DataFrame:
        from pyspark.sql import Window
        from pyspark.sql import functions as sql

        read = self._small("store string, readMs bigint", lambda facts: [(facts.timer_read_ms,)])
        found = self._read(_WITH_PROPERTIES, {TIMER_TOPIC}).join(read, "store")
        cancelled = _property(copy_names.TIMER_DEL_UNIQKEY)
        # A message that is rolled over in the wheel is stored again; a cancel names the message, maybe after
        # its topic.
        key = sql.coalesce(sql.regexp_extract(cancelled, r"([^+]*)$", 1), sql.col("msgId"))
        newest = Window.partitionBy("store", key).orderBy(sql.desc("physicalOffset"))
        found = found.withColumn("age", sql.row_number().over(newest))
        due = sql.expr(f"try_cast(properties['{copy_names.TIMER_OUT_MS}'] AS bigint)")
        waits = (sql.col("age") == 1) & cancelled.isNull() & (due >= sql.col("readMs"))
        return _for_topic(found.where(waits), verdicts.SCHEDULED)

    @cached_property
    def _batch_topics(self) -> frozenset[str]:
        queues = [queue for facts in self._stores for queue in facts.queues.values()]
        return frozenset(
            queue.topic for queue in queues if queue.kind == "batch" and is_business_topic(queue.topic)
        )

    def _inside(self, found: DataFrame) -> DataFrame:
        """Returns the slots between the ends of their queues."""
        from pyspark.sql import functions as sql

        wanted = self._small(
            "store string, topic string, queueId int, minOffset bigint, maxOffset bigint",
            lambda facts: [
                (*key, queue.min_offset, queue.max_offset)
                for key, queue in facts.queues.items()
                if is_business_topic(key[0])
            ],
        )
        first, end = sql.greatest("queueOffset", "minOffset"), sql.least("endOffset", "maxOffset")
        found = found.join(wanted, ["store", "topic", "queueId"])
        found = found.withColumns({"queueOffset": first, "endOffset": end})
        return found.where("queueOffset < endOffset").drop("minOffset", "maxOffset")

    def _done_copies(self) -> DataFrame:
        """Returns the progress of groups in their retry topics, and of the delay service (an empty name)."""

        def of(facts: StoreFacts) -> list[tuple[object, ...]]:
            rows: list[tuple[object, ...]] = [
                (SCHEDULE_TOPIC, level - 1, "", offset)
                for level, offset in (facts.tables.delays or {}).items()
            ]
            rows += [
                (at.topic, at.queue_id, at.group, at.offset)
                for at in facts.tables.offsets
                if at.topic.startswith(RETRY_PREFIX)
            ]
            return rows

        return self._small("store string, topic string, queueId int, by string, done bigint", of)

    def _read(self, columns: Sequence[Wanted], topics: Collection[str] | None = None) -> DataFrame:
        present = {topic for facts in self._stores for topic in facts.topics}
        if topics is not None and not present.intersection(topics):
            return self._spark.createDataFrame([], spark_columns(columns))
        return self._frames.of(columns, topics)

    def _small(self, columns: str, of: Callable[[StoreFacts], Sequence[tuple[object, ...]]]) -> DataFrame:
        rows = [(facts.store, *row) for facts in self._stores for row in of(facts)]
        return small_frame(self._spark, columns, rows)


def _is_copy_topic(topic: str) -> bool:
    return topic == SCHEDULE_TOPIC or topic.startswith((RETRY_PREFIX, DLQ_PREFIX))


def _property(name: str) -> Column:
    from pyspark.sql import functions as sql

    value = sql.col("properties")[name]
    return sql.when(value != "", value)


def _number(name: str) -> Column:
    from pyspark.sql import functions as sql

    return sql.expr(f"try_cast(properties['{name}'] AS bigint)")


def _for_topic(found: DataFrame, base: str) -> DataFrame:
    """Returns records as messages of their final topics; without messages for retry topics."""
    from pyspark.sql import functions as sql

    rows = found.select(
        "store",
        _property(props.REAL_TOPIC).alias("topic"),
        sql.expr(f"try_cast(properties['{props.REAL_QUEUE_ID}'] AS int)").alias("queueId"),
        sql.lit(None).cast("bigint").alias("queueOffset"),
        "physicalOffset",
        "storeTimestamp",
        "msgId",
        sql.lit(base).alias("base"),
    )
    return rows.where(~sql.coalesce(rows["topic"].startswith(RETRY_PREFIX), sql.lit(False)))
