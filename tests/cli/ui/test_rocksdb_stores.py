"""Commands on stores with queues or tables in RocksDB: those that read work, those that write are refused."""

from __future__ import annotations

import json

import pytest

from seglog import Broker
from seglog.errors import UnsupportedStoreError
from tests.support.command_line import Seglog
from tests.support.material import rocksdb_stores
from tests.support.material.golden import tree_digest
from tests.support.material.rocksdb_stores import ALONE, NAMES, QUEUE_FOLDERS

REFUSED = UnsupportedStoreError.exit_code


@pytest.mark.parametrize("name", NAMES)
def test_reading_commands_end_with_0_and_change_nothing(seglog: Seglog, tmp_path, name):
    root = rocksdb_stores.extract(name, tmp_path)
    before = tree_digest(root)
    for command in (["check"], ["info"], ["dump"], ["tail"], ["get", "TopicA"], ["verify"], ["topic", "ls"]):
        words = [*command, root] if command[0] == "topic" else [command[0], root, *command[1:]]
        assert seglog(*words).exit_code == 0, command
    assert seglog("export", root, "-o", tmp_path / "all.jsonl").exit_code == 0
    count = len((tmp_path / "all.jsonl").read_text().splitlines())
    assert count == (130 if name == "rockslmq55" else 180)
    assert tree_digest(root) == before


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "command",
    [
        ["put", "STORE", "TopicA", "x"],
        ["repair", "STORE"],
        ["repair", "STORE", "--apply", "--yes"],
        ["erase", "STORE", "eq1"],
        ["retention", "run", "STORE", "--older-than", "1h"],
        ["tx", "rollback", "STORE", "TXUNIQ1", "--apply"],
        ["serve", "STORE"],
    ],
    ids=" ".join,
)
def test_commands_that_write_are_refused_with_what_can_be_done(seglog: Seglog, tmp_path, name, command):
    root = rocksdb_stores.extract(name, tmp_path)
    before = tree_digest(root)
    ran = seglog(*(root if word == "STORE" else word for word in command))
    assert ran.exit_code == REFUSED, ran.stderr
    assert f"in RocksDB ({QUEUE_FOLDERS[name]}/)" in ran.stderr
    assert f"seglog check {root}" in ran.stderr
    assert tree_digest(root) == before


@pytest.mark.parametrize(
    ("name", "apart"), [("rocks54", 13), ("rocks55sep", 13), ("rockslmq55", 2), ("double54", 0)]
)
def test_queues_without_files_are_called_those_of_rocksdb(seglog: Seglog, tmp_path, name, apart):
    root = rocksdb_stores.extract(name, tmp_path)
    lines = [json.loads(line) for line in seglog("inspect", "queues", root, "--json").stdout.splitlines()]
    assert [line["agrees"] for line in lines if line["files"] == 0] == [None] * apart
    assert all(line["agrees"] for line in lines if line["files"])
    said = seglog("inspect", "queues", root).stdout
    assert "NO" not in said
    assert ("in RocksDB and not looked at" in said) is (apart > 0)


@pytest.mark.parametrize("name", ALONE)
def test_info_names_the_settings_with_which_a_broker_finds_its_queues(seglog: Seglog, tmp_path, name):
    root = rocksdb_stores.extract(name, tmp_path)
    lines = json.loads(seglog("info", root, "--json").stdout)["brokerConf"]
    assert "storeType=defaultRocksDB" in lines
    assert ("useSeparateStorePathForRocksdbCQ=true" in lines) is (name == "rocks55sep")


@pytest.mark.parametrize(
    "words",
    [["offsets", "show"], ["offsets", "lag"], ["group", "ls"], ["topic", "ls"], ["inspect", "config"]],
)
def test_commands_on_tables_say_that_these_are_in_rocksdb(seglog: Seglog, tmp_path, words):
    root = rocksdb_stores.with_tables(tmp_path)
    ran = seglog(*words, root)
    assert ran.exit_code == 0
    assert "not looked at: what the broker keeps in RocksDB: config/rdb" in ran.stdout
    lines = [json.loads(line) for line in seglog(*words, root, "--json").stdout.splitlines()]
    assert [line["what"] for line in lines if line["kind"] == "unseen"] == [
        text.removeprefix("not looked at: ") for text in ran.stdout.splitlines() if "RocksDB" in text
    ]


def test_a_table_that_is_in_files_is_not_called_one_of_rocksdb(seglog: Seglog, tmp_path):
    root = rocksdb_stores.with_tables(tmp_path, "topics")
    assert "RocksDB" in seglog("topic", "ls", root).stdout
    assert "RocksDB" not in seglog("offsets", "show", root).stdout
    assert "RocksDB" not in seglog("group", "ls", root).stdout


@pytest.mark.parametrize(
    "command",
    [
        ["offsets", "reset", "STORE", "g", "EqTopic", "--start"],
        ["offsets", "reset", "STORE", "g", "EqTopic", "--start", "--apply"],
        ["skip", "STORE", "g", "EqTopic", "0", "--to", "3"],
        ["group", "create", "STORE", "g"],
        ["topic", "create", "STORE", "T"],
        ["retention", "plan", "STORE", "--older-than", "1h"],
        ["export", "STORE", "--group-lag", "g", "-o", "OUT"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("has_queues_there", [False, True])
def test_what_needs_tables_that_are_in_rocksdb_is_refused(
    seglog: Seglog, tmp_path, command, has_queues_there
):
    root = rocksdb_stores.with_tables(tmp_path)
    if has_queues_there:
        root = rocksdb_stores.extract("rocks54", tmp_path)
        rocksdb_stores.add_tables(root)
    before = tree_digest(root)
    names = {"STORE": root, "OUT": tmp_path / "out.jsonl"}
    ran = seglog(*(names.get(word, word) for word in command))
    assert ran.exit_code == REFUSED, ran.stderr
    assert "in RocksDB (con" in ran.stderr
    assert tree_digest(root) == before


def test_a_broker_over_tables_in_rocksdb_is_refused(tmp_path):
    root = rocksdb_stores.with_tables(tmp_path)
    with pytest.raises(UnsupportedStoreError, match="keeps tables in RocksDB"):
        Broker.open(root)
    assert not (root / "config" / "topics.json").exists()
