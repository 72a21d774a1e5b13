"""A single flipped bit of a record is found again, and nothing else is taken for one."""

from __future__ import annotations

import random

import pytest

from seglog.storage.format.record.flipped_bit import (
    MAX_BYTES,
    find_flipped_bits,
    flipped,
    is_whole,
    mend_record,
    structure_bits,
)
from tests.support.material.records import Record
from tests.support.rows import every_row
from tests.support.scale import chance, scaled, start

PLACE = 123_456


def record(*, record_crc, body=b"body " * 20):
    properties = b"KEYS\x01k1\x02TAGS\x01TagA\x02"
    return Record(
        topic=b"Topic", body=body, properties=properties, record_crc=record_crc, phy_offset=PLACE
    ).pack()


def test_every_bit_of_a_record_with_record_crc_is_found():
    whole = record(record_crc=True)
    assert is_whole(whole, PLACE)
    step = scaled(3, 1)
    for at in range(start(step, "flipped bits"), 8 * len(whole), step):
        bit = at // 8, 1 << at % 8
        assert mend_record(flipped(whole, bit), PLACE) == bit


def test_every_bit_of_a_body_is_found_without():
    whole = record(record_crc=False)
    body_at = whole.index(b"body ")
    for at in range(8 * body_at, 8 * (body_at + 100)):
        bit = at // 8, 1 << at % 8
        assert mend_record(flipped(whole, bit), PLACE) == bit


def test_every_bit_of_the_stored_checksum_is_found():
    whole = record(record_crc=False)
    for at in range(8 * 8, 8 * 12):
        bit = at // 8, 1 << at % 8
        assert mend_record(flipped(whole, bit), PLACE) == bit


def test_bits_of_lengths_magic_place_and_signs_are_found_by_structure():
    whole = record(record_crc=False)
    named = {"size": range(4), "magic": range(4, 8), "place": range(28, 36), "body length": range(84, 88)}
    for positions in named.values():
        for position in positions:
            for value in (1 << bit for bit in range(8)):
                damaged = flipped(whole, (position, value))
                assert not is_whole(damaged, PLACE)
                found = structure_bits(damaged + bytes(500), PLACE)
                assert [bit for bit in found if flipped(damaged, bit) == whole] == [(position, value)]
                # A length may be made to fit by another; then the record has another size.
                sizes = {
                    int.from_bytes(flipped(damaged, bit)[:4]) for bit in found if bit != (position, value)
                }
                assert len(whole) not in sizes


@pytest.mark.parametrize("size", [1, 91, 5000, MAX_BYTES])
def test_noise_is_no_flipped_bit(size):
    noise = random.Random(size)
    data = noise.randbytes(size)
    # By chance alone one in 4096 for the longest, far fewer for others.
    hits = sum(bool(find_flipped_bits(data, noise.getrandbits(31))) for _ in range(2000))
    assert hits <= 3


def test_two_flipped_bits_are_left_alone():
    draws = chance("two flipped bits")
    for record_crc in (True, False):
        whole = record(record_crc=record_crc)
        body_at = whole.index(b"body ")
        for _ in range(scaled(200, 5000)):
            one, other = draws.sample(range(8 * body_at, 8 * (body_at + 100)), 2)
            damaged = flipped(flipped(whole, (one // 8, 1 << one % 8)), (other // 8, 1 << other % 8))
            assert mend_record(damaged, PLACE) is None


def test_a_piece_of_a_record_is_left_alone():
    with every_row() as row:
        for size in range(0, 200, 7):
            with row(size):
                for record_crc in (True, False):
                    assert mend_record(record(record_crc=record_crc)[:size], PLACE) is None
                    assert structure_bits(record(record_crc=record_crc)[:size], PLACE) == []


def test_bodies_that_are_too_long_are_left_alone():
    whole = record(record_crc=False, body=bytes(MAX_BYTES + 1))
    assert mend_record(flipped(whole, (1000, 1)), PLACE) is None
    assert find_flipped_bits(bytes(MAX_BYTES * 3), 5) == []
