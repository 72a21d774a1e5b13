"""The commands over stores with planted faults: what they print, and how they end."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from seglog.cli.main import commands
from tests.spark.reconcile.oracle import Oracle
from tests.spark.reconcile.planted import plant
from tests.support.material import golden, rocksdb_stores

pytestmark = pytest.mark.spark


@pytest.fixture
def run(spark: SparkSession):
    """Runs a job in the session of the tests."""

    def run(*words):
        return CliRunner().invoke(commands, ["spark", *map(os.fspath, words)])

    return run


def not_of_loss(text):
    """Returns the lines that are no warnings of workers about what they could not read."""
    return [line for line in text.splitlines() if ": data loss: " not in line]


def test_reconcile_says_what_became_of_each_message_and_ends_with_1(run, tmp_path):
    one = plant(tmp_path / "store", 3)
    ran = run("reconcile", one.root, "--messages", "--json")
    assert (ran.exit_code, not_of_loss(ran.stderr)) == (1, [])
    assert len(set(ran.stderr.splitlines())) == len(ran.stderr.splitlines()), (
        "each once, though several jobs read the store"
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    expected = Oracle([one]).rows()
    counts = {
        (line["group"], line["topic"], line["verdict"]): line["messages"]
        for line in lines
        if line["kind"] == "verdict-count"
    }
    by_hand = {}
    for (group, _store, topic, *_place, verdict), count in expected.items():
        by_hand[group, topic, verdict] = by_hand.get((group, topic, verdict), 0) + count
    assert counts == by_hand
    odd = [line for line in lines if line["kind"] == "message-verdict"]
    assert sum(line["messages"] for line in odd) == sum(
        count for row, count in expected.items() if row[-1] not in ("delivered", "passed", "pending")
    )
    last = lines[-1]
    assert (last["kind"], last["clean"], last["addsUp"]) == ("reconcile", False, True)
    assert last["verdicts"] == last["messagesTimesGroups"] == expected.total()
    assert last["next"]["dead"].startswith("seglog dlq show ")
    (tmp_path / "earlier").write_text(ran.stdout)
    again = run("reconcile", one.root, "--since", tmp_path / "earlier", "--output", tmp_path / "out")
    assert again.exit_code == 1
    assert "stalled" in again.stdout
    assert " lag" in again.stdout  # the column; no verdict is lag any more
    said = [line for line in again.stdout.splitlines() if line.startswith("next: seglog ")]
    assert any(f"dlq show {one.root} --group " in line for line in said)
    assert (tmp_path / "out" / "queues" / "_SUCCESS").exists()


def test_reconcile_of_a_store_that_is_in_order_ends_with_0(run, tmp_path):
    ran = run("reconcile", golden.extract("roll", tmp_path), "--messages")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert "messages: 400 messages, 400 verdicts" in ran.stdout
    assert "next:" not in ran.stdout


def test_reconcile_ends_with_1_where_offsets_are_in_rocksdb(run, tmp_path):
    root = rocksdb_stores.with_tables(tmp_path)
    ran = run("reconcile", root)
    assert (ran.exit_code, ran.stderr) == (1, "")
    assert f"not seen: {root}: what the broker keeps in RocksDB: config/rdb" in ran.stdout
    lines = [json.loads(line) for line in run("reconcile", root, "--json").stdout.splitlines()]
    assert [line["kind"] for line in lines] == ["unseen", "reconcile"]
    assert lines[-1]["clean"] is False


@pytest.mark.parametrize("name", rocksdb_stores.NAMES)
def test_sql_gets_the_messages_of_queues_in_rocksdb(run, tmp_path, name):
    root = rocksdb_stores.extract(name, tmp_path)
    every = "SELECT topic, queueId, queueOffset, physicalOffset FROM messages"
    found = [json.loads(line) for line in run("sql", root, every, "--json").stdout.splitlines()]
    expected = {
        (one["topic"], one["queueId"], one["min"] + at, message[0])
        for one in rocksdb_stores.answers(name if name != "migrated54" else "rocks54")
        for at, message in enumerate(one["messages"])
        if not one["topic"].startswith("%LMQ%")
    }
    rows = {(row["topic"], row["queueId"], row["queueOffset"], row["physicalOffset"]) for row in found}
    if name == "migrated54":  # the same messages, sent again: most have other places
        assert {row[:3] for row in rows} == {row[:3] for row in expected}
    else:
        assert rows == expected
    part = f"{every} WHERE topic = 'TopicA' AND queueId = 1 AND queueOffset >= 2"
    ran = run("sql", root, part, "--json")
    count = sum(row[0] == "TopicA" and row[1] == 1 and row[2] >= 2 for row in expected)
    assert (ran.exit_code, len(ran.stdout.splitlines())) == (0, count)


def test_sql_answers_from_all_stores_and_says_what_is_wrong_with_a_question(run, tmp_path):
    roots = [golden.extract(name, tmp_path) for name in ("roll", "d-magic")]
    ran = run(
        "sql",
        *roots,
        "SELECT m.store, count(*) AS n FROM messages m JOIN queues q"
        " ON (m.store, m.topic, m.queueId) = (q.store, q.topic, q.queueId) GROUP BY 1 ORDER BY n",
        "--json",
        "--allow-loss",
    )
    assert (ran.exit_code, not_of_loss(ran.stderr)) == (0, [])
    assert "d-magic: data loss: commitlog/00000000000000262144 +49494: magic" in ran.stderr
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(Path(row["store"]).name, row["n"]) for row in found] == [("d-magic", 399), ("roll", 400)]
    table = run(
        "sql", roots[0], "SELECT body, topic, properties FROM messages ORDER BY queueOffset, topic LIMIT 2"
    )
    assert table.exit_code == 0
    assert len(table.stdout.splitlines()) == 3
    wrong = run("sql", roots[0], "SELECT nothing FROM messages")
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith(
        "error: QUERY: A column, variable, or function parameter with name `nothing`"
    )
