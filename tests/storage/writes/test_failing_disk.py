"""For any failing call of the disk: a clear error, no false acknowledgement, and the next open works."""

from __future__ import annotations

import contextlib
import errno
import shutil
import threading
from pathlib import Path
from typing import Unpack

import pytest

from seglog.errors import FullError, SeglogError, StoreFailedError
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from seglog.storage.writes.flush import Durability
from tests.support.crash.failing_files import FailingFiles, Fault
from tests.support.machine.patience import join_thread, wait_until
from tests.support.material.stores import SMALL, OpenOptions, SomeLengths, new_clock, read_all, writer_of
from tests.support.scale import strides

SYNC = Durability.SYNC


@pytest.fixture
def fault():
    return Fault()


def open_failing(path: Path, fault: Fault, **options: Unpack[OpenOptions]) -> MessageStore:
    chosen: OpenOptions = {"clock": new_clock(), **SMALL, **options, "files": FailingFiles(fault)}
    return MessageStore.open(path, **chosen)


# -------------------------------------------------------------------------------- the latch of fsync


def test_after_a_failed_sync_nothing_is_acknowledged_any_more(tmp_path, fault):
    store = open_failing(tmp_path / "store", fault, durability=SYNC)
    kept = [store.put("T", b"%d" % i).queue_offset for i in range(3)]
    fault.names, fault.at, fault.count = frozenset({"sync"}), 1, 0
    for write in (
        lambda: store.put("T", b"lost"),
        lambda: store.put("T", b"lost"),
        lambda: store.put("T", b"lost", durability=Durability.ASYNC),
        lambda: store.put_batch("U", [b"lost"]),
        store.flush,
    ):
        with pytest.raises(StoreFailedError, match=r"sync of commitlog/.* failed .*reads go on"):
            write()
    assert len(fault.fired) == 1  # the disk was not asked again: its next answer would be a lie
    assert [message.queue_offset for message in read_all(store, "T", 0)][:3] == kept
    with pytest.raises(StoreFailedError):
        store.close()


def test_a_flush_whose_checkpoint_cannot_be_opened_names_the_sync_of_queues_and_checkpoint(tmp_path, fault):
    store = open_failing(tmp_path / "store", fault)
    store.put("T", b"x")
    fault.names, fault.at, fault.count = frozenset({"open"}), 1, 0
    with pytest.raises(StoreFailedError, match=r"^syncing queues and checkpoint failed \("):
        store.flush()
    with pytest.raises(StoreFailedError):
        store.close()


def test_store_with_a_failed_sync_opens_again_and_goes_on(tmp_path, fault):
    store = open_failing(tmp_path / "store", fault, durability=SYNC)
    store.put("T", b"kept")
    fault.names, fault.at, fault.count = frozenset({"sync"}), 1, 0
    with pytest.raises(StoreFailedError):
        store.put("T", b"unknown")
    with pytest.raises(StoreFailedError):
        store.close()
    with MessageStore.open(tmp_path / "store") as again:
        assert again.recovery.mode == "abnormal"
        assert read_all(again, "T", 0)[0].body == b"kept"
        put = again.put("T", b"next", durability=SYNC)
        assert put.queue_offset == again.max_offset("T", 0) - 1


def test_failed_sync_of_the_flusher_closes_the_latch_for_async_puts(tmp_path, fault):
    clock = new_clock()
    store = open_failing(tmp_path / "store", fault, flush_interval_ms=1000, clock=clock)
    store.put("T", b"x")
    fault.names, fault.at, fault.count = frozenset({"sync"}), 1, 0

    def is_closed():
        clock.advance(1000)
        return writer_of(store)._latch.is_closed

    wait_until(is_closed, "the latch is closed", idle_s=10)
    with pytest.raises(StoreFailedError):
        store.put("T", b"y")
    with pytest.raises(StoreFailedError):
        store.close()


