"""Tombstones are valid records of the lost record's size and identity; fillers take any other stretch."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.queue.batch_consume_queue import batch_range
from seglog.storage.format.queue.lmq import multi_queues
from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.record import Damage, examine
from seglog.storage.format.record.sys_flag import takes_queue_offset
from seglog.storage.format.record.tombstone import (
    LOST_FLAG,
    LOST_TAGS_CODE,
    MAX_FILLER_BYTES,
    LostRecord,
    encode_fillers,
    encode_tombstone,
    has_lost_flag,
    is_tombstone,
    min_filler_bytes,
    min_tombstone_bytes,
    tombstone_tags_code,
)
from tests.support.material.records import Record
from tests.support.rows import every_row

NOW_MS = 1_700_000_000_000
TOPICS = ["T", "orders", "x" * 127, "x" * 128, "x" * 255]
I63 = st.integers(0, 2**63 - 1)


def valid(record, phy_offset):
    row = examine(memoryview(record), 0, phy_offset)
    assert not isinstance(row, Damage), row
    return row


@given(
    topic=st.sampled_from(TOPICS),
    queue_id=st.integers(0, 2**31 - 1),
    queue_offset=I63,
    phy_offset=I63,
    room=st.integers(0, 70) | st.integers(0, 40_000),
    record_crc=st.booleans(),
)
def test_tombstone_has_place_size_and_identity_of_the_lost_record(
    topic, queue_id, queue_offset, phy_offset, room, record_crc
):
    size = min_tombstone_bytes(topic.encode()) + room
    lost = LostRecord(topic, queue_id, queue_offset, phy_offset, size)
    record = encode_tombstone(lost, NOW_MS, record_crc=record_crc)
    row = valid(record, phy_offset)
    assert (row.topic.decode(), row.queue_id, row.queue_offset) == (topic, queue_id, queue_offset)
    assert row.size_bytes == len(record) == size
    assert takes_queue_offset(row.sys_flag)
    assert row.store_timestamp_ms == NOW_MS
    assert is_tombstone(memoryview(record))
    assert tombstone_tags_code(lost, NOW_MS, record_crc=record_crc) == row.tags_code
    message = decode_message(memoryview(record))
    crc_bytes = 20 * (record_crc and room >= 20)
    assert ("__CRC32#" in message.properties) == bool(crc_bytes)
    assert (message.properties.get("SEGLOG_LOST") == "1") == (room >= 14 + crc_bytes)
    assert (row.tags_code == LOST_TAGS_CODE) == (room >= 31 + crc_bytes)


def test_tombstone_of_an_inner_batch_says_its_range():
    lost = LostRecord("B", 0, 70, 4096, 300, batch_size=5)
    message = decode_message(memoryview(encode_tombstone(lost, NOW_MS, record_crc=True)))
    assert batch_range(message.properties_raw, message.queue_offset) == (70, 5)
    assert message.sys_flag == 0


def test_tombstone_says_its_offsets_in_further_queues():
    lost = LostRecord("T", 3, 70, 4096, 300, further=(("%LMQ%a", 5), ("%LMQ%b", 0)))
    message = decode_message(memoryview(encode_tombstone(lost, NOW_MS, record_crc=False)))
    found = multi_queues("T", 3, message.properties_raw)
    assert [(name, queue_id, offset) for name, queue_id, offset in found] == [
        ("%LMQ%a", 0, 5),
        ("%LMQ%b", 0, 0),
    ]


@pytest.mark.parametrize(
    ("topic", "wanted"),
    [
        ("rmq_sys_wheel_timer", {"TIMER_OUT_MS": str(NOW_MS), "REAL_TOPIC": "SEGLOG_LOST", "REAL_QID": "0"}),
        ("SCHEDULE_TOPIC_XXXX", {"REAL_TOPIC": "SEGLOG_LOST", "REAL_QID": "0"}),
        ("RMQ_SYS_TRANS_HALF_TOPIC", {"PGROUP": "SEGLOG_LOST", "TRANSACTION_CHECK_TIMES": "99"}),
        ("plain", {}),
    ],
)
def test_topics_of_the_broker_get_what_it_needs_to_pass_over_a_tombstone(topic, wanted):
    record = encode_tombstone(LostRecord(topic, 0, 1, 0, 400), NOW_MS, record_crc=True)
    properties = decode_message(memoryview(record)).properties
    assert wanted.items() <= properties.items()
    assert properties["TAGS"] == "SEGLOG_LOST"
    assert valid(record, 0).tags_code == LOST_TAGS_CODE


def test_fillers_take_a_stretch_without_gaps_and_have_no_place_in_any_queue():
    with every_row() as each:
        for record_crc in (True, False):
            for size in (111, 112, 123, 124, 200, 1 << 20, (1 << 20) + 1, (3 << 20) + 110):
                with each(record_crc, size):
                    fillers = list(encode_fillers(4096, size, NOW_MS, record_crc=record_crc))
                    starts = [4096 + sum(map(len, fillers[:number])) for number in range(len(fillers) + 1)]
                    assert starts[-1] == 4096 + size
                    for (start, end), filler in zip(pairwise(starts), fillers, strict=True):
                        row = valid(filler, start)
                        assert row.size_bytes == end - start <= MAX_FILLER_BYTES
                        assert not takes_queue_offset(row.sys_flag)
                        assert row.tags_code == 0
                        assert is_tombstone(memoryview(filler))
                        assert filler.endswith(b"\x02") == record_crc


def test_smallest_filler_is_the_smallest_record():
    assert (min_filler_bytes(record_crc=False), min_filler_bytes(record_crc=True)) == (91, 111)
    (filler,) = encode_fillers(0, 91, NOW_MS, record_crc=False)
    assert valid(filler, 0).topic == b""


def test_message_that_happens_to_have_the_flag_is_no_tombstone():
    for body in (b"\0\0payload", bytes(40), b""):
        record = Record(flag=LOST_FLAG, body=body).pack()
        assert has_lost_flag(memoryview(record))
        assert not is_tombstone(memoryview(record))
    assert not is_tombstone(memoryview(Record(flag=LOST_FLAG, store_port=0, body=b"\0\0payload").pack()))
    assert not is_tombstone(memoryview(Record(body=bytes(40)).pack()))
    assert not is_tombstone(memoryview(Record(flag=LOST_FLAG, body=b"").pack())[:50])


COMPRESSED, ZSTD, NEED_UNWRAP, INNER = 0x1, 0x300, 0x80, 0x40
COMMITTED = 0x8
KEPT = b"KEYS\x01k1\x02UNIQ_KEY\x01U7\x02"
MARKS = b"SEGLOG_LOST\x011\x02TAGS\x01SEGLOG_LOST\x02"
ROTTEN = Record(
    queue_id=3, queue_offset=41, phy_offset=4096, flag=5, reconsume_times=2, prepared_transaction_offset=9,
    body=b"r" * 90, properties=KEPT + b"TAGS\x01a\x02",
)  # fmt: skip
"""A record with a legible head, and any body."""


def tombstone_of(rotten, *, record_crc=False, damage=b"?"):
    """Returns the tombstone of a record whose body has another byte than its checksum was made of."""
    record = bytearray(rotten.pack())
    if rotten.body:
        at = bytes(record).rindex(rotten.body)
        record[at : at + 1] = damage
    lost = LostRecord("", 0, 0, rotten.phy_offset, len(record), legible=bytes(record))
    return encode_tombstone(lost, NOW_MS, record_crc=record_crc)


def wanted(rotten, properties, **changes):
    """Returns the bytes of a record of the same size with other properties, the rest of it zeros."""
    made = replace(rotten, flag=LOST_FLAG, store_port=0, properties=properties, **changes)
    spare = len(rotten.pack()) - len(replace(made, body=b"").pack())
    return replace(made, body=bytes(spare)).pack()


@pytest.mark.parametrize(
    "bits", [0, COMPRESSED, COMPRESSED | ZSTD, NEED_UNWRAP | INNER, COMMITTED | COMPRESSED]
)
def test_tombstone_of_a_legible_record_keeps_its_head_and_properties(bits):
    rotten = replace(ROTTEN, sys_flag=bits)
    stone = tombstone_of(rotten)
    assert stone == wanted(rotten, KEPT + MARKS, sys_flag=bits & COMMITTED)
    assert valid(stone, 4096).queue_offset == 41
    assert is_tombstone(memoryview(stone))


@pytest.mark.parametrize("length", [15, 16])
def test_tombstone_keeps_addresses_of_either_kind(length):
    address = bytes(range(4 if length == 15 else 16))
    rotten = replace(ROTTEN, born_address=address, store_address=address)
    assert tombstone_of(rotten) == wanted(rotten, KEPT + MARKS)
    assert is_tombstone(memoryview(tombstone_of(rotten)))


def test_tombstone_of_a_record_with_checksum_has_a_new_one():
    rotten = replace(ROTTEN, record_crc=True)
    assert tombstone_of(rotten) == wanted(rotten, KEPT + MARKS)
    assert tombstone_of(ROTTEN, record_crc=True) == wanted(ROTTEN, KEPT + MARKS, record_crc=True)


@pytest.mark.parametrize(
    ("spare", "marks"), [(0, b""), (13, b""), (14, MARKS[:14]), (30, MARKS[:14]), (31, MARKS), (32, MARKS)]
)
def test_marks_of_a_tombstone_take_their_room_from_the_body(spare, marks):
    rotten = replace(ROTTEN, body=b"r" * spare, properties=KEPT)
    assert tombstone_of(rotten) == wanted(rotten, KEPT + marks)


def test_tombstone_leaves_out_properties_that_hold_zeros_or_have_no_name():
    rotten = replace(ROTTEN, properties=b"A\x01\0\0\0\x02" + KEPT + b"\x01x\x02rest")
    assert tombstone_of(rotten) == wanted(rotten, KEPT + MARKS)


WAITING = {
    # What each topic's service needs so that a message that it cannot read does not stop it.
    "rmq_sys_wheel_timer": b"TIMER_OUT_MS\x011700000060000\x02REAL_TOPIC\x01T\x02REAL_QID\x013\x02",
    "SCHEDULE_TOPIC_XXXX": b"REAL_TOPIC\x01T\x02REAL_QID\x013\x02",
    "RMQ_SYS_TRANS_HALF_TOPIC": b"REAL_TOPIC\x01T\x02REAL_QID\x013\x02PGROUP\x01g\x02TRAN_MSG\x01true\x02",
    "rmq_sys_REVIVE_LOG_DefaultCluster": b"",
}


@pytest.mark.parametrize("topic", WAITING)
def test_a_rotten_message_of_the_broker_reaches_its_topic_as_a_tombstone(topic):
    rotten = replace(ROTTEN, topic=topic.encode(), properties=WAITING[topic] + b"TAGS\x01ck\x02")
    stone = tombstone_of(rotten)
    assert stone == wanted(rotten, WAITING[topic] + MARKS)


def test_the_delay_of_a_rotten_delayed_message_goes_so_that_its_queue_unit_knows_the_tombstone():
    rotten = replace(ROTTEN, topic=b"SCHEDULE_TOPIC_XXXX", properties=b"DELAY\x013\x02" + KEPT)
    assert tombstone_of(rotten) == wanted(rotten, KEPT + MARKS)
    assert valid(tombstone_of(rotten), 4096).tags_code == LOST_TAGS_CODE
    plain = replace(ROTTEN, properties=b"DELAY\x013\x02" + KEPT)
    assert tombstone_of(plain) == wanted(plain, b"DELAY\x013\x02" + KEPT + MARKS)


SERVICES = ("rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC")


def test_what_a_brokers_service_needs_is_whole_or_left_out():
    with every_row() as row:
        for topic in SERVICES:
            for room in (0, 40, 74, 100, 300):
                with row(topic, room):
                    size = min_tombstone_bytes(topic.encode()) + room
                    stone = encode_tombstone(LostRecord(topic, 0, 1, 0, size), NOW_MS, record_crc=False)
                    found = decode_message(memoryview(stone)).properties
                    needed = {
                        "rmq_sys_wheel_timer": {"TIMER_OUT_MS", "REAL_TOPIC", "REAL_QID"},
                        "SCHEDULE_TOPIC_XXXX": {"REAL_TOPIC", "REAL_QID"},
                        "RMQ_SYS_TRANS_HALF_TOPIC": {
                            "REAL_TOPIC",
                            "REAL_QID",
                            "PGROUP",
                            "TRANSACTION_CHECK_TIMES",
                        },
                    }[topic]
                    assert needed & found.keys() in (needed, set())
                    assert room < 100 or needed <= found.keys()
