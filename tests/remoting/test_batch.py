"""A batch is read as it was written, and damaged lengths raise only our error."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import ProtocolError
from seglog.remoting.batch import decode_batch, encode_batch
from seglog.remoting.bodies import BatchMessage, MessageBatch
from seglog.storage.format.record.inner_batch import BATCH_HEAD

MESSAGES = st.lists(
    st.builds(
        BatchMessage,
        st.binary(max_size=50),
        st.binary(max_size=50),
        st.integers(-(2**31), 2**31 - 1),
    ),
    min_size=1,
    max_size=5,
)


@given(MESSAGES)
def test_a_batch_survives_the_wire(messages):
    assert decode_batch(encode_batch(MessageBatch(messages))) == MessageBatch(messages)


def test_the_head_has_the_size_of_javas():
    assert BATCH_HEAD.size_bytes == 20
    assert encode_batch(MessageBatch([BatchMessage(b"ab", b"k\x01v\x02", 7)])) == bytes.fromhex(
        "0000001c 00000000 00000000 00000007 00000002 6162 0004 6b017602"
    )


@given(MESSAGES, st.data())
def test_damage_raises_only_our_error(messages, data):
    damaged = bytearray(encode_batch(MessageBatch(messages)))
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))
    end = data.draw(st.integers(0, len(damaged)))
    for torn in (bytes(damaged), bytes(damaged[:end])):
        with contextlib.suppress(ProtocolError):
            decode_batch(torn)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(bytes(21), id="cut short"),
        pytest.param(BATCH_HEAD.struct.pack(22, 0, 0, 0, -1) + bytes(2), id="negative body"),
        pytest.param(BATCH_HEAD.struct.pack(30, 0, 0, 0, 0) + bytes(2), id="beyond the end"),
        pytest.param(BATCH_HEAD.struct.pack(22, 0, 0, 0, 1) + bytes(2), id="body beyond the message"),
        pytest.param(BATCH_HEAD.struct.pack(23, 0, 0, 0, 0) + bytes(3), id="parts do not add up"),
    ],
)
def test_lengths_that_do_not_add_up_are_refused(data):
    with pytest.raises(ProtocolError):
        decode_batch(data)


def test_properties_that_do_not_fit_are_refused():
    with pytest.raises(ProtocolError, match="32768"):
        encode_batch(MessageBatch([BatchMessage(b"", bytes(32768))]))
