"""Tombstones are valid records of the lost record's size and identity; fillers take any other stretch."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.batch_consume_queue import batch_range
from seglog.storage.format.lmq import multi_queues
from seglog.storage.format.message import decode_message
from seglog.storage.format.record import Damage, examine
from seglog.storage.format.sys_flag import takes_queue_offset
from seglog.storage.format.tombstone import (
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
from tests.support.records import Record

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


@pytest.mark.parametrize("record_crc", [True, False])
@pytest.mark.parametrize("size", [111, 112, 123, 124, 200, 1 << 20, (1 << 20) + 1, (3 << 20) + 110])
def test_fillers_take_a_stretch_without_gaps_and_have_no_place_in_any_queue(size, record_crc):
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
    record = Record(flag=LOST_FLAG, body=b"\0\0payload").pack()
    assert has_lost_flag(memoryview(record))
    assert not is_tombstone(memoryview(record))
    assert not is_tombstone(memoryview(Record(body=bytes(40)).pack()))
    assert not is_tombstone(memoryview(record)[:50])
