"""The native kernels give what the Python kernels give, byte for byte, for any log."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog.storage.format.names import SCHEDULE_TOPIC
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.record import CRC_MASK, Damage, examine
from seglog.storage.kernels.walk import QueueTable, iter_resync, walk
from tests.support.damage.damage import damaged_bytes
from tests.support.machine.kernels import native, running
from tests.support.material.records import Record, pack_log, records
from tests.support.rows import every_row
from tests.support.scale import scaled

MANY = settings(max_examples=scaled(300, 30_000))
END = 1 << 62
PIECES = [
    b"TAGS\x01", b"TAGS", b"DELAY\x01", b"KEYS\x01", b"\x01", b"\x02", b"\x02\x02", b"INNER_", b"IINNER",
    b"INNER_NUM\x01", b"\0", bytes(7), bytes(8), b"0", b"3", b"18", b"19", b"007", b"9" * 30, b"tag",
    b"__CRC32#\x01", b"_CRC32#\x01", b"__CRC32#\x010123456789\x02", b"__CRC32!\x010123456789\x02",
    b"0123456789\x02", b"123\x02", "é€😀".encode(), b"\xf0\x9f\x98", b"\xf0\x80", b"\xed\xa0\x80",
    b"\xe0\xa0", b"\xf4\x90\x80\x80", b"\xc1\xbf", b"\xff",
]  # fmt: skip
properties = st.lists(st.sampled_from(PIECES) | st.binary(max_size=5), max_size=8).map(b"".join)
topics = st.sampled_from([b"A", b"B", b"", SCHEDULE_TOPIC.encode(), b"t" * 127, b"t" * 128]) | st.binary(
    max_size=20
)
bodies = st.binary(max_size=40) | st.integers(60, 200).map(lambda size: bytes(range(256))[:size])
made = st.builds(
    replace,
    records(topic=b"T", body=b"", properties=b""),
    topic=topics,
    queue_id=st.sampled_from([0, 1, 2**31 - 1, -1]),
    body=bodies,
    properties=properties,
    record_crc=st.booleans(),
    store_timestamp_ms=st.sampled_from([1_700_000_000_000, 0, -1, 2**63 - 1, -(2**63)]),
)
logs = st.lists(made, max_size=6).map(pack_log)
some_logs = (
    logs | logs.flatmap(lambda log: damaged_bytes(log) if log else st.just(log)) | st.binary(max_size=300)
)


def exact(data):
    """The bytes in memory of just their size, so that a sanitizer sees who reads on."""
    return np.frombuffer(data, np.uint8).copy().data


def python_walk(buffer, phy_offset, queues, verify=True):
    with running("python"):
        result = walk(buffer, phy_offset, END, queues, verify=verify)
    return result.rows.tobytes(), result.saying_more, result.position


def python_resync(buffer, phy_offset, start):
    with running("python"):
        return list(iter_resync(buffer, phy_offset, start))


def native_resync(buffer, phy_offset, start):
    with running("native"):
        return list(iter_resync(buffer, phy_offset, start))


def assert_same_walk(buffer, phy_offset, verify):
    expected, found = QueueTable(), QueueTable()
    assert native().walk(buffer, phy_offset, verify, found.number) == python_walk(
        buffer, phy_offset, expected, verify
    )
    assert (found.names, found.numbers) == (expected.names, expected.numbers)


@MANY
@given(some_logs, st.booleans())
def test_walk(log, verify):
    assert_same_walk(exact(log), 0, verify)


@MANY
@given(logs, st.data())
def test_walk_over_a_log_cut_anywhere(log, data):
    assert_same_walk(exact(log[: data.draw(st.integers(0, len(log)))]), 0, True)


@MANY
@given(some_logs, st.binary(max_size=30), st.integers(0, 300))
def test_resync(log, garbage, start):
    buffer = exact(garbage + log)
    # Behind the garbage the records lie where they say only if the stretch begins that much earlier.
    phy_offset = 2**40 - len(garbage)
    moved = exact(garbage + _moved(log, 2**40))
    for window, first in ((buffer, 0), (moved, phy_offset)):
        assert native_resync(window, first, start) == python_resync(window, first, start)


def _moved(log, phy_offset):
    """The log as it would be somewhere else, as far as its records are whole."""
    parts, at = [], 0
    while not isinstance(row := examine(memoryview(log), at, at, verify=False), Damage):
        record = bytearray(log[at : at + row.size_bytes])
        record[28:36] = (phy_offset + at).to_bytes(8, "big")
        parts.append(bytes(record))
        at += row.size_bytes
    return b"".join(parts) + log[at:]


def entry(record, name=props.CRC_NAME):
    """A record of which the last 20 bytes are its checksum, under any name."""
    packed = record.pack()
    digits = props.crc_property(zlib.crc32(packed[:-20]) & CRC_MASK)[len(props.CRC_NAME) : -1]
    return packed[:-20] + (name + digits + b"\x02")[-20:]


@MANY
@given(made, st.lists(st.integers(0, 20 * 8 - 1), max_size=14), st.binary(max_size=9), st.integers(0, 20))
def test_checksum_of_a_record_under_a_damaged_name(record, flips, name, cut):
    ended = replace(
        record, phy_offset=0, queue_id=0, record_crc=False, properties=record.properties + bytes(20 - cut)
    )
    for packed in (entry(ended), entry(ended, name.rjust(9, b"_"))):
        damaged = bytearray(packed)
        for bit in flips:
            damaged[len(damaged) - 1 - bit // 8] ^= 1 << bit % 8
        assert_same_walk(exact(packed), 0, True)
        assert_same_walk(exact(damaged), 0, True)


@MANY
@given(made, st.lists(made.map(lambda each: replace(each, record_crc=True)), max_size=3), st.data())
def test_record_that_ends_with_any_part_of_others(record, others, data):
    packed = replace(record, phy_offset=0, queue_id=0).pack()
    elsewhere = b"".join(other.pack() for other in others) + bytes(len(packed))
    taken = data.draw(st.integers(0, min(60, len(record.stored_properties))))
    at = data.draw(st.integers(0, len(elsewhere) - taken))
    mixed = packed[: len(packed) - taken] + elsewhere[at : at + taken]
    assert_same_walk(exact(mixed), 0, True)


@given(st.binary(max_size=12) | st.text().map(str.encode), st.binary(max_size=3))
def test_hash_of_any_tag(tag, broken):
    log = Record(properties=b"TAGS\x01" + tag + broken + b"\x02").pack()
    assert_same_walk(exact(log), 0, False)


def test_hash_of_every_pair_of_bytes_beyond_ascii():
    with every_row() as row:
        for byte in range(0x80, 0x100):
            every = b"".join(
                bytes([byte, second, third]) for second in range(256) for third in (0x41, 0x80, 0xBF)
            )
            with row(hex(byte)):
                for end in range(len(every) - 3, len(every)):
                    tag = every[:end].replace(b"\x02", b"")
                    assert_same_walk(exact(Record(properties=b"TAGS\x01" + tag + b"\x02").pack()), 0, False)


@pytest.mark.parametrize("verify", [True, False])
def test_walk_over_more_queues_than_the_table_begins_with(verify):
    log = pack_log([Record(topic=b"topic-%d" % (n % 700), queue_id=n % 3) for n in range(5000)])
    assert_same_walk(exact(log), 0, verify)


def test_crc32():
    with every_row() as row:
        for size in (*range(200), 255, 256, 1023, 1024, 65536, 1_000_003):
            data = exact(np.random.default_rng(size).bytes(size))
            expected = zlib.crc32(data)
            with row(size):
                assert (native().crc32(data), native().crc32_by_table(data)) == (expected, expected)


def test_crc32_wherever_the_bytes_begin():
    with every_row() as row:
        for shift in range(1, 17):
            data = exact(np.random.default_rng(7).bytes(300))[shift:]
            with row(shift):
                assert native().crc32(data) == zlib.crc32(data)


def test_both_checksums_of_a_record_with_a_long_body():
    with every_row() as row:
        for size in (1023, 1024, 1025, 1026, 1027, 1999, 4096, 65535, 65536, 1_000_003):
            with row(size):
                chance = np.random.default_rng(size)
                log = pack_log(
                    [
                        Record(
                            body=chance.bytes(size),
                            topic=topic,
                            properties=b"KEYS\x01k\x02",
                            record_crc=record_crc,
                        )
                        for topic in (b"T", b"t" * 128)
                        for record_crc in (True, False)
                    ]
                )
                record = Record(
                    phy_offset=0, body=chance.bytes(size), properties=b"KEYS\x01k\x02", record_crc=True
                ).pack()
                assert_same_walk(exact(log), 0, True)
                assert native().walk(exact(log), 0, True, QueueTable().number)[2] == len(log)
                for at in [*range(40, 95), *chance.integers(0, len(record), 30).tolist(), *range(-40, 0)]:
                    damaged = bytearray(record)
                    damaged[at] ^= 1 << int(chance.integers(8))
                    assert_same_walk(exact(damaged), 0, True)


def test_checksums_of_bodies_of_ever_other_sizes():
    chance = np.random.default_rng(9)
    bodies = [chance.bytes(int(size)) for size in chance.integers(1000, 9000, 200)]
    log = pack_log([Record(body=body, properties=b"K\x01v\x02", record_crc=True) for body in bodies])
    with running("native"):
        result = walk(exact(log), 0, len(log), QueueTable())
    assert len(result.rows) == len(bodies)
    assert native().walk(exact(log), 0, True, QueueTable().number)[2] == len(log)
