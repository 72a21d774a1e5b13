"""The data source in a session: what only Spark can show."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.spark.columnar_jar import SETTING
from seglog.spark.source.values.columns import COLUMNS
from seglog.spark.source.values.times import END_MS, FIRST_MS
from tests.support.material.golden import expected, extract
from tests.support.material.records import Record

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


@pytest.mark.parametrize("columnar", ["true", "false"])
def test_times_beyond_the_years_of_python_are_null_and_rows_can_be_collected(
    spark: SparkSession, tmp_path, columnar
):
    times_ms = [-(1 << 63), FIRST_MS - 1, FIRST_MS, 0, END_MS - 1, END_MS, 1 << 55, (1 << 63) - 1]
    log = b""
    for at, time_ms in enumerate(times_ms):
        log += Record(queue_offset=at, phy_offset=len(log), born_timestamp_ms=time_ms).pack()
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020}").write_bytes(log.ljust(1 << 16, b"\0"))
    spark.conf.set(SETTING, columnar)
    try:
        frame = spark.read.format("seglog").schema("bornTimestamp timestamp, queueOffset bigint")
        rows = sorted(frame.load(str(tmp_path)).collect(), key=lambda row: row["queueOffset"])
    finally:
        spark.conf.unset(SETTING)
    assert [row["bornTimestamp"] is None for row in rows] == [
        True,
        True,
        False,
        False,
        False,
        True,
        True,
        True,
    ]
    numbers = spark.read.format("seglog").schema("bornTimestamp bigint").load(str(tmp_path))
    assert {row[0] for row in numbers.collect()} == set(times_ms)


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


def test_a_frame_that_was_filtered_once_has_all_its_rows_the_next_time(
    spark: SparkSession, pushdown, tmp_path
):
    frame = spark.read.format("seglog").load(str(extract("roll", tmp_path)))
    everything = frame.count()
    of_queue = frame.where("queueId = 0").count()
    assert 0 < of_queue < everything == frame.count() == len(messages("roll"))
    assert frame.where("queueId = 0").join(frame, "physicalOffset").count() == of_queue
    assert frame.where("queueId IN (0, NULL)").count() == of_queue


def test_topics_are_named_as_with_kafka(spark: SparkSession, tmp_path):
    lines = messages("roll")
    topics = sorted({line["topic"] for line in lines})
    reader = spark.read.format("seglog").schema("Topic string, QUEUEID int")

    def rows(name, value):
        frame = reader.option(name, value).load(root)
        assert frame.columns == ["Topic", "QUEUEID"]
        return Counter(map(tuple, frame.collect()))

    root = str(extract("roll", tmp_path))
    of_queues = Counter((line["topic"], line["queueId"]) for line in lines)
    assert sum(of_queues.values()) == 400
    for name, value, chosen in (
        ("subscribe", f"{topics[0]}, gone", lambda key: key[0] == topics[0]),
        ("subscribePattern", f"(?i){topics[-1][:-1].lower()}.", lambda key: key[0][:-1] == topics[-1][:-1]),
        ("assign", json.dumps({topics[0]: [0, 99]}), lambda key: key == (topics[0], 0)),
    ):
        assert rows(name, value) == {key: of_queues[key] for key in of_queues if chosen(key)}, name
        reader = spark.read.format("seglog").schema("Topic string, QUEUEID int")


def test_a_table_of_the_catalog_reads_a_store(spark: SparkSession, tmp_path):
    root = str(extract("roll", tmp_path))
    makes = (f"OPTIONS (path '{root}', Topic 'gone')", f"OPTIONS (path '{root}')", f"LOCATION '{root}'")
    for how, count in zip(makes, (0, 400, 400), strict=True):
        spark.sql(f"CREATE TABLE of_store USING seglog {how} COMMENT 'ours' TBLPROPERTIES (since = 'then')")
        try:
            table = spark.table("of_store")
            assert table.count() == count
            assert len(table.columns) == sum(column.is_usual for column in COLUMNS)
        finally:
            spark.sql("DROP TABLE of_store")
    with pytest.raises(PySparkException, match=r"no option 'topik'(.|\n)*did you mean topic\?"):
        spark.sql(f"CREATE TABLE of_store USING seglog OPTIONS (path '{root}', topik 'T')")


def test_a_table_of_the_catalog_is_written_with_insert_into(spark: SparkSession, tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, segment_size_bytes=1 << 16) as store:
        store.put("T", b"first")
    spark.sql(f"CREATE TABLE of_store USING seglog OPTIONS (path '{root}')")
    try:
        spark.sql("INSERT INTO of_store (topic, body, keys) VALUES ('T', CAST('second' AS BINARY), 'k')")
        with pytest.raises(PySparkException, match=r"a log can only be appended to|TRUNCATE|OVERWRITE"):
            spark.sql("INSERT OVERWRITE of_store (topic, body) VALUES ('T', CAST('third' AS BINARY))")
        found = spark.sql("SELECT body, keys FROM of_store ORDER BY queueOffset").collect()
    finally:
        spark.sql("DROP TABLE of_store")
    assert [(bytes(row["body"]), row["keys"]) for row in found] == [(b"first", None), (b"second", "k")]
    with pytest.raises(PySparkException, match=r"there is no path to a store(.|\n)*\.save"):
        spark.sql("SELECT 'T' AS topic, 'b' AS body").write.format("seglog").mode("append").save()


def test_a_stream_names_the_option_that_it_cannot_have(spark: SparkSession, tmp_path):
    with MessageStore.open(tmp_path / "store", segment_size_bytes=1 << 16) as store:
        store.put("T", b"x")
    for name, value in {"table": "queues", "endingOffsets": '{"T": {"0": 1}}'}.items():
        stream = spark.readStream.format("seglog").option(name, value).load(str(tmp_path / "store"))
        query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / name)).start()
        with pytest.raises(StreamingQueryException, match=f"option {name} is "):
            query.awaitTermination(120)


def test_rows_for_the_sink_of_kafka_are_written(spark: SparkSession, tmp_path):
    query = (
        "SELECT CAST(id AS STRING) AS value, CAST('k' AS BINARY) AS key, id % 2 AS partition FROM range(50)"
    )
    writer = spark.sql(query).repartition(3).write.format("seglog").mode("append")
    writer.option("topic", "Copied").save(str(tmp_path / "store"))
    found = spark.read.format("seglog").load(str(tmp_path / "store")).collect()
    assert {(row["topic"], row["keys"]) for row in found} == {("Copied", "k")}
    assert sorted((int(row["body"]), row["queueId"]) for row in found) == [(at, at % 2) for at in range(50)]
    refused = spark.sql("SELECT '%RETRY%x' AS topic, 'b' AS body").write.format("seglog").mode("append")
    with pytest.raises(PySparkException, match=r"%RETRY%x is RocketMQ's own"):
        refused.save(str(tmp_path / "store"))


def test_globs_lead_to_stores(spark: SparkSession, tmp_path):
    for name in ("broker-a", "broker-b", "broker-c", "other", ".broker-hidden"):
        (tmp_path / name).mkdir()
        extract("comp", tmp_path / name).rename(tmp_path / name / "store")
    (tmp_path / "broker-empty").mkdir()
    frame = spark.read.format("seglog").schema("store string")

    def stores(pattern):
        found = {row[0] for row in frame.load(f"{tmp_path}/{pattern}").distinct().collect()}
        return sorted(path.split("/")[-2] for path in found)

    assert stores("broker-*/store") == ["broker-a", "broker-b", "broker-c"]
    assert stores("{broker-[bc],other}/store") == ["broker-b", "broker-c", "other"]
    address = f"file://{tmp_path}/broker-?/store"
    assert sorted({row[0] for row in frame.load(address).collect()}) == [
        f"file://{tmp_path}/broker-{letter}/store" for letter in "abc"
    ]
    with pytest.raises(PySparkException, match="no store is called like"):
        frame.load(f"{tmp_path}/gone-*/store").collect()


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


def test_messages_of_inner_batches_are_rows_of_reads_and_streams(spark: SparkSession, tmp_path):
    root = str(extract("innerbatch", tmp_path))
    frame = spark.read.format("seglog").load(root)
    assert frame.where("sysFlag & 128 = 0").count() == frame.count() == 130
    assert spark.read.format("seglog").option("innerBatches", "records").load(root).count() == 40
    stream = spark.readStream.format("seglog").option("startingOffsets", "earliest")
    rows = stream.option("maxOffsetsPerTrigger", "7").load(root).select("queueId", "queueOffset")
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination(120)
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(map(tuple, found)) == [(queue_id, at) for queue_id in range(2) for at in range(65)]


def test_names_of_columns_of_other_tables_are_in_letters_of_any_case(spark: SparkSession, tmp_path):
    root = str(extract("broker-store", tmp_path))
    for table, schema in (("queues", "TOPIC string, queueid int"), ("index", "KEYHASH int")):
        reader = spark.read.format("seglog").option("table", table)
        usual = reader.load(root).selectExpr(*(part.split()[0] for part in schema.split(", ")))
        asked = reader.schema(schema).load(root)
        assert [field.name for field in asked.schema] == [part.split()[0] for part in schema.split(", ")]
        assert sorted(map(tuple, asked.collect())) == sorted(map(tuple, usual.collect())) != []
    with pytest.raises(PySparkException, match="the table of queues has no column 'keyHash'"):
        spark.read.format("seglog").option("table", "queues").schema("keyHash int").load(root).collect()


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
