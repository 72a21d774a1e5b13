"""What the native kernels do with what Python hands them: numbers, errors, threads."""

from __future__ import annotations

import threading

import pytest

from seglog.errors import InvalidArgumentError
from seglog.storage.format.index.index_build import KEY_ROW
from seglog.storage.format.record.host import Host
from seglog.storage.kernels.pending_record import PythonPendingRecord
from seglog.storage.kernels.walk import ROW, QueueTable, Stop, walk
from tests.support.machine.kernels import native, running
from tests.support.material.records import Record, pack_log
from tests.support.rows import every_row

LOG = memoryview(pack_log([Record(topic=topic, queue_id=1) for topic in (b"A", b"B", b"A", b"C")]))


def test_queues_keep_the_numbers_that_they_have():
    queues = QueueTable()
    for topic in (b"X", b"C", b"Y", b"A"):
        queues.number(topic, 1)
    with running("native"):
        rows = walk(LOG, 0, 1 << 20, queues).rows
    assert rows["queue"].tolist() == [3, 4, 3, 1]
    assert queues.names == [("X", 1), ("C", 1), ("Y", 1), ("A", 1), ("B", 1)]


def test_a_number_that_cannot_be_had_ends_the_walk_with_its_error():
    def number(topic, queue_id):
        raise LookupError(f"{topic.decode()}-{queue_id}")

    with pytest.raises(LookupError, match="A-1"):
        native().walk(LOG, 0, True, number)


@pytest.mark.parametrize("number", [-1, 2**31, 2**63])
def test_a_number_that_fits_no_row_is_refused(number):
    with pytest.raises(OverflowError):
        native().walk(LOG, 0, True, lambda _topic, _queue_id: number)


@pytest.mark.parametrize("phy_offset", [2**63 - 1, 2**63, 2**70, -1])
def test_where_no_record_can_lie_none_is_found(phy_offset):
    assert native().walk(LOG, phy_offset, True, QueueTable().number) == (b"", [], 0)
    assert native().find_record(LOG, phy_offset, 0, len(LOG)) == -1


def test_the_last_record_that_can_be_is_found():
    size = len(Record().pack())
    log = pack_log([Record()], start=2**63 - 1 - size)
    rows, _more, position = native().walk(memoryview(log), 2**63 - 1 - size, True, QueueTable().number)
    assert (len(rows), position) == (ROW.itemsize, size)


@pytest.mark.parametrize("start", [-5, 0, len(LOG), len(LOG) + 1, 2**62])
def test_a_search_may_begin_anywhere(start):
    assert native().find_record(LOG, 0, start, len(LOG) + 5) == (0 if start <= 0 else -1)


@pytest.mark.parametrize(
    "arguments", [(), ("text", 0, True, int), (LOG, "0", True, int), (LOG[::2], 0, True, int)]
)
def test_other_arguments_are_refused(arguments):
    with pytest.raises((TypeError, BufferError)):
        native().walk(*arguments)


def test_a_record_finished_between_two_looks_is_taken_by_python():
    """What the native kernels leave is walked on by the Python ones."""
    with running("native") as _, pytest.MonkeyPatch.context() as patch:
        patch.setattr("seglog.storage.kernels.walk.native_walk", lambda *_: (b"", [], 0))
        result = walk(LOG, 0, len(LOG), QueueTable())
    assert (len(result.rows), result.stop) == (4, Stop.END)


def test_threads_that_walk_at_once_see_the_same():
    log = memoryview(pack_log([Record(topic=b"T%d" % (n % 50), body=bytes(200)) for n in range(3000)]))
    expected = native().walk(log, 0, True, QueueTable().number)
    seen = []

    def look():
        seen.extend(native().walk(log, 0, True, QueueTable().number) == expected for _ in range(20))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 80


def test_nothing_leaks_from_a_walk():
    view = bytearray(LOG)
    for _ in range(3):
        native().walk(memoryview(view), 0, True, QueueTable().number)
        native().find_record(memoryview(view), 1, 0, 1 << 40)
        native().crc32(view)
    view.append(0)  # a buffer that is still held could not grow
    assert len(view) == len(LOG) + 1


HOST = Host(b"\x7f\0\0\1", 10911)
USUAL = {
    "topic": b"T",
    "queue_id": 3,
    "body": b"body",
    "properties": b"KEYS\x01k\x02",
    "tags_code": -7,
    "sys_flag": 0,
    "flag": 0,
    "born_timestamp_ms": 5,
    "born_host": HOST,
    "store_host": HOST,
    "reconsume_times": 0,
    "prepared_transaction_offset": 0,
    "record_crc": True,
}


def new_draft(**other):
    return native().PendingRecord(*(USUAL | other).values())


