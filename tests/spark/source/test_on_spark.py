"""The data source in a session: what only Spark can show."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.spark.source.values.columns import COLUMNS
from tests.support.material.golden import expected, extract

pytestmark = pytest.mark.spark
EVERY = ",".join(column.name for column in COLUMNS)
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def pushdown(spark: SparkSession):
    spark.conf.set(PUSHDOWN, "true")
    yield
    spark.conf.unset(PUSHDOWN)


def messages(name):
    return sorted((line for line in expected(name) if line["kind"] == "msg"), key=lambda line: line["cqPos"])


def test_messages_of_a_store_as_rows(spark: SparkSession, tmp_path):
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
    rows = sorted(frame.collect(), key=lambda row: row["physicalOffset"])
    lines = messages("roll")
    assert [row["physicalOffset"] for row in rows] == [line["cqPos"] for line in lines]
    assert [row["properties"] for row in rows] == [line["properties"] for line in lines]
    assert {row["brokerName"] for row in rows} == {"broker-a"}
    at = rows[0]["storeTimestamp"].replace(tzinfo=dt.UTC)
    assert round(at.timestamp() * 1000) == lines[0]["storeTimestamp"]


def test_fewer_columns_of_several_stores_by_a_schema(spark: SparkSession, tmp_path):
    paths = [str(extract(name, tmp_path)) for name in ("comp", "propcrc")]
    frame = (
        spark.read.format("seglog")
        .schema("storeTimestamp bigint, properties string, store string")
        .load(paths)
    )
    rows = frame.collect()
    assert sorted(row["storeTimestamp"] for row in rows) == sorted(
        line["storeTimestamp"] for name in ("comp", "propcrc") for line in messages(name)
    )
    assert {row["store"] for row in rows} == set(paths)
    assert all("\x01" in row["properties"] for row in rows)


def test_filters_go_down_to_the_queues(spark: SparkSession, pushdown, tmp_path):
    root = extract("roll", tmp_path)
    lines = messages("roll")
    chosen = lines[200]
    after = dt.datetime.fromtimestamp(chosen["storeTimestamp"] / 1000, dt.UTC)
    frame = spark.read.format("seglog").option("maxPartitionBytes", "64k").load(str(root))
    found = frame.where(
        (frame["topic"] == chosen["topic"])
        & (frame["queueId"] == chosen["queueId"])
        & (frame["queueOffset"] > 3)
        & (frame["storeTimestamp"] >= after)
    )
    plan = found._jdf.queryExecution().executedPlan().toString()
    filters = [line for line in plan.splitlines() if "Filter (" in line]
    assert all("storeTimestamp" in line and "(topic" not in line for line in filters), plan
    assert sorted(row["physicalOffset"] for row in found.select("physicalOffset").collect()) == [
        line["cqPos"]
        for line in lines
        if (line["topic"], line["queueId"]) == (chosen["topic"], chosen["queueId"])
        and line["queueOffset"] > 3
        and line["storeTimestamp"] >= chosen["storeTimestamp"]
    ]


def test_damage_ends_a_query_and_says_where(spark: SparkSession, tmp_path):
    root = str(extract("d-magic", tmp_path))
    with pytest.raises(PySparkException, match=r"commitlog/\d{20} \+\d+: magic"):
        spark.read.format("seglog").load(root).count()
    assert spark.read.format("seglog").option("failOnDataLoss", "false").load(root).count() == 399


def test_an_option_that_is_not_known_is_an_error(spark: SparkSession, tmp_path):
    with pytest.raises(PySparkException, match="no option 'topics'"):
        spark.read.format("seglog").option("topics", "T").load(str(tmp_path))


def test_other_tables(spark: SparkSession, tmp_path):
    root = extract("broker-store", tmp_path)
    (root / "config").mkdir(exist_ok=True)
    offsets = {"offsetTable": {"LiveTopic@group": {"0": 3}, "LiveTopic@all@broadcast": {"1": 4}}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps(offsets))

    def rows(table, path):
        return spark.read.format("seglog").option("table", table).load(str(path)).collect()

    found = {
        (row["topic"], row["queueId"]): (row["minOffset"], row["maxOffset"]) for row in rows("queues", root)
    }
    for line in expected("broker-store"):
        if line["kind"] == "queue" and line["maxOffset"]:
            assert found[line["topic"], line["queueId"]] == (line["minOffset"], line["maxOffset"])
    assert [
        (row["consumerGroup"], row["queueOffset"], row["broadcast"]) for row in rows("offsets", root)
    ] == [
        ("all", 4, True),
        ("group", 3, False),
    ]
    index = rows("index", extract("idxroll", tmp_path))
    hits = sum(len(line.get("keyFound", {})) for line in messages("idxroll"))
    assert len(index) >= hits > 0
    assert {row["physicalOffset"] for row in index} <= {line["cqPos"] for line in messages("idxroll")}


def test_a_stream_reads_every_message_once_over_restarts(spark: SparkSession, tmp_path):
    store, out, checkpoint = (str(tmp_path / name) for name in ("store", "out", "checkpoint"))

    def run():
        stream = (
            spark.readStream.format("seglog")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "40")
            .schema("topic string, queueId int, queueOffset bigint")
            .load(store)
            .writeStream.format("parquet")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start(out)
        )
        stream.awaitTermination(120)
        return [entry["numInputRows"] for entry in stream.recentProgress], stream.lastProgress

    with MessageStore.open(store, segment_size_bytes=1 << 16) as writer:
        for number in range(100):
            writer.put("A", bytes(900), queue_id=number % 2)
        assert [count for count in run()[0] if count] == [40, 40, 20]
        for _ in range(30):
            writer.put("B", bytes(900))
        _counts, progress = run()
    assert json.loads(progress["sources"][0]["endOffset"])[store]["queues"] == {
        "A": {"0": 50, "1": 50},
        "B": {"0": 30},
    }
    rows = sorted(tuple(row) for row in spark.read.parquet(out).collect())
    wanted = [("A", queue, at) for queue in (0, 1) for at in range(50)] + [("B", 0, at) for at in range(30)]
    assert rows == wanted


def test_rows_are_appended_to_a_store_and_read_back(spark: SparkSession, tmp_path):
    root, copy = extract("comp", tmp_path), tmp_path / "copy"
    frame = spark.read.format("seglog").option("columns", EVERY).load(str(root)).repartition(3)
    for _ in range(2):
        frame.write.format("seglog").mode("append").option("jobId", "copy-1").save(str(copy))
    kept = ["topic", "queueId", "body", "properties", "flag", "sysFlag", "bornTimestamp", "bornHost"]

    def rows(path):
        found = spark.read.format("seglog").load(str(path)).select(kept).collect()
        for row in found:
            row["properties"].pop("__CRC32#", None)
        return sorted(map(str, found))

    assert rows(copy) == rows(root)
    with pytest.raises(PySparkException, match="only be appended to"):
        frame.write.format("seglog").mode("overwrite").save(str(copy))
    assert [path.name for path in tmp_path.iterdir() if "spark-" in path.name] == []
