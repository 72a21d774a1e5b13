"""The checkpoint is 4096 bytes of which six numbers count; it decodes from any content."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.checkpoint import Checkpoint, decode_checkpoint, encode_checkpoint
from tests.support.material.records import I64


@given(st.tuples(I64, I64, I64, I64, I64, I64))
def test_checkpoint_round_trip(values):
    data = encode_checkpoint(Checkpoint(*values))
    assert len(data) == 4096
    assert data[:48] == struct.pack(">6q", *values)
    assert not any(data[48:])
    assert decode_checkpoint(data) == Checkpoint(*values)


@given(st.binary(max_size=47))
def test_short_file_counts_as_all_zero(data):
    assert decode_checkpoint(data) == Checkpoint()


@given(st.binary(min_size=48, max_size=5000))
def test_any_bytes_are_numbers(data):
    assert encode_checkpoint(decode_checkpoint(data))[:48] == data[:48]
