"""Records are found behind a place in the log, none of those that only stand in the body of another."""

from __future__ import annotations

import pytest

from seglog import MessageStore
from seglog.storage.directory.log_files import LogReader
from seglog.storage.files.files import RealFiles
from seglog.storage.format.layout import I64
from seglog.storage.format.record.record import PHY_OFFSET_AT
from seglog.storage.kernels.walk import QueueTable
from seglog.storage.walk.segment_walk import SegmentWalk, Split
from tests.support.material.log_records import iter_log

SEGMENT = 4 << 20
BEFORE = b"before"


def places(root, start):
    reader = LogReader(RealFiles(), root, SEGMENT)
    try:
        walk = SegmentWalk(reader, SEGMENT, QueueTable())
        return [place for place, _row in walk.proven(Split(0, start, SEGMENT, SEGMENT), start)]
    finally:
        reader.close()


def put_all(root, bodies):
    with MessageStore.open(root, segment_size_bytes=SEGMENT, record_crc=False) as store:
        return [store.put("T", body).phy_offset for body in bodies]


@pytest.mark.parametrize("body_bytes", [1_000, 300 << 10, 600 << 10])
def test_all_records_are_found_however_long(tmp_path, body_bytes):
    found = put_all(tmp_path / "s", [BEFORE, *(bytes([65 + number]) * body_bytes for number in range(4))])
    assert places(tmp_path / "s", 1) == found[1:]


def test_a_record_in_the_body_of_a_long_one_comes_after_it(tmp_path):
    """The walk that takes the first place must not begin within a message."""
    first, at = put_all(tmp_path / "s", [BEFORE, b"x" * (400 << 10)])
    small, outer = iter_log(tmp_path / "s")
    inner_at = at + outer.record.index(b"x" * 9) + 1_000
    record = bytearray(small.record)
    I64.pack_into(record, PHY_OFFSET_AT, inner_at)
    body = b"x" * 1_000 + record
    put_all(tmp_path / "made", [BEFORE, body.ljust(400 << 10, b"x")])
    assert places(tmp_path / "made", first + 1) == [at, inner_at]
