"""A run of an archive counts as a whole or not at all, wherever it was stopped."""

from __future__ import annotations

import json

import pytest

from seglog.errors import ConfigError, StoreError, UnsafePathError
from seglog.spark.archive.folder import ArchiveFolder, archived
from seglog.spark.archive.manifest import Interval, Run

NAME = "topic=T/day=2026-11-21/part-0.parquet"


def run_of(number, *intervals, files=(NAME,)):
    return Run(number, 0, files, tuple(Interval("T", 0, *part) for part in intervals), 1, 1)


def stage(archive, number):
    file = archive.staged(number) / NAME
    file.parent.mkdir(parents=True)
    file.write_bytes(b"%d" % number)


def test_run_that_was_not_committed_leaves_nothing(tmp_path):
    archive = ArchiveFolder(tmp_path)
    stage(archive, 1)
    assert archive.finish() == 1
    assert archive.runs() == []
    assert not list(tmp_path.rglob("*.parquet"))


def test_committed_run_counts_before_its_files_are_moved(tmp_path):
    archive, run = ArchiveFolder(tmp_path), run_of(1, (0, 5))
    stage(archive, 1)
    archive.commit(run)
    assert archive.runs() == [run]
    assert archive.file(run, NAME).read_bytes() == b"1"
    assert archive.finish() == archive.finish() == 2
    assert archive.file(run, NAME) == tmp_path / "data" / NAME
    assert not (tmp_path / "_staged").exists()


def test_of_two_runs_at_once_one_is_refused(tmp_path):
    archive = ArchiveFolder(tmp_path)
    stage(archive, 1)
    archive.commit(run_of(1, (0, 5)))
    with pytest.raises(StoreError, match="by another process"):
        archive.commit(run_of(1, (0, 7)))
    assert archive.runs() == [run_of(1, (0, 5))]


def test_damaged_manifest_is_said(tmp_path):
    archive = ArchiveFolder(tmp_path)
    stage(archive, 1)
    archive.commit(run_of(1, (0, 5)))
    next((tmp_path / "_manifest").iterdir()).write_text("{")
    with pytest.raises(ConfigError, match="is no manifest"):
        archive.runs()


NO_MANIFESTS = {
    "brackets": lambda _fields: "[" * 100_000,
    "a list": lambda _fields: "[]",
    "no files": lambda fields: fields | {"files": None},
    "a file that is a number": lambda fields: fields | {"files": [7]},
    "a file twice": lambda fields: fields | {"files": [NAME, NAME]},
    "a number that is none": lambda fields: fields | {"messages": "many"},
    "the number of another run": lambda fields: fields | {"number": 7},
    "a number of bytes below nothing": lambda fields: fields | {"size_bytes": -1},
    "an interval without end": lambda fields: fields | {"intervals": [["T", 0, 5, 5]]},
    "an interval of no queue": lambda fields: fields | {"intervals": [["T", -1, 0, 5]]},
    "an interval of no topic": lambda fields: fields | {"intervals": [[None, 0, 0, 5]]},
    "an interval that is a text": lambda fields: fields | {"intervals": ["T005"]},
    "a field more": lambda fields: fields | {"more": 1},
}


@pytest.mark.parametrize("name", NO_MANIFESTS)
def test_a_manifest_is_checked_whole(name, tmp_path):
    archive = ArchiveFolder(tmp_path)
    stage(archive, 1)
    archive.commit(run_of(1, (0, 5)))
    path = next((tmp_path / "_manifest").iterdir())
    other = NO_MANIFESTS[name](json.loads(path.read_text()))
    path.write_text(other if isinstance(other, str) else json.dumps(other))
    with pytest.raises(ConfigError, match="is no manifest"):
        archive.runs()


@pytest.mark.parametrize("name", ["../../outside.parquet", "/outside.parquet", "a/../b", "", "a\0b"])
def test_a_manifest_names_no_file_outside_of_its_archive(name, tmp_path):
    archive = ArchiveFolder(tmp_path)
    stage(archive, 1)
    archive.commit(run_of(1, (0, 5)))
    path = next((tmp_path / "_manifest").iterdir())
    path.write_text(json.dumps(json.loads(path.read_text()) | {"files": [name]}))
    with pytest.raises(UnsafePathError):
        archive.runs()


def test_intervals_join_where_they_meet():
    held = archived([run_of(1, (0, 4), (9, 11)), run_of(2, (4, 7))])
    assert held == {("T", 0): [Interval("T", 0, 0, 7), Interval("T", 0, 9, 11)]}


def test_message_that_two_runs_hold_is_said():
    with pytest.raises(ConfigError, match="T/0 3 is archived twice"):
        archived([run_of(1, (0, 4)), run_of(2, (3, 7))])
