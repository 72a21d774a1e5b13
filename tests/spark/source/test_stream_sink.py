"""``writeStream.format("seglog")``: each batch of a stream is appended once."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from seglog import MessageStore
from seglog.doctor.check.check import check_store
from tests.support.material.stores import served

pytestmark = pytest.mark.spark


class Sink:
    """A folder of Parquet files that a stream copies into a store."""

    def __init__(self, spark: SparkSession, folder):
        self.spark, self.folder, self.root = spark, folder, folder / "store"
        self.count = 0

    def add(self, count):
        first, self.count = self.count, self.count + count
        rows = self.spark.range(first, self.count).selectExpr(
            "cast(id AS string) AS value", "cast(id % 3 AS int) AS partition", "id"
        )
        rows.coalesce(1).write.mode("append").parquet(str(self.folder / "in"))

    def run(self, partitions=2, root=None, **options):
        stream = (
            self.spark.readStream.schema("value string, partition int, id bigint")
            .option("maxFilesPerTrigger", "1")
            .parquet(str(self.folder / "in"))
            .repartition(partitions, col("id") * 7919 % 31)
            .drop("id")
            .writeStream.format("seglog")
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .options(**{"topic": "Copied", **options})
        )
        query = stream.trigger(availableNow=True).start(str(root or self.root))
        query.awaitTermination(120)
        return query

    def bodies(self):
        with MessageStore.open(self.root, read_only=True) as store:
            return Counter(int(one.body) for queue in served(store).values() for one in queue)


def test_a_stream_that_is_begun_again_writes_every_row_once(spark: SparkSession, tmp_path):
    sink = Sink(spark, tmp_path)
    for count in (40, 30, 20):
        sink.add(count)
        sink.run()
    assert sink.bodies() == Counter(range(90))
    with MessageStore.open(sink.root, read_only=True) as store:
        assert {(queue.topic, queue.queue_id) for queue in store.queues()} == {
            ("Copied", n) for n in range(3)
        }
    assert check_store(sink.root).findings == ()
    assert [one.name for one in tmp_path.iterdir() if ".spark-" in one.name] == []


def test_a_batch_that_spark_does_again_is_not_appended_again(spark: SparkSession, tmp_path):
    sink = Sink(spark, tmp_path)
    for count in (40, 30):
        sink.add(count)
        sink.run()
    (last,) = (one for one in (tmp_path / "checkpoint/commits").iterdir() if one.name == "1")
    last.unlink()
    (tmp_path / "checkpoint/commits/.1.crc").unlink(missing_ok=True)
    # Rows fall into other tasks than before.
    sink.run(partitions=5)
    assert sink.bodies() == Counter(range(70))
    sink.add(10)
    sink.run()
    assert sink.bodies() == Counter(range(80))


def test_a_new_stream_appends_what_another_did_before(spark: SparkSession, tmp_path):
    sink = Sink(spark, tmp_path)
    sink.add(20)
    sink.run()
    shutil.rmtree(tmp_path / "checkpoint")
    sink.run()
    assert sink.bodies() == Counter(dict.fromkeys(range(20), 2))


def test_what_is_no_sink_is_refused(spark: SparkSession, tmp_path):
    sink = Sink(spark, tmp_path)
    sink.add(5)
    with pytest.raises(Exception, match="option jobId is for jobs"):
        sink.run(jobId="x")
    with pytest.raises(Exception, match="remote store can only be read"):
        sink.run(root="s3://bucket/store")
    counted = spark.readStream.schema("value string").parquet(str(tmp_path / "in")).groupBy("value").count()
    writer = counted.selectExpr("value").writeStream.format("seglog").outputMode("complete")
    options = {"topic": "Copied", "checkpointLocation": str(tmp_path / "other")}
    with pytest.raises(Exception, match="a log can only be appended to"):
        writer.options(**options).trigger(availableNow=True).start(str(sink.root)).awaitTermination(120)
    assert not sink.root.exists()
