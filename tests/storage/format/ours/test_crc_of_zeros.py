"""The checksum of a hole takes no longer for a longer one."""

from __future__ import annotations

from crc32c import crc32c

from seglog.storage.format.ours.zeros_crc import crc_of_zeros
from tests.support.rows import every_row


def test_it_is_that_of_so_many_zeros():
    with every_row() as row:
        for count in (0, 1, 2, 7, 8, 255, 4096, 1_000_003):
            for before in (b"", b"123456789", bytes(5)):
                with row(count, before):
                    assert crc_of_zeros(count, crc32c(before)) == crc32c(before + bytes(count))


def test_two_holes_are_one():
    assert crc_of_zeros(1 << 62, crc_of_zeros(1 << 61, 7)) == crc_of_zeros((1 << 62) + (1 << 61), 7)
