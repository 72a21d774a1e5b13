"""A check may be stopped and gone on with, works beside a writer, and goes on behind what cannot be read."""

from __future__ import annotations

import errno
import json
import mmap
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from typing_extensions import override

from seglog.doctor.check.check import check_store
from seglog.doctor.check.check_progress_file import default_resume_file
from seglog.doctor.check.log_walk import walk_split
from seglog.doctor.parts.tolerant_files import ForgivingFiles
from seglog.errors import InvalidArgumentError, NotAStoreError, NotFoundError, StoppedError
from seglog.storage.audit.plan import plan_audit
from seglog.storage.files.files import RealFiles
from seglog.storage.files.real_file import RealFile
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.findings.code import Severity
from seglog.storage.index_check.index_coverage import load_index
from seglog.storage.index_check.key_check import KeyDiff
from seglog.storage.store import MessageStore
from tests.support.machine.children import end
from tests.support.machine.kernels import BOTH, running
from tests.support.machine.patience import looks, wait_for_event
from tests.support.material import golden
from tests.support.material.mixed import fill_mixed
from tests.support.material.sealed import flip, sealed_store, segment
from tests.support.material.stores import SMALL, SMALL_INDEX, fill, new_clock
from tests.support.narrow import not_none
from tests.support.scale import scaled

SPLIT = 1 << 16


def after(count):
    """Says stop once it was asked so often."""
    asked = iter(range(count + 1))
    return lambda: next(asked, count) >= count


def told(report):
    """What a report says of the store, beside how it was made."""
    return (
        report.findings, report.records, report.with_record_crc, report.holes, report.end_phy_offset,
        report.queues, report.lags, report.minutes, report.keys, report.sealed, report.concerned,
    )  # fmt: skip


def make_sealed(root):
    sealed_store(root, record_crc=False)
    flip(segment(root, 1), 100_000)
    flip(segment(root, 2), 100)


def make_real(root):
    golden.extract("d-zeropage-first", root.parent).rename(root)


def make_mixed(root):
    fill_mixed(root, 400)


@pytest.mark.parametrize("make", [make_sealed, make_real, make_mixed])
def test_a_stopped_check_goes_on_and_says_what_one_without_a_stop_says(make, tmp_path):
    root, kept = tmp_path / "store", tmp_path / "kept"
    make(root)
    whole = check_store(root, split_bytes=SPLIT)
    stops = 0
    report = None
    while report is None:
        try:
            report = check_store(
                root, split_bytes=SPLIT, resume_file=kept, resume=kept.exists(), should_stop=after(2)
            )
        except StoppedError:
            stops += 1
    assert stops
    assert told(report) == told(whole)
    assert report.resumed_bytes > 0
    assert not kept.exists()


def test_a_segment_that_changed_since_is_read_again(tmp_path):
    root, kept = tmp_path / "store", tmp_path / "kept"
    sealed_store(root)
    with pytest.raises(StoppedError):
        check_store(root, split_bytes=SPLIT, resume_file=kept, should_stop=after(6))
    flip(segment(root, 0), 100)
    report = check_store(root, split_bytes=SPLIT, resume_file=kept, resume=True)
    assert "seal-rot" in {finding.code for finding in report.findings}


@pytest.mark.parametrize(
    ("pattern", "position"),
    [("index/*", SMALL_INDEX["index_geometry"].entries_at + 20), ("consumequeue/*/*/0*", 0)],
)
def test_what_records_were_held_against_and_changed_since_is_read_again(pattern, position, tmp_path):
    root, kept = tmp_path / "store", tmp_path / "kept"
    with MessageStore.open(root, clock=new_clock(), segment_size_bytes=1 << 17, **SMALL_INDEX) as store:
        fill(store, 2000)
    with pytest.raises(StoppedError):
        check_store(root, split_bytes=SPLIT, resume_file=kept, should_stop=after(4))
    changed = min(root.glob(pattern))
    flip(changed, position)
    report = check_store(root, split_bytes=SPLIT, resume_file=kept, resume=True)
    assert not report.is_clean
    assert told(report) == told(check_store(root, split_bytes=SPLIT))


def test_half_a_line_of_a_killed_check_is_passed_over(tmp_path):
    root, kept = tmp_path / "store", tmp_path / "kept"
    sealed_store(root)
    with pytest.raises(StoppedError):
        check_store(root, split_bytes=SPLIT, resume_file=kept, should_stop=after(6))
    os.truncate(kept, kept.stat().st_size - 20)
    report = check_store(root, split_bytes=SPLIT, resume_file=kept, resume=True)
    assert report.is_clean
    assert report.resumed_bytes > 0


