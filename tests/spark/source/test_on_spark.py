"""The data source in a session."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.support.golden import expected, extract

pytestmark = pytest.mark.spark


def test_messages_of_a_store_as_rows(spark, tmp_path):
    frame = (
        spark.read.format("seglog")
        .option("maxPartitionBytes", "64k")
        .option("brokerName", "broker-a")
        .load(str(extract("roll", tmp_path)))
    )
    assert frame.columns[:9] == [
        "topic",
        "flag",
        "body",
        "properties",
        "brokerName",
        "queueId",
        "queueOffset",
        "bornTimestamp",
        "storeTimestamp",
    ]
    assert frame.rdd.getNumPartitions() == 5
    rows = sorted(frame.collect(), key=lambda row: row["physicalOffset"])
    lines = sorted(
        (line for line in expected("roll") if line["kind"] == "msg"), key=lambda line: line["cqPos"]
    )
    assert [row["physicalOffset"] for row in rows] == [line["cqPos"] for line in lines]
    assert [row["properties"] for row in rows] == [line["properties"] for line in lines]
    assert {row["brokerName"] for row in rows} == {"broker-a"}
    at = rows[0]["storeTimestamp"].replace(tzinfo=dt.UTC)
    assert round(at.timestamp() * 1000) == lines[0]["storeTimestamp"]
