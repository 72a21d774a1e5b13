"""Views of stores for SQL."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.spark.views import make_views

pytestmark = pytest.mark.spark

COLUMNS = """
    key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,
    timestampType int, headers array<struct<key string, value binary>>
"""


def test_messages_have_the_columns_of_the_kafka_source(spark: SparkSession, tmp_path):
    with MessageStore.open(tmp_path) as store:
        store.put("T", b"first", queue_id=2, keys="k", properties={"trace": "\u00e4"})
        store.put("T", b"second", queue_id=2)
    make_views(spark, [str(tmp_path)])
    found = spark.table("kafka")
    empty = spark.createDataFrame([], COLUMNS)
    assert [(one.name, one.dataType.simpleString()) for one in found.schema] == [
        (one.name, one.dataType.simpleString()) for one in empty.schema
    ]
    first, second = found.orderBy("offset").collect()
    assert (first["key"], first["value"], first["topic"], first["partition"], first["offset"]) == (
        b"k",
        b"first",
        "T",
        2,
        0,
    )
    assert ("trace", "\u00e4".encode()) in {tuple(header) for header in first["headers"]}
    assert (second["key"], second["value"], second["timestampType"]) == (None, b"second", 0)
    # What the sink takes: the copy has the same messages.
    found.write.format("seglog").mode("append").save(str(tmp_path / "copy"))
    with MessageStore.open(tmp_path / "copy", read_only=True) as copy:
        message, _other = copy.get("T", 2, 0).messages
    assert (message.body, message.keys, message.properties["trace"]) == (b"first", ["k"], "\u00e4")
