"""A listener is called after every put to its queue, in the thread that puts."""

from __future__ import annotations

import threading

import pytest

from seglog.errors import ReadOnlyError
from seglog.storage.store import MessageStore


def test_a_listener_hears_of_its_queue_only_and_can_read_what_was_put(tmp_path):
    heard = []
    with MessageStore.open(tmp_path) as store:

        def wake():
            heard.append((threading.current_thread(), store.max_offset("T", 0)))

        store.listen("T", 0, wake)
        store.put("T", b"1")
        store.put("T", b"1", queue_id=1)
        store.put("U", b"1")
        store.put_batch("T", [b"2", b"3"])
        me = threading.current_thread()
        assert heard == [(me, 1), (me, 3)]
        store.unlisten("T", 0, wake)
        store.unlisten("T", 0, wake)
        store.put("T", b"4")
        assert len(heard) == 2


def test_two_listeners_of_one_queue_do_not_know_each_other(tmp_path):
    heard = []
    first, second = (lambda: heard.append(1)), (lambda: heard.append(2))
    with MessageStore.open(tmp_path) as store:
        store.listen("T", 0, first)
        store.listen("T", 0, second)
        store.put("T", b"1")
        store.unlisten("T", 0, first)
        store.put("T", b"2")
        assert heard == [1, 2, 2]


def test_a_store_that_was_opened_for_reading_sees_no_puts(tmp_path):
    with MessageStore.open(tmp_path) as store:
        store.put("T", b"1")
    with MessageStore.open(tmp_path, read_only=True) as store, pytest.raises(ReadOnlyError):
        store.listen("T", 0, lambda: None)
