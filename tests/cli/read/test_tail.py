"""The newest messages over queues in log order, and those that come."""

from __future__ import annotations

import json
import subprocess

import pytest

from seglog.errors import NotFoundError
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.material import golden
from tests.support.narrow import not_none


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "store"
    with MessageStore.open(path) as writer:
        for number in range(30):
            writer.put(f"topic{number % 2}", b"%d" % number, queue_id=number % 3)
    return path


def bodies(ran):
    return [int(line["body"]) for line in ran.lines]


def test_tail_shows_the_newest_messages_in_log_order(seglog: Seglog, store):
    assert bodies(seglog("tail", store, "--json")) == list(range(20, 30))
    assert bodies(seglog("tail", store, "-n", 3, "--json")) == [27, 28, 29]
    assert bodies(seglog("tail", store, "topic1", "-n", 3, "--json")) == [25, 27, 29]
    assert bodies(seglog("tail", store, "-n", 99, "--json")) == list(range(30))
    assert bodies(seglog("tail", store, "-n", 0, "--json")) == []


def test_tail_for_people_is_a_line_a_message(seglog: Seglog, store):
    (line,) = seglog("tail", store, "-n", 1).stdout.splitlines()
    assert line.startswith("topic1/2 @4  ")
    assert line.endswith("  29")


def test_tail_agrees_with_the_end_of_the_log_of_a_real_store(seglog: Seglog, tmp_path):
    path = golden.extract("roll", tmp_path)
    logged = [line for line in golden.expected("roll") if line["kind"] == "log" and "ok" in line]
    shown = seglog("tail", path, "-n", 50, "--json").lines
    assert [line["commitLogOffset"] for line in shown] == [line["pos"] for line in logged[-50:]]


def test_what_is_lost_stands_before_the_next_message_of_its_queue(seglog: Seglog, tmp_path):
    path = golden.extract("d-zeropage-last", tmp_path)
    shown = seglog("tail", path, "-n", 60, "--json").lines
    lost = [line for line in shown if line.get("kind") == "lost"]
    assert sum(line["count"] for line in lost) == 11
    assert len(shown) - len(lost) == 60
    for at, line in enumerate(shown):
        if line in lost:
            queue = line["topic"], line["queueId"]
            behind = next(
                one for one in shown[at:] if "body" in one and (one["topic"], one["queueId"]) == queue
            )
            assert behind["queueOffset"] == line["firstOffset"] + line["count"]
    told = seglog("tail", path, "-n", 60).stdout.splitlines()
    first = lost[0]
    assert sum(line.endswith("  lost") for line in told) == len(lost)
    assert any(
        line.startswith(f"{first['topic']}/{first['queueId']} @{first['firstOffset']}") for line in told
    )
    assert not any(line.endswith("  lost") for line in seglog("tail", path, "-n", 2).stdout.splitlines())


def test_a_lost_end_is_shown_last(seglog: Seglog, tmp_path):
    path = golden.extract("d-trunclast", tmp_path)
    shown = seglog("tail", path, "-n", 5, "--json").lines
    assert [line.get("kind") == "lost" for line in shown[:5]] == [False] * 5
    assert sum(line["count"] for line in shown[5:]) == 32


def test_a_topic_that_is_not_there_is_named_with_the_next_command(seglog: Seglog, store):
    ran = seglog("tail", store, "Nope")
    assert (ran.exit_code, ran.stdout) == (NotFoundError.exit_code, "")
    assert "no topic Nope" in ran.stderr
    assert "seglog inspect queues STORE" in ran.stderr


def test_a_topic_without_messages_is_no_error(seglog: Seglog, store):
    assert seglog("topic", "create", store, "fresh").exit_code == 0
    ran = seglog("tail", store, "fresh")
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "", "")


def test_following_waits_for_a_topic_that_is_to_come(
    command_line: list[str], seglog: Seglog, store, start_child
):
    tail = start_child(
        [*command_line, "tail", store, "later", "-f", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert b"no topic later yet" in not_none(tail.stderr).readline()
    seglog("put", store, "later", "first")
    assert json.loads(not_none(tail.stdout).readline())["body"] == "first"


def test_following_shows_what_another_process_writes_also_to_new_queues(
    command_line: list[str], seglog: Seglog, store, start_child
):
    tail = start_child(
        [*command_line, "tail", store, "-f", "-n", "1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert json.loads(not_none(tail.stdout).readline())["body"] == "29"
    seglog("put", store, "topic0", "30")
    assert json.loads(not_none(tail.stdout).readline())["body"] == "30"
    seglog("put", store, "brand_new", "31", "--queue", 9)
    line = json.loads(not_none(tail.stdout).readline())
    assert (line["topic"], line["queueId"], line["body"]) == ("brand_new", 9, "31")


def test_following_one_topic_keeps_silent_about_others(
    command_line: list[str], seglog: Seglog, store, start_child
):
    tail = start_child(
        [*command_line, "tail", store, "topic0", "-f", "-n", "1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    # The last message that is stored: from here on the process follows, however late it started.
    assert json.loads(not_none(tail.stdout).readline())["topic"] == "topic0"
    for number in range(100, 130):
        seglog("put", store, f"topic{number % 2}", number)
    first = json.loads(not_none(tail.stdout).readline())
    assert int(first["body"]) % 2 == 0
    assert first["topic"] == "topic0"


def test_damaged_records_are_left_out(seglog: Seglog, tmp_path):
    path = golden.extract("d-magic", tmp_path)
    shown = seglog("tail", path, "-n", 1000, "--json").lines
    assert [line["kind"] for line in shown].count("message") == 399
