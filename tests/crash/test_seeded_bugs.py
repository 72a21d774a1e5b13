"""The crash campaign finds what it is there for: each bug that is put in on purpose, within a few lives.

A life in which it is found breaks no promise without the bug. The gate begins with a life that has found it
before, the campaign with the commit's.
"""

from __future__ import annotations

import zlib

import pytest
from typing_extensions import override

from seglog.storage.format.config.config_json import encode_config
from seglog.storage.format.record import record
from seglog.storage.kernels import PYTHON, walk
from seglog.storage.recovery import store_recovery
from seglog.storage.small_files.config_file import ConfigFile
from seglog.storage.walk import segment_walk
from tests.support.crash.crash_files import CrashFiles
from tests.support.crash.crash_life import Life
from tests.support.machine.kernels import running
from tests.support.scale import is_gate, seed_number

LIVES = 300
LOST = "lost"
BAD_CONFIG = ("config cannot be read", "config is neither the old nor the new")


@pytest.fixture(autouse=True)
def python_kernels():
    """The bugs are put into Python."""
    with running(PYTHON):
        yield


@pytest.fixture
def finds(monkeypatch):
    """Returns whether one of some promises is broken by the bug, and by nothing else, in one of the lives."""

    def search(*kinds, before, files_type=CrashFiles):
        first = seed_number("seeded bugs")
        for seed in ((before,) if is_gate() else ()) + tuple(range(first, first + LIVES)):
            violation = Life(seed, files_type).live().violation
            if violation is not None and violation.kind in kinds:
                monkeypatch.undo()
                assert Life(seed).live().violation is None, f"the life of seed {seed} without the bug"
                print(f"found in the life of seed {seed}")
                return True
        return False

    return search


def test_a_sync_that_does_nothing(finds):
    class NoSync(CrashFiles):
        @override
        def sync_content(self, content):
            pass

    assert finds(LOST, files_type=NoSync, before=16896107852345844436)


def test_a_sync_of_the_first_page_only(finds):
    class FirstPage(CrashFiles):
        @override
        def sync_content(self, content):
            content.sync_page(0)

    assert finds(LOST, files_type=FirstPage, before=16896107852345844436)


def test_names_that_nobody_syncs(finds):
    class NoNames(CrashFiles):
        @override
        def sync_dir(self, path):
            self.step()

    assert finds(LOST, files_type=NoNames, before=16896107852345844437)


def test_a_config_written_in_place(finds, monkeypatch):
    def save(self, value):
        self._files.make_dirs(self.path.parent)
        self._files.write_file(self.path, encode_config(value).encode())
        self._files.sync_dir(self.path.parent)

    monkeypatch.setattr(ConfigFile, "save", save)
    assert finds(*BAD_CONFIG, before=16896107852345844488)


def test_a_config_that_gets_its_name_before_it_is_synced(finds):
    class NoTemporarySync(CrashFiles):
        @override
        def write_file(self, path, data, *, sync=True):
            super().write_file(path, data, sync=sync and path.suffix != ".tmp")

    assert finds(*BAD_CONFIG, files_type=NoTemporarySync, before=16896107852345844435)


def test_queues_that_recovery_does_not_mend(finds, monkeypatch):
    monkeypatch.setattr(store_recovery, "_write_queue", lambda _found, _files, _state: 0)
    assert finds(LOST, "lost without a word", "not in its queues", "broke", before=16896107852345844435)


def test_a_torn_tail_that_recovery_leaves_where_it_is(finds, monkeypatch):
    monkeypatch.setattr(store_recovery, "_zero", lambda _files, _path, _start, _end: None)
    assert finds("findings after a clean close", "stale message came back", before=16896107852345844441)


def test_a_recovery_that_serves_before_it_syncs(finds, monkeypatch):
    monkeypatch.setattr(store_recovery, "_sync_log", lambda _found, _files: None)
    assert finds(LOST, before=17609065999798113335)


def test_torn_properties_where_only_the_body_has_a_checksum(finds, monkeypatch):
    def verify(buffer, _at, body_at, body_size, body_crc, _properties, _end):
        crc = zlib.crc32(buffer[body_at : body_at + body_size]) & record.CRC_MASK
        return record.Damage("body-crc", body_crc, crc) if body_size and crc != body_crc else None

    monkeypatch.setattr(record, "_verify", verify)
    assert finds("other message than put", before=16896107852345844444)


def test_a_record_that_does_not_lie_where_it_says(finds, monkeypatch):
    def examine(buffer, at, phy_offset, verify=True):
        if len(buffer) - at >= record.MIN_RECORD_BYTES:
            phy_offset = int.from_bytes(buffer[at + record.PHY_OFFSET_AT :][:8])
        return record.examine(buffer, at, phy_offset, verify)

    monkeypatch.setattr(walk, "examine", examine)
    monkeypatch.setattr(segment_walk, "examine", examine)
    assert finds("never written", before=16896107852345844453)