USUAL_DRAFTS = (
    {},
    {"properties": b"", "record_crc": False},
    {"body": b""},
    {"body": memoryview(b"some body")[1:]},
    {"topic": b"t" * 127},
    {"born_host": Host(bytes(16), 1)},
    {"store_host": Host(bytes(16), 1), "sys_flag": 0x8},
    {"properties": b"a\x01".ljust(32767 - 21, b"v") + b"\x02"},
    {"queue_id": 2**31 - 1, "flag": -(2**31), "tags_code": -(2**63), "born_timestamp_ms": 2**63 - 1},
)


def test_usual_drafts_are_made_in_c_and_equal_those_of_python():
    with every_row() as row:
        for other in USUAL_DRAFTS:
            with row(other):
                made, twin = new_draft(**other), PythonPendingRecord(*(USUAL | other).values())
                assert type(made) is native().PendingRecord
                buffers = bytearray(made.size_bytes), bytearray(twin.size_bytes)
                for each, buffer in zip((made, twin), buffers, strict=True):
                    each.write(memoryview(buffer), 0, 1, 2, 3)
                assert buffers[0] == buffers[1]


UNUSUAL_DRAFTS = (
    {"topic": b"t" * 128},
    {"topic": b"SCHEDULE_TOPIC_XXXX"},
    {"properties": b"__CRC32#\x011\x02"},
    {"properties": b"KEYS\x01k"},
    {"body": memoryview(b"a.b.c")[::2]},
    {"record_crc": 1},
)


def test_unusual_drafts_are_left_to_python():
    with every_row() as row:
        for other in UNUSUAL_DRAFTS:
            with row(other):
                assert type(new_draft(**other)) is PythonPendingRecord


def test_named_parameters_are_left_to_python():
    assert type(native().PendingRecord(**USUAL)) is PythonPendingRecord


def test_wrong_values_are_the_errors_of_python():
    with pytest.raises(InvalidArgumentError):
        new_draft(queue_id=2**31)
    with pytest.raises(AttributeError):
        new_draft(born_host="127.0.0.1:1")
    with pytest.raises(TypeError):
        native().PendingRecord(b"T")


class Port:
    """A host whose address is another object each time."""

    port = 7

    @property
    def address(self):
        return bytes(bytearray(b"\x01\x02\x03\x04"))


def test_an_address_that_nobody_holds_is_copied():
    made = new_draft(born_host=Port())
    buffer = bytearray(made.size_bytes)
    made.write(memoryview(buffer), 0, 0, 0, 0)
    assert buffer[48:56] == b"\x01\x02\x03\x04\0\0\0\x07"


@pytest.mark.parametrize("at", [-1, 1, 2**62])
def test_nothing_is_written_beyond_the_buffer(at):
    made = new_draft()
    buffer = bytearray(made.size_bytes)
    with pytest.raises(ValueError, match="do not fit"):
        made.write(memoryview(buffer), at, 0, 0, 0)
    with pytest.raises((BufferError, TypeError)):
        made.write(memoryview(bytes(made.size_bytes)), 0, 0, 0, 0)
    assert not any(buffer)


def test_numbers_that_no_field_holds_are_not_written():
    made = new_draft()
    with pytest.raises(OverflowError):
        made.write(memoryview(bytearray(made.size_bytes)), 0, 2**63, 0, 0)


@pytest.mark.parametrize(("until", "found"), [(-1, -1), (0, -1), (1, 0), (len(LOG), 0)])
def test_a_search_ends_where_it_is_told(until, found):
    assert native().find_record(LOG, 0, 0, until) == found


def test_a_walk_into_memory_stops_where_rows_or_keys_have_no_room():
    queues, log = QueueTable(), memoryview(pack_log([Record(properties=b"KEYS\x01a b\x02")] * 5))
    size = len(log) // 5

    def walked(rows, keys):
        room = memoryview(bytearray(rows * ROW.itemsize)), memoryview(bytearray(keys * KEY_ROW.itemsize))
        return native().walk_into(log, 0, 0, len(log), True, queues.number, *room, True)

    assert walked(5, 10) == (5, [], 5 * size, False, 10, [], 0, 0)
    assert walked(3, 10) == (3, [], 3 * size, True, 6, [], 0, 0)
    assert walked(5, 7) == (3, [], 3 * size, True, 6, [], 0, 0)
    assert walked(5, 1) == (0, [], 0, True, 0, [], 0, 0)
    rows = memoryview(bytearray(5 * ROW.itemsize))
    assert native().walk_into(log, 0, size, len(log), True, queues.number, rows, None, True)[:3] == (
        4,
        [],
        5 * size,
    )
    with pytest.raises(ValueError, match="within"):
        native().walk_into(log, 0, 2, 1, True, queues.number, rows, None, True)
