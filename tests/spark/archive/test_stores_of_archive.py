"""Stores lie side by side in an archive, each under its name; topics may be called as they can."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.cli.main import commands
from seglog.clock import VirtualClock
from seglog.errors import InvalidArgumentError, NotFoundError, StoreMismatchError
from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.columns import FIRST_LAYOUT, names_of
from seglog.spark.archive.folder import ArchiveFolder
from seglog.spark.archive.manifest import check_store_name
from seglog.spark.archive.record_crc import record_crc, record_crc_sql, record_crcs
from seglog.spark.archive.restore import restore_store
from seglog.spark.archive.rows import read_archive
from seglog.spark.compact.policy import Policy
from seglog.spark.source.values.strings import bytes_of
from seglog.storage.format.record import PLACEHOLDER_FLAG
from tests.spark.archive.stores import BEGIN_MS, NEW_SIZES, compact, content, copy, put
from tests.support.material.compactions import SIZES
from tests.support.material.golden import extract
from tests.support.narrow import not_none

ODD_NAMES = ["2026-01-01", "a/b:c=d%2F?*", "名前"]


@pytest.mark.spark
def test_stores_of_any_name_lie_side_by_side(spark: SparkSession, tmp_path):
    folder = tmp_path / "archive"
    roots = {name: put(tmp_path / f"s{at}", 6 + at, word=f"w{at}") for at, name in enumerate(ODD_NAMES)}
    for name, root in roots.items():
        assert not_none(archive_store(root, folder, spark, name=name)).name == name
    for at, (name, root) in enumerate(roots.items()):
        assert archive_store(root, folder, spark) is None  # without a name it is the one that it continues
        rows = not_none(read_archive(spark, folder, name))
        assert {row["store"] for row in rows.select("store").distinct().collect()} == {name}
        assert rows.count() == 6 + at
    again = tmp_path / "again"
    restore_store(folder, again, spark, store=ODD_NAMES[1], sizes=NEW_SIZES, apply=True)
    assert content(again) == content(roots[ODD_NAMES[1]])
    with pytest.raises(InvalidArgumentError, match=r"has 3 stores: 2026"):
        restore_store(folder, tmp_path / "x", spark)
    with pytest.raises(NotFoundError, match="no store 'x'"):
        restore_store(folder, tmp_path / "x", spark, store="x")
    with pytest.raises(StoreMismatchError, match=r"continues none of 2026-01-01, "):
        archive_store(put(tmp_path / "other", 9, word="other"), folder, spark)
    with pytest.raises(InvalidArgumentError, match="some file systems take for 'A/B"):
        archive_store(roots[ODD_NAMES[1]], folder, spark, name=ODD_NAMES[1].upper())


@pytest.mark.spark
def test_stores_of_one_name_from_two_brokers_are_not_mixed(spark: SparkSession, tmp_path):
    folder = tmp_path / "archive"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first, second = put(tmp_path / "a" / "store", 50), put(tmp_path / "b" / "store", 410, word="b")
    archive_store(first, folder, spark)
    ran = CliRunner().invoke(commands, ["spark", "archive", str(second), str(folder)])
    assert ran.exit_code == 37
    assert "another store" in ran.stderr
    ran = CliRunner().invoke(commands, ["spark", "archive", str(second), str(folder), "--as", "b", "--json"])
    assert (json.loads(ran.stdout)["messages"], json.loads(ran.stdout)["store"]) == (410, "b")
    backup = copy(first, tmp_path / "backup")
    put(backup, 5, begin=50)
    assert not_none(archive_store(backup, folder, spark)).name == "store"


@pytest.mark.parametrize("name", ["", " a", "a\n", "a" * 65, "é" * 33, "__HIVE_DEFAULT_PARTITION__"])
def test_names_that_no_folder_can_have_are_refused(name):
    with pytest.raises(InvalidArgumentError, match="cannot be called"):
        check_store_name(name)


@pytest.mark.spark
def test_topics_of_any_legal_length_and_the_brokers_own(spark: SparkSession, tmp_path):
    root, folder = tmp_path / "s", tmp_path / "archive"
    topics = ["x%|-_" * 51, "L" * 250, "%RETRY%" + "g" * 240, "a|b", "a%b", "T", "t"]
    own = ["RMQ_SYS_TRACE_TOPIC", "DefaultHeartBeatSyncerTopic", "rmq_sys_REVIVE_LOG_a"]
    with MessageStore.open(root, clock=VirtualClock(BEGIN_MS), **SIZES) as store:
        for topic in (*topics, *own):
            store.put(topic, topic.encode())
    assert not_none(archive_store(root, folder, spark)).messages == len(topics)
    rows = spark.read.parquet(str(folder / "data"))
    found = {row["topic"]: bytes(row["body"]).decode() for row in rows.select("topic", "body").collect()}
    assert found == {topic: topic for topic in topics}
    assert not_none(archive_store(root, folder, spark, topics=own[:1])).messages == 1
    restore_store(folder, tmp_path / "again", spark, sizes=NEW_SIZES, topics=topics, apply=True)
    assert content(tmp_path / "again") == {
        key: all_ for key, all_ in content(root).items() if key[0] in topics
    }


@pytest.mark.spark
def test_placeholders_are_archived_and_are_no_messages(spark: SparkSession, tmp_path):
    root, folder = put(tmp_path / "s", 200), tmp_path / "archive"
    compact(root, BEGIN_MS + 10**9, T=Policy(compact=True))
    served = [message for queue in content(root).values() for message in queue]
    run = not_none(archive_store(root, folder, spark))
    assert run.messages + run.placeholders == len(served)
    assert run.messages == 14  # seven keys in two queues
    rows = not_none(read_archive(spark, folder, "s"))
    assert rows.where("NOT placeholder").count() == 14
    restore_store(folder, tmp_path / "again", spark, sizes=NEW_SIZES, apply=True)
    assert content(tmp_path / "again") == content(root)


@pytest.mark.spark
def test_archive_of_the_first_layout_is_restored_and_not_added_to(spark: SparkSession, tmp_path):
    root, folder = put(tmp_path / "s", 60), tmp_path / "archive"
    archive_store(root, tmp_path / "new", spark)
    rows = not_none(read_archive(spark, tmp_path / "new", "s")).select(*names_of(FIRST_LAYOUT))
    rows.write.partitionBy("topic", "day").parquet(str(folder / "data"))
    (run,) = ArchiveFolder(tmp_path / "new").runs()
    files = sorted(path.relative_to(folder / "data").as_posix() for path in folder.rglob("*.parquet"))
    fields = {"number": 1, "made_ms": 0, "files": files, "messages": 60, "size_bytes": run.size_bytes}
    manifest = folder / "_manifest" / "00000001.json"
    manifest.parent.mkdir()
    manifest.write_text(json.dumps(fields | {"intervals": [list(one) for one in run.intervals]}))
    with pytest.raises(InvalidArgumentError, match="archive of the first layout"):
        archive_store(root, folder, spark)
    restore_store(folder, tmp_path / "again", spark, sizes=NEW_SIZES, apply=True)
    assert content(tmp_path / "again") == content(root)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["roll", "propcrc", "ipv6"])
def test_crc_of_a_record_is_the_same_in_python_and_in_spark_and_stays_when_it_moves(
    spark: SparkSession, tmp_path, name
):
    root = extract(name, tmp_path)
    before = crcs_of(spark, root)
    topic = next(iter(before))[0]
    compact(root, BEGIN_MS, **{topic: Policy(retention_bytes=1000)})
    after = crcs_of(spark, root)
    assert 5 < len(after) < len(before)
    for place, (crc, phy_offset) in after.items():
        assert crc == before[place][0]
        assert phy_offset != before[place][1]


def crcs_of(spark, root):
    """Returns the CRC and the place of each message by topic, queue and offset, as all three have them."""
    reader = spark.read.format("seglog").option(
        "columns", "topic,queueId,queueOffset,physicalOffset,flag,record"
    )
    rows = reader.load(str(root)).where(f"flag <> {PLACEHOLDER_FLAG}")
    found = {}
    read = rows.selectExpr("*", f"{record_crc_sql('record')} AS crc").collect()
    column = bytes_of(pa.array([bytes(row["record"]) for row in read], pa.binary()))
    assert record_crcs(*column).tolist() == [row["crc"] for row in read]
    for row in read:
        assert row["crc"] == record_crc(row["record"])
        found[row["topic"], row["queueId"], row["queueOffset"]] = row["crc"], row["physicalOffset"]
    return found
