"""What a compaction knows of records, and where they go: natively as in Python, and as plain words say."""

from __future__ import annotations

import random
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import CorruptError
from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.record import CRC_MASK, PHY_OFFSET_AT, Damage, examine
from seglog.storage.format.record.sys_flag import INNER_BATCH, TRANSACTION_PREPARED
from seglog.storage.kernels import NATIVE, PYTHON
from seglog.storage.kernels.key_winners import KEYED, last_of_keys
from seglog.storage.kernels.record_facts import (
    ASKS_KEYS,
    FACT,
    Bit,
    PlaceholderMark,
    key_hash,
    record_facts,
)
from seglog.storage.kernels.record_moves import move_records
from seglog.storage.kernels.walk import QueueTable, walk
from tests.support.machine.kernels import BOTH, running
from tests.support.material.records import Record

MARK = PlaceholderMark(0x434D_5054, b"SEGLOG_COMPACTED\x011\x02")
FIRST = 1 << 20
PROPERTIES = [
    b"",
    b"KEYS\x01k1\x02",
    b"KEYS\x01k1",
    b"KEYS\x01a b\x02TAGS\x01T\x02",
    b"KEYS\x01first\x02KEYS\x01" + b"long " * 9 + b"\x02",
    b"KEYS\x01 \x0b\x02",
    b"XKEYS\x01no\x02KEYS\x01\x02",
    b"INNER_NUM\x012\x02KEYS\x01k\x02",
    MARK.properties,
]
records = st.builds(
    Record,
    topic=st.sampled_from([b"T", b"Orders", b"L" * 200, b"\xff\xfe"]),
    queue_id=st.integers(0, 2),
    queue_offset=st.integers(0, 1 << 40),
    flag=st.sampled_from([0, MARK.flag]),
    sys_flag=st.sampled_from([0, TRANSACTION_PREPARED, INNER_BATCH, 1]),
    born_address=st.sampled_from([bytes(4), bytes(range(16))]),
    store_address=st.sampled_from([bytes(4), bytes(range(16))]),
    store_timestamp_ms=st.integers(1, 1 << 42),
    body=st.sampled_from([b"", b"x", b"body" * 300]),
    properties=st.sampled_from(PROPERTIES),
    record_crc=st.booleans(),
)
logs = st.lists(records, min_size=1, max_size=12)


def laid_out(made):
    """Returns records one behind the other, each with its place, and their rows."""
    data = bytearray()
    for record in made:
        data += replace(record, phy_offset=FIRST + len(data)).pack()
    found = walk(memoryview(data), FIRST, FIRST + len(data), QueueTable())
    assert len(found.rows) == len(made)
    return memoryview(data), found.rows


def facts_by(kernels, buffer, rows, asks=bytes([ASKS_KEYS] * 30), salt=4711):
    with running(kernels):
        return record_facts(buffer, FIRST, rows, asks, salt, MARK)


@given(made=logs, salt=st.integers(0, (1 << 63) - 1))
def test_both_kernels_know_the_same_of_records(made, salt):
    buffer, rows = laid_out(made)
    assert (
        facts_by(NATIVE, buffer, rows, salt=salt).tolist()
        == facts_by(PYTHON, buffer, rows, salt=salt).tolist()
    )


@pytest.mark.parametrize("kernels", BOTH)
@given(made=logs)
def test_facts_are_what_messages_say(kernels, made):
    buffer, rows = laid_out(made)
    for record, row, fact in zip(made, rows, facts_by(kernels, buffer, rows), strict=True):
        at = int(row["phy_offset"]) - FIRST
        message = decode_message(buffer[at : at + int(row["size_bytes"])])
        bits = Bit(int(fact["bits"]))
        assert (int(fact["queue_offset"]), int(fact["size_bytes"])) == (
            message.queue_offset,
            message.size_bytes,
        )
        assert (Bit.IS_EMPTY in bits) == (not message.body)
        assert (Bit.HAS_CRC in bits) == record.record_crc
        assert (Bit.TAKES_SLOT in bits) == (record.sys_flag != TRANSACTION_PREPARED)
        is_single = record.sys_flag not in (TRANSACTION_PREPARED, INNER_BATCH)
        is_single &= b"INNER_" not in record.properties
        assert (Bit.IS_SINGLE in bits) == is_single
        key = message.properties.get("KEYS", "")
        assert (Bit.HAS_KEY in bits) == (is_single and bool(key.strip()))
        if Bit.HAS_KEY in bits:
            assert (int(fact["key_high"]), int(fact["key_low"])) == key_hash(key.encode(), 4711)
        stands_for_one = record.flag == MARK.flag and not record.body
        stands_for_one &= record.properties in (b"", MARK.properties)
        assert (Bit.IS_PLACEHOLDER in bits) == (stands_for_one and Bit.TAKES_SLOT in bits)


