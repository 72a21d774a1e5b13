"""``seglog spark sql``: the answer, and what it is without."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.cli.main import commands
from tests.support.material.golden import extract

pytestmark = pytest.mark.spark
COUNT = "SELECT count(*) AS n FROM messages"


@pytest.fixture
def ask(spark: SparkSession):
    """Asks in the session of the tests."""

    def ask(*words):
        return CliRunner().invoke(commands, ["spark", "sql", *map(os.fspath, words)])

    return ask


def test_an_answer_without_messages_that_are_lost_says_so(ask, tmp_path):
    root = extract("d-magic", tmp_path)
    ran = ask(root, COUNT, "--json")
    assert json.loads(ran.stdout) == {"n": 399}
    assert ran.exit_code == 36
    assert f"{root}: data loss: " in ran.stderr
    assert "commitlog/" in ran.stderr
    assert "--allow-loss" in ran.stderr
    assert ask(root, COUNT, "--allow-loss", "--json").exit_code == 0
    assert ask(root, "SELECT count(*) FROM index").exit_code == 0
    assert ask(root, "SELECT count(*) FROM kafka").exit_code == 36


def test_an_answer_of_whole_stores_ends_with_0(ask, tmp_path):
    ran = ask(extract("roll", tmp_path), COUNT, "--json")
    assert (ran.exit_code, ran.stderr, json.loads(ran.stdout)) == (0, "", {"n": 400})


def test_a_lost_tail_is_said(ask, tmp_path):
    with MessageStore.open(tmp_path / "s", segment_size_bytes=8192, queue_file_size_bytes=400) as store:
        places = [store.put("T", b"%d" % number + bytes(200)) for number in range(90)]
    cut = places[70].phy_offset
    first = cut - cut % 8192
    for path in (tmp_path / "s" / "commitlog").iterdir():
        if int(path.name) > first:
            path.unlink()
        elif int(path.name) == first:
            path.write_bytes(path.read_bytes()[: cut - first].ljust(8192, b"\0"))
    ran = ask(tmp_path / "s", COUNT, "--json")
    assert (ran.exit_code, json.loads(ran.stdout)) == (36, {"n": 70})
    assert "queue offsets 70..89 of T/0" in ran.stderr
