"""What listeners get of pulled records: each message by itself, and an error of one costs that one."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.consumer.message_bodies import (
    body_of,
    is_inner_batch,
    of_its_topic,
    place_of,
    unwrap,
    unwrap_all,
)
from seglog.errors import BodyError, CodecMissingError
from seglog.storage.format.record import (
    COMPRESSED,
    COMPRESSION_LZ4,
    COMPRESSION_ZSTD,
    INNER_BATCH,
    MAX_INFLATED_BYTES,
    NEED_UNWRAP,
    Host,
    Message,
)
from seglog.storage.format.record.inner_batch import BatchMessage, encode_batch
from tests.support.material.golden import expected, extract
from tests.support.material.log_records import iter_log

HOST = Host(b"\x7f\0\0\1", 10911)
BATCH = INNER_BATCH | NEED_UNWRAP


def message(body, sys_flag=0, properties=b"", queue_offset=5):
    return Message("T", 3, queue_offset, 500, 100, 7, sys_flag, 1, 2, 3, HOST, HOST, 0, 0, body, properties)


def batch(count, queue_offset=5, body=None, sys_flag=BATCH):
    parts = [BatchMessage(b"body %d" % number, b"TAGS\1t%d\2" % number, number) for number in range(count)]
    properties = b"INNER_BASE\1%d\2INNER_NUM\1%d\2" % (queue_offset, count)
    return message(encode_batch(parts) if body is None else body, sys_flag, properties, queue_offset)


def test_finding_1_of_consumers_130_of_130_messages_of_inner_batches_are_given(tmp_path):
    found = unwrap_all(record.message() for record in iter_log(extract("innerbatch", tmp_path)))
    assert found.errors == []
    assert len(found.messages) == 130
    assert not any(map(is_inner_batch, found.messages))
    for queue_id in (0, 1):
        mine = [one for one in found.messages if one.queue_id == queue_id]
        assert [one.queue_offset for one in mine] == list(range(65))
    singles = [one for one in found.messages if "ibsingle" in one.properties["KEYS"]]
    assert len(singles) == 8
    records = [line for line in expected("innerbatch") if line["kind"] == "msg"]
    keys = []
    for number, record in enumerate(sorted(records, key=lambda line: line["commitLogOffset"])):
        is_single = number % 5 == 4
        count = 1 if is_single else 1 + number % 7
        keys += [f"ibsingle{number}"] if is_single else [f"ib{number}k{part}" for part in range(count)]
        assert record["queueOffset"] in {one.queue_offset for one in found.messages}
    assert [one.properties["KEYS"] for one in found.messages] == keys
    assert {one.tags for one in found.messages} == {"IB"}
    sizes = [80 if "single" in key else 10 + 5 * int(key.rpartition("k")[2]) for key in keys]
    assert [len(body_of(one)) for one in found.messages] == sizes


def test_messages_of_a_batch_have_what_is_their_own_and_all_else_of_the_record():
    record = dataclasses.replace(batch(3, queue_offset=40), reconsume_times=2)
    messages = unwrap(record)
    assert [(one.queue_offset, one.flag, one.tags, one.body) for one in messages] == [
        (40, 0, "t0", b"body 0"),
        (41, 1, "t1", b"body 1"),
        (42, 2, "t2", b"body 2"),
    ]
    own = {"queue_offset", "flag", "body", "body_crc", "properties_raw", "sys_flag", "reconsume_times"}
    for field in dataclasses.fields(Message):
        if field.name not in own:
            assert {getattr(one, field.name) for one in messages} == {getattr(record, field.name)}
    assert {(one.sys_flag, one.reconsume_times, one.body_crc) for one in messages} == {(0, 0, 0)}


def test_a_record_that_is_to_be_given_as_it_is_stays_whole():
    for sys_flag in (0, INNER_BATCH, NEED_UNWRAP):
        record = batch(2, sys_flag=sys_flag)
        assert unwrap(record) == [record]


def test_a_batch_that_is_compressed_is_inflated_first_as_in_java():
    plain = batch(2)
    record = dataclasses.replace(plain, body=zlib.compress(plain.body), sys_flag=BATCH | COMPRESSED)
    assert unwrap(record) == unwrap(plain)


DAMAGE = {
    "cut": lambda body: body[:-1],
    "one message less": lambda body: body[: len(body) // 3],
    "nothing": lambda body: b"",
    "a size": lambda body: b"\x7f" + body[1:],
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_batch_costs_that_message_only_and_the_error_names_it(how):
    whole = batch(3, queue_offset=10)
    damaged = batch(3, queue_offset=13, body=DAMAGE[how](whole.body))
    found = unwrap_all([whole, damaged, message(b"last", queue_offset=16)])
    assert [one.queue_offset for one in found.messages] == [10, 11, 12, 13, 16]
    assert found.messages[3] is damaged
    (error,) = found.errors
    assert "T/3 @13, message 7F000001" in str(error)
    assert "the inner batch " in str(error)
    with pytest.raises(BodyError, match=r"T/3 @13, .*the body is an inner batch"):
        body_of(damaged)


@given(st.integers(1, 4), st.data())
def test_no_damage_of_a_batch_raises_anything_else_or_gives_too_many_messages(count, data):
    record = batch(count)
    body = bytearray(record.body)
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))
    cut = data.draw(st.integers(0, len(body)))
    found = unwrap_all([dataclasses.replace(record, body=bytes(body[:cut] if cut else body))])
    assert len(found.messages) == (1 if found.errors else count)


@pytest.mark.parametrize(
    "properties", [b"INNER_BASE\1x\2INNER_NUM\0013\2", b"INNER_BASE\0015\2INNER_NUM\0014\2"]
)
def test_a_record_that_says_something_else_than_its_batch_is_damaged(properties):
    record = dataclasses.replace(batch(3), properties_raw=properties)
    with pytest.raises(BodyError, match=r"T/3 @5, message .* inner batch"):
        unwrap(record)


def test_bodies_that_rocketmq_compressed_are_those_of_their_producer(tmp_path):
    seen = {"CZLIB": 0, "CLZ4": 0, "CZSTD": 0}
    for record in iter_log(extract("comp", tmp_path)):
        one = record.message()
        body = body_of(one)
        assert len(body) == int(one.properties["rawLen"])
        assert body.startswith(b"line-")
        seen[one.tags or ""] += 1
    assert seen == {"CZLIB": 10, "CLZ4": 10, "CZSTD": 10}


def lz4(body):
    return __import__("lz4.frame").frame.compress(body)


def zstd(body):
    return __import__("zstandard").ZstdCompressor(level=5).compress(body)


CODECS = {
    "zlib": (COMPRESSED, zlib.compress),
    "lz4": (COMPRESSED | COMPRESSION_LZ4, lz4),
    "zstd": (COMPRESSED | COMPRESSION_ZSTD, zstd),
}


@pytest.mark.parametrize("codec", CODECS)
def test_a_body_of_as_much_as_is_allowed_inflates_and_one_byte_more_does_not(codec):
    sys_flag, compress = CODECS[codec]
    for size in (1, 65_535, 65_536, 65_537, MAX_INFLATED_BYTES):
        assert body_of(message(compress(bytes(size)), sys_flag)) == bytes(size)
    too_long = message(compress(bytes(MAX_INFLATED_BYTES + 1)), sys_flag, b"UNIQ_KEY\1U7\2")
    with pytest.raises(
        BodyError, match=f"T/3 @5, message U7: the {codec} body .* at most 67108864 bytes"
    ) as info:
        body_of(too_long)
    assert "dead letters" in info.value.help
    assert len(body_of(too_long, MAX_INFLATED_BYTES + 1)) == MAX_INFLATED_BYTES + 1


@pytest.mark.parametrize("codec", CODECS)
def test_a_damaged_body_is_an_error_that_names_the_message(codec):
    sys_flag, compress = CODECS[codec]
    whole = compress(random.Random(1).randbytes(300) + b"abc" * 90_000)
    for body in (whole[:-1], whole[:-20], whole[: len(whole) // 2], whole[:3], b"", b"no " + whole):
        with pytest.raises(BodyError, match=f"T/3 @5, message 7F.*: the {codec} body does not inflate"):
            body_of(message(body, sys_flag))


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_frames_one_behind_another_are_one_body_as_in_java(codec):
    sys_flag, compress = CODECS[codec]
    first, second = b"abc" * 40_000, b"d" * 70_000
    assert body_of(message(compress(first) + compress(second), sys_flag)) == first + second
    for rest in (b"garbage", compress(second)[:-1]):
        with pytest.raises(BodyError, match="does not inflate"):
            body_of(message(compress(first) + rest, sys_flag))


@pytest.mark.parametrize(("codec", "module"), [("lz4", "lz4.frame"), ("zstd", "zstandard")])
def test_where_a_codec_is_missing_the_error_says_what_to_install(codec, module, monkeypatch):
    sys_flag, compress = CODECS[codec]
    one = message(compress(b"abc"), sys_flag)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CodecMissingError, match=f"T/3 @5, message 7F.*: {codec} bodies need") as info:
        body_of(one)
    assert info.value.help == "pip install 'seglog[compression]'"
    assert one.payload() == one.body
    assert f"the {codec} body is not inflated here: pip install 'seglog[compression]'" in one.body_error
    found = unwrap_all([dataclasses.replace(batch(1), sys_flag=sys_flag | BATCH), batch(2)])
    assert len(found.messages) == 3
    assert isinstance(found.errors[0], CodecMissingError)


@given(st.sampled_from(sorted(CODECS)), st.binary(max_size=300), st.data())
def test_no_bytes_raise_anything_but_our_errors(codec, body, data):
    sys_flag, compress = CODECS[codec]
    damaged = bytearray(compress(body) if data.draw(st.booleans()) else body)
    for _ in range(data.draw(st.integers(0, 3)) if damaged else 0):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(BodyError):
        assert len(body_of(message(bytes(damaged), sys_flag), 1_000)) <= 1_000


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_costs_no_more_memory_than_the_bound(codec):
    import tracemalloc

    sys_flag, compress = CODECS[codec]
    bomb = message(compress(bytes(64 << 20)), sys_flag)
    tracemalloc.start()
    try:
        with pytest.raises(BodyError, match="at most 4194304 bytes"):
            body_of(bomb, 4 << 20)
        assert tracemalloc.get_traced_memory()[1] < (4 << 20) + 3 * len(bomb.body) + (1 << 20)
    finally:
        tracemalloc.stop()


def test_what_is_tried_again_is_called_by_its_place_in_the_retry_topic():
    sent = message(b"x", properties=b"UNIQ_KEY\1A7\2")
    assert place_of(sent) == "T/3 @5, message A7"
    retried = dataclasses.replace(
        sent, topic="%RETRY%g", queue_id=0, queue_offset=9, properties_raw=b"UNIQ_KEY\1A7\2RETRY_TOPIC\1T\2"
    )
    assert place_of(retried) == "%RETRY%g/0 @9, message A7"
    assert place_of(of_its_topic(retried)) == "the group's retry topic/0 @9, message A7 of topic T"
