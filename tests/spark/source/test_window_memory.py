"""Memory for windows is used again only when no view of it is left."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from seglog.spark.source.read.window_memory import WindowMemory


def place(view):
    return np.frombuffer(view, np.uint8).ctypes.data


def test_what_no_view_is_left_of_is_used_again():
    memory = WindowMemory()
    first = memory.take(1000)
    at = place(first)
    del first
    again = memory.take(900)
    assert (place(again), len(again)) == (at, 900)


def test_two_windows_take_turns():
    memory, places, last = WindowMemory(), set(), None
    for _number in range(10):
        view = memory.take(5000)
        places.add(place(view))
        last = pa.py_buffer(view[10:20])
        del view
    assert last is not None
    assert len(places) == 2


def test_what_a_view_is_left_of_stays():
    memory, kept = WindowMemory(), []
    for number in range(10):
        view = memory.take(100)
        view[:] = bytes([number]) * 100
        kept.append(pa.py_buffer(view[50:]))
        del view
    assert [bytes(buffer) for buffer in kept] == [bytes([number]) * 50 for number in range(10)]


def test_a_longer_window_gets_more_memory():
    memory = WindowMemory()
    assert [len(memory.take(size)) for size in (0, 10, 100_000, 10)] == [0, 10, 100_000, 10]
