"""A seal is read as it was written, or not at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from seglog.errors import CorruptError, TruncatedError
from seglog.storage.format.ours.seal import (
    SEAL_BLOCK,
    SEAL_BLOCK_BYTES,
    SEAL_END,
    SEAL_HEAD,
    Seal,
    checksum,
    decode_seal,
    encode_seal,
)
from tests.support.rows import every_row


def a_seal(blocks=3, segment_bytes=2 * SEAL_BLOCK_BYTES + 5):
    rows = np.zeros(blocks, SEAL_BLOCK.dtype)
    rows["crc32c"] = np.arange(blocks) + 0xFFFF_FFF0
    rows["record_count"] = 7
    rows["first_record_at"] = -1
    return Seal(1 << 30, segment_bytes, 21, (1 << 30) + 900, 5, 6, 7, 0xDEADBEEF, rows)


def test_a_seal_survives_encoding_and_decoding():
    seal = a_seal()
    found = decode_seal(encode_seal(seal))
    assert (found.blocks == seal.blocks).all()
    names = [name for name in Seal.__slots__ if name != "blocks"]
    assert [getattr(found, name) for name in names] == [getattr(seal, name) for name in names]


def test_a_checksum_is_crc32c():
    assert checksum(b"123456789") == 0xE3069283
    assert checksum(b"6789", checksum(b"12345")) == 0xE3069283


def test_no_single_bit_flip_passes():
    data = encode_seal(a_seal())
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptError):
            decode_seal(bytes(damaged))


def test_no_shorter_or_longer_file_passes():
    data = encode_seal(a_seal())
    for size in range(len(data)):
        with pytest.raises(CorruptError):
            decode_seal(data[:size])
    with pytest.raises(TruncatedError):
        decode_seal(b"")
    with pytest.raises(CorruptError):
        decode_seal(data + b"\0")


def with_field(name, value):
    """Returns the bytes of a seal with another value in one field and a checksum that fits."""
    data = bytearray(encode_seal(a_seal()))
    rows = np.frombuffer(data, SEAL_HEAD.dtype, 1)
    rows[name] = value
    body = bytes(data[: -SEAL_END.size_bytes])
    return body + SEAL_END.struct.pack(checksum(body))


NO_SEALS = (
    ("magic", 1, "seal-magic"),
    ("version", 2, "seal-version"),
    ("block_bytes", 4096, "seal-version"),
    ("block_count", 2, "seal-lengths"),
    ("block_count", 2**31 - 1, "seal-lengths"),
    ("segment_bytes", 2**62, "seal-lengths"),
    ("segment_bytes", -1, "seal-lengths"),
)


def test_a_seal_that_cannot_be_is_refused_although_its_checksum_holds():
    with every_row() as row:
        for field, value, kind in NO_SEALS:
            with row(field, value, kind):
                with pytest.raises(CorruptError) as caught:
                    decode_seal(with_field(field, value))
                assert caught.value.kind == kind


def test_records_that_run_into_a_block_are_counted():
    """Records of 40,000 bytes from the start on: blocks begin inside of records 1, 3 and 4."""
    starts = np.arange(5) * 40_000
    rows = np.zeros(4, SEAL_BLOCK.dtype)
    for number in range(4):
        inside = starts[starts // SEAL_BLOCK_BYTES == number]
        rows[number]["record_count"] = len(inside)
        rows[number]["first_record_at"] = inside[0] - number * SEAL_BLOCK_BYTES if len(inside) else -1
    seal = Seal(0, 4 * SEAL_BLOCK_BYTES, 5, 200_000, 1, 2, 3, 0, rows)
    for first in range(4):
        for end in range(first + 1, 5):
            touching = (starts < end * SEAL_BLOCK_BYTES) & (starts + 40_000 > first * SEAL_BLOCK_BYTES)
            assert seal.records_touching(first, end) == touching.sum()
    assert seal.used_blocks == 4
    assert replace(seal, end_phy_offset=65_529).used_blocks == 2
    assert replace(seal, end_phy_offset=65_528).used_blocks == 1
