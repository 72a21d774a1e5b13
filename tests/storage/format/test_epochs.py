"""The epoch file of controller mode is read as RocketMQ reads it."""

from __future__ import annotations

import pytest

from seglog.errors import CorruptError
from seglog.storage.format.epochs import Epoch, decode_epochs
from tests.support.rows import every_row

OF_ROCKETMQ = b"3\n1370829526\n1-0\n2-4096\n5-1073741824\n"
"""Written by ``EpochFileCache`` of RocketMQ 5.4.0."""


def test_a_file_of_rocketmq_is_read():
    assert decode_epochs(OF_ROCKETMQ) == (Epoch(1, 0), Epoch(2, 4096), Epoch(5, 1 << 30))


def test_a_checksum_of_0_is_not_checked():
    assert decode_epochs(b"1\n0\n7-20\n") == (Epoch(7, 20),)


DAMAGED = (
    b"",
    b"3\n",
    b"three\n0\n",
    b"2\n0\n1-0\n",
    b"1\n5\n1-0\n",
    b"1\n0\n1:0\n",
    b"2\n0\n2-0\n1-10\n",
    b"2\n0\n1-10\n2-10\n",
    OF_ROCKETMQ.replace(b"4096", b"4097"),
    bytes(40),
    b"\xff\xfe" * 20,
)


def test_damage_is_refused():
    with every_row() as row:
        for data in DAMAGED:
            with row(data), pytest.raises(CorruptError):
                decode_epochs(data)
