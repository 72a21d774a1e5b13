"""What was archived comes back as it was, and is archived once, however often runs are begun."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.cli.main import commands
from seglog.clock import VirtualClock
from seglog.doctor.check.check import check_store
from seglog.errors import NotFoundError, StoreError
from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.restore import restore_store
from seglog.spark.archive.restore_base import Sizes
from seglog.spark.compact.swap import discard_old
from seglog.storage.files.files import RealFiles
from seglog.storage.format.index.index import IndexGeometry
from tests.support.material.compactions import fill_random, said
from tests.support.material.golden import extract
from tests.support.material.stores import served
from tests.support.narrow import not_none

pytestmark = pytest.mark.spark

SIZES = Sizes(16384, 2000, IndexGeometry(500, 2000))


def content(root):
    with MessageStore.open(root, read_only=True) as store:
        return {key: [said(m) for m in messages] for key, messages in served(store).items()}


def told(*arguments):
    ran = CliRunner().invoke(commands, ["spark", *map(str, arguments), "--json"])
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


def put_more(root, clock, count):
    with MessageStore.open(root, clock=clock) as store:
        for number in range(count):
            store.put("Prices", b"more %d" % number, queue_id=number % 2, keys="k1")
            clock.advance(40_000_000)


def test_archive_grows_and_a_store_is_made_of_it_again(spark: SparkSession, tmp_path):
    filled = fill_random(tmp_path / "s", 31, 200, record_crc=True)
    folder = tmp_path / "archive"
    first = archive_store(filled.root, folder, spark)
    assert not_none(first).messages == 200
    assert archive_store(filled.root, folder, spark) is None
    put_more(filled.root, VirtualClock(filled.now_ms), 6)
    second = archive_store(filled.root, folder, spark)
    assert second is not None
    assert (second.number, second.messages) == (2, 6)
    ends = {key: len(messages) for key, messages in filled.messages.items()}
    assert {(one.topic, one.queue_id): one.first for one in second.intervals} == {
        ("Prices", 0): ends["Prices", 0],
        ("Prices", 1): ends["Prices", 1],
    }
    rows = spark.read.parquet(str(folder / "data"))
    days = {row["day"] for row in rows.where("topic = 'Prices' AND run = 2").select("day").collect()}
    begun = datetime.fromtimestamp(filled.now_ms / 1000, UTC).date()
    assert str(begun) in {str(day) for day in days}
    assert len(days) > 1
    plan = restore_store(folder, tmp_path / "again", spark, sizes=SIZES)
    assert (plan.messages, plan.is_new) == (206, True)
    assert not (tmp_path / "again").exists()
    restore_store(folder, tmp_path / "again", spark, sizes=SIZES, apply=True)
    assert content(tmp_path / "again") == content(filled.root)
    assert check_store(tmp_path / "again").findings == ()
    assert [path.name for path in tmp_path.iterdir() if "again" in path.name] == ["again"]


def test_store_gets_back_what_it_lost_at_its_end(spark: SparkSession, tmp_path):
    filled = fill_random(tmp_path / "s", 37, 60)
    older = tmp_path / "older"
    shutil.copytree(filled.root, older)
    put_more(filled.root, VirtualClock(filled.now_ms), 50)
    folder = tmp_path / "archive"
    added = told("archive", filled.root, folder, "--topic", "Prices")
    assert (added["run"], {queue["topic"] for queue in added["queues"]}) == (1, {"Prices"})
    whole = content(filled.root)
    done = told("restore", folder, older, "--apply")
    assert (done["messages"], done["new"], done["old"]) == (50, False, f"{older}.compact/old")
    assert done["skipped"] == added["messages"] - 50
    assert content(older) == whole
    assert {f.code for f in check_store(older).findings} == {
        f.code for f in check_store(filled.root).findings
    }
    discard_old(RealFiles(), older)
    assert restore_store(folder, older, spark, apply=True).messages == 0


def test_stores_of_rocketmq_come_back(spark: SparkSession, tmp_path):
    root, again = extract("ipv6", tmp_path), tmp_path / "again"
    archive_store(root, tmp_path / "archive", spark)
    restore_store(tmp_path / "archive", again, spark, sizes=SIZES, apply=True)
    assert content(again) == content(root)


def test_gaps_are_refused(spark: SparkSession, tmp_path):
    filled = fill_random(tmp_path / "s", 43, 40)
    folder = tmp_path / "archive"
    with pytest.raises(NotFoundError, match="is no archive"):
        restore_store(folder, tmp_path / "new", spark)
    archive_store(filled.root, folder, spark, topics=["Events"])
    with MessageStore.open(tmp_path / "other") as store:
        store.put("Prices", b"x")
    manifest = next((folder / "_manifest").iterdir())
    fields = json.loads(manifest.read_text())
    topic, queue_id, first, end = fields["intervals"][0]
    fields["intervals"][0:1] = [[topic, queue_id, first, 2], [topic, queue_id, 3, end]]
    manifest.write_text(json.dumps(fields))
    with pytest.raises(StoreError, match=f"does not have {topic}/{queue_id} 2"):
        restore_store(folder, tmp_path / "other", spark, apply=True)
