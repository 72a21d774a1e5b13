"""Magic, place and length of a record are known from elsewhere, and nothing else is made up."""

from __future__ import annotations

import pytest

from seglog.storage.format.record.self_evident_fields import restate, restated_fields
from tests.support.material.records import Record
from tests.support.rows import every_row

PLACE = 70_000
FRONT = {"size_bytes": slice(0, 4), "magic": slice(4, 8), "phy_offset": slice(28, 36)}


def record(**fields):
    return Record(properties=b"KEYS\x01k1\x02", phy_offset=PLACE, **fields).pack()


TOPICS = {
    "magic V1": b"Topic",
    "magic V2": b"t" * 200,
}


def test_what_was_written_over_comes_back():
    with every_row() as row:
        for record_crc in (False, True):
            for magic, topic in TOPICS.items():
                for names in (("magic",), ("size_bytes", "magic"), tuple(FRONT)):
                    with row(record_crc, magic, names):
                        whole = record(topic=topic, record_crc=record_crc)
                        damaged = bytearray(whole)
                        for name in names:
                            damaged[FRONT[name]] = b"\xa5" * len(damaged[FRONT[name]])
                        assert restate(bytes(damaged), PLACE) == whole
                        assert restated_fields(bytes(damaged), whole) == names


def test_a_whole_record_is_left_alone():
    assert restate(record(), PLACE) is None


def test_nothing_is_made_up_where_no_checksum_covers_anything():
    whole = record(body=b"")
    assert restate(whole[:4] + bytes(4) + whole[8:], PLACE) is None


@pytest.mark.parametrize("at", [84, 90, 95, 120])
def test_other_damage_is_not_talked_away(at):
    whole = record(body=b"body " * 9)
    damaged = bytearray(whole[:4] + bytes(4) + whole[8:])
    damaged[at] ^= 0x55
    assert restate(bytes(damaged), PLACE) is None
