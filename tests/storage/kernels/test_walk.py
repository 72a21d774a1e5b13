"""A walk goes from record to record and says why it stops; resync finds the next one that proves itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seglog import MessageStore
from seglog.storage.format.record.record import FILLER
from seglog.storage.kernels.pending_record import filler
from seglog.storage.kernels.walk import ROW, QueueTable, Stop, iter_resync, places, walk
from tests.support.material.records import Record, pack_log, records
from tests.support.rows import every_row

pytestmark = pytest.mark.usefixtures("kernels")

START = 65536
END = 2 * 65536
ONE = Record(topic=b"T", body=b"x" * 50, phy_offset=START).pack()
LONG = Record(topic=b"T", body=b"x" * 900, phy_offset=START + len(ONE)).pack()


def walked(data: bytes, segment_end: int = END, **options: bool):
    return walk(memoryview(data), START, segment_end, QueueTable(), **options)


def small_logs(**fixed: object) -> st.SearchStrategy[list[Record]]:
    return st.lists(records(topic=b"T", sys_flag=0, **fixed), max_size=6)


@given(small_logs())
def test_walk_sees_every_record_where_it_lies(written):
    data = pack_log(written, start=START)
    result = walked(data + bytes(200))
    assert result.stop is Stop.ZERO
    assert result.position == len(data)
    assert result.rows["queue_offset"].tolist() == [record.queue_offset for record in written]
    assert result.rows["store_timestamp_ms"].tolist() == [record.store_timestamp_ms for record in written]
    ends = (result.rows["phy_offset"] + result.rows["size_bytes"]).tolist()
    assert [START, *ends] == [*result.rows["phy_offset"].tolist(), START + len(data)]


@given(small_logs(), st.data())
def test_walk_that_stops_at_the_end_of_the_buffer_goes_on_in_the_next(written, data):
    log = pack_log(written, start=START).ljust(END - START, b"\0")
    cut = data.draw(st.integers(0, len(log)))
    queues = QueueTable()
    first = walk(memoryview(log[:cut]), START, END, queues)
    at = first.position
    second = walk(memoryview(log[at:]), START + at, END, queues)
    assert first.stop is (Stop.MORE if cut < at + 8 or cut < len(pack_log(written)) else Stop.ZERO)
    found = first.rows["phy_offset"].tolist() + second.rows["phy_offset"].tolist()
    assert found == walked(log).rows["phy_offset"].tolist()


STOPS = {
    "nothing written": (bytes(300), Stop.ZERO, None),
    "nothing left": (b"", Stop.MORE, None),
    "filler takes the rest": (filler(END - START - len(ONE)).ljust(300, b"\0"), Stop.BLANK, None),
    "old bytes behind the filler": (filler(END - START - len(ONE)).ljust(300, b"\xaa"), Stop.BLANK, None),
    "filler of another length": (filler(300).ljust(300, b"\0"), Stop.DAMAGE, "blank-size"),
    "garbage": (b"\xaa" * 300, Stop.DAMAGE, "magic"),
    "size without magic": (b"\0\0\1\0" + bytes(296), Stop.DAMAGE, "magic"),
    "magic without size": (b"\0\0\0\0\xda\xa3\x20\xa7" + bytes(292), Stop.DAMAGE, "size"),
    "record that goes on beyond the buffer": (LONG[:300], Stop.MORE, None),
    "as long, from elsewhere": (b"\0\0\4\0\xda\xa3\x20\xa7" + bytes(292), Stop.DAMAGE, "phy-offset"),
    "record that goes beyond the segment": (b"\0\1\0\0\xda\xa3\x20\xa7" + bytes(292), Stop.DAMAGE, "size"),
    "head that goes beyond the buffer": (ONE[:60], Stop.MORE, None),
    "seven bytes of a filler": (filler(END - START - len(ONE))[:7], Stop.MORE, None),
}


def test_walk_says_why_it_stops():
    with every_row() as row:
        for name, (rest, stop, kind) in STOPS.items():
            with row(name):
                result = walked(ONE + rest)
                assert (len(result.rows), result.position, result.stop) == (1, len(ONE), stop)
                assert (result.damage.kind if result.damage else None) == kind


AT_THE_END = (
    (b"", Stop.END),
    (bytes(1), Stop.ZERO),
    (bytes(7), Stop.ZERO),
    (b"\1", Stop.DAMAGE),
    (filler(8), Stop.BLANK),
)


def test_walk_at_the_end_of_the_segment():
    with every_row() as row:
        for rest, stop in AT_THE_END:
            with row(rest, stop):
                result = walked(ONE + rest, segment_end=START + len(ONE) + len(rest))
                assert (len(result.rows), result.stop) == (1, stop)


def test_rows_say_what_queues_need():
    log = pack_log(
        [
            Record(topic=b"A", queue_id=3, queue_offset=9, properties=b"TAGS\x01TagA\x02"),
            Record(topic=b"B", sys_flag=0x8),
            Record(topic=b"A", queue_id=3, queue_offset=10, sys_flag=0x4),
        ],
        start=START,
    )
    queues = QueueTable()
    rows = walk(memoryview(log), START, START + len(log), queues).rows
    assert queues.names == [("A", 3), ("B", 0)]
    assert (queues.find(b"B", 0), queues.find(b"B", 1)) == (1, None)
    assert rows["queue"].tolist() == [0, 1, 0]
    assert rows["tags_code"].tolist() == [2598919, 0, 0]
    assert places(rows).tolist() == [True, True, False]


def test_time_of_delivery_wraps_as_a_java_long():
    record = Record(
        topic=b"SCHEDULE_TOPIC_XXXX",
        properties=b"DELAY\x012\x02",
        phy_offset=START,
        store_timestamp_ms=2**63 - 1,
    )
    assert walked(record.pack()).rows["tags_code"].tolist() == [-(2**63) + 4999]


def test_no_rows_are_still_an_array_of_rows():
    assert walked(b"").rows.dtype == ROW


@pytest.mark.parametrize("bits", [0x4, 0xC, 0x80, 0xC0])
def test_record_without_a_place_of_its_own_is_told_apart(bits):
    assert not places(walked(replace(Record(), phy_offset=START, sys_flag=bits).pack()).rows).any()


@given(small_logs(), st.binary(max_size=60))
def test_resync_finds_all_records_behind_any_garbage(written, garbage):
    data = garbage + pack_log(written, start=START + len(garbage))
    found = list(iter_resync(memoryview(data), START, 0))
    expected = walk(memoryview(data)[len(garbage) :], START + len(garbage), END, QueueTable()).rows
    assert set((expected["phy_offset"] - START).tolist()) <= set(found)


IMPOSTORS = {
    "magic inside a body": Record(body=b"\xda\xa3\x20\xa7" * 30, phy_offset=START),
    "whole record of another place inside a body": Record(body=ONE, phy_offset=START),
    "record with a wrong body crc inside a body": Record(
        body=replace(Record(body=b"x" * 50), phy_offset=START + 88).pack()[:-60] + bytes(60), phy_offset=START
    ),
}


def test_resync_ignores():
    with every_row() as row:
        for name, record in IMPOSTORS.items():
            with row(name):
                data = bytearray(record.pack())
                assert list(iter_resync(memoryview(data), START, 0)) == [0]
                data[4] ^= 1
                assert list(iter_resync(memoryview(data), START, 0)) == []


def test_resync_starts_where_it_is_told():
    data = pack_log([Record(), Record(), Record()], start=START)
    assert len(list(iter_resync(memoryview(data), START, 0))) == 3
    assert len(list(iter_resync(memoryview(data), START, 1))) == 2


def test_resync_counts_no_record_that_goes_beyond_the_buffer():
    assert list(iter_resync(memoryview(ONE[:-1]), START, 0)) == []


SEGMENT_BYTES = 1 << 20


@pytest.fixture(scope="module")
def segment(module_folders):
    root = module_folders.mktemp("store")
    with MessageStore.open(root, segment_size_bytes=SEGMENT_BYTES) as store:
        for number in range(3):
            store.put("T", bytes(2000), keys=f"k{number}")
        size = store.message_at(0).size_bytes
    return bytearray(next((root / "commitlog").iterdir()).read_bytes()), size


def walk_with_size(segment, size, window_bytes):
    damaged = bytearray(segment)
    FILLER.struct.pack_into(damaged, 0, size, FILLER.struct.unpack_from(segment)[1])
    return walk(memoryview(damaged)[:window_bytes], 0, SEGMENT_BYTES, QueueTable())


DAMAGED_SIZES = {
    "too large, within the segment": (500_000, "lengths"),
    "too large for the segment": (SEGMENT_BYTES + 1, "size"),
    "too small for any record": (90, "size"),
    "negative": (-1, "size"),
}


def test_damaged_size_is_damage_at_once_and_in_the_same_words(segment):
    with every_row() as row:
        for name, (size, kind) in DAMAGED_SIZES.items():
            for window_bytes in (4096, 65536, SEGMENT_BYTES):
                with row(name, window_bytes):
                    content, _size = segment
                    found = walk_with_size(content, size, window_bytes)
                    assert found.stop is Stop.DAMAGE
                    assert found.damage == walk_with_size(content, size, SEGMENT_BYTES).damage
                    assert found.damage.kind == kind


def test_whole_record_beyond_the_buffer_asks_for_more_wherever_it_is_cut(segment):
    content, size = segment
    for window_bytes in range(size):
        result = walk(memoryview(content)[:window_bytes], 0, SEGMENT_BYTES, QueueTable())
        assert (result.stop, len(result.rows)) == (Stop.MORE, 0)
