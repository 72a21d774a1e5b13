"""Which calls the fast path takes, and what it leaves, wakes, syncs and lends on the way."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref
from typing import Any

import pytest

from seglog.clock import SystemClock, VirtualClock
from seglog.errors import ClosedError, SeglogError, StoreFailedError
from seglog.storage.format.record.host import Host
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.queues.consume_queue import ConsumeQueue
from seglog.storage.store import MessageStore
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import BatchResult, NewMessage, PutResult, RawMessage
from tests.support.machine.fast_paths import contents, fast_paths_of, without_fast_path
from tests.support.machine.kernels import BOTH
from tests.support.machine.patience import wait_until
from tests.support.material.stores import (
    SMALL,
    SMALL_INDEX,
    Lengths,
    OpenStore,
    new_clock,
    read_all,
    writer_of,
)

IPV6 = Host(bytes(range(16)), 77)


@pytest.fixture(params=BOTH, autouse=True)
def fast_paths(request):
    with fast_paths_of(request.param):
        yield request.param


def ordinary_appends(store):
    """Returns a list that grows with each append that does not take the fast path."""
    made = []
    append = store._core.appends.append

    def noting(*arguments, **named):
        made.append(arguments[:2])
        return append(*arguments, **named)

    store._core.appends.append = noting
    return made


def test_usual_puts_take_the_fast_path(open_store: OpenStore):
    store = open_store(segment_size_bytes=1 << 20, queue_file_size_bytes=2000)
    store.put("T", b"first", queue_id=1)
    made = ordinary_appends(store)
    for number in range(50):
        put = store.put("T", b"x", queue_id=1, tags="A", keys="k", properties={"a": "b"}, flag=3)
        assert isinstance(put, PutResult)
        assert (put.queue_id, put.queue_offset, put.durability) == (1, number + 1, Durability.ASYNC)
        assert put.message_id == store.message_at(put.phy_offset).message_id
    assert made == []
    body: Any = bytearray(b"x")
    store.put("T", body, queue_id=1)
    assert made == [("T", 1)]


def test_usual_batches_and_messages_of_brokers_take_the_fast_path(open_store: OpenStore, fast_paths):
    if fast_paths == "python" or KERNELS != NATIVE:
        pytest.skip("its fast path takes puts, and batches of bare bodies")
    store = open_store(segment_size_bytes=1 << 20, queue_file_size_bytes=2000)
    store.put("T", b"first")
    made = ordinary_appends(store)
    batch = store.put_batch("T", [b"a", NewMessage(b"b", "TagB", "k", {"p": "v"}, 7), b"c"])
    assert isinstance(batch, BatchResult)
    assert [store.message_at(at).body for at in batch.phy_offsets] == [b"a", b"b", b"c"]
    assert (batch.queue_offset, batch.count) == (1, 3)
    assert batch.size_bytes == store.max_phy_offset - batch.phy_offset
    store.append("T", 0, memoryview(b"d"), b"", 0, born_timestamp_ms=5, born_host=IPV6, sys_flag=1)
    store.append_batch("T", 0, [RawMessage(b"e", b"TAGS\1TagE\2", 9), RawMessage(memoryview(b"f"), b"", 0)])
    unsynced = store.unsynced()
    unsynced.append("T", 0, memoryview(b"g"), b"", 0)
    assert unsynced.until == 0
    synced = unsynced.append_batch("T", 0, [RawMessage(b"h", b"", 0)], durability=Durability.SYNC)
    assert unsynced.until == synced.phy_offset + synced.size_bytes == store.max_phy_offset
    unsynced.append("T", 0, b"i", b"", 0, durability=Durability.ASYNC)
    assert unsynced.until < store.max_phy_offset
    assert made == []
    unsynced.append("T", 0, b"j", b"", 0, delay_ms=5)
    assert made == [("T", 0)]
    found = read_all(store, "T", 0)[1:]
    assert b"".join(message.body for message in found) == b"abcdefghij"
    assert (found[1].tags, found[1].keys, found[1].properties["p"], found[1].flag) == ("TagB", ["k"], "v", 7)
    assert (found[3].born_timestamp_ms, found[3].born_host, found[3].sys_flag) == (5, IPV6, 0x11)
    assert found[4].tags == "TagE"


def test_long_batches_take_the_fast_path_with_the_room_that_was_made_since(open_store: OpenStore, fast_paths):
    store = open_store(segment_size_bytes=64 << 20, queue_file_size_bytes=20 * 30_000)
    made = ordinary_appends(store)
    bodies = [b"%d" % number for number in range(1000)]
    results = [store.put_batch("T", bodies) for _ in range(100)]
    # The first of a queue, those whose units go into two files, and those that have to make space in the log.
    if fast_paths != "python" and KERNELS == NATIVE:  # that of Python leaves records with checksums alone
        assert len(made) <= 12
    assert [result.queue_offset for result in results] == list(range(0, 100_000, 1000))
    assert store.max_offset("T", 0) == 100_000
    assert [message.body for message in read_all(store, "T", 0)] == bodies * 100


def test_what_was_taken_back_is_lent_again_whatever_the_standard_input_is(open_store: OpenStore):
    store = open_store(segment_size_bytes=1 << 20, queue_file_size_bytes=2000)
    store.put("T", b"first")
    made = ordinary_appends(store)
    kept, (readable, writable) = os.dup(0), os.pipe()
    try:
        os.dup2(readable, 0)  # one that has no length
        writer_of(store).log.tail.revoke()
        for _ in range(3):
            store.put("T", b"x")
    finally:
        os.dup2(kept, 0)
        for descriptor in (kept, readable, writable):
            os.close(descriptor)
    assert made == [("T", 0)]


@pytest.mark.parametrize("bodies", [[b"equal", b"sizes"], [b"", b"of", b"any"], [b"", b""], (b"a tuple",)])
def test_bare_batches_take_the_fast_path(open_store: OpenStore, bodies):
    store = open_store(segment_size_bytes=1 << 20, queue_file_size_bytes=2000, record_crc=False)
    store.put("T", b"first")
    made = ordinary_appends(store)
    batch = store.put_batch("T", bodies)
    assert made == []
    assert [store.message_at(at).body for at in batch.phy_offsets] == list(bodies)
    assert (batch.queue_offset, batch.count) == (1, len(bodies))
    assert batch.size_bytes == store.max_phy_offset - batch.phy_offset
    assert [message.body for message in read_all(store, "T", 0)[1:]] == list(bodies)


LONG_BATCHES = {
    "many short ones, more than an arena holds": [b"%d" % number * 30 for number in range(9_000)],
    "one arena": [bytes([number]) * 1_024 for number in range(250)],
    "one that fills an arena nearly by itself": [b"a", bytes((1 << 20) - 120), b"b" * 300, b"c"],
    "one that no arena holds": [b"a" * 300_000, b"b" * (2 << 20), b"c"],
    "a single one": [b"a" * (3 << 20)],
}


@pytest.mark.parametrize("record_crc", [True, False])
@pytest.mark.parametrize("durability", Durability)
@pytest.mark.parametrize("bodies", LONG_BATCHES.values(), ids=LONG_BATCHES)
def test_long_batches_are_stored_as_the_ordinary_way_does(tmp_path, bodies, durability, record_crc):
    with_fast_path, ordinary = tmp_path / "fast path", tmp_path / "none"
    for root in (with_fast_path, ordinary):
        with MessageStore.open(
            root, clock=new_clock(), segment_size_bytes=8 << 20, record_crc=record_crc, **SMALL_INDEX
        ) as store:
            if root == ordinary:
                without_fast_path(store)
            store.put("T", b"first")
            batch = store.put_batch("T", bodies, durability=durability)
            assert [store.message_at(at).body for at in batch.phy_offsets[-2:]] == bodies[-2:]
            store.put("T", b"last")
    assert contents(with_fast_path) == contents(ordinary)


def test_a_long_batch_does_not_lengthen_a_log_that_was_cut(tmp_path):
    store = MessageStore.open(tmp_path, segment_size_bytes=8 << 20, **SMALL_INDEX)
    store.put("T", b"first")
    (log,) = tmp_path.glob("commitlog/*")
    os.truncate(log, 1 << 20)
    with pytest.raises(StoreFailedError, match="cut-by-others"):
        store.put_batch("T", [bytes(1_024)] * 1_000)
    assert log.stat().st_size == 1 << 20
    with pytest.raises(StoreFailedError):
        store.close()


def test_a_batch_that_cannot_be_made_leaves_nothing(open_store: OpenStore):
    store = open_store()
    store.put("T", b"x")
    before = store.max_phy_offset
    wrong: tuple[Any, ...] = (5, NewMessage(b"x", tags="\x02"), bytes(5 << 20))
    for odd in wrong:
        with pytest.raises((SeglogError, TypeError, AttributeError)):
            store.put_batch("T", [b"whole", odd])
    assert store.max_phy_offset == before
    store.close()
    assert open_store().max_phy_offset == before


def test_the_fast_path_goes_on_in_the_next_files(open_store: OpenStore):
    store = open_store()
    bodies = [b"%d" % number * 100 for number in range(100)]
    made = ordinary_appends(store)
    for body in bodies:
        store.put("T", body)
    assert 0 < len(made) < 60
    assert [message.body for message in read_all(store, "T", 0)] == bodies


def test_a_put_wakes_who_waits_for_its_queue(open_store: OpenStore):
    store = open_store(clock=SystemClock())
    store.put("T", b"x")
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(store.wait_for("T", 0, 1, 30_000)))
    waiting.start()
    wait_until(lambda: writer_of(store).waiters.waiting)
    made = ordinary_appends(store)
    store.put("T", b"y")
    waiting.join()
    assert (answers, made) == ([True], [])


def test_a_sync_put_by_the_fast_path_is_on_the_disk(open_store: OpenStore):
    store = open_store(durability=Durability.SYNC)
    store.put("T", b"x")
    made = ordinary_appends(store)
    put = store.put("T", b"y")
    assert (put.durability, made) == (Durability.SYNC, [])
    assert writer_of(store).commit.flushed == put.phy_offset + put.size_bytes
    put = store.put("T", b"z", durability=Durability.ASYNC)
    assert writer_of(store).commit.flushed == put.phy_offset


def test_after_a_failed_sync_the_fast_path_takes_nothing(tmp_path, clock: VirtualClock):
    store = MessageStore.open(tmp_path / "s", clock=clock, **SMALL, **SMALL_INDEX)
    store.put("T", b"x")
    store.put("T", b"y")
    end = store.max_phy_offset
    writer_of(store)._latch.fail(OSError(5, "broken"), "the sync of a test")
    with pytest.raises(StoreFailedError):
        store.put("T", b"z")
    assert store.max_phy_offset == end
    with pytest.raises(StoreFailedError):
        store.close()


def test_while_somebody_appends_the_fast_path_waits(open_store: OpenStore):
    store = open_store()
    store.put("T", b"x")
    writer, done = writer_of(store), []
    with writer.appends.append_lock, writer.log.tail:
        thread = threading.Thread(target=lambda: done.append(store.put("T", b"y")))
        thread.start()
        time.sleep(0.2)  # a put that does not wait takes far less
        assert (done, store.max_offset("T", 0)) == ([], 1)
    thread.join()
    assert done[0].queue_offset == 1


def test_a_topic_that_gets_rules_of_its_own_leaves_the_fast_path(open_store: OpenStore):
    store = open_store()
    store.put("T", b"x")
    writer = writer_of(store)
    made = ordinary_appends(store)
    writer.add_kinds(type(writer.queues.kinds)(compaction=frozenset(["T"])))
    store.put("T", b"y", keys="k")
    store.put("T", b"z", keys="k")
    assert made == [("T", 0)] * 2


def test_a_closed_store_and_a_forked_child_put_nothing(open_store: OpenStore):
    store = open_store()
    store.put("T", b"x")
    put = store.put
    child = os.fork()
    if not child:
        try:
            put("T", b"from the child")
        except ClosedError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    put("T", b"y")
    store.close()
    with pytest.raises(ClosedError):
        put("T", b"z")
    assert [message.body for message in read_all(open_store(), "T", 0)] == [b"x", b"y"]


def test_a_map_that_gave_way_is_lent_no_more(open_store: OpenStore):
    store = open_store()
    store.put("T", b"x")
    queue = writer_of(store).queues.find("T", 0)
    assert isinstance(queue, ConsumeQueue)
    for files in (writer_of(store).log._segments, queue._segments):
        for file in files:
            file.park()
    made = ordinary_appends(store)
    store.put("T", b"y")
    store.put("T", b"z")
    assert made == [("T", 0)]
    assert [message.body for message in read_all(store, "T", 0)] == [b"x", b"y", b"z"]


@pytest.mark.parametrize("real_time", [True, False])
def test_threads_that_put_at_once_lose_and_mix_nothing(tmp_path, real_time):
    clock = SystemClock() if real_time else new_clock()
    lengths: Lengths = {"segment_size_bytes": 1 << 16, "queue_file_size_bytes": 2000}
    with MessageStore.open(tmp_path / "s", clock=clock, **lengths, **SMALL_INDEX) as store:
        results = []

        def work(number):
            results.extend(
                store.put("T", b"%d-%d" % (number, n), queue_id=n % 2, tags="A" if n % 3 else None)
                if n % 7
                else store.append("T", n % 2, b"%d-%d" % (number, n), b"", 0)
                for n in range(1500)
            )

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for queue_id in (0, 1):
            offsets = sorted(put.queue_offset for put in results if put.queue_id == queue_id)
            assert offsets == list(range(2250))
        records = sorted((put.phy_offset, put.size_bytes) for put in results)
        ends = {start + size for start, size in records}
        assert all(start in ends or start % (1 << 16) == 0 for start, _size in records)
    with MessageStore.open(tmp_path / "s", **SMALL_INDEX) as store:
        bodies = [message.body for q in (0, 1) for message in read_all(store, "T", q)]
        assert sorted(bodies) == sorted(b"%d-%d" % (number, n) for number in range(3) for n in range(1500))


def test_what_was_acknowledged_before_a_close_is_there(tmp_path):
    store = MessageStore.open(tmp_path / "s", segment_size_bytes=1 << 16, **SMALL_INDEX)
    acknowledged = []

    def work():
        try:
            while True:
                acknowledged.append(store.put("T", b"x" * 50).queue_offset)
        except ClosedError:
            return

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    while len(acknowledged) < 2000:
        pass
    store.close()
    for thread in threads:
        thread.join()
    with MessageStore.open(tmp_path / "s", **SMALL_INDEX) as again:
        assert sorted(acknowledged) == list(range(again.max_offset("T", 0)))


def test_a_store_that_nobody_has_goes_with_its_fast_path(tmp_path, clock: VirtualClock):
    store = MessageStore.open(tmp_path / "s", clock=clock, **SMALL, **SMALL_INDEX)
    store.put("T", b"x")
    store.close()
    gone = weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None
