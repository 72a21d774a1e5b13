"""A new store is whole when it is put in place: an opening has nothing left to do."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from typing_extensions import override

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.doctor.check.check import check_store
from seglog.doctor.exchange.export import Selection, iter_rows
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import Policy
from seglog.storage.files.files import RealFiles
from seglog.storage.files.real_file import RealFile
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.queue.compaction import compaction_sizes
from seglog.storage.format.record.placeholder import PLACEHOLDER_FLAG
from seglog.storage.kernels import PYTHON
from tests.support.local_runner import LocalRunner
from tests.support.machine.kernels import BOTH, running
from tests.support.material.compactions import SIZES, STEP_MS, fill_random
from tests.support.material.stores import served

POLICIES = {
    "Comp": Policy(compact=True),
    "Prices": Policy(compact=True, delete_retention_ms=50 * STEP_MS),
    "Events": Policy(retention_bytes=15_000),
}


class CountedFile(RealFile):
    """Counts what is read."""

    def __init__(self, path, flags, read):
        super().__init__(path, flags)
        self._read, self._folder = read, path.parent

    @override
    def read_into(self, buffer, position):
        done = super().read_into(buffer, position)
        self._read[self._folder] += done
        return done


class CountingFiles(RealFiles):
    """Counts the bytes that are read of files, by the folder that they are in."""

    def __init__(self):
        self.read = Counter()

    @override
    def open(self, path, *, writable):
        return CountedFile(path, os.O_RDWR if writable else os.O_RDONLY, self.read)


class TwiceRunner(LocalRunner):
    """Does everything twice at the same time, as Spark does where an attempt seems to hang or to be lost."""

    def _twice(self, do):
        with ThreadPoolExecutor(2) as pool:
            first, second = [attempt.result() for attempt in (pool.submit(do), pool.submit(do))]
        assert first == second
        return second

    @override
    def scan(self, plan, asked, staged):
        return self._twice(lambda: list(super(TwiceRunner, self).scan(plan, asked, staged)))

    @override
    def decide(self, task, staged):
        return self._twice(lambda: super(TwiceRunner, self).decide(task, staged))

    @override
    def write_segments(self, task, staged, plans, begins):
        return self._twice(lambda: super(TwiceRunner, self).write_segments(task, staged, plans, begins))

    @override
    def each(self, staged, do, work):
        return self._twice(lambda: super(TwiceRunner, self).each(staged, do, work))


def compact(root, now_ms, files=None, runner=LocalRunner, **options):
    files = files or RealFiles()
    there = {queue.parent.name for queue in root.glob("consumequeue/*/*")}
    job = Compaction(
        root,
        {topic: policy for topic, policy in POLICIES.items() if topic in there},
        allow_undelivered=True,
        runner=runner(files),
        files=files,
        clock=VirtualClock(now_ms),
        draw=lambda bits: 0x1234567 % (1 << bits),
        **options,
    )
    assert job.apply().is_done


def content(root):
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.name != "lock")
    return {path.relative_to(root): path.read_bytes() for path in files}


@pytest.mark.parametrize("kernels", BOTH)
@pytest.mark.parametrize("entries", [2000, 90], ids=["one index file", "several index files"])
def test_opening_finds_nothing_to_do_and_the_index_is_the_engines(tmp_path, kernels, entries):
    with running(kernels):
        filled = fill_random(tmp_path / "s", 31)
        if entries != SIZES["index_geometry"].entry_count:
            shutil.rmtree(filled.root / "index")
            (filled.root / "seglog" / "lengths.conf").unlink()
            geometry = IndexGeometry(50, entries)
            clock = VirtualClock(filled.now_ms)
            MessageStore.open(filled.root, clock=clock, index_geometry=geometry).close()
        compact(filled.root, filled.now_ms, split_bytes=6_000)
        made = content(filled.root)
        clock = VirtualClock(filled.now_ms)
        with MessageStore.open(filled.root, clock=clock, recovery_step_bytes=0) as store:
            assert store.recovery.rewritten_queue_files == 0
            assert store.recovery.findings == ()
        assert content(filled.root) == made
        shutil.rmtree(filled.root / "index")
        clock = VirtualClock(filled.now_ms)
        MessageStore.open(filled.root, clock=clock, recovery_step_bytes=0).close()
        again = content(filled.root)
        assert {name: data for name, data in again.items() if name.parts[0] == "index"} == {
            name: data for name, data in made.items() if name.parts[0] == "index"
        }
        assert len([name for name in made if name.parts[0] == "index"]) > (entries == 90)


def test_the_old_log_is_read_twice_at_most_and_each_unit_once(tmp_path):
    filled = fill_random(tmp_path / "s", 33)
    log_bytes = sum(path.stat().st_size for path in (filled.root / "commitlog").iterdir())
    files = CountingFiles()
    with running(PYTHON):  # native kernels read from maps, which are not counted
        compact(filled.root, filled.now_ms, files, split_bytes=SIZES["segment_size_bytes"])
    read = files.read
    assert log_bytes <= read[filled.root / "commitlog"] <= 2.2 * log_bytes
    new = tmp_path / "s.compact" / "new"
    units = sum(path.stat().st_size for path in (filled.root / "consumequeue").rglob("0*") if path.is_file())
    assert 0 < read[new / ".units"] <= 33 / 20 * units


def test_a_check_says_why_the_log_begins_where_it_does(tmp_path):
    filled = fill_random(tmp_path / "s", 41, 300)
    compact(filled.root, filled.now_ms, split_bytes=6_000)
    segments = sorted((filled.root / "commitlog").iterdir())
    (said,) = [text for text in check_store(filled.root).not_looked_at if "compaction" in text]
    assert re.fullmatch(
        r"the \d+ messages that a compaction dropped at 2027-01-15 .* UTC: it wrote the log anew from"
        rf" {int(segments[0].name):,} on, with the \d+ that it kept",
        said,
    )
    assert not any("cannot be told" in text for text in check_store(filled.root).not_looked_at)
    segments[0].unlink()
    (said,) = [text for text in check_store(filled.root).not_looked_at if "cannot be told" in text]
    assert (
        f"before {int(segments[1].name):,} since a compaction began it at {int(segments[0].name):,}: " in said
    )
    (filled.root / "seglog" / "log-origin.json").write_text("{}")
    (said,) = [text for text in check_store(filled.root).not_looked_at if "cannot be told" in text]
    assert "compaction" not in said


def test_an_export_holds_no_placeholder_but_what_only_looks_like_one(tmp_path):
    filled = fill_random(tmp_path / "s", 43, 300)
    with MessageStore.open(filled.root, clock=VirtualClock(filled.now_ms)) as store:
        own = store.put("Flags", b"", flag=PLACEHOLDER_FLAG, properties={"a": "1"})
    compact(filled.root, filled.now_ms, split_bytes=6_000)
    placeholders = 0
    with MessageStore.open(filled.root, read_only=True) as store:
        exported = {
            (row.topic, row.queueId, row.queueOffset)
            for row in iter_rows(store, Selection(), (), lambda *_lost: None)
        }
        for key, messages in served(store).items():
            for message in messages:
                is_one = message.flag == PLACEHOLDER_FLAG and message.topic != "Flags"
                placeholders += is_one
                assert ((*key, message.queue_offset) in exported) != is_one
    assert placeholders > 10
    assert ("Flags", 0, own.queue_offset) in exported


def test_what_two_attempts_do_at_once_is_done_once(tmp_path):
    root = tmp_path / "once" / "s"
    root.parent.mkdir()
    filled = fill_random(root, 37, 300)
    table = {"Comp": {"topicName": "Comp", "attributes": {"cleanup.policy": "COMPACTION"}}}
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    clock, sizes = VirtualClock(filled.now_ms), compaction_sizes(10_000, 1_000)
    with MessageStore.open(root, clock=clock, compaction_sizes=sizes) as store:
        for number in range(200):
            store.put("Comp", b"%d " % number * 20, keys=f"k{number % 11}")
    twin = tmp_path / "twice" / "s"
    twin.parent.mkdir()
    shutil.copytree(root, twin, copy_function=shutil.copy2)
    compact(root, filled.now_ms, split_bytes=6_000)
    compact(twin, filled.now_ms, runner=TwiceRunner, split_bytes=6_000)
    assert content(twin) == content(root)
    assert any(name.parts[0] == "compaction" for name in content(root))
