"""Pieces that are walked side by side make the walk of one, for any log and any cuts."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog.storage.kernels.parallel_walk import Walkers
from seglog.storage.kernels.walk import ROW, QueueTable, walk
from tests.storage.kernels.test_native_equals_python import exact, logs, some_logs
from tests.support.machine.kernels import native, running
from tests.support.material.records import Record, pack_log
from tests.support.scale import scaled

MANY = settings(max_examples=scaled(200, 20_000), deadline=None)
END = 1 << 62


def python_walk(buffer, phy_offset, verify):
    queues = QueueTable()
    with running("python"):
        result = walk(buffer, phy_offset, END, queues, verify=verify)
    return result.rows.tolist(), queues.names, result.saying_more, result.position


def walked(buffer, phy_offset, verify, piece_bytes, threads=2, has_data=lambda _at: True):
    """All that can be walked, ahead and ahead again."""
    rows, queues, saying_more, at = [], QueueTable(), [], 0
    walkers = Walkers(threads, piece_bytes)
    with running("native"):
        try:
            while True:
                ahead = walkers.walk_ahead(buffer, phy_offset, at, queues, has_data, verify=verify)
                rows += ahead.rows.tolist()
                saying_more += ahead.saying_more
                if not ahead.is_whole or ahead.position == len(buffer):
                    return rows, queues.names, saying_more, ahead.position
                at = ahead.position
        finally:
            walkers.close()


@MANY
@given(st.lists(some_logs, max_size=4), st.booleans(), st.integers(60, 700), st.integers(1, 3))
def test_any_log_in_pieces_of_any_size(parts, verify, piece_bytes, threads):
    log = exact(b"".join(parts) or b"\0")
    assert walked(log, 0, verify, piece_bytes, threads) == python_walk(log, 0, verify)


@MANY
@given(logs, logs, st.integers(60, 400))
def test_a_record_within_a_body_is_no_border(outer, inner, piece_bytes):
    # Bodies that hold whole records which say that they lie just where they do.
    at = len(outer)
    head = len(Record(body=b"").pack()) - len(Record(body=b"", topic=b"").pack()) + 88
    body = pack_log([Record(body=bytes(40))] * 3, start=at + head - len(b"Topic") + 5) + inner
    log = exact(outer + Record(phy_offset=at, body=body).pack())
    assert walked(log, 0, True, piece_bytes) == python_walk(log, 0, True)


def test_a_false_border_is_found_out():
    """A record in a body that proves itself: the walk before it does not end there, so it does not count."""
    plain = Record(body=bytes(300)).pack()
    body_at = plain.index(bytes(300))
    inner = Record(phy_offset=body_at + 50, body=b"inside").pack()
    body = bytes(50) + inner + bytes(250 - len(inner))
    log = exact(pack_log([Record(body=body), *[Record(body=b"x" * 60)] * 5]))
    piece = body_at + 40
    assert native().walk_stretch(log, 0, piece, 2 * piece, True, True, rows_for(9))[2] == body_at + 50
    assert walked(log, 0, True, piece) == python_walk(log, 0, True)


def rows_for(count):
    return memoryview(bytearray(count * ROW.itemsize))


def test_queues_keep_the_numbers_that_they_have_in_every_piece():
    log = exact(pack_log([Record(topic=b"T%d" % (n % 7), queue_id=n % 3, body=bytes(50)) for n in range(90)]))
    assert walked(log, 0, True, 1000, 3) == python_walk(log, 0, True)


def test_nothing_is_looked_at_where_nothing_was_written():
    log = exact(pack_log([Record(body=bytes(100))] * 20))
    asked = []

    def has_data(phy_offset):
        asked.append(phy_offset)
        return phy_offset < 1500

    with running("native"):
        walkers, queues, at = Walkers(2, 500), QueueTable(), 0
        ends = []
        for _ in range(3):
            ahead = walkers.walk_ahead(log, 0, at, queues, has_data)
            at = ahead.position
            ends.append(at)
        walkers.close()
    assert asked == sorted(asked)
    assert 500 <= ends[0] < 1500 <= ends[1] < 2100


def test_a_walk_ends_where_there_is_no_more_room_for_rows():
    log = exact(pack_log([Record()] * 5))
    count, _more, begin, position, queues = native().walk_stretch(
        log, 0, 0, len(log), True, False, rows_for(3)
    )
    assert (count, begin, position, queues) == (3, 0, 3 * len(log) // 5, [(b"TopicA", 0)])


@pytest.mark.parametrize(("start", "until"), [(-1, 5), (6, 5), (0, 1 << 40)])
def test_a_stretch_beyond_its_buffer_is_refused(start, until):
    with pytest.raises(ValueError, match="within its buffer"):
        native().walk_stretch(memoryview(bytes(100)), 0, start, until, True, False, rows_for(1))


def test_walkers_of_several_threads_do_not_disturb_each_other():
    log = exact(pack_log([Record(topic=b"T%d" % (n % 50), body=bytes(200)) for n in range(3000)]))
    expected = python_walk(log, 0, True)
    seen = []
    threads = [
        threading.Thread(target=lambda: seen.append(walked(log, 0, True, 50_000) == expected))
        for _ in range(4)
    ]
    with running("native"):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == [True] * 4


def test_without_native_kernels_nothing_walks_ahead():
    with running("python"), pytest.raises(RuntimeError, match="no native kernels"):
        Walkers().walk_ahead(memoryview(bytes(200)), 0, 0, QueueTable())


def test_memory_of_rows_is_used_again():
    log = exact(pack_log([Record(body=bytes(100))] * 50))
    with running("native"):
        walkers = Walkers(1, 1000)
        found = [walkers.walk_ahead(log, 0, 0, QueueTable()).rows for _ in range(8)]
        walkers.close()
    assert not np.shares_memory(found[0], found[1])  # it grows with the stretch that is walked at a time
    assert np.shares_memory(found[6], found[7])
