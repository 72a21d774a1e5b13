"""The crash campaign finds what it is there for: each bug that is put in on purpose, within a few lives."""

from __future__ import annotations

import zlib

from seglog.storage import log_scan, recover
from seglog.storage.config_file import ConfigFile
from seglog.storage.format import record
from seglog.storage.format.config_json import encode_config
from seglog.storage.kernels import walk
from tests.support.crash_files import CrashFiles
from tests.support.crash_life import Life

LIVES = 60


def found_with(files_type=CrashFiles):
    """Returns how often each promise was broken."""
    kinds = {}
    for seed in range(LIVES):
        violation = Life(seed, files_type).live().violation
        if violation is not None:
            kinds[violation.kind] = kinds.get(violation.kind, 0) + 1
    return kinds


def test_without_a_bug_nothing_is_found():
    assert found_with() == {}


def test_a_sync_that_does_nothing_is_found():
    class NoSync(CrashFiles):
        def sync_content(self, content):
            pass

    assert "lost" in found_with(NoSync)


def test_a_sync_of_the_first_page_only_is_found():
    class FirstPage(CrashFiles):
        def sync_content(self, content):
            content.sync_page(0)

    assert "lost" in found_with(FirstPage)


def test_names_that_are_not_synced_are_found():
    class NoNames(CrashFiles):
        def sync_dir(self, path):
            self.step()

    assert "lost" in found_with(NoNames)


def test_a_config_that_is_written_in_place_is_found(monkeypatch):
    def save(self, value):
        self._files.make_dirs(self.path.parent)
        self._files.write_file(self.path, encode_config(value).encode())
        self._files.sync_dir(self.path.parent)

    monkeypatch.setattr(ConfigFile, "save", save)
    assert "config cannot be read" in found_with()


def test_a_config_whose_new_file_is_not_synced_before_it_gets_its_name_is_found():
    class NoTemporarySync(CrashFiles):
        def write_file(self, path, data, *, sync=True):
            super().write_file(path, data, sync=sync and path.suffix != ".tmp")

    found = found_with(NoTemporarySync)
    assert found.keys() & {"config cannot be read", "config is neither the old nor the new"}


def test_queues_that_recovery_does_not_mend_are_found(monkeypatch):
    monkeypatch.setattr(recover, "_write_queue", lambda found, files, state: 0)
    assert found_with().keys() & {"lost", "not in its queues", "lost without a word"}


def test_a_torn_tail_that_recovery_leaves_there_is_found(monkeypatch):
    monkeypatch.setattr(recover, "_zero", lambda files, path, start, end: None)
    assert found_with()


def test_what_recovery_serves_without_syncing_it_is_found(monkeypatch):
    monkeypatch.setattr(recover, "_sync_log", lambda found, files: None)
    assert "lost" in found_with()


def test_torn_properties_that_only_the_record_crc_tells_are_found(monkeypatch):
    def verify(buffer, _at, body_at, body_size, body_crc, _properties, _end):
        crc = zlib.crc32(buffer[body_at : body_at + body_size]) & record.CRC_MASK
        return record.Damage("body-crc", body_crc, crc) if body_size and crc != body_crc else None

    monkeypatch.setattr(record, "_verify", verify)
    assert "other message than put" in found_with()


def test_a_record_that_lies_where_it_does_not_belong_is_found(monkeypatch):
    def examine(buffer, at, phy_offset, verify=True):
        if len(buffer) - at >= record.MIN_RECORD_BYTES:
            phy_offset = int.from_bytes(buffer[at + record.PHY_OFFSET_AT :][:8])
        return record.examine(buffer, at, phy_offset, verify)

    monkeypatch.setattr(walk, "examine", examine)
    monkeypatch.setattr(log_scan, "examine", examine)
    assert "never written" in found_with()