def test_a_resume_file_of_another_store_or_none_is_refused(tmp_path):
    for name in ("one", "two"):
        sealed_store(tmp_path / name)
    kept = tmp_path / "kept"
    with pytest.raises(StoppedError):
        check_store(tmp_path / "one", split_bytes=SPLIT, resume_file=kept, should_stop=after(2))
    with pytest.raises(InvalidArgumentError, match="not the resume file of a check of this store"):
        check_store(tmp_path / "two", split_bytes=SPLIT, resume_file=kept, resume=True)
    with pytest.raises(InvalidArgumentError, match="there is no resume file"):
        check_store(tmp_path / "one", resume_file=tmp_path / "absent", resume=True)
    kept.write_text("hello")
    with pytest.raises(InvalidArgumentError, match="is no resume file"):
        check_store(tmp_path / "one", resume_file=kept, resume=True)
    with pytest.raises(InvalidArgumentError, match="would be in the store"):
        check_store(tmp_path / "one", resume_file=tmp_path / "one" / "kept")


def test_resume_files_of_stores_of_one_name_differ(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    one, two = (default_resume_file(tmp_path / name / "store") for name in "ab")
    assert one != two
    assert one.is_relative_to(tmp_path)


def test_what_is_no_store_is_refused(tmp_path):
    with pytest.raises(NotFoundError):
        check_store(tmp_path / "nothing")
    (tmp_path / "some.txt").touch()
    with pytest.raises(NotAStoreError):
        check_store(tmp_path)


WRITER = """
import sys, time
from pathlib import Path
from seglog.storage.store import MessageStore
from seglog.storage.files.store_root import StoreRoot
from tests.support.material.stores import SMALL_INDEX
sizes = {"segment_size_bytes": 1 << 16, "queue_file_size_bytes": 2000}
with MessageStore.open(Path(sys.argv[1]), **sizes, **SMALL_INDEX) as store:
    print("open", flush=True)
    number = 0
    while True:
        body, keys = b"x" * (number % 500), f"k{number}"
        store.put(f"Topic{number % 3}", body, queue_id=number % 2, tags="t", keys=keys)
        number += 1
        if number % 50 == 0:
            time.sleep(0.01)  # a log of many short files, but not thousands
"""


def test_beside_a_writer_nothing_is_found_but_notes(start_child, tmp_path):
    root = tmp_path / "store"
    writer = start_child([sys.executable, "-c", WRITER, root], stdout=subprocess.PIPE)
    not_none(writer.stdout).readline()
    records = []
    for waited_s in looks("a check that counts more than the first", idle_s=30, look_s=0):
        report = check_store(root)
        assert report.is_clean, [str(finding) for finding in report.findings]
        assert report.state == "open"
        assert report.holder is not None
        assert "in-use" in {finding.code for finding in report.findings}
        records.append(report.records)
        if waited_s > scaled(6, 60) and records[-1] > records[0]:
            break
    end(writer)
    report = check_store(root)
    assert report.state == "crashed"
    assert report.counts[Severity.LOSS] == 0


class _SlowQueueFiles(RealFiles):
    """Takes its time where a queue gets a file: the record is in the log by then, its unit nowhere."""

    @override
    def rename(self, source: Path, target: Path) -> None:
        if "consumequeue" in target.parts:
            time.sleep(0.2)
        super().rename(source, target)


def test_a_writer_that_stands_between_log_and_queue_is_no_finding(tmp_path):
    root, stop = tmp_path / "store", threading.Event()

    def write() -> None:
        with MessageStore.open(root, files=_SlowQueueFiles(), **SMALL, **SMALL_INDEX) as store:
            while not stop.is_set():
                for _ in range(SMALL["queue_file_size_bytes"] // 20):
                    store.put("A", b"x")
                opened.set()

    opened, writer = threading.Event(), threading.Thread(target=write)
    writer.start()
    try:
        wait_for_event(opened, "the store of the writer", idle_s=30)
        for _ in range(8):
            report = check_store(root)
            assert report.is_clean, [str(finding) for finding in report.findings]
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("name", ["basic", "real-conf"])
def test_an_intact_store_is_clean_beside_a_process_that_only_has_it_open(name, tmp_path):
    root = golden.extract(name, tmp_path)
    usual = {finding.code for finding in check_store(root).findings}
    with MessageStore.open(root):
        report = check_store(root)
    assert {finding.code for finding in report.findings} - usual <= {"in-use"}


def test_a_staged_file_is_left_over_only_where_nobody_writes(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        fill(store, 10)
        (root / "consumequeue" / "A-0.new").write_bytes(b"")
        assert "leftover" not in {finding.code for finding in check_store(root).findings}
    assert "leftover" in {finding.code for finding in check_store(root).findings}


def test_damage_is_found_beside_a_process_that_has_the_store_open(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        fill(store, 60)
        flip(root / "commitlog" / f"{0:020d}", 100)
        report = check_store(root)
    assert {"in-use", "record-repairable"} <= {finding.code for finding in report.findings}


def test_threads_that_read_a_store_do_not_mind_each_other(tmp_path):
    root = tmp_path / "store"
    sealed_store(root)
    reports = []
    threads = [threading.Thread(target=lambda: reports.append(check_store(root))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({told(report) for report in reports}) == 1


@pytest.mark.parametrize("kernels", BOTH)
def test_bad_sectors_cost_what_is_in_them(kernels, tmp_path, monkeypatch):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), segment_size_bytes=1 << 16, **SMALL_INDEX) as store:
        fill(store, 400)
    bad = range(8192, 12288)
    read = RealFile.read_into

    def failing(self, buffer, position):
        stretch = range(max(position, bad.start), min(position + len(buffer), bad.stop))
        if "commitlog" in str(self._path) and stretch:
            raise OSError(errno.EIO, "Input/output error")
        return read(self, buffer, position)

    def failing_map(self):
        """A map that faults where the sectors are bad, and behind them."""
        copy = tmp_path / "copy"
        shutil.copyfile(self._path, copy)
        with copy.open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        os.truncate(copy, bad.start)
        return memoryview(memory)

    monkeypatch.setattr(RealFile, "read_into", failing)
    monkeypatch.setattr(RealFile, "map", failing_map)
    with running(kernels):
        report = check_store(root)
    codes = {finding.code for finding in report.findings}
    assert {"file-unreadable", "log-hole"} <= codes
    (hole,) = report.holes
    assert hole.phy_offset < bad.stop <= hole.end < bad.stop + 400
    assert report.records > 300


def test_a_file_that_must_not_be_opened_counts_as_gone(tmp_path, monkeypatch):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        fill(store, 60)
    opened = StoreRoot.open

    def refusing(self, path, *, writable):
        if path.name == f"{4096:020d}":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(self, path, writable=writable)

    monkeypatch.setattr(StoreRoot, "open", refusing)
    (finding,) = [one for one in check_store(root).findings if one.code == "file-unreadable"]
    assert finding.file == f"commitlog/{4096:020d}"
    assert finding.severity is Severity.LOSS


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="needs setpriv, as root")
@pytest.mark.parametrize("name", ["roll", "real-conf"])
def test_what_may_not_be_read_is_named_and_nothing_else_is_concluded_from_it(start_child, tmp_path, name):
    root = golden.extract(name, tmp_path)
    rights = {"file-unreadable", "file-permission", "file-owner"}
    known = {finding.code for finding in check_store(root).findings}
    prefix = [] if os.geteuid() else ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    code = (
        "import sys; from pathlib import Path; from seglog.doctor.check.check import check_store\n"
        "for line in sys.stdin:\n"
        "    codes = [finding.code for finding in check_store(Path(line.strip())).findings]\n"
        "    print(*codes, flush=True)"
    )
    words = [*prefix, sys.executable, "-c", code]
    checking = start_child(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    places = [
        "commitlog",
        "commitlog/*",
        "config",
        "consumequeue/*/0/*",
        "consumequeue/*/*",
        "compaction",
        "index/*",
    ]
    for path in (next(root.glob(place), None) for place in places):
        if path is None:
            continue
        mode = path.stat().st_mode
        path.chmod(0)
        print(root, file=not_none(checking.stdin), flush=True)
        found = set(not_none(checking.stdout).readline().split())
        path.chmod(mode)
        assert "file-unreadable" in found, path
        assert not found & {"log-hole", "log-empty", "log-tail-lost", "messages-lost", "index-damaged"}, path
        if path.is_file() and name == "roll":  # no table of it leads to what its files hold
            assert found <= known | rights, path


def test_the_files_of_a_check_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(PermissionError):
        ForgivingFiles(tmp_path).open(tmp_path / "file", writable=True)


def test_a_kept_line_is_json(tmp_path):
    root, kept = tmp_path / "store", tmp_path / "kept"
    sealed_store(root)
    with pytest.raises(StoppedError) as caught:
        check_store(root, split_bytes=SPLIT, resume_file=kept, should_stop=after(3))
    assert caught.value.resume_file == str(kept)
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert lines[0]["store"] == str(root)
    assert len(lines) > 3


def test_a_split_walked_elsewhere_with_its_part_of_the_index_saw_the_same(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), segment_size_bytes=1 << 17, **SMALL_INDEX) as store:
        fill(store, 2000)
    files = ForgivingFiles(root)
    plan = plan_audit(root, files, split_bytes=SPLIT)
    index = load_index(plan, files, is_live=False)
    assert index.entry_count > 2000
    for split in plan.splits:
        part = pickle.loads(pickle.dumps(index.within(split.start, split.segment_end)))  # noqa: S301  # our own
        assert len(part.outlines) < len(index.outlines)
        here = walk_split(plan, files, split, None, index)
        assert walk_split(plan, ForgivingFiles(root), split, None, part) == here
        assert pickle.loads(pickle.dumps(here)) == here  # noqa: S301  # our own
        assert here.seen[-1].keys == KeyDiff(here.seen[-1].keys.keys)
