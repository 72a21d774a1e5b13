"""One body that does not inflate costs no other message: it comes as stored, with the reason."""

from __future__ import annotations

import base64
import random
import zlib

import pytest

from seglog.clock import VirtualClock
from seglog.storage.format.record.sys_flag import COMPRESSED, COMPRESSION_LZ4, COMPRESSION_ZSTD
from seglog.storage.store import MessageStore
from seglog.testing import VirtualBroker
from tests.support.command_line import Seglog
from tests.support.material.stores import SMALL_INDEX, AllLengths

SMALL: AllLengths = {"segment_size_bytes": 1 << 20, "queue_file_size_bytes": 2000, **SMALL_INDEX}
NOISE = random.Random(5).randbytes(60)
PLAIN = [b"first", b"last"]
GOOD = b"apples " * 20
BAD = {
    1: (NOISE, COMPRESSED, "the zlib body does not inflate"),
    3: (zlib.compress(GOOD)[:-5], COMPRESSED | 0x300, "the zlib body does not inflate"),
    4: (zlib.compress(bytes(65 << 20), 1), COMPRESSED, "at most 67108864 bytes"),
    5: (NOISE, COMPRESSED | COMPRESSION_LZ4, "the lz4 body does not inflate"),
    6: (NOISE, COMPRESSED | COMPRESSION_ZSTD, "the zstd body does not inflate"),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("bad") / "s"
    with MessageStore.open(path, clock=VirtualClock(), **SMALL) as store:
        plain = iter(PLAIN)
        for queue_offset in range(9):
            keys = b"KEYS\1k%d all\2UNIQ_KEY\1U%d\2" % (queue_offset, queue_offset)
            if queue_offset in BAD:
                body, flags, _reason = BAD[queue_offset]
                store.append("t", 0, body, keys, 0, sys_flag=flags)
            elif queue_offset in (2, 7):
                store.append("t", 0, zlib.compress(GOOD), keys, 0, sys_flag=COMPRESSED)
            else:
                store.append("t", 0, next(plain), keys, 0)
    return path


JSON = {
    "get": ("get", "t", "--json"),
    "tail": ("tail", "--json"),
    "query": ("query", "t", "all", "--json"),
    "export": ("export", "--inflate", "-o", "-"),
}


def ran(seglog, path, words):
    command, *rest = words
    return seglog(command, path, *rest)


@pytest.mark.parametrize("words", JSON.values(), ids=JSON)
def test_programs_get_every_message_and_why_a_body_is_as_stored(seglog: Seglog, path, words):
    answer = ran(seglog, path, words)
    assert answer.exit_code == 0
    found = [one for one in answer.lines if one["kind"] == "message"]
    assert sorted(one["queueOffset"] for one in found) == list(range(9))
    for one in found:
        bad = BAD.get(one["queueOffset"])
        if bad is None:
            assert "bodyError" not in one
            assert one["body"].encode() in (*PLAIN, GOOD)
        else:
            body, flags, reason = bad
            assert base64.b64decode(one["body"]) == body
            assert one["sysFlag"] == flags
            assert f"t/0 @{one['queueOffset']}, record at {one['commitLogOffset']}: " in one["bodyError"]
            assert reason in one["bodyError"]


PEOPLE = {
    "get": ("get", "t"),
    "get in hex": ("get", "t", "--body", "hex"),
    "tail": ("tail",),
    "query": ("query", "t", "all"),
    "dump": ("dump",),
    "dump --log": ("dump", "--log"),
}


@pytest.mark.parametrize("words", PEOPLE.values(), ids=PEOPLE)
def test_people_see_every_message_and_why_a_body_is_as_stored(seglog: Seglog, path, words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    answer = ran(seglog, path, words)
    assert answer.exit_code == 0
    form = "hex" if "hex" in words else "text"
    for body in PLAIN:
        assert (body.hex() if form == "hex" else body.decode()) in answer.stdout
    for reason in ("the zlib body does not inflate", "the lz4 body does not", "the zstd body does not"):
        assert reason in answer.stdout


def test_raw_bodies_go_on_behind_a_bad_one_which_is_named_beside(seglog: Seglog, path):
    answer = seglog("get", path, "t", "--body", "raw")
    assert answer.exit_code == 0
    assert answer.stdout_bytes.endswith(b"\n" + GOOD + b"\nlast")
    for queue_offset, line in zip(BAD, answer.stderr.splitlines(), strict=True):
        assert f"t/0 @{queue_offset}," in line


def test_one_message_shows_its_reason(seglog: Seglog, path):
    answer = seglog("query", path, "t", "--id", "U1")
    assert answer.exit_code == 0
    assert "the zlib body does not inflate" in " ".join(answer.stdout.split())


def test_an_export_to_parquet_keeps_the_row_and_the_reason(seglog: Seglog, path, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    target = tmp_path / "rows.parquet"
    assert seglog("export", path, "--inflate", "--format", "parquet", "-o", target).exit_code == 0
    rows = parquet.read_table(target).to_pylist()
    assert [row["queueOffset"] for row in rows if row["bodyError"] is not None] == list(BAD)
    assert [row["body"] for row in rows if row["queueOffset"] in BAD] == [bad[0] for bad in BAD.values()]


def test_what_was_exported_as_stored_is_imported_as_stored(seglog: Seglog, path, tmp_path):
    target, again = tmp_path / "rows.jsonl", tmp_path / "again"
    assert seglog("export", path, "--inflate", "-o", target).exit_code == 0
    assert seglog("import", again, target).exit_code == 0
    with MessageStore.open(again, read_only=True) as store:
        for queue_offset, message in enumerate(store.get("t", 0, 0, 99)):
            if queue_offset in BAD:
                assert (message.body, message.sys_flag) == BAD[queue_offset][:2]


def test_check_and_explain_take_it_for_a_message(seglog: Seglog, path):
    assert seglog("check", path).exit_code == 0
    assert seglog("explain", path, "U1").exit_code == 0


@pytest.mark.parametrize("read_only", [True, False])
def test_every_call_of_a_store_gives_it(path, read_only):
    with MessageStore.open(path, read_only=read_only) as store:
        found = list(store.get("t", 0, 0, 99))
        assert [message.body_error is not None for message in found] == [at in BAD for at in range(9)]
        assert [message.body for message in found if message.body_error] == [bad[0] for bad in BAD.values()]
        for message in found:
            assert store.message_at(message.phy_offset) == message
            assert store.message_by_id(message.message_id) == message
        assert store.query("t", "all") == found
        assert bytes(store.queue("t", 0).bodies()[1]) == NOISE


def test_for_a_listener_it_is_a_failure_and_others_go_on_once_it_is_given_up(tmp_path):
    with VirtualBroker.at(tmp_path / "s") as broker:
        broker.producer().send("t", b"first", queue_id=0)
        broker.store.append("t", 0, NOISE, b"", 0, sys_flag=COMPRESSED)
        broker.store.put("t", b"next")
        seen = []
        with broker.consumer("g", "t", seen.append, max_reconsume_times=1) as consumer:
            consumer.run_until_idle()
            assert [message.body for message in seen] == [b"first"]
            broker.advance("1s")
            assert [message.body for message in seen] == [b"first", b"next"]
            assert (consumer.counts.failed, consumer.counts.given_up) == (2, 1)
        assert [message.body for message in broker.messages("%DLQ%g")] == [NOISE]
