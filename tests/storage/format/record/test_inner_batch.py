"""The messages of a batch body are taken apart and put together without a byte of difference."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import CorruptError, MessageIllegalError
from seglog.storage.format.queue.batch_consume_queue import batch_range
from seglog.storage.format.record.inner_batch import (
    MIN_BATCH_MESSAGE_BYTES,
    BatchMessage,
    count_batch,
    encode_batch,
    iter_batch,
)
from seglog.storage.format.record.properties import MAX_PROPERTIES_BYTES
from seglog.storage.format.record.sys_flag import INNER_BATCH, NEED_UNWRAP
from tests.support.material.golden import shared
from tests.support.material.log_records import iter_log

MESSAGES = st.builds(
    BatchMessage, st.binary(max_size=30), st.binary(max_size=20), st.integers(-(2**31), 2**31 - 1)
)


def test_bodies_of_real_inner_batches_are_written_again_byte_for_byte():
    batches = [record for record in iter_log(shared("innerbatch")) if record.row.sys_flag & INNER_BATCH]
    assert len(batches) > 20
    for record in batches:
        assert record.row.sys_flag & NEED_UNWRAP
        body = record.message().body
        messages = list(iter_batch(body))
        assert encode_batch(messages) == body
        assert len(messages) == count_batch(body) == batch_range(record.properties, -1)[1]


@given(st.lists(MESSAGES, max_size=5))
def test_messages_read_back_as_they_were_written(messages):
    body = encode_batch(messages)
    assert list(iter_batch(body)) == messages
    assert list(iter_batch(memoryview(bytearray(body)))) == messages
    assert count_batch(body) == len(messages)


def test_bodies_are_views_and_not_copies():
    data = bytearray(encode_batch([BatchMessage(b"abc")]))
    message = next(iter_batch(data))
    data[MIN_BATCH_MESSAGE_BYTES - 2] = ord("x")
    assert bytes(message.body) == b"xbc"


@given(st.lists(MESSAGES, min_size=1, max_size=3), st.data())
def test_cut_and_damaged_bodies_raise_nothing_but_our_error(messages, data):
    body = bytearray(encode_batch(messages))
    body[data.draw(st.integers(0, len(body) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(CorruptError):
        list(iter_batch(bytes(body[: data.draw(st.integers(0, len(body)))])))


@given(st.binary(max_size=80))
def test_arbitrary_bytes_raise_nothing_but_our_error(data):
    with contextlib.suppress(CorruptError):
        list(iter_batch(data))


def test_every_cut_within_a_message_is_noticed():
    body = encode_batch([BatchMessage(b"body", b"props")] * 2)
    for end in range(1, len(body)):
        if end != len(body) // 2:
            with pytest.raises(CorruptError, match="batch"):
                count_batch(body[:end])


@pytest.mark.parametrize(
    ("at", "value"),
    [
        pytest.param(0, 21, id="a size below the least"),
        pytest.param(0, 32, id="a size beyond the end"),
        pytest.param(16, -1, id="a negative body"),
        pytest.param(16, 10, id="a body beyond the message"),
        pytest.param(16, 3, id="a body that ends within itself"),
    ],
)
def test_sizes_that_do_not_add_up_are_refused(at, value):
    body = bytearray(encode_batch([BatchMessage(b"body", b"props")]))
    assert len(body) == 31
    body[at : at + 4] = value.to_bytes(4, "big", signed=True)
    with pytest.raises(CorruptError, match="batch"):
        count_batch(body)


def test_too_many_properties_are_refused():
    with pytest.raises(MessageIllegalError, match="32768 bytes"):
        encode_batch([BatchMessage(b"", bytes(MAX_PROPERTIES_BYTES + 1))])
