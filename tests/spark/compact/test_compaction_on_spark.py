"""Spark decides and writes what one process does: the same bytes."""

from __future__ import annotations

import shutil

import pytest
from pyspark.sql import SparkSession

from seglog.clock import VirtualClock
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.job import SparkRunner
from seglog.spark.compact.policy import Policy
from seglog.storage.files.files import RealFiles
from tests.support.local_runner import LocalRunner
from tests.support.material.compactions import STEP_MS, assert_survived, fill_random, survivors
from tests.support.narrow import not_none

pytestmark = pytest.mark.spark

POLICIES = {
    "Prices": Policy(compact=True, delete_retention_ms=50 * STEP_MS),
    "Events": Policy(compact=True, retention_bytes=15_000, erased=frozenset({"k1"})),
}


@pytest.mark.parametrize("together", [100, 1_000_000], ids=["three jobs decide", "one task decides"])
def test_spark_makes_the_store_that_one_process_makes(spark: SparkSession, tmp_path, together):
    filled = fill_random(tmp_path / "local", 23)
    shutil.copytree(filled.root, tmp_path / "spark", copy_function=shutil.copy2)
    done = {}
    for name, runner in (("local", LocalRunner(RealFiles())), ("spark", SparkRunner(spark, together))):
        job = Compaction(
            tmp_path / name,
            POLICIES,
            split_bytes=6_000,
            runner=runner,
            clock=VirtualClock(filled.now_ms),
            draw=lambda _bits: 4711,
        )
        planned = job.plan()
        done[name] = job.apply().plan
        assert planned.topics == not_none(done[name]).topics
    assert not_none(done["spark"]).topics == not_none(done["local"]).topics
    assert not_none(done["spark"]).undelivered == not_none(done["local"]).undelivered
    assert_survived(tmp_path / "spark", filled, survivors(filled, POLICIES))
    for folder in ("commitlog", "consumequeue"):
        files = {
            name: {
                path.relative_to(tmp_path / name): path.read_bytes()
                for path in sorted((tmp_path / name / folder).rglob("*"))
                if path.is_file()
            }
            for name in done
        }
        assert files["spark"] == files["local"]
