"""Queues, index and checkpoint of a restored store are the engine's; the driver opens no store for them."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typing_extensions import override

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.errors import StoreError
from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.restore import restore_store
from seglog.spark.archive.restore_base import Sizes
from seglog.spark.compact.swap import work_folder
from seglog.storage.files.real_file import RealFile
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.names import ABORT_FILE, CHECKPOINT_FILE, CONSUME_QUEUE, INDEX
from tests.spark.archive.stores import BEGIN_MS, NEW_SIZES, content, copy, damage, put
from tests.support.material.golden import tree_digest

pytestmark = pytest.mark.spark

LATER_MS = BEGIN_MS + 10**9
ONE_FILE_EACH = Sizes(1 << 20, 20_000, IndexGeometry(500, 4000))


class CountingRoot(StoreRoot):
    """Files around a store that count what the driver does with them, by kind of call.

    Args:
        root: The store.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root.parent)
        self.calls: Counter[str] = Counter()
        self.written: set[str] = set()

    @override
    def open(self, path: Path, *, writable: bool) -> RealFile:
        self.calls["open"] += 1
        return super().open(path, writable=writable)

    @override
    def create(self, path: Path, size_bytes: int) -> RealFile:
        self.calls["create"] += 1
        self.written.add(path.name)
        return super().create(path, size_bytes)

    @override
    def read_file(self, path: Path) -> bytes:
        self.calls["read_file"] += 1
        return super().read_file(path)

    @override
    def write_file(self, path: Path, data: bytes, *, sync: bool = True) -> None:
        self.calls["write_file"] += 1
        self.written.add(path.name)
        super().write_file(path, data, sync=sync)


@pytest.fixture(scope="module")
def growing(tmp_path_factory, spark: SparkSession):
    """A folder with a store as it was, the store with ten times as much, and archives of both."""
    folder = tmp_path_factory.mktemp("growing")
    put(folder / "older", 40)
    put(copy(folder / "older", folder / "s"), 360, begin=40)
    archive_store(folder / "older", folder / "little", spark)
    archive_store(folder / "s", folder / "much", spark)
    return folder


def made_by_engine(root: Path, target: Path) -> dict[str, tuple[int, str]]:
    """Returns queues, index and checkpoint as the engine makes them of the log of a store alone."""
    copy(root, target)
    for name in (CONSUME_QUEUE, INDEX):
        shutil.rmtree(target / name)
    (target / CHECKPOINT_FILE).unlink()
    with MessageStore.open(target, clock=VirtualClock(LATER_MS)):
        pass
    return derived(target)


def derived(root: Path) -> dict[str, tuple[int, str]]:
    """Returns digests of queues, index and checkpoint."""
    return {
        name: found
        for name, found in tree_digest(root).items()
        if name.startswith((CONSUME_QUEUE, INDEX, CHECKPOINT_FILE))
    }


@pytest.mark.parametrize("goes_on", [False, True])
def test_queues_index_and_checkpoint_are_those_of_the_engine(spark: SparkSession, growing, tmp_path, goes_on):
    root = tmp_path / "again"
    if goes_on:
        copy(growing / "older", root)
    sizes, clock = None if goes_on else NEW_SIZES, VirtualClock(LATER_MS)
    restore_store(growing / "much", root, spark, sizes=sizes, apply=True, clock=clock)
    assert not (root / ABORT_FILE).exists()
    made = derived(root)
    assert len(made) > 8
    assert made == made_by_engine(root, tmp_path / "twin")
    assert content(root) == content(growing / "s")


def test_driver_opens_no_store_and_does_as_much_for_few_messages_as_for_many(
    spark: SparkSession, growing, tmp_path
):
    counts = []
    for name in ("little", "much"):
        files = CountingRoot(tmp_path / name)
        restore_store(growing / name, tmp_path / name, spark, sizes=ONE_FILE_EACH, apply=True, files=files)
        assert ABORT_FILE not in files.written  # an opening begins with it
        counts.append(files.calls)
    assert counts[0] == counts[1]
    assert counts[0].total() > 0


def test_restore_that_its_check_refuses_changes_nothing_and_leaves_nothing_beside_the_store(
    spark: SparkSession, growing, tmp_path
):
    root = copy(growing / "older", tmp_path / "s")
    damage(root, 0, 5)
    before = tree_digest(root)
    with pytest.raises(StoreError, match="is not as it should be") as caught:
        restore_store(growing / "much", root, spark, apply=True)
    assert f"{root} is as it was" in str(caught.value.help)
    assert tree_digest(root) == before
    assert not work_folder(root).exists()
