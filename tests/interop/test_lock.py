"""One writer at a time, whichever engine it is; and what RocketMQ does to a held store before it notices.

RocketMQ recovers a directory before it asks for the lock, and its exit hook then flushes a checkpoint and
deletes the abort file. A store that is held here must come through that.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from seglog import MessageStore
from seglog.errors import StoreFailedError, StoreLockedError
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, served_lines
from tests.interop.judging.questions import SMALL_GEOMETRY, JavaMessages
from tests.interop.judging.writing import store_options
from tests.support.narrow import not_none

pytestmark = pytest.mark.interop

OPTIONS = store_options(SMALL_GEOMETRY)


def test_store_held_here_refuses_the_real_one(judge: Judge, tmp_path):
    with MessageStore.open(tmp_path, **OPTIONS) as store:
        store.put("T", b"mine")
        assert "Lock failed" in not_none(judge.try_lock(tmp_path, SMALL_GEOMETRY))
    assert judge.try_lock(tmp_path, SMALL_GEOMETRY) is None


@pytest.mark.parametrize(
    "like_broker", [pytest.param(False, id="killed"), pytest.param(True, id="exit hook")]
)
@pytest.mark.parametrize("count", [0, 150])
def test_refused_broker_costs_no_message(judge: Judge, tmp_path, count, like_broker):
    with MessageStore.open(tmp_path, **OPTIONS) as store:
        for number in range(count):
            store.put("T", b"before %d" % number * 100)
        assert "Lock failed" in not_none(judge.try_lock(tmp_path, SMALL_GEOMETRY, like_broker=like_broker))
        for number in range(150):
            store.put("T", b"after %d" % number * 100)
        served = served_lines(store)
    assert len(served) == count + 150
    with MessageStore.open(tmp_path) as store:
        assert differences(served, served_lines(store)) == []
    assert differences(served, judge.dump(tmp_path, SMALL_GEOMETRY).of_kind("msg")) == []


def test_refused_broker_costs_nothing_acknowledged_while_we_write(judge: Judge, tmp_path):
    """Its recovery may delete a queue file that we just began: puts fail from then on, the log has all."""
    acknowledged = {}
    stop = threading.Event()

    def write(store):
        number = 0
        while not stop.is_set():
            result = store.put(f"T{number % 3}", b"%d" % number * 20)
            acknowledged[result.topic, result.queue_offset] = result.phy_offset
            number += 1
            time.sleep(0.0001)

    with (
        contextlib.suppress(StoreFailedError, FileNotFoundError),
        MessageStore.open(tmp_path, **OPTIONS) as store,
        ThreadPoolExecutor() as pool,
    ):
        writing = pool.submit(write, store)
        try:
            assert all("Lock failed" in not_none(judge.try_lock(tmp_path, SMALL_GEOMETRY)) for _ in range(2))
        finally:
            stop.set()
        writing.result()
    with MessageStore.open(tmp_path) as store:
        served = {(line["cqTopic"], line["cqOffset"]): line["cqPos"] for line in served_lines(store)}
    assert acknowledged.items() <= served.items()


def test_store_held_by_the_real_one_refuses_us_and_stays_untouched(judge: Judge, tmp_path):
    judge.write(tmp_path, [JavaMessages(topic="T", count=5)], SMALL_GEOMETRY)
    with judge.hold(tmp_path, SMALL_GEOMETRY):
        before = data_digests(tmp_path)
        with pytest.raises(StoreLockedError):
            MessageStore.open(tmp_path)
        assert data_digests(tmp_path) == before
    with MessageStore.open(tmp_path) as store:
        assert store.max_offset("T", 0) == 5


def test_lock_of_a_killed_broker_is_free(judge: Judge, tmp_path):
    judge.write(tmp_path, [JavaMessages(topic="T", count=5)], SMALL_GEOMETRY)
    with judge.hold(tmp_path, SMALL_GEOMETRY) as held:
        held.kill()
        with MessageStore.open(tmp_path) as store:
            assert store.recovery.mode == "abnormal"
            assert store.max_offset("T", 0) == 5


def test_reading_goes_on_beside_the_real_one_and_hinders_it_not(judge: Judge, tmp_path):
    judge.write(tmp_path, [JavaMessages(topic="T", count=5)], SMALL_GEOMETRY)
    with judge.hold(tmp_path, SMALL_GEOMETRY), MessageStore.open(tmp_path, read_only=True) as store:
        assert len(served_lines(store)) == 5
    with MessageStore.open(tmp_path, read_only=True):
        assert judge.try_lock(tmp_path, SMALL_GEOMETRY) is None


def data_digests(path):
    """Commit log and queues; the checkpoint is flushed every second while a broker runs."""
    files = [
        file for part in ("commitlog", "consumequeue") for file in (path / part).rglob("*") if file.is_file()
    ]
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
