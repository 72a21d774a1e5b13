"""Counts messages by verdict, and checks that every message has a verdict for each of its groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog.spark.reconcile.facts import StoreFacts
from seglog.spark.reconcile.slots import slot_ranges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """The numbers of verdicts about messages.

    Attributes:
        verdicts: Number of messages, by group, topic and verdict.
        messages: Number of messages of each topic: slots of its queues, messages that wait for delivery to
            it, and receipts without a record.
        groups: Number of groups that have verdicts about each topic.
    """

    verdicts: dict[tuple[str, str | None, str], int]
    messages: dict[str | None, int]
    groups: dict[str | None, int]

    @property
    def total(self) -> int:
        """Number of verdicts."""
        return sum(self.verdicts.values())

    @property
    def expected(self) -> int:
        """Number of verdicts that there must be: messages times groups."""
        return sum(count * self.groups[topic] for topic, count in self.messages.items())

    @property
    def adds_up(self) -> bool:
        """Whether each group has as many verdicts about a topic as the topic has messages."""
        by_topic: Counter[tuple[str, str | None]] = Counter()
        for (group, topic, _verdict), count in self.verdicts.items():
            by_topic[group, topic] += count
        return all(count == self.messages[topic] for (_group, topic), count in by_topic.items())


def count_verdicts(frame: DataFrame, stores: Sequence[StoreFacts]) -> MessageCounts:
    """Counts the verdicts; counts the messages independently, from the ends of the queues.

    Args:
        frame: The result of :func:`~seglog.spark.reconcile.messages.message_verdicts`.
        stores: The facts about the stores.
    """
    from pyspark.sql import functions as sql

    # A receipt belongs to no store, and a waiting message has no queue offset in its topic yet.
    is_slot = sql.col("store").isNotNull() & sql.col("queueOffset").isNotNull()
    counted = frame.groupBy("group", "topic", "verdict").agg(
        sql.sum("messages").alias("count"),
        sql.sum(sql.when(is_slot, 0).otherwise(sql.col("messages"))).alias("others"),
    )
    slots: Counter[str | None] = Counter()
    for one in slot_ranges(stores):
        slots[one.topic] += one.max_offset - one.start
    found: dict[tuple[str, str | None, str], int] = {}
    others: Counter[tuple[str, str | None]] = Counter()
    for group, topic, verdict, count, other in counted.collect():
        found[group, topic, verdict] = count
        others[group, topic] += other
    messages = {topic: slots[topic] + count for (_group, topic), count in others.items()}
    groups = Counter(topic for _group, topic in others)
    return MessageCounts(found, messages, dict(groups))
