"""Surveys beside a writer: what is only ahead of what was read before it is no finding, and damage is one."""

from __future__ import annotations

import pytest
from typing_extensions import override

from seglog.storage.directory.reading_root import ReadingRoot
from seglog.storage.findings.code import Severity
from seglog.storage.scan.listed import list_whole
from seglog.storage.small_files.checkpoint_file import read_checkpoint
from seglog.storage.store import MessageStore
from seglog.storage.survey import survey, survey_moving, survey_written
from tests.support.material.stores import SMALL, SMALL_INDEX


class Writing(ReadingRoot):
    """The files of a store to which messages are added whenever a folder of that name is looked at."""

    def __init__(self, store, folder, puts):
        super().__init__(store.path)
        self.store, self.folder, self.puts = store, folder, puts

    def write(self):
        for number in range(self.puts):
            self.store.put("T", b"%d" % number + bytes(60))
        self.store.flush()

    @override
    def list_dir(self, path):
        if path.name == self.folder:
            self.write()
        return super().list_dir(path)

    @override
    def open(self, path, *, writable):
        if self.folder in path.parts:
            self.write()
        return super().open(path, writable=writable)


@pytest.fixture
def store(tmp_path):
    path, never_ms = tmp_path / "s", 60_000
    with MessageStore.open(
        path, recovery_step_bytes=0, flush_interval_ms=never_ms, **SMALL, **SMALL_INDEX
    ) as store:
        for number in range(100):
            store.put("T", b"%d" % number + bytes(60))
        store.flush()
        yield store


def codes(found):
    return {finding.code for finding in found.findings if finding.severity is not Severity.NOTE}


def test_queues_that_are_ahead_of_the_log_in_one_survey_are_no_finding(store):
    files = Writing(store, "consumequeue", 3)
    look = lambda: survey(store.path, files)  # noqa: E731
    assert codes(survey_moving(look, store.path, files)) == {"queue-beyond-log"}
    assert codes(survey_written(look, store.path, files)) == set()


def test_damage_of_a_store_that_is_written_is_a_finding(store):
    (store.path / "config").mkdir(exist_ok=True)
    (store.path / "config" / "topics.json").write_text("{")
    files = Writing(store, "consumequeue", 3)
    found = survey_written(lambda: survey(store.path, files), store.path, files)
    assert codes(found) == {"config-damaged"}


def test_a_checkpoint_is_not_ahead_of_files_that_began_before_it_was_read(store):
    listed = list_whole(Writing(store, "checkpoint", 60), store.path)
    plain = ReadingRoot(store.path)
    assert listed.checkpoint == read_checkpoint(plain, store.path)
    assert len(listed.log_files) == len(list_whole(plain, store.path).log_files)
