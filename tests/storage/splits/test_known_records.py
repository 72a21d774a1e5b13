"""An audit takes records that were walked as they were written for walked, and looks at all else."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

from seglog import MessageStore
from seglog.doctor.check import StoreCheck, check_store
from seglog.storage.files.files import RealFiles
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.record import MAGIC_BLANK
from seglog.storage.kernels import KERNELS, NATIVE
from seglog.storage.kernels.walk import ROW, QueueTable
from seglog.storage.kernels.walk_into import new_keys, walk_into
from seglog.storage.splits.known_records import KNOWN_KEYS, KnownRecords, RecordNotes

pytestmark = pytest.mark.skipif(KERNELS != NATIVE, reason="only native kernels walk into memory")
SEGMENT_BYTES = 1 << 16
SPLIT_BYTES = 1 << 14
INDEX = IndexGeometry(50, 4000)


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    """Groups of few records, and splits of which each segment has several."""
    monkeypatch.setattr("seglog.storage.splits.known_records._GROUP_ROWS", 7)
    monkeypatch.setattr("seglog.storage.splits.known_records.DEFAULT_SPLIT_BYTES", SPLIT_BYTES)


def note_segment(root, folder, first, *, tags=True):
    """Notes the records of a segment by walking it."""
    files, queues = RealFiles(), QueueTable()
    data = memoryview((root / "commitlog" / segment_file_name(first)).read_bytes())
    notes = RecordNotes(files, folder, ".attempt", first, tags=tags)
    rows, keys, every, position = np.empty(5, ROW), new_keys(), [], 0
    while True:
        until = min(len(data), notes.border(first + position) - first)
        walked = walk_into(data, first, position, until, queues, rows, keys, verify=True, tags=tags)
        if not walked.row_count:
            break
        notes.note(rows[: walked.row_count], walked.keys)
        every.append(walked.keys.rows.tobytes())
        position = walked.position
    notes.save(queues.names)
    (folder / KNOWN_KEYS / segment_file_name(first)).write_bytes(b"".join(every))


@pytest.fixture
def made(tmp_path):
    """A store of several segments and splits, and what is known of its records."""
    root, folder = tmp_path / "s", tmp_path / "known"
    (folder / KNOWN_KEYS).mkdir(parents=True)
    with MessageStore.open(
        root, segment_size_bytes=SEGMENT_BYTES, record_crc=True, index_geometry=INDEX
    ) as store:
        for number in range(900):
            store.put("T", bytes(number % 200), queue_id=number % 3, keys=f"k{number % 50}", tags="A")
    firsts = [int(path.name) for path in sorted((root / "commitlog").iterdir())]
    for first in firsts:
        note_segment(root, folder, first)
    return root, KnownRecords(folder), firsts


def checked(root, known):
    check = StoreCheck(root, known=known, split_bytes=SPLIT_BYTES)
    return check.run(None, lambda: False, None, resume=False)


def facts(report):
    return replace(report, elapsed_ms=0, read_bytes=0)


def test_the_report_is_that_of_a_walk(made):
    root, known, firsts = made
    assert len(firsts) > 2
    report = checked(root, known)
    assert facts(report) == facts(checked(root, None))
    assert report.is_clean
    assert report.records == 900


def test_bytes_within_groups_are_left_to_who_wrote_them(made):
    # A compaction reads them back: tests/spark/compact/test_written_bytes.py.
    root, known, firsts = made
    with (root / "commitlog" / segment_file_name(firsts[0])).open("r+b") as file:
        file.seek(SPLIT_BYTES // 2)
        file.write(b"\xff")  # within some record of a group
    assert not check_store(root).is_clean
    assert checked(root, known).is_clean


def test_records_at_the_edges_of_groups_have_to_be_there(made):
    root, known, firsts = made
    with (root / "commitlog" / segment_file_name(firsts[1])).open("r+b") as file:
        file.seek(60)
        file.write(b"\xff\xff")
    report = checked(root, known)
    assert facts(report) == facts(checked(root, None))
    assert not report.is_clean


def test_the_end_of_a_segment_is_read(made):
    root, known, firsts = made
    path = root / "commitlog" / segment_file_name(firsts[0])
    data = bytearray(path.read_bytes())
    end = data.rindex(struct.pack(">I", MAGIC_BLANK))  # of the filler, behind its length
    with path.open("r+b") as file:
        file.seek(end - 4)
        file.write(bytes(8))
    report = checked(root, known)
    assert not report.is_clean


@pytest.mark.parametrize("folder", ["consumequeue/T/1", "index"])
def test_queues_and_index_are_held_against_it(made, folder):
    root, known, _firsts = made
    (path,) = (root / folder).iterdir()
    data = bytearray(path.read_bytes())
    at = (
        20 * 40 + 3 if "consume" in folder else len(data) - next(i for i, b in enumerate(reversed(data)) if b)
    )
    data[at - 1] ^= 1
    with path.open("r+b") as file:
        file.write(data)
    report = checked(root, known)
    assert facts(report) == facts(checked(root, None))
    assert not report.is_clean


def test_other_tags_and_other_splits_are_walked(made):
    root, known, firsts = made
    (known.folder / f"{segment_file_name(firsts[0])}.marks").unlink()
    note_segment(root, known.folder, firsts[1], tags=False)
    report = checked(root, known)
    assert facts(report) == facts(checked(root, None))
    assert report.is_clean


def test_notes_that_are_dropped_leave_nothing(tmp_path):
    notes = RecordNotes(RealFiles(), tmp_path, ".attempt", 0, tags=True)
    notes.drop()
    assert list(tmp_path.iterdir()) == []
