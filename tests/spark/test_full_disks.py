"""A full disk, and one that cannot be written, from Python: errors of ours that say where and what to do."""

from __future__ import annotations

import subprocess

import pytest
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.errors import FullError, ReadOnlyError
from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.restore import restore_store
from seglog.spark.archive.restore_base import Sizes
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import Policy
from seglog.storage.format.index.index import IndexGeometry
from tests.support.machine.disks import memory_disk, why_not
from tests.support.material.golden import tree_digest

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(why_not("tmpfs") is not None, reason=str(why_not("tmpfs"))),
]
SIZES = Sizes(1 << 19, 2000, IndexGeometry(500, 4000))
POLICIES = {"T": Policy(compact=True)}
KEYS = " ".join(map(str, range(500)))


def put(root, count, body=b"b" * 2000, keys=("k",)):
    with MessageStore.open(
        root, segment_size_bytes=1 << 19, queue_file_size_bytes=2000, index_geometry=SIZES.index
    ) as store:
        for number in range(count):
            store.put("T", body, queue_id=0, keys=keys[number % len(keys)])
    return root


@pytest.fixture
def little(tmp_path):
    """A file system of 4 MiB."""
    with memory_disk(tmp_path, 4) as path:
        yield path


def test_an_archive_that_finds_no_space(spark: SparkSession, tmp_path, little):
    root = put(tmp_path / "s", 3000)
    (little / "ballast").write_bytes(bytes(4_050_000))
    with pytest.raises(FullError) as caught:
        archive_store(root, little / "archive", spark)
    assert str(little) in str(caught.value)
    (little / "ballast").unlink()
    assert archive_store(root, little / "archive", spark) is not None


def test_a_restore_that_has_too_little_space_says_how_much_it_needs(spark: SparkSession, tmp_path, little):
    archive_store(put(tmp_path / "s", 3000), tmp_path / "archive", spark)
    with pytest.raises(FullError, match=r"MiB are free, and until it is done") as caught:
        restore_store(tmp_path / "archive", little / "s", spark, sizes=SIZES, apply=True)
    assert str(caught.value).startswith(f"{little}: 4.0 MiB are free")
    assert f"{little / 's'} was not made; free space there" in caught.value.help
    assert not list(little.iterdir())


def test_a_restore_whose_keys_find_no_space_says_how_much_they_need(spark: SparkSession, tmp_path, little):
    archive_store(put(tmp_path / "s", 200, b"few", [KEYS]), tmp_path / "archive", spark)
    (little / "ballast").write_bytes(bytes(1 << 20))
    with pytest.raises(FullError) as caught:
        restore_store(tmp_path / "archive", little / "s", spark, sizes=SIZES, apply=True)
    assert str(little) in str(caught.value)
    assert f"{little / 's'} was not made; until it is done this restore takes about " in caught.value.help
    assert "key index" in caught.value.help
    assert [path.name for path in little.iterdir()] == ["ballast"]


def test_a_compaction_that_finds_no_space_leaves_the_store_as_it_was(spark: SparkSession, little):
    root = put(little / "s", 1200, keys=[f"k{number}" for number in range(1199)])
    before = tree_digest(root)
    with pytest.raises(FullError) as caught:
        Compaction(root, POLICIES).apply(spark)
    assert str(little) in str(caught.value)
    assert tree_digest(root) == before


def test_folders_that_cannot_be_written(spark: SparkSession, tmp_path):
    archive_store(put(tmp_path / "s", 10), tmp_path / "archive", spark)
    with memory_disk(tmp_path, 64) as path:
        root = put(path / "s", 10)
        subprocess.run(["mount", "-o", "remount,ro", path], check=True)
        jobs = {
            "archive": lambda: archive_store(root, path / "archive", spark),
            "restore": lambda: restore_store(tmp_path / "archive", path / "new", spark, apply=True),
            "compact": lambda: Compaction(root, POLICIES).apply(spark),
        }
        for name, job in jobs.items():
            with pytest.raises(ReadOnlyError, match=r"[Rr]ead-only") as caught:
                job()
            assert str(path) in str(caught.value), name
            assert "for writing" in caught.value.help, name
