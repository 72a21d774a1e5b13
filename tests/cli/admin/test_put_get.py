"""What is put is got, in every form, and a read says where to go on."""

from __future__ import annotations

import base64
import json
import subprocess

import pytest

from seglog.cli.admin import put
from seglog.errors import InvalidArgumentError
from seglog.storage.store import MessageStore
from tests.support.command_line import Seglog
from tests.support.machine.patience import patience_s
from tests.support.material import golden
from tests.support.narrow import not_none


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def test_put_makes_a_store_and_says_where_the_message_went(seglog: Seglog, store):
    (acknowledged,) = seglog("put", store, "orders", "42 apples", "--queue", 3, "--json").lines
    assert acknowledged["kind"] == "put"
    assert acknowledged["topic"] == "orders"
    assert acknowledged["queueId"] == 3
    assert acknowledged["queueOffset"] == 0
    assert acknowledged["durability"] == "async"
    assert len(acknowledged["msgId"]) == 32
    assert "orders/3 offset 1, " in seglog("put", store, "orders", "7 pears", "--queue", 3).stdout


def test_tags_keys_properties_and_durability_reach_the_record(seglog: Seglog, store):
    words = ["--tags", "fruit", "--key", "k1", "--key", "k2", "--property", "region=eu=west", "--sync"]
    (acknowledged,) = seglog("put", store, "orders", "x", *words, "--json").lines
    assert acknowledged["durability"] == "sync"
    (message, result) = seglog("get", store, "orders", "--filter", "fruit || nuts", "--json").lines
    assert message["tags"] == "fruit"
    assert message["keys"] == ["k1", "k2"]
    assert message["properties"]["region"] == "eu=west"
    assert message["msgId"] == acknowledged["msgId"]
    assert result["status"] == "FOUND"


@pytest.mark.parametrize("argument", [[], ["-"]])
def test_the_body_comes_from_stdin_byte_for_byte(seglog: Seglog, store, argument):
    body = bytes(range(256)) + b"\n"
    seglog("put", store, "t", *argument, stdin=body)
    assert seglog("get", store, "t", "--body", "raw").stdout_bytes == body
    (message, _result) = seglog("get", store, "t", "--json").lines
    assert message["bodyForm"] == "base64"
    assert base64.b64decode(message["body"]) == body
    (message, _result) = seglog("get", store, "t", "--json", "--body", "hex").lines
    assert bytes.fromhex(message["body"]) == body


def test_each_line_becomes_a_message_in_batches(seglog: Seglog, store):
    lines = [b"line %d" % number for number in range(2500)]
    ran = seglog("put", store, "t", "--lines", "--json", "--tags", "L", stdin=b"\n".join(lines))
    assert sum(line["count"] for line in ran.lines) == 2500
    assert len(ran.lines) < 20
    got = seglog("get", store, "t", "--count", 5000, "--filter", "L", "--body", "raw")
    assert got.stdout_bytes == b"\n".join(lines)
    assert "t/0: 1 message, in the page cache" in seglog("put", store, "t", "--lines", stdin=b"x\n").stdout


def test_lines_fit_a_store_with_small_segments(seglog: Seglog, tmp_path):
    store = golden.extract("roll", tmp_path)  # 64 KiB commit-log files
    stdin = b"".join(b"%0200d\n" % number for number in range(2000))
    assert seglog("put", store, "TopicA", "--lines", stdin=stdin).exit_code == 0
    (*messages, _result) = seglog(
        "get", store, "TopicA", "--queue", 0, "--offset", 34, "--count", 9999, "--json"
    ).lines
    assert [int(message["body"]) for message in messages] == list(range(2000))


