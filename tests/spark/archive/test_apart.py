"""Nothing that is of neither a store nor an archive is moved or removed, and neither is in the other."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.errors import InvalidArgumentError, UnsupportedStoreError
from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.folder import check_apart
from seglog.spark.archive.restore import restore_store
from seglog.spark.archive.restore_base import Sizes
from seglog.spark.compact.swap import work_folder
from seglog.storage.files import StoreRoot
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.names import ABORT_FILE, COMMIT_LOG, INDEX
from seglog.storage.small_files import read_checkpoint
from tests.spark.archive.stores import content, put
from tests.support.material.golden import tree_digest

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("place", ["s", "s/archive", "s/commitlog", "s.compact", "s.compact/old/a", "link/a"])
def test_an_archive_in_a_store_or_where_it_is_made_anew_is_refused(spark: SparkSession, tmp_path, place):
    root = put(tmp_path / "s", 5)
    (tmp_path / "link").symlink_to(root)
    before = tree_digest(root)
    for call in (archive_store, lambda store, folder, spark: restore_store(folder, store, spark, apply=True)):
        with pytest.raises(InvalidArgumentError, match=r"the archive .* is in"):
            call(root, tmp_path / place, spark)
    assert tree_digest(root) == before


@pytest.mark.parametrize("place", ["a/data", "a/data/s", "a/_manifest/s", "a/_staged/s"])
def test_a_store_in_an_archive_is_refused(tmp_path, place):
    with pytest.raises(InvalidArgumentError, match="is in"):
        check_apart(tmp_path / place, tmp_path / "a")


@pytest.mark.parametrize("place", ["a/s", "s.compacted", "as", "b"])
def test_a_store_beside_the_folders_of_an_archive_is_not(tmp_path, place):
    check_apart(tmp_path / place, tmp_path / "a")


@pytest.mark.parametrize("is_new", [True, False])
def test_a_folder_of_somebody_where_the_store_is_made_stays(spark: SparkSession, tmp_path, is_new):
    root = put(tmp_path / "s", 5)
    archive_store(root, tmp_path / "a", spark)
    target = tmp_path / "t" if is_new else put(tmp_path / "t", 0)
    work_folder(target).mkdir()
    (work_folder(target) / "mine.txt").write_text("x")
    with pytest.raises(UnsupportedStoreError, match=r"holds 'mine\.txt'"):
        restore_store(tmp_path / "a", target, spark, apply=True)
    assert (work_folder(target) / "mine.txt").read_text() == "x"


def test_a_folder_or_a_store_without_messages_is_restored_as_a_new_store_is(spark: SparkSession, tmp_path):
    origin = tmp_path / "o"
    with MessageStore.open(origin, segment_size_bytes=1 << 14, queue_file_size_bytes=1_000) as store:
        for number in range(300):
            store.put("U", b"u%d " % number * 20)
        store.retention.delete_before(store.retention.segments()[-3].end_phy_offset)
    archive_store(origin, tmp_path / "a", spark)
    sizes = Sizes(32 << 10, 400, IndexGeometry(50, 200))
    made = tmp_path / "new", tmp_path / "folder", tmp_path / "empty"
    made[1].mkdir()
    with MessageStore.open(made[2]):
        pass
    for root in made:
        restore_store(tmp_path / "a", root, spark, apply=True, sizes=sizes)
    logs = [
        sorted((file.name, file.stat().st_size) for file in (root / COMMIT_LOG).iterdir()) for root in made
    ]
    assert logs[0] == logs[1] == logs[2]
    assert logs[0][0] == ("00000000000000032768", 32 << 10)
    assert content(made[0]) == content(made[1]) == content(made[2])


def test_the_time_of_full_index_files_stays_in_the_checkpoint(spark: SparkSession, tmp_path):
    root, whole = tmp_path / "s", tmp_path / "base"
    sizes: dict[str, Any] = {
        "segment_size_bytes": 1 << 14,
        "queue_file_size_bytes": 1_000,
        "index_geometry": IndexGeometry(50, 200),
    }
    for first, end in ((0, 150), (150, 155)):
        with MessageStore.open(root, **sizes) as store:
            for number in range(first, end):
                store.put("T", b"x%d" % number, keys=f"k{number} c{number % 7}", tags="t")
        if first == 0:
            shutil.copytree(root, whole, copy_function=shutil.copy2)
    full_ms = read_checkpoint(StoreRoot(whole), whole).index_timestamp_ms
    assert full_ms > 0
    archive_store(root, tmp_path / "a", spark)
    restore_store(tmp_path / "a", whole, spark, apply=True)
    assert read_checkpoint(StoreRoot(whole), whole).index_timestamp_ms == full_ms
    assert len(list((whole / INDEX).iterdir())) >= 3
    assert not (whole / ABORT_FILE).exists()
