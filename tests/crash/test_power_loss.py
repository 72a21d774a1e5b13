"""Power cuts and kills at any moment, recoveries included, lose nothing that was promised.

Simulated: see :mod:`tests.support.crash.crash_disk` for what a power cut may leave, and
:mod:`tests.support.crash.crash_model` for what is promised.
"""

from __future__ import annotations

import dataclasses
import gc
import json
from pathlib import Path

import pytest

from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.names import INDEX, LOCK_FILE
from seglog.storage.small_files.attic import ATTIC
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from seglog.storage.threads.on_demand import OnDemand
from tests.support.crash.crash_files import CrashFiles, KilledError
from tests.support.crash.crash_life import Life
from tests.support.crash.crash_loop import do_at_once
from tests.support.crash.crash_work import STORE, StillClock
from tests.support.material.archives import unpack
from tests.support.material.stores import SMALL, read_all
from tests.support.scale import scaled, seed_number

COMPACTION = Path(__file__).parents[1] / "storage" / "format" / "stores" / "compaction-5.4.0.tar.xz"
PARTS = scaled(4, 200)
LIVES = 42
"""In each part; a life has twelve images, so these are 2,000 or 100,000."""


@pytest.mark.parametrize("part", range(PARTS))
def test_no_life_breaks_a_promise(part):
    total = dict.fromkeys(("images", "kills", "nested", "closes", "holes"), 0)
    first = seed_number("power loss", part)
    for seed in range(first, first + LIVES):
        outcome = Life(seed).live()
        if outcome.violation is not None:
            again = f"python -m tests.support.crash.crash_life {seed}"
            raise AssertionError(f"the life of seed {seed} ({again}) broke a promise") from outcome.violation
        for name in total:
            total[name] += getattr(outcome, name)
    assert total["images"] >= 12 * LIVES
    assert all(total[name] > LIVES // 2 for name in total), total


@pytest.mark.parametrize(
    "seed",
    [
        240718487520389969,  # an opening removed the only log file, and died before the queues were written
        8407505679087782013,
        9360352171456202896,  # an opening was killed before seglog/lengths.conf was on the disk
    ],
)
def test_a_life_that_once_broke_a_promise_breaks_none(seed):
    assert Life(seed).live().violation is None


def test_a_seed_is_the_same_life_again():
    stories = []
    for _ in range(2):
        life = Life(5)
        outcome = life.live()
        stories.append((life.story, dataclasses.astuple(outcome)))
    assert stories[0] == stories[1]
    assert len(stories[0][0]) > 50


def test_a_store_of_a_life_asks_no_thread_for_anything():
    def threads():
        gc.collect()
        return {id(one) for one in gc.get_objects() if isinstance(one, OnDemand)}

    known = threads()
    files = CrashFiles()
    with open_store(files) as store:
        assert threads() > known
        do_at_once(store, files)
        assert threads() <= known
        store.put("T", b"x")


# ------------------------------------------------------- what the campaign found first, each by itself


class IdleKernel(CrashFiles):
    """Nothing reaches the disk without a sync."""

    write_back_share = 0.0


def open_store(files, **options):
    return MessageStore.open(
        STORE,
        **SMALL,
        index_geometry=IndexGeometry(16, 64),
        clock=StillClock(),
        flush_interval_ms=1 << 40,
        files=files,
        **options,
    )


def killed(files, store):
    """Returns the files for the next process."""
    found = files.after_kill()
    with pytest.raises(KilledError):
        store.close()
    return found


def test_units_of_a_killed_process_are_synced_by_the_next():
    files = IdleKernel()
    store = open_store(files)
    for number in range(3):
        store.put("T", b"%d" % number)
    files = killed(files, store)
    with open_store(files) as store:
        assert store.recovery.rewritten_queue_files == 0
    assert survey(STORE, files.after_power_loss()).findings == []


def unsynced_copy(root, files):
    """Writes a directory of the real disk to the simulated one, where nothing of it is synced."""
    for path in [root, *sorted(root.rglob("*"))]:
        target = STORE / path.relative_to(root)
        if path.is_dir():
            files.disk.make_folder(target)
        else:
            files.write_file(target, path.read_bytes(), sync=False)


@pytest.mark.parametrize("name", ["filled", "compacted"])
def test_what_a_killed_rocketmq_wrote_is_synced_by_the_next_clean_close(tmp_path, name):
    unpack(COMPACTION, tmp_path)
    topics = {topic: {"attributes": {"cleanup.policy": "COMPACTION"}} for topic in ("Comp", "Multi")}
    (tmp_path / name / "abort").touch()
    files = IdleKernel()
    unsynced_copy(tmp_path / name, files)
    files.make_dirs(STORE / "config")
    files.write_file(STORE / "config" / "topics.json", json.dumps({"topicConfigTable": topics}).encode())
    with MessageStore.open(STORE, files=files) as store:
        assert store.recovery.mode == "abnormal"
        assert store.recovery.records
        assert any("compaction" in str(path) for path in files.disk.folders)
    assert [path for path in files.disk.unsynced() if path.name[0].isdigit()] == []


def test_a_clean_close_leaves_everything_on_the_disk():
    files = IdleKernel()
    with open_store(files) as store:
        for number in range(200):
            store.put(f"T{number % 3}", bytes(100), keys=f"k{number}")
    assert files.disk.unsynced() <= {STORE / LOCK_FILE}


def test_an_index_file_that_was_removed_does_not_come_back():
    files = IdleKernel()
    with open_store(files) as store:
        store.put("T", b"x", keys="k")
    (entry,) = files.list_dir(STORE / INDEX)
    files.write_file(STORE / INDEX / entry.name, bytes(entry.size_bytes))
    files = files.after_kill()
    store = open_store(files)
    assert [finding.code for finding in store.recovery.findings] == ["index-damaged"]
    for _ in range(20):
        assert files.disk.image(files.chance).folders[STORE / INDEX].names == {}
    killed(files, store)


def test_an_index_file_that_was_removed_from_the_attic_does_not_come_back():
    """It could prove false keys for records that are written later at the places of its entries."""
    files = IdleKernel()
    with open_store(files) as store:
        store.put("T", b"x", keys="k")
    for _ in range(2):
        (entry,) = files.list_dir(STORE / INDEX)
        files.write_file(STORE / INDEX / entry.name, bytes(entry.size_bytes))
        files = files.after_kill()
        with open_store(files) as store:
            assert [finding.code for finding in store.recovery.findings] == ["index-damaged"]
            store.put("T", b"x", keys="k")
    for _ in range(20):
        kept = files.disk.image(files.chance).folders[STORE / ATTIC].names
        assert [name.partition("-")[0] for name in kept] == [f"{2:010d}"]


def test_what_was_served_after_a_kill_is_there_after_a_power_cut():
    files = IdleKernel()
    store = open_store(files)
    store.put("T", b"never flushed")
    files = killed(files, store)
    store = open_store(files)
    assert [message.body for message in read_all(store, "T", 0)] == [b"never flushed"]
    after = files.after_power_loss()
    killed(files, store)
    with open_store(after) as store:
        assert [message.body for message in read_all(store, "T", 0)] == [b"never flushed"]