def test_lines_arrive_before_stdin_ends(command_line: list[str], store, seglog: Seglog, start_child):
    put = start_child(
        [*command_line, "put", store, "t", "--lines", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    not_none(put.stdin).write(b"now\n")
    not_none(put.stdin).flush()
    assert json.loads(not_none(put.stdout).readline())["count"] == 1
    assert [line["body"] for line in seglog("tail", store, "--json").lines] == ["now"]
    put.communicate(timeout=patience_s(30))
    assert put.returncode == 0


def test_lines_stored_before_an_error_are_counted(seglog: Seglog, store):
    stdin = b"x\n" * 200_000 + bytes((4 << 20) + 1)
    failed = seglog("put", store, "t", "--lines", stdin=stdin)
    assert failed.exit_code == 22
    assert "stored before the error" in failed.stderr


def test_get_shows_a_table_and_where_to_go_on(seglog: Seglog, store):
    for body in ("a", "b", "c"):
        seglog("put", store, "t", body, "--tags", body.upper(), "--key", "k")
    shown = seglog("get", store, "t", "--offset", 1, "--count", 1).stdout.splitlines()
    assert shown[0].split() == ["offset", "stored", "tag", "keys", "body"]
    assert shown[1].split()[0] == "1"
    assert shown[1].split()[3:] == ["B", "k", "b"]
    assert shown[2] == "t/0: FOUND, 1 message, next offset 2 (the queue holds 0..3)"


def test_get_without_queue_reads_all_queues_of_the_topic(seglog: Seglog, store):
    for queue in (10, 2):
        seglog("put", store, "t", f"in {queue}", "--queue", queue)
    seglog("put", store, "other", "x")
    lines = seglog("get", store, "t", "--json").lines
    assert [(line["queueId"], line["kind"]) for line in lines] == [
        (2, "message"),
        (2, "result"),
        (10, "message"),
        (10, "result"),
    ]


@pytest.mark.parametrize(
    ("queue", "offset", "status", "next_offset"),
    [
        (0, 0, "FOUND", 3),
        (0, 3, "OFFSET_OVERFLOW_ONE", 3),
        (0, 4, "OFFSET_OVERFLOW_BADLY", 3),
        (7, 0, "NO_MESSAGE_IN_QUEUE", 0),
    ],
)
def test_get_prints_the_status_and_next_offset_of_the_store(
    seglog: Seglog, store, queue, offset, status, next_offset
):
    seglog("put", store, "t", "--lines", stdin=b"a\nb\nc\n")
    result = seglog("get", store, "t", "--queue", queue, "--offset", offset, "--json").lines[-1]
    assert (result["status"], result["nextOffset"]) == (status, next_offset)


def test_an_offset_before_the_first_message_says_where_that_is(seglog: Seglog, tmp_path):
    store = golden.extract("d-trimfront", tmp_path)
    result = seglog("get", store, "TopicA", "--queue", 0, "--offset", 3, "--json").lines[-1]
    assert (result["status"], result["nextOffset"]) == ("OFFSET_TOO_SMALL", 14)


def test_a_filter_without_a_match_reads_the_queue_to_its_end(seglog: Seglog, store):
    seglog("put", store, "t", "--lines", "--tags", "A", stdin=b"x\n" * 5000)
    result = seglog("get", store, "t", "--filter", "B", "--json").lines[-1]
    assert result["status"] == "NO_MATCHED_MESSAGE"
    assert result["nextOffset"] == 5000


def test_a_read_goes_on_behind_a_damaged_record(seglog: Seglog, tmp_path):
    store = golden.extract("d-magic", tmp_path)
    lines = seglog("get", store, "TopicA", "--queue", 2, "--count", 100, "--json").lines
    assert lines[-1]["nextOffset"] == 33
    assert lines[-1]["count"] == 32


@pytest.mark.parametrize(("more", "word"), [(b"", "repairable"), (b"\xff" * 8, "lost")])
def test_a_read_says_which_messages_are_lost_and_which_are_repairable(more, word, seglog: Seglog, tmp_path):
    with MessageStore.open(golden.extract("roll", tmp_path), read_only=True) as whole:
        (message,) = whole.get("order_events", 2, 3, 1)
    store = golden.extract("d-bodyflip-first", tmp_path)
    with (store / "commitlog" / f"{0:020d}").open("r+b") as log:
        log.seek(message.phy_offset + 100)
        log.write(more)
    asked = ["get", store, "order_events", "--queue", 2, "--offset", 2, "--count", 2]
    line = seglog(*asked, "--json").lines[-1]
    assert (line["count"], line["nextOffset"]) == (2, 5)
    assert {name: line[name] for name in ("lost", "repairable")} == {
        "lost": [],
        "repairable": [],
        word: [[3, 3]],
    }
    assert f"{word} on the way: 3..3" in seglog(*asked).stdout


def test_compressed_bodies_are_shown_as_they_were_given(seglog: Seglog, tmp_path):
    store = golden.extract("comp", tmp_path)
    (message, _result) = seglog("get", store, "CompTopic", "--queue", 0, "--count", 1, "--json").lines
    assert len(
        base64.b64decode(message["body"]) if message["bodyForm"] == "base64" else message["body"].encode()
    ) == (int(message["properties"]["rawLen"]))


def test_nothing_in_a_message_can_steer_the_terminal(seglog: Seglog, store):
    seglog("put", store, "t", "\x1b[31mred\x07\r\n", "--property", "a=b", "--tags", "\x1b[2J")
    for arguments in (["get", store, "t"], ["tail", store], ["dump", store]):
        shown = seglog(*arguments).stdout
        assert "\x1b" not in shown
        assert "\\x1b[31mred\\x07\\r\\n" in shown


def test_reading_beside_a_writer_needs_no_lock(seglog: Seglog, store):
    with MessageStore.open(store) as writer:
        writer.put("t", b"live")
        (message, _result) = seglog("get", store, "t", "--json").lines
        assert message["body"] == "live"


@pytest.mark.parametrize("pair", ["novalue", "TAGS=x", "KEYS=x"])
def test_properties_that_an_option_sets_are_refused(pair):
    with pytest.raises(InvalidArgumentError):
        put.parse_properties([pair])


def test_a_property_that_is_given_twice_is_refused():
    with pytest.raises(InvalidArgumentError, match="k is given twice: '1' and '2'"):
        put.parse_properties(["k=1", "j=1", "k=2"])


def test_a_batch_is_cut_by_count_and_by_size():
    assert [len(group) for group in put.batches([b""] * 2500, 1, 1 << 20)] == [1000, 1000, 500]
    assert [len(group) for group in put.batches([b"x" * 10] * 5, 10, 45)] == [2, 2, 1]
    assert [len(group) for group in put.batches([b"x" * 100, b"y"], 10, 45)] == [1, 1]
