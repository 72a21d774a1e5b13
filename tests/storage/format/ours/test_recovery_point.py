"""A recovery point comes back as it was written, or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog.errors import CorruptError
from seglog.storage.format.ours.recovery_point import (
    RECOVERY_POINT_HEAD,
    QueueSum,
    RecoveryPoint,
    decode_recovery_point,
    encode_recovery_point,
)
from seglog.storage.format.ours.seal import checksum
from tests.support.rows import every_row

I63 = st.integers(0, 2**63 - 1)
U32 = st.integers(0, 2**32 - 1)


@st.composite
def queue_sums(draw):
    files = draw(st.lists(st.tuples(U32, I63), max_size=4))
    crcs, places = tuple(crc for crc, _place in files), tuple(place for _crc, place in files)
    return QueueSum(draw(st.text(max_size=20)), draw(st.integers(0, 2**31 - 1)), 0, draw(I63), crcs, places)


@st.composite
def points(draw):
    crcs = np.array(draw(st.lists(U32, max_size=9)), np.uint32)
    numbers = [draw(I63) for _ in range(10)]
    fields: list[Any] = [*numbers, crcs, tuple(draw(st.lists(queue_sums(), max_size=5)))]
    return RecoveryPoint(*fields)


def values(point: RecoveryPoint) -> tuple[object, ...]:
    names = [name for name in RecoveryPoint.__slots__ if name != "block_crcs"]
    return *(getattr(point, name) for name in names), point.block_crcs.tolist()


@given(points())
def test_what_is_written_comes_back(point):
    assert values(decode_recovery_point(encode_recovery_point(point))) == values(point)


@given(points(), st.floats(0, 1), st.integers(0, 7))
def test_any_flipped_bit_is_found(point, where, bit):
    data = bytearray(encode_recovery_point(point))
    data[int(where * (len(data) - 1))] ^= 1 << bit
    with pytest.raises(CorruptError):
        decode_recovery_point(bytes(data))


@given(points(), st.floats(0, 1))
def test_a_file_that_was_cut_is_none(point, share):
    data = encode_recovery_point(point)
    with pytest.raises(CorruptError):
        decode_recovery_point(data[: int(share * (len(data) - 1))])


SHAPES = ("magic", "version", "block_count", "queue_count", "file_count", "names_bytes")


def test_a_point_of_another_shape_is_refused_although_its_checksum_is_right():
    with every_row() as row:
        for field in SHAPES:
            with row(field):
                point = RecoveryPoint(
                    0,
                    9,
                    1,
                    2,
                    3,
                    4,
                    4,
                    5,
                    -1,
                    0,
                    np.array([7], np.uint32),
                    (QueueSum("T", 0, 0, 1, (8,), (0,)),),
                )
                data = bytearray(encode_recovery_point(point))
                data[RECOVERY_POINT_HEAD.offsets[field] + 3] ^= 1
                data[-4:] = checksum(bytes(data[:-4])).to_bytes(4, "big")
                with pytest.raises(CorruptError):
                    decode_recovery_point(bytes(data))
