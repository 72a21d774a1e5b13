"""Both kernels give the keys under which RocketMQ indexes records, for any records."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog.storage.format.index.index import key_hash
from seglog.storage.format.record.placeholder import PLACEHOLDER_FLAG, PLACEHOLDER_MARK
from seglog.storage.format.record.sys_flag import TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from seglog.storage.format.record.tombstone import LOST_FLAG
from seglog.storage.kernels.index_keys import index_keys
from tests.support.machine.kernels import BOTH, native, running
from tests.support.material.records import Record, pack_log, records
from tests.support.scale import scaled

MANY = settings(max_examples=scaled(300, 30_000))
PIECES = [
    b"TAGS\x01", b"KEYS\x01", b"UNIQ_KEY\x01", b"UNIQ_KEY", b"KEY", b"\x01", b"\x02", b"\x02\x02", b" ",
    b"  ", b"a", b"b c", b"polygenelubricants", "é€😀".encode(), b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xff",
    PLACEHOLDER_MARK,
]  # fmt: skip
properties = st.lists(st.sampled_from(PIECES) | st.binary(max_size=5), max_size=12).map(b"".join)
topics = st.sampled_from([b"A", b"", "é".encode(), b"\xf0\x9f", b"t" * 128]) | st.binary(max_size=9)
made = st.builds(
    replace,
    records(topic=b"T", body=b"", properties=b""),
    topic=topics,
    body=st.binary(max_size=9),
    flag=st.sampled_from([0, LOST_FLAG, PLACEHOLDER_FLAG]),
    record_crc=st.booleans(),
    properties=properties,
    sys_flag=st.sampled_from([0, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK]),
)


def exact(data):
    """The bytes in memory of just their size, so that a sanitizer sees who reads on."""
    return np.frombuffer(data, np.uint8).copy().data


def keys(kernels, log, phy_offset, tags):
    with running(kernels):
        found = index_keys(exact(log), phy_offset, tags=tags)
        return found.rows.tolist(), found.lost, found.with_crc, found.placeholders


@pytest.mark.parametrize("kernels", BOTH)
@pytest.mark.parametrize("record_crc", [False, True])
def test_a_placeholder_has_its_mark_or_nothing_before_the_checksum(kernels: str, record_crc: bool):
    counts = [
        keys(
            kernels,
            pack_log([Record(body=b"", flag=PLACEHOLDER_FLAG, properties=raw, record_crc=record_crc)]),
            0,
            tags=False,
        )[3]
        for raw in (b"", PLACEHOLDER_MARK, b"\x02", PLACEHOLDER_MARK + b"\x02", b"A\x011\x02")
    ]
    assert counts == [1, 1, 0, 0, 0]


@pytest.mark.parametrize("kernels", BOTH)
def test_keys_are_the_unique_key_then_each_key_then_the_tag(kernels: str):
    record = Record(topic=b"T", properties=b"TAGS\x01red\x02KEYS\x01 k1  k2\x02UNIQ_KEY\x01u\x02")
    log = pack_log([record])
    hashes = [key_hash(key) for key in ("T#u", "T#k1", "T#k2", "T#T#red")]
    expected = [(hashed, 0, record.store_timestamp_ms) for hashed in hashes]
    assert keys(kernels, log, 0, tags=True) == (expected, (), 0, 0)
    assert keys(kernels, log, 0, tags=False) == (expected[:3], (), 0, 0)


@pytest.mark.parametrize("kernels", BOTH)
def test_a_rolled_back_record_has_no_keys_and_what_is_no_record_ends_them(kernels: str):
    with_key = Record(topic=b"T", properties=b"KEYS\x01k\x02")
    log = pack_log([replace(with_key, sys_flag=TRANSACTION_ROLLBACK), with_key])
    assert len(keys(kernels, log, 0, tags=True)[0]) == 1
    assert len(keys(kernels, log + b"garbage" * 30, 0, tags=True)[0]) == 1
    assert keys(kernels, log, 1, tags=True) == ([], (), 0, 0)


@pytest.mark.parametrize("kernels", BOTH)
def test_tombstones_are_named_and_have_no_keys_and_record_crcs_are_counted(kernels: str):
    plain = Record(topic=b"T", properties=b"KEYS\x01k\x02")
    with_crc = replace(plain, record_crc=True)
    log = pack_log([plain, replace(with_crc, flag=LOST_FLAG), with_crc])
    size = len(pack_log([plain]))
    found, lost, count, _placeholders = keys(kernels, log, 0, tags=True)
    assert [place for _hash, place, _ms in found] == [0, size + len(pack_log([with_crc]))]
    assert (lost, count) == ((size,), 2)


@pytest.mark.parametrize("kernels", BOTH)
def test_placeholders_are_counted_and_nothing_that_has_only_their_flag(kernels: str):
    placeholder = Record(topic=b"T", body=b"", properties=PLACEHOLDER_MARK, flag=PLACEHOLDER_FLAG)
    log = pack_log([
        placeholder,
        replace(placeholder, record_crc=True),
        replace(placeholder, properties=b""),
        replace(placeholder, body=b"b"),
        replace(placeholder, properties=b"KEYS\x01k\x02"),
        replace(placeholder, flag=0),
    ])  # fmt: skip
    assert keys(kernels, log, 0, tags=True)[1:] == ((), 1, 3)


@given(log=st.lists(made, max_size=6).map(pack_log), tags=st.booleans(), cut=st.integers(0, 40))
@MANY
def test_both_kernels_give_the_same_keys(log, tags, cut):
    native()
    log = log[: len(log) - cut]
    assert keys("native", log, 0, tags) == keys("python", log, 0, tags)