@pytest.mark.parametrize("kernels", BOTH)
def test_records_that_changed_since_they_were_walked_are_refused(kernels):
    buffer, rows = laid_out([Record(), Record()])
    buffer[len(buffer) // 2 + 4] ^= 1
    with pytest.raises(CorruptError, match="record-changed"):
        facts_by(kernels, buffer, rows)
    starts, sizes = rows["phy_offset"] - FIRST, rows["size_bytes"].astype(np.int64)
    with running(kernels), pytest.raises(CorruptError, match="record-changed"):
        move_records(buffer, FIRST, starts, sizes + 9999, np.zeros(2, np.bool_), MARK, 0)


@given(made=logs, chosen=st.randoms(use_true_random=False), new=st.integers(0, 1 << 50))
def test_both_kernels_move_records_alike_and_what_moved_proves_itself(made, chosen, new):
    buffer, rows = laid_out(made)
    facts = facts_by(PYTHON, buffer, rows)
    replaced = np.array([chosen.random() < 0.5 for _record in made], np.bool_)
    sizes = np.where(replaced, facts["placeholder_bytes"], facts["size_bytes"]).astype(np.int64)
    assert (sizes <= facts["size_bytes"]).all()
    starts = rows["phy_offset"] - FIRST
    out = {}
    for kernels in BOTH:
        with running(kernels):
            out[kernels] = move_records(buffer, FIRST, starts, sizes, replaced, MARK, new)
    assert out[NATIVE].tobytes() == out[PYTHON].tobytes()
    place = 0
    for record, row, size, is_replaced in zip(made, rows, sizes.tolist(), replaced.tolist(), strict=True):
        moved = examine(out[NATIVE].data, place, new + place)
        assert not isinstance(moved, Damage)
        assert moved.size_bytes == size
        at = int(row["phy_offset"]) - FIRST
        after = decode_message(out[NATIVE].data[place : place + size])
        before = decode_message(buffer[at : at + int(row["size_bytes"])])
        said = ("topic", "queue_id", "queue_offset", "store_timestamp_ms", "born_host", "store_host")
        assert [getattr(after, name) for name in said] == [getattr(before, name) for name in said]
        if is_replaced:
            assert (after.flag, after.body) == (MARK.flag, b"")
            assert after.properties.keys() <= {"SEGLOG_COMPACTED", "__CRC32#"}
        else:
            assert (after.flag, after.body) == (record.flag, record.body)
        place += size


@pytest.mark.parametrize("kernels", BOTH)
def test_moved_records_verify_and_damaged_ones_do_not(kernels):
    rng = random.Random(1)
    for number in range(100):
        body = rng.randbytes(rng.choice([0, 1, 50, 700, 5000]))
        old, new = rng.randrange(1 << 50), rng.randrange(1 << 50)
        data = bytearray(Record(body=body, phy_offset=old, record_crc=True).pack())
        if number % 10 == 0:
            data[60] ^= 1  # in storeTimestamp, which only the record CRC covers
        one = np.zeros(1, np.int64)
        with running(kernels):
            moved = move_records(memoryview(data), old, one, one + len(data), one > 0, MARK, new)
        found = examine(moved.data, 0, new)
        assert (found.kind if isinstance(found, Damage) else None) == (
            "record-crc" if number % 10 == 0 else None
        )
        if number % 10:
            data[PHY_OFFSET_AT : PHY_OFFSET_AT + 8] = new.to_bytes(8, "big")
            crc = zlib.crc32(data[:-20]) & CRC_MASK
            assert moved.tobytes()[-11:-1] == f"{crc:010d}"[::-1].encode()


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 9), st.integers(0, 1))))
def test_the_last_of_each_key_is_that_of_a_dict(rows):
    keyed = np.zeros(len(rows), KEYED)
    last: dict[tuple[int, int, int], tuple[int, int]] = {}
    for number, (high, low, offset, queue) in enumerate(rows):
        keyed[number] = (high, low, offset, queue, 0, number, False)
        if (offset, number) >= last.get((queue, high, low), (-1, -1)):
            last[queue, high, low] = offset, number
    wanted = {number for _offset, number in last.values()}
    for kernels in BOTH:
        with running(kernels):
            assert set(np.flatnonzero(last_of_keys(keyed)).tolist()) == wanted


def test_a_fact_takes_little():
    assert FACT.itemsize == 52
