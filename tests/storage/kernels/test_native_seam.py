"""What the native kernels do with what Python hands them: numbers, errors, threads."""

from __future__ import annotations

import threading

import pytest

from seglog.storage.kernels.walk import ROW, QueueTable, Stop, walk
from tests.support.kernels import native, running
from tests.support.records import Record, pack_log

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
    assert native().find_record(LOG, phy_offset, 0) == -1


def test_the_last_record_that_can_be_is_found():
    size = len(Record().pack())
    log = pack_log([Record()], start=2**63 - 1 - size)
    rows, _more, position = native().walk(memoryview(log), 2**63 - 1 - size, True, QueueTable().number)
    assert (len(rows), position) == (ROW.itemsize, size)


@pytest.mark.parametrize("start", [-5, 0, len(LOG), len(LOG) + 1, 2**62])
def test_a_search_may_begin_anywhere(start):
    assert native().find_record(LOG, 0, start) == (0 if start <= 0 else -1)


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
        native().find_record(memoryview(view), 1, 0)
        native().crc32(view)
    view.append(0)  # a buffer that is still held could not grow
    assert len(view) == len(LOG) + 1
