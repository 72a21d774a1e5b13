"""Queues that no caller has used take no objects for their files."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from seglog.storage.queues.consume_queue import ConsumeQueue
from seglog.storage.store import MessageStore
from tests.support.material.stores import OpenStore, read_all, writer_of


def reopened(open_store: OpenStore, queues: int) -> MessageStore:
    store = open_store()
    for queue_id in range(queues):
        store.put_batch("T", [b"%d" % queue_id] * 30, queue_id=queue_id)  # more than one file
    store.close()
    return open_store()


def unused(store: MessageStore) -> set[int]:
    found = [queue for queue in writer_of(store).queues if isinstance(queue, ConsumeQueue)]
    return {queue.queue_id for queue in found if queue._files is None}


def test_a_queue_gets_its_files_with_its_first_put_or_get(open_store: OpenStore):
    store = reopened(open_store, 4)
    assert unused(store) == {0, 1, 2, 3}
    assert len(store.queues()) == 4
    store.flush()
    assert unused(store) == {0, 1, 2, 3}
    assert store.put("T", b"x", queue_id=1).queue_offset == 30
    assert [message.body for message in read_all(store, "T", 2)] == [b"2"] * 30
    assert unused(store) == {0, 3}
    store.close()
    assert [message.body for message in read_all(open_store(), "T", 1)] == [b"1"] * 30 + [b"x"]


def test_threads_that_use_a_queue_first_share_its_files(open_store: OpenStore):
    store = reopened(open_store, 50)
    start = threading.Barrier(4)
    seen: list[list[int]] = []

    def use() -> None:
        queues = [queue for queue in writer_of(store).queues if isinstance(queue, ConsumeQueue)]
        start.wait()
        seen.append([id(queue._segments) for queue in queues])

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    assert all(each == seen[0] for each in seen)
    assert unused(store) == set()


def test_threads_that_put_first_into_a_reopened_queue_together_all_have_their_messages(tmp_path):
    queues, threads = 60, 6
    with MessageStore.open(tmp_path / "s", small=True) as store:
        for number in range(queues):
            store.put("T", b"before", queue_id=number)
    with MessageStore.open(tmp_path / "s") as store, ThreadPoolExecutor(threads) as pool:
        together = threading.Barrier(threads)

        def put(number: int) -> int:
            together.wait()
            store.get("T", number, 0)  # maps the file for reading
            return store.put("T", b"after", queue_id=number).queue_offset

        for number in range(queues):
            assert sorted(pool.map(put, [number] * threads)) == [*range(1, threads + 1)]
