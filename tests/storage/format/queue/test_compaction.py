"""Compaction files have RocketMQ's sizes, and their records differ from the log's in one field only."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import CorruptError, InvalidArgumentError, MessageIllegalError, TruncatedError
from seglog.storage.format.queue.batch_consume_queue import BATCH_UNIT_BYTES
from seglog.storage.format.queue.compaction import (
    compaction_key,
    compaction_record,
    compaction_rolls,
    compaction_sizes,
    decode_positions,
    encode_positions,
)
from seglog.storage.format.record.message import decode_message
from seglog.storage.format.record.properties import encode_properties
from tests.support.material.compactions import is_kept
from tests.support.material.golden import config_names, golden_names, shared
from tests.support.material.log_records import iter_log
from tests.support.rows import every_row

TOPICS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


SIZES = {
    "defaults": ((100 << 20, 10 << 20), (104_857_460, 10_485_746)),
    "rest below half": ((10_000, 1000), (9660, 966)),
    "no rest counts as more than half": ((9_660, 1000), (10_626, 966)),
    "rest above half": ((10_300, 1000), (10_626, 966)),
    "at least five queue files": ((1_000, 1000), (4830, 966)),
}


def test_sizes_are_rounded_as_rocketmq_does():
    with every_row() as row:
        for name, (configured, real) in SIZES.items():
            with row(name):
                assert compaction_sizes(*configured) == real


def test_a_queue_file_holds_a_unit():
    with pytest.raises(InvalidArgumentError):
        compaction_sizes(1000, BATCH_UNIT_BYTES - 1)


def test_both_files_end_where_either_is_full():
    sizes = compaction_sizes(10_000, 1000)
    last_unit_at = sizes.queue_bytes - BATCH_UNIT_BYTES
    assert not compaction_rolls(100, 0, last_unit_at - BATCH_UNIT_BYTES, sizes)
    assert compaction_rolls(100, 0, last_unit_at, sizes)
    assert not compaction_rolls(100, sizes.log_bytes - 108, 0, sizes)
    assert compaction_rolls(100, sizes.log_bytes - 107, 0, sizes)


def test_a_record_moves_with_its_place_and_nothing_else():
    for record in iter_log(shared("basic")):
        moved = compaction_record(record.record, 12345)
        assert decode_message(moved).phy_offset == 12345
        assert compaction_record(moved, record.phy_offset) == record.record


def test_too_few_bytes_for_a_record_are_refused():
    with pytest.raises(TruncatedError):
        compaction_record(bytes(87), 0)


def test_the_key_is_all_of_keys():
    assert compaction_key(encode_properties({"KEYS": "a b"})) == b"a b"
    for without in (b"", encode_properties({"KEYS": " "}), encode_properties({"TAGS": "a"})):
        with pytest.raises(MessageIllegalError, match="no keys"):
            compaction_key(without)


RECORDS = {
    "last of its key": ((5, 5, 1, 9), True),
    "replaced by a later one": ((5, 7, 1, 9), False),
    "deletes its key": ((7, 7, 0, 9), False),
    "later than what was mapped": ((10, 7, 0, 9), True),
    "key not in the map": ((5, -1, 1, 9), True),
}


def test_the_last_record_of_a_key_stays_unless_it_is_empty():
    with every_row() as row:
        for name, (record, kept) in RECORDS.items():
            with row(name):
                assert is_kept(*record) == kept


@given(st.dictionaries(st.tuples(TOPICS, st.integers(0, 2**31 - 1)), st.integers(-1, 2**63 - 1)))
def test_positions_read_back_as_they_were_written(positions):
    assert decode_positions(encode_positions(positions)) == positions


def test_a_topic_may_have_underscores():
    assert decode_positions('{"queueOffsetMap":{"a_b_3":7}}') == {("a_b", 3): 7}


def test_real_positions_are_read_and_written_again():
    with every_row() as row:
        for name in (*golden_names(damaged=False), *config_names()):
            with row(name):
                path = shared(name) / "compaction" / "position-checkpoint"
                if path.exists():
                    assert decode_positions(path.read_bytes()) == {}
                    if name != "real-conf":  # 5.3.3 lays the text out in another way
                        assert encode_positions({}) == path.read_text()


NO_POSITIONS = (
    "",
    "[]",
    "7",
    '{"queueOffsetMap":[]}',
    '{"queueOffsetMap":{"a":1}}',
    '{"queueOffsetMap":{"a_1":true}}',
)


def test_what_is_no_position_file_is_refused():
    with every_row() as row:
        for text in NO_POSITIONS:
            with row(text), pytest.raises(CorruptError):
                decode_positions(text)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_raise_nothing_but_our_error(data):
    with contextlib.suppress(CorruptError):
        decode_positions(b'{"queueOffsetMap":' + data + b"}")
