"""Where nothing shows how a store's index files are divided, jobs that make stores make none by a guess."""

from __future__ import annotations

import shutil

from pyspark.sql import SparkSession

from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.restore import restore_store
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import Policy
from seglog.storage.directory.index_files import list_index_files
from seglog.storage.files.files import RealFiles
from seglog.storage.format.index import IndexGeometry
from seglog.storage.store import MessageStore
from tests.support.material import golden
from tests.support.material.stores import new_clock


def divisions(root):
    return {file.geometry for file in list_index_files(RealFiles(), root)[0]}


def test_a_compaction_and_a_restore_make_no_index_file_and_keys_are_found(spark: SparkSession, tmp_path):
    root = golden.extract("d-noindex", tmp_path)
    older = shutil.copytree(root, tmp_path / "older")
    with MessageStore.open(root, clock=new_clock()) as store:
        for number in range(4):
            store.put("TopicA", b"later", queue_id=0, keys=f"k{number % 2}")
    archive_store(root, tmp_path / "archive", spark)
    assert restore_store(tmp_path / "archive", older, spark, apply=True).messages == 4
    compacted = Compaction(root, {"TopicA": Policy(compact=True)}, allow_undelivered=True).apply(spark)
    assert compacted.is_done
    for each in (older, root):
        assert divisions(each) == set()
        with MessageStore.open(each, read_only=True) as reader:
            assert list(reader.query("TopicA", "k1"))
    shutil.rmtree(tmp_path / "s.compact", ignore_errors=True)
    division = IndexGeometry(500, 2000)
    MessageStore.open(root, clock=new_clock(), index_geometry=division).close()
    assert divisions(root) == {division}
