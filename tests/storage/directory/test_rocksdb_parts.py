"""A RocksDB is recognised by the files that RocksDB writes, and its folder says what RocketMQ keeps there."""

from __future__ import annotations

import shutil

import pytest

from seglog.errors import UnsupportedStoreError
from seglog.storage.directory import (
    ReadingRoot,
    RocksKind,
    RocksTable,
    demand_own_queues,
    demand_own_tables,
    find_rocksdb,
    is_rocksdb_file,
    parts_with,
)
from tests.support.material import golden, rocksdb_stores
from tests.support.material.rocksdb_stores import ALONE, BESIDE, NAMES, QUEUE_FOLDERS

LATER = {"rocksdbstore": RocksKind.OTHER}


def found(root):
    return {part.name: part.kind for part in find_rocksdb(ReadingRoot(root), root)}


@pytest.mark.parametrize("name", NAMES)
def test_queues_are_found_in_every_layout(name, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    assert found(root) == LATER | {QUEUE_FOLDERS[name]: RocksKind.QUEUES}


@pytest.mark.parametrize(
    ("folder", "tables"),
    [
        ("rdb", set(RocksTable)),
        ("metadata", set(RocksTable)),
        ("topics", {RocksTable.TOPICS}),
        ("subscriptionGroups", {RocksTable.GROUPS}),
        ("consumerOffsets", {RocksTable.OFFSETS}),
    ],
)
def test_tables_are_found_in_every_layout(folder, tables, tmp_path):
    root = rocksdb_stores.with_tables(tmp_path, folder)
    parts = find_rocksdb(ReadingRoot(root), root)
    assert {part.name for part in parts} == {"rocksdbstore", f"config/{folder}"}
    for table in RocksTable:
        named = [part.name for part in parts_with(parts, table)]
        assert named == ([f"config/{folder}"] if table in tables else [])


def test_one_whose_name_is_unknown_is_found(tmp_path):
    root = rocksdb_stores.extract(rocksdb_stores.FILES, tmp_path)
    shutil.move(root / "rocksdbstore", root / "timerrocks")
    assert found(root) == {"timerrocks": RocksKind.OTHER}


@pytest.mark.parametrize("name", ["consumequeue_rocksdb", "rocksdbstore", "config/rdb"])
def test_a_name_alone_is_none(name, tmp_path):
    root = golden.extract("roll", tmp_path)
    shutil.rmtree(root / "rocksdbstore", ignore_errors=True)
    (root / name / "0").mkdir(parents=True)
    (root / name / "CURRENT").write_bytes(b"a note")
    assert found(root) == {}


def test_topics_named_as_its_files_are_none(tmp_path):
    root = golden.extract("roll", tmp_path)
    shutil.rmtree(root / "rocksdbstore", ignore_errors=True)
    for topic in ("CURRENT", "MANIFEST-000001", "000004"):
        (root / "consumequeue" / topic / "0").mkdir(parents=True)
    assert found(root) == {}


@pytest.mark.parametrize("lost", ["CURRENT", "MANIFEST-000005", "IDENTITY"])
def test_one_that_lost_a_file_is_one_still(lost, tmp_path):
    root = rocksdb_stores.extract("rocks54", tmp_path)
    (root / "consumequeue" / lost).unlink()
    assert found(root)["consumequeue"] is RocksKind.QUEUES


@pytest.mark.parametrize("name", NAMES)
def test_each_file_of_a_real_one_has_a_name_of_its_own(name, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    for folder in (QUEUE_FOLDERS[name], "rocksdbstore"):
        assert all(is_rocksdb_file(path.name) for path in (root / folder).iterdir() if path.is_file())
    assert not any(map(is_rocksdb_file, ["0" * 20, "checkpoint", "topics.json", "1.log", "CURRENT2"]))


@pytest.mark.parametrize("name", NAMES)
def test_a_store_with_such_queues_is_refused_for_writing(name, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    words = "beside its queue files" if name in BESIDE else "keeps its queues in RocksDB"
    with pytest.raises(UnsupportedStoreError, match=f"{words}.*") as refused:
        demand_own_queues(ReadingRoot(root), root)
    assert QUEUE_FOLDERS[name] in str(refused.value)
    assert "seglog check" in refused.value.help
    assert "seglog export" in refused.value.help


@pytest.mark.parametrize("name", ALONE)
def test_a_broker_of_such_queues_alone_has_tables_there_too(name, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    with pytest.raises(UnsupportedStoreError, match="keeps tables in RocksDB"):
        demand_own_tables(ReadingRoot(root), root)


@pytest.mark.parametrize("name", [*BESIDE, rocksdb_stores.FILES])
def test_one_with_queue_files_too_has_its_tables_in_files(name, tmp_path):
    root = rocksdb_stores.extract(name, tmp_path)
    demand_own_tables(ReadingRoot(root), root)
