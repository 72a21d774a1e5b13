"""Both engines, asked for the same messages, write the same bytes, but for what the clock says."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from seglog import MessageStore
from tests.interop.judging.judge import Judge
from tests.interop.judging.questions import SMALL_GEOMETRY, JavaHost, JavaMessages
from tests.interop.judging.writing import append_here, store_options

pytestmark = pytest.mark.interop

SEGMENT_BYTES = SMALL_GEOMETRY.segment_size_bytes
RECORD_BYTES = 91 + 1  # around a body, with a topic of one letter and no properties
FILLER_BYTES = 8
TIMESTAMPS = [slice(40, 48), slice(56, 64)]  # born and store time of a record with an IPv4 born host
CRC_DIGITS = slice(-11, -1)


def test_records_that_just_fit_and_just_do_not(judge: Judge, tmp_path, copied: Callable[[Path], Path]):
    messages = [JavaMessages(topic="T", first=n, body_bytes=size) for n, size in enumerate(tight_sizes())]
    assert_same_files(judge, tmp_path, copied, messages, record_crc=False)


@pytest.mark.parametrize("record_crc", [False, True])
def test_records_of_every_kind(judge: Judge, tmp_path, copied: Callable[[Path], Path], record_crc):
    messages = [
        JavaMessages(topic="Plain", count=120, tags="Tag", body_bytes=100, flag=-7),
        JavaMessages(topic="Plain", keys="key", born_host=JavaHost("10.1.2.3", 40_000), reconsume_times=3),
        JavaMessages(topic="Plain", body_bytes=0, properties={"city": "杭州 🚀"}),
        *(JavaMessages(topic="Tx", sys_flag=bits, prepared_transaction_offset=99) for bits in (4, 8, 12, 0)),
        JavaMessages(topic="Hosts", store_host=JavaHost("fe80::1", 10_911)),
        JavaMessages(topic="t" * 128, queue_id=3, sys_flag=0x101),
        JavaMessages(topic="B", count=50, batch=True, tags="Tag", body_bytes=1_000),
        JavaMessages(topic="B", count=50, batch=True, tags="Tag", body_bytes=1_000),
    ]
    assert_same_files(judge, tmp_path, copied, messages, record_crc=record_crc)


def tight_sizes():
    """Returns body sizes, a third of which end a record within two bytes of where it still fits."""
    chance = random.Random(1)
    position = 0
    for _ in range(80):
        room = SEGMENT_BYTES - position % SEGMENT_BYTES
        tight = room - RECORD_BYTES - FILLER_BYTES
        wanted = chance.choice([0, 1, 100, 3_000, 9_000])
        size = (
            tight + chance.choice([-1, 0, 0, 1, 2])
            if 20 < tight < 30_000 and chance.random() < 0.3
            else wanted
        )
        if RECORD_BYTES + size + FILLER_BYTES > room:
            position += room
        position += RECORD_BYTES + size
        yield size


def assert_same_files(judge, tmp_path, copied, messages, *, record_crc):
    java, ours = tmp_path / "java", tmp_path / "ours"
    answers = judge.write(java, messages, SMALL_GEOMETRY, enabledAppendPropCRC=record_crc)
    with MessageStore.open(ours, record_crc=record_crc, **store_options(SMALL_GEOMETRY)) as store:
        for each in messages:
            append_here(store, each)
        end = store.max_phy_offset
    records = record_places(judge, copied(ours))
    assert records == record_places(judge, copied(java))
    assert {answer["phyOffset"] for answer in answers} <= {start for start, _ in records}
    for first in range(0, end, SEGMENT_BYTES):
        name = f"commitlog/{first:020d}"
        assert masked(ours / name, records, record_crc) == masked(java / name, records, record_crc), name
    assert queue_files(ours) == queue_files(java)


def record_places(judge, path):
    """Returns position and size of each record as the real store walks them."""
    lines = judge.dump(path, SMALL_GEOMETRY).of_kind("log")
    return [(line["pos"], line["size"]) for line in lines if line.get("ok")]


def queue_files(path):
    files = [file for file in (path / "consumequeue").rglob("*") if file.is_file()]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def masked(path, records, record_crc):
    """Returns the file with zeros for the times and for the checksums that cover them."""
    data = bytearray(path.read_bytes())
    first = int(path.name)
    for start, size in records:
        if first <= start < first + SEGMENT_BYTES:
            record = memoryview(data)[start - first : start - first + size]
            for field in [*TIMESTAMPS, *([CRC_DIGITS] if record_crc else [])]:
                record[field] = bytes(len(record[field]))
    return data
