"""Every call of the disk in a full life of a store fails, one after the other, once and from then on.

The life has puts over rolls of log and queues, new queues, batches, tasks, queries that make the index,
index files, seals, checkpoints and the close. The loop goes on until a whole life meets no failure.
"""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress
from pathlib import Path

import pytest

from seglog.errors import FullError, SeglogError, StoreFailedError
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from seglog.storage.writes.flush import Durability
from tests.support.crash.failing_files import NEEDS_SPACE, FailingFiles, Fault
from tests.support.material.stores import SMALL, SMALL_INDEX, SomeLengths, new_clock, served
from tests.support.narrow import not_none
from tests.support.scale import strides

SYNC = Durability.SYNC


class LifeOfAStore:
    """One life, with a note of what was acknowledged."""

    def __init__(self, path, fault):
        self.path = path
        self.fault = fault
        self.acked = []
        self.tried = []
        self.refused = 0
        self.store = None

    def live(self, *, until_first_error):
        """Lives; after an error of a call it ends, or continues with the next call."""
        try:
            self.store = MessageStore.open(
                self.path,
                files=FailingFiles(self.fault), clock=new_clock(), durability=SYNC, **SMALL, **SMALL_INDEX,
            )  # fmt: skip
        except SeglogError:
            return
        try:
            for call in self._calls(self.store):
                try:
                    call()
                except StoreFailedError:
                    break
                except SeglogError:
                    self.refused += 1
                    if until_first_error:
                        break
        finally:
            with suppress(SeglogError):
                self.store.close()

    def _calls(self, store):
        for number in range(0, 60, 6):
            yield lambda n=number: self._put(n)
            yield lambda n=number: self._batch((n + 1, n + 2))
            yield lambda n=number: asyncio.run(self._tasks((n + 3, n + 4, n + 5)))
            yield lambda n=number: store.query("T0", f"k{n}")
            if number % 18 == 6:
                yield store.flush
                yield store._core._sealer._round

    def _put(self, number):
        self.tried.append(number)
        not_none(self.store).put("T0", b"%d:" % number + bytes(900), keys=f"k{number}")
        self.acked.append(number)

    def _batch(self, numbers):
        self.tried += numbers
        not_none(self.store).put_batch(f"T{numbers[0] % 5}", [b"%d:" % number for number in numbers])
        self.acked += numbers

    async def _tasks(self, numbers):
        await asyncio.gather(*(self._task(number) for number in numbers))

    async def _task(self, number):
        self.tried.append(number)
        await not_none(self.store).put_async(
            f"T{number % 7}", b"%d:" % number + bytes(300), queue_id=number % 2
        )
        self.acked.append(number)


def numbers(store):
    return [int(m.body.partition(b":")[0]) for queue in served(store).values() for m in queue]


def check_again(life, path):
    """Opens what is left: nothing acknowledged is lost, nothing comes twice, and it goes on."""
    lengths: SomeLengths = {} if life.acked else {**SMALL}
    with MessageStore.open(path, **lengths, **SMALL_INDEX) as again:
        found = numbers(again)
        assert set(life.acked) <= set(found) <= set(life.tried), life.fault.fired
        assert len(found) == len(set(found)), life.fault.fired
        again.put("T0", b"99:", durability=SYNC)
    found = survey(path, RealFiles())
    assert (found.mode, found.findings) == ("normal", []), life.fault.fired
    assert leftovers(path) == [], life.fault.fired


def leftovers(path):
    return [entry.name for entry in path.rglob("*") if entry.suffix in {".new", ".tmp"}]


@pytest.mark.parametrize("sticky", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize(
    "names",
    [{"sync"}, {"sync_dir", "make_dirs"}, {"reserve", "set_size", "create"}, {"rename"}, {"open"}, {"map"},
     {"write", "write_file"}, {"remove", "read", "read_file", "list_dir"}],
    ids=lambda names: "-".join(sorted(names)),
)  # fmt: skip
def test_no_call_that_fails_costs_an_acknowledged_message(memory_path: Path, names, sticky):
    step = 3 if len(names) > 1 or names == {"open"} else 1
    failed = 0
    for at in strides(1, step, 1, *sorted(names), sticky):
        life = LifeOfAStore(memory_path / f"{at}", Fault(at, errno.EIO, sticky, frozenset(names)))
        life.live(until_first_error=False)
        if not life.fault.fired:
            assert sorted(life.acked) == list(range(60))
            break
        failed += 1
        if life.path.exists():
            check_again(life, life.path)
    assert failed


@pytest.mark.parametrize("sticky", [False, True], ids=["once", "from then on"])
def test_after_a_failed_sync_of_anything_nothing_is_synced_or_acknowledged(memory_path: Path, sticky):
    for at in strides(1, 1, 1, "failed sync", sticky):
        fault = Fault(at, errno.EIO, sticky, frozenset({"sync", "sync_dir"}))
        life = LifeOfAStore(memory_path / f"{at}", fault)
        life.live(until_first_error=False)
        if not fault.fired:
            break
        assert (len(fault.fired), fault.count) == (1, at), "the disk was asked again"
        if life.store is not None:
            # The one sync with nothing behind it is of the folder that the file was just removed from.
            is_last = fault.fired == [f"sync_dir {life.path.name}"]
            assert is_last or (life.path / "abort").exists()
    assert at > 30


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_refuses_one_call_cleanly_wherever_it_is_met_and_the_next_goes_on(
    memory_path: Path, error
):
    for at in strides(1, 3, 1, "full disk", error):
        life = LifeOfAStore(memory_path / f"{at}", Fault(at, error, names=NEEDS_SPACE))
        life.live(until_first_error=False)
        if not life.fault.fired:
            break
        if life.store is None:
            continue
        assert not life.store._core._latch.is_closed, life.fault.fired
        assert len(life.acked) >= 60 - 3 * life.refused, life.fault.fired
        check_again(life, life.path)
    assert at > 60


def test_a_disk_that_stays_full_refuses_all_that_needs_space_and_reads_go_on(memory_path: Path):
    for at in strides(1, 3, 1, "a disk that stays full"):
        fault = Fault(at, errno.ENOSPC, sticky=True, names=NEEDS_SPACE)
        life = LifeOfAStore(memory_path / f"{at}", fault)
        life.live(until_first_error=True)
        if not fault.fired:
            break
        if life.path.exists() and life.acked:
            with MessageStore.open(life.path, read_only=True, files=FailingFiles(fault)) as reader:
                assert set(life.acked) <= set(numbers(reader))
            check_again(life, life.path)


def test_writes_resume_in_the_same_store_when_space_returns(memory_path: Path):
    fault = Fault(error=errno.ENOSPC, names=NEEDS_SPACE)
    with MessageStore.open(
        memory_path / "store", files=FailingFiles(fault), clock=new_clock(), **SMALL, **SMALL_INDEX
    ) as store:
        refused = 0
        for number in range(60):
            fault.at, fault.sticky = fault.count + 1, True
            try:
                store.put(f"T{number % 9}", b"%d:" % number + bytes(700))
            except FullError:
                refused += 1
                fault.at = 0
                store.put(f"T{number % 9}", b"%d:" % number + bytes(700))
        fault.at = 0
        assert refused > 15
        assert sorted(numbers(store)) == list(range(60))
    assert leftovers(memory_path) == []
