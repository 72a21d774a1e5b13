"""Verdicts of Spark and of plain Python agree, for random stores with messages of every fate."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from pyspark.sql import SparkSession

from seglog.spark.reconcile.counts import count_verdicts
from seglog.spark.reconcile.messages import message_verdicts
from seglog.spark.reconcile.receipts import load_receipts
from seglog.spark.reconcile.stores import reconcile_stores
from seglog.spark.reconcile.verdicts import COMPACTED, MESSAGE_VERDICTS
from tests.spark.reconcile.oracle import Oracle
from tests.spark.reconcile.planted import plant

pytestmark = pytest.mark.spark

COLUMNS = (
    "group",
    "store",
    "topic",
    "queueId",
    "queueOffset",
    "physicalOffset",
    "storeTimestamp",
    "msgId",
    "verdict",
    "endOffset",
    "messages",
)
SEEDS = range(5)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    return [plant(folder / str(seed), seed) for seed in SEEDS]


@pytest.fixture(scope="module")
def facts(spark: SparkSession, planted):
    return reconcile_stores([one.root for one in planted], spark=spark).stores


def test_spark_and_plain_python_agree_on_every_row_and_count(spark: SparkSession, planted, facts, tmp_path):
    oracle = Oracle(planted)
    receipts = make_receipts(planted, oracle)
    path = tmp_path / "receipts.jsonl"
    path.write_text("".join(json.dumps(receipt) + "\n" for receipt in receipts))
    frame = message_verdicts(spark, facts, load_receipts(spark, str(path))).select(*COLUMNS).persist()
    rows = list(zip(*(column.to_pylist() for column in frame.toArrow().columns), strict=True))
    found = Counter(slot for row in rows for slot in slots_of(row))
    expected = oracle.rows(receipts)
    assert found - expected == Counter()
    assert expected - found == Counter()
    # Nothing was compacted here: test_compacted.py has that verdict.
    assert {row[-1] for row in found} == set(MESSAGE_VERDICTS) - {COMPACTED}
    counts = count_verdicts(frame, facts)
    frame.unpersist()
    assert counts.adds_up
    assert counts.total == counts.expected == found.total()
    by_hand = Counter()
    for (group, _store, topic, *_place, verdict), count in found.items():
        by_hand[group, topic, verdict] += count
    assert counts.verdicts == dict(by_hand)


def slots_of(row):
    """Yields the messages that a row stands for, as the oracle has them."""
    *message, end, count = row
    first = message[4]
    if first is None:
        assert (end, count) == (None, 1)
        yield tuple(message)
        return
    assert count == end - first > 0
    for slot in range(first, end):
        yield (*message[:4], slot, *message[5:])


def make_receipts(planted, oracle):
    """Returns receipts as SendResults have them, some cut short, and some of messages that never were."""
    chance = random.Random(1)
    found = []
    for one in planted:
        for msg_id, topic, queue_id, slot in one.sent:
            place = {"topic": topic, "queueId": queue_id, "queueOffset": slot}
            found.append(
                chance.choice(({"msgId": msg_id, **place}, {"msgId": msg_id, "topic": topic}, place))
            )
    for (_store, topic, queue_id), (_low, high) in oracle.ends.items():
        if topic == "orders":
            place = {"topic": topic, "queueId": queue_id, "queueOffset": high + 1000}
            found += [place, {"msgId": f"never-{queue_id}-{high}", **place}, {"msgId": f"nowhere-{high}"}]
    return found
