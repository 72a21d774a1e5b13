"""``seglog spark compact`` and ``retain``: a plan first, then the store, and the way back."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from seglog.cli.main import commands
from seglog.storage.store import MessageStore
from tests.support.material.compactions import fill_random, write_offsets

pytestmark = pytest.mark.spark


def run(*arguments):
    return CliRunner().invoke(commands, ["spark", *map(str, arguments)])


def said(*arguments):
    """Runs what ends with an error; returns what it says of that."""
    ran = run(*arguments)
    assert ran.exit_code > 2
    return " ".join(ran.stderr.split())


def told(*arguments):
    ran = run(*arguments, "--json")
    assert ran.exit_code == 0, ran.output
    found, *preview = map(json.loads, ran.stdout.splitlines())
    assert [line["applied"] for line in preview] == [False] * (not found["applied"])
    return found


def test_plan_apply_undo_and_discard(spark: SparkSession, tmp_path):
    root = fill_random(tmp_path / "s", 3, 150, begin_ms=1_700_000_000_000).root
    write_offsets(root, {("slow", "Prices", 0): 4, ("slow", "Prices", 1): 2})
    plan = told("compact", root, "--topic", "Prices", "--delete-retention", "0s")
    assert (plan["result"], plan["old"]) == ("planned", None)
    held = {(one["group"], one["queueId"]): one["messages"] for one in plan["undelivered"] if one["held"]}
    prices = next(topic for topic in plan["topics"] if topic["topic"] == "Prices")
    assert 0 < max(held.values()) <= prices["reasons"]["held"] == sum(held.values())
    ran = run("compact", root, "--topic", "Prices", "--allow-undelivered", "--apply")
    assert "dropped, though groups have still to read them" in ran.stdout
    assert (tmp_path / "s.compact" / "old").is_dir()
    assert told("compact", root, "--undo")["result"] == "put back"
    kept = told("retain", root, "--max-bytes", "Events=2k", "--allow-undelivered", "--apply", "--discard-old")
    events = next(topic for topic in kept["topics"] if topic["topic"] == "Events")
    assert events["reasons"]["oversize"] == events["dropped"] > 0
    assert not (tmp_path / "s.compact").exists()


def test_what_was_done_and_what_is_left_to_do_are_named(spark: SparkSession, tmp_path):
    root = fill_random(tmp_path / "s", 3, 150, begin_ms=1_700_000_000_000).root
    ran = run("compact", root)
    assert (ran.exit_code, "choose with --topic TOPIC" in ran.stdout) == (0, True)
    assert "next:" not in ran.stdout  # there is nothing to do
    ran = run("compact", root, "--topic", "Prices", "--allow-undelivered")
    assert f"next: seglog spark compact {root} --topic Prices --allow-undelivered --apply" in ran.stdout
    retain = ("retain", root, "--max-bytes", "Events=2k", "--allow-undelivered", "--apply")
    done = " ".join(run(*retain).stdout.split())
    assert "result messages dropped" in done
    assert "--undo puts it back, --discard-old --apply deletes it" in done
    with MessageStore.open(root) as store:
        store.put("Events", b"later" * 1000, queue_id=0)
    again = said(*retain)
    assert f"`seglog spark compact {root} --discard-old --apply` removes it" in again
    assert f"`seglog spark compact {root} --undo` puts it back" in again
    undo = said("compact", root, "--undo")
    assert f"seglog spark compact {root} --discard-old --apply" in undo
    assert f"{tmp_path / 's.compact' / 'old'} into its place" in undo
    discard = ("compact", root, "--discard-old")
    assert told(*discard)["result"] == "kept, would be removed"
    assert (tmp_path / "s.compact" / "old").is_dir()
    assert told(*discard, "--apply")["result"] == "discarded"
    assert not (tmp_path / "s.compact").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["retain", "x"], "nothing is asked"),
        (["retain", "x", "--max-age", "Orders"], "no TOPIC=DURATION"),
        (["retain", "x", "--max-age", "Orders=7"], "no duration: expected"),
        (["retain", "x", "--max-bytes", "Orders=2q"], "no size such as 500MiB"),
        (["retain", "x", "--erase-key", "Orders="], "no TOPIC=KEY"),
        (["compact", "x", "--undo", "--apply"], "--undo goes with neither"),
    ],
)
def test_wrong_usage_is_said_before_spark_starts(arguments, said):
    ran = run(*arguments)
    assert ran.exit_code == 2
    assert said in ran.stderr