def test_failed_sync_fails_every_thread_that_waits_for_it(tmp_path, fault):
    store = open_failing(tmp_path / "store", fault, durability=SYNC)
    store.put("T", b"x")
    fault.names, fault.at, fault.count = frozenset({"sync"}), 1, 0
    outcomes = []

    def put() -> None:
        try:
            store.put("T", b"y")
            outcomes.append("acknowledged")
        except StoreFailedError:
            outcomes.append("failed")

    threads = [threading.Thread(target=put) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        join_thread(thread, idle_s=10)
    assert outcomes == ["failed"] * 8
    with pytest.raises(StoreFailedError):
        store.close()


def test_failed_sync_of_a_new_segment_closes_the_latch_too(tmp_path, fault):
    store = open_failing(tmp_path / "store", fault)
    fault.names, fault.at = frozenset({"sync"}), fault.count + 10**6
    store.put("T", bytes(3500))
    fault.count, fault.at = 0, 1
    for _ in range(2):
        with pytest.raises(StoreFailedError):
            store.put("T", bytes(3500))
    with pytest.raises(StoreFailedError):
        store.close()
    with MessageStore.open(tmp_path / "store") as again:
        assert again.put("T", bytes(3500)).queue_offset == 1


# --------------------------------------------------------------------------- the N-th call, each of them


def work(path, fault) -> tuple[list[int], list[int]]:
    """Opens a store, puts over rolls of log and queue, batches, flushes, closes; returns acked and tried."""
    acked: list[int] = []
    tried: list[int] = []
    try:
        with open_failing(path, fault) as store:
            for number in range(0, 24, 3):
                tried.append(number)
                store.put("T", b"%d" % number + bytes(700), durability=SYNC)
                acked.append(number)
                tried += [number + 1, number + 2]
                store.put_batch("T", [b"%d" % (number + i) + bytes(90) for i in (1, 2)], durability=SYNC)
                acked += [number + 1, number + 2]
            store.flush()
    except SeglogError:
        pass
    return acked, tried


def numbers(store) -> list[int]:
    return [int(message.body.rstrip(b"\0")) for message in read_all(store, "T", 0)]


@pytest.mark.parametrize("sticky", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EMFILE], ids=["EIO", "ENOSPC", "EMFILE"])
def test_any_call_may_fail_in_a_run_and_nothing_acknowledged_is_lost(memory_path: Path, error, sticky):
    for at in strides(1, 1, 1, "a run", error, sticky):
        path = memory_path / f"{at}"
        fault = Fault(at, error, sticky)
        acked, tried = work(path, fault)
        if not fault.fired:
            assert acked == list(range(24))
            break
        if not acked and not path.exists():
            continue
        lengths: SomeLengths = {} if acked else {**SMALL}
        with MessageStore.open(path, **lengths) as again:
            kept = numbers(again)
            assert kept[: len(acked)] == acked, fault.fired
            assert set(kept) <= set(tried)
            again.put("T", b"99", durability=SYNC)
            assert numbers(again) == [*kept, 99]
        assert survey(path, RealFiles()).findings == [], fault.fired
    assert at > 50


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EMFILE], ids=["EIO", "ENOSPC", "EMFILE"])
def test_any_call_may_fail_in_a_recovery_and_the_next_one_works(memory_path: Path, error):
    crashed = memory_path / "crashed"
    store = MessageStore.open(crashed, clock=new_clock(), **SMALL)
    for number in range(24):
        store.put("T", b"%d" % number + bytes(300))
    make_crash = _crash_image(crashed, memory_path)
    store.close()
    for at in strides(1, 1, 1, "a recovery", error):
        path = make_crash(at)
        fault = Fault(at, error)
        with contextlib.suppress(SeglogError):
            MessageStore.open(path, files=FailingFiles(fault), clock=new_clock()).close()
        if not fault.fired:
            break
        with MessageStore.open(path) as again:
            assert numbers(again) == list(range(24)), fault.fired
        assert survey(path, RealFiles()).findings == [], fault.fired
    assert at > 20


def _crash_image(root, folder):
    """Returns what makes copies of a store as its kill left it, with a torn record and no queues."""
    shutil.copytree(root, folder / "image")
    last = max((folder / "image" / "commitlog").iterdir())
    data = bytearray(last.read_bytes())
    used = len(data.rstrip(b"\0"))
    data[used : used + 4] = b"torn"
    last.write_bytes(data)
    shutil.rmtree(folder / "image" / "consumequeue")

    def make(number):
        return shutil.copytree(folder / "image", folder / f"copy{number}")

    return make


def test_full_disk_is_told_apart_from_a_broken_one(tmp_path, fault):
    with open_failing(tmp_path / "store", fault, durability=SYNC) as store:
        store.put("T", b"x")
        fault.names, fault.error, fault.at, fault.count = frozenset({"reserve"}), errno.ENOSPC, 1, 0
        for _ in range(40):
            if fault.fired:
                break
            try:
                store.put("T", bytes(300))
            except FullError:
                continue
        assert fault.fired
        assert store.put("T", b"works again").durability is SYNC
