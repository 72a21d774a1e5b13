"""Streams on Spark, with checkpoints: what only Spark can show of losses and of logs that became others."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from typing import Final

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import Policy
from seglog.spark.compact.swap import discard_old, files_around
from seglog.storage.files.files import RealFiles
from tests.support.local_runner import LocalRunner
from tests.support.material.stores import SMALL_INDEX, AllLengths
from tests.support.scale import scaled

pytestmark = pytest.mark.spark
SIZES: Final[AllLengths] = {**SMALL_INDEX, "segment_size_bytes": 8192, "queue_file_size_bytes": 400}


class Life:
    """A store, and a stream of it into Parquet that is begun again from its checkpoint."""

    def __init__(self, spark, folder):
        self.spark, self.folder, self.root = spark, folder, folder / "store"
        self.clock, self.count = VirtualClock(1_800_000_000_000), 0

    def put(self, count):
        self.clock.advance(1000)
        with MessageStore.open(self.root, clock=self.clock, **SIZES) as store:
            for _ in range(count):
                body = b"%d" % self.count + b" " * 150
                store.put("T", body, queue_id=self.count % 2, keys=f"k{self.count % 60}")
                self.count += 1

    def compact(self):
        clock = VirtualClock(self.clock.now_ms() + 1000)
        policy = {"T": Policy(compact=True)}
        assert Compaction(self.root, policy, runner=LocalRunner(RealFiles()), clock=clock).apply().is_done
        discard_old(files_around(self.root), self.root)

    def run(self, *, strict=True, batches=None):
        """Lets the stream come to the end, or stops it after some batches."""
        stream = (
            self.spark.readStream.format("seglog")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "40")
            .option("failOnDataLoss", str(strict).lower())
            .schema("body binary")
            .load(str(self.root))
            .writeStream.format("parquet")
            .option("checkpointLocation", str(self.folder / "checkpoint"))
        )
        trigger = {"availableNow": True} if batches is None else {"processingTime": "0 seconds"}
        query = stream.trigger(**trigger).start(str(self.folder / "out"))
        if batches is None:
            query.awaitTermination(120)
            return
        while sum(bool(entry["numInputRows"]) for entry in query.recentProgress) < batches:
            query.awaitTermination(1)
        query.stop()

    def given(self):
        rows = self.spark.read.schema("body binary").parquet(str(self.folder / "out")).collect()
        return Counter(int(row["body"]) for row in rows)


def test_a_stream_is_stopped_by_a_rollback_and_told_what_to_do(spark: SparkSession, tmp_path):
    life = Life(spark, tmp_path)
    life.put(50)
    shutil.copytree(life.root, tmp_path / "copy")
    life.put(50)
    life.run()
    shutil.rmtree(life.root)
    shutil.copytree(tmp_path / "copy", life.root)
    life.put(70)
    with pytest.raises(StreamingQueryException, match=r"log-rolled-back: .*lost: T/0 25\.\.49, T/1 25\.\.49"):
        life.run()
    life.run(strict=False)
    assert life.given() == Counter(range(170))
    life.put(10)
    life.run()
    assert life.given() == Counter(range(180))


def test_a_lost_tail_stops_a_read_and_a_stream(spark: SparkSession, tmp_path):
    life = Life(spark, tmp_path)
    life.put(90)
    (last,) = sorted((life.root / "commitlog").iterdir())[-1:]
    last.unlink()
    with pytest.raises(Exception, match="log-tail-lost"):
        spark.read.format("seglog").load(str(life.root)).count()
    with pytest.raises(StreamingQueryException, match="log-tail-lost"):
        life.run()
    life.run(strict=False)
    assert sum(life.given().values()) == life_count(spark, life.root) < 90


def life_count(spark, root):
    return spark.read.format("seglog").option("failOnDataLoss", "false").load(str(root)).count()


@pytest.mark.parametrize("seed", range(scaled(1, 10)))
def test_a_stream_over_compactions_and_restarts_gives_every_message_once(spark, tmp_path, seed):
    rng, life = random.Random(seed), Life(spark, tmp_path)
    life.put(rng.randrange(60, 120))
    may_go = set()
    for _ in range(scaled(3, 8)):
        life.run(batches=rng.choice([1, 1, None]))
        life.put(rng.randrange(60, 150))
        given = life.given()
        newest = {number % 60: number for number in range(life.count)}
        may_go |= set(range(life.count)) - set(newest.values()) - given.keys()
        life.compact()
    life.run()
    given = life.given()
    assert set(given.values()) == {1}
    assert given.keys() | may_go == set(range(life.count))
    (offsets,) = [
        json.loads(path.read_text().splitlines()[-1])
        for path in [max((tmp_path / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda p: int(p.name))]
    ]
    assert offsets[str(life.root)]["lastRecord"]["topic"] == "T"
