"""A restore that is run again, or asked for what is not there, says what it did and what it did not."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from typing_extensions import override

from seglog import MessageStore
from seglog.cli.main import commands
from seglog.doctor.check import check_store
from seglog.errors import InvalidArgumentError, NotFoundError, StoreLockedError, UnsupportedStoreError
from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.restore import restore_store
from seglog.spark.archive.restore_base import Sizes
from seglog.spark.compact.swap import old_store
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.format.names import LOCK_FILE
from tests.spark.archive.stores import NEW_SIZES, content, copy, damage, put
from tests.support.material import rocksdb_stores
from tests.support.material.golden import tree_digest
from tests.support.material.rocksdb_stores import NAMES

pytestmark = pytest.mark.spark


class InterruptedRoot(StoreRoot):
    """Files of a process that ends before a new store takes the place of the old one."""

    @override
    def exchange(self, first, second):
        raise InterruptedError("the process ends here")


def restored(folder, root):
    return CliRunner().invoke(commands, ["spark", "restore", str(folder), str(root), "--apply"])


def test_a_restore_that_finishes_an_interrupted_one_says_so(spark: SparkSession, tmp_path):
    root, folder = put(tmp_path / "s", 20), tmp_path / "archive"
    older = copy(root, tmp_path / "older")
    put(root, 20, begin=20)
    archive_store(root, folder, spark)
    for_json = copy(older, tmp_path / "json")
    for store in (older, for_json):
        with pytest.raises(InterruptedError):
            restore_store(folder, store, spark, apply=True, files=InterruptedRoot(tmp_path))
    said = restored(folder, older)
    assert said.exit_code == 0, said.output
    assert "as an earlier run had made it" in said.stdout
    assert "finished" in said.stdout
    assert "interrupted" in said.stdout
    assert str(old_store(older)) in said.stdout
    assert content(older) == content(root)
    assert "finished" not in restored(folder, older).stdout
    fields = CliRunner().invoke(
        commands, ["spark", "restore", str(folder), str(for_json), "--apply", "--json"]
    )
    found = json.loads(fields.stdout)
    assert (found["finished"], found["messages"], found["new"]) == (True, 0, False)


def test_a_store_that_ends_with_a_tombstone_goes_on_where_its_message_was_found(
    spark: SparkSession, tmp_path
):
    root, folder, again = put(tmp_path / "s", 60), tmp_path / "archive", tmp_path / "again"
    whole = copy(root, tmp_path / "whole")
    damage(root, 1, 29)
    archive_store(root, folder, spark, allow_loss=True)
    assert restore_store(folder, again, spark, sizes=NEW_SIZES, apply=True).lost == 1
    put(whole, 10, begin=60)
    archive_store(whole, folder, spark, fill_missing=True)
    assert restore_store(folder, again, spark, apply=True).messages == 10
    expected = content(whole)
    found = content(again)
    assert found["T", 0] == expected["T", 0]
    assert found["T", 1][29:] == expected["T", 1][30:]


def test_lengths_that_the_store_does_not_have_are_refused(spark: SparkSession, tmp_path):
    root, folder = put(tmp_path / "s", 20), tmp_path / "archive"
    archive_store(root, folder, spark)
    for sizes, said in (
        (Sizes(segment_bytes=32768), "log files of 16384 bytes, and --segment-size asks for 32768"),
        (Sizes(queue_file_bytes=4000), "queue files of 2000 bytes, and --queue-file-size asks for 4000"),
    ):
        with pytest.raises(InvalidArgumentError, match=said) as refused:
            restore_store(folder, root, spark, sizes=sizes)
        assert "into a new store" in refused.value.help
    assert restore_store(folder, root, spark, sizes=Sizes(16384, 2000)).messages == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_store_with_queues_in_rocksdb_is_archived_and_restored_elsewhere_alone(
    spark: SparkSession, tmp_path, name
):
    root, folder = rocksdb_stores.extract(name, tmp_path), tmp_path / "archive"
    count = 130 if name == "rockslmq55" else 180
    before = tree_digest(root)
    made = archive_store(root, folder, spark)
    assert made is not None
    assert made.messages == count
    for run in (
        restored,
        lambda *names: CliRunner().invoke(commands, ["spark", "restore", *map(str, names)]),
    ):
        refused = run(folder, root)
        assert refused.exit_code == UnsupportedStoreError.exit_code
        assert "RocksDB" in refused.stderr
    assert tree_digest(root) == before
    assert restored(folder, tmp_path / "new").exit_code == 0
    assert check_store(tmp_path / "new").is_clean


def test_a_dry_run_writes_nothing_and_refuses_what_the_restore_would(spark: SparkSession, tmp_path):
    root, folder = put(tmp_path / "s", 20), tmp_path / "archive"
    older = copy(root, tmp_path / "older")
    (older / LOCK_FILE).unlink(missing_ok=True)
    put(root, 20, begin=20)
    archive_store(root, folder, spark)
    names = {path.relative_to(tmp_path) for path in tmp_path.rglob("*")}
    assert restore_store(folder, older, spark).messages == 20
    with pytest.raises(InvalidArgumentError):
        restore_store(folder, tmp_path / "new", spark, sizes=Sizes(segment_bytes=3))
    assert {path.relative_to(tmp_path) for path in tmp_path.rglob("*")} == names
    with (
        MessageStore.open(root),
        pytest.raises(StoreLockedError, match=r"process has .* open for writing"),
    ):
        restore_store(folder, root, spark)


def test_a_folder_that_is_no_archive_and_a_topic_that_it_has_not(spark: SparkSession, tmp_path, caplog):
    root, folder = put(tmp_path / "s", 20), tmp_path / "archive"
    archive_store(root, folder, spark)
    for name in ("s", "nowhere"):
        with pytest.raises(NotFoundError, match=f"{name} is no archive: it has no manifest"):
            restore_store(tmp_path / name, tmp_path / "again", spark)
    with pytest.raises(NotFoundError, match="nothing that is wanted: no NOPE") as refused:
        restore_store(folder, tmp_path / "again", spark, topics=["NOPE"])
    assert refused.value.help == "it has T"
    caplog.clear()
    assert restore_store(folder, tmp_path / "again", spark, topics=["T", "t"]).messages == 20
    told = [record.getMessage() for record in caplog.records if record.name.startswith("seglog")]
    assert told == [f"{folder} has no topic t, so nothing of it is restored; did you mean T?"]
