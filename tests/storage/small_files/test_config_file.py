"""A config file or its backup is whole at every moment, and damage never spreads."""

from __future__ import annotations

from pathlib import Path

import pytest

from seglog.errors import ConfigError, CorruptError
from seglog.storage.files.files import RealFiles
from seglog.storage.small_files.config_file import ConfigFile
from tests.support.crash.crash_files import CrashFiles, KilledError
from tests.support.rows import every_row

PATH = Path("/store/config/topics.json")
BACKUP = Path("/store/config/topics.json.bak")
EVIDENCE = Path("/store/seglog/evidence")
MOST_CALLS = 20


def parse(value):
    if not isinstance(value, dict) or not isinstance(value.get("n"), int):
        raise CorruptError("config-shape", expected="n", found=value)
    return value["n"]


def open_file(files, *, evidence=EVIDENCE):
    return ConfigFile(files, PATH, evidence)


def saved(*numbers):
    files = CrashFiles()
    config = open_file(files)
    for number in numbers:
        config.save({"n": number})
    return files


def test_an_absent_file_is_none_and_not_an_error():
    assert open_file(CrashFiles()).load(parse) is None


def test_what_was_saved_is_loaded_and_the_one_before_is_the_backup():
    files = saved(1, 2, 3)
    assert open_file(files).load(parse) == 3
    files.remove(PATH)
    assert open_file(files).load(parse) == 2


def test_saving_works_on_a_real_disk(tmp_path):
    config = ConfigFile(RealFiles(), tmp_path / "config" / "x.json", tmp_path / "seglog" / "evidence")
    for number in (1, 2):
        config.save({"n": number})
    assert sorted(entry.name for entry in (tmp_path / "config").iterdir()) == ["x.json", "x.json.bak"]
    assert config.load(parse) == 2


@pytest.mark.parametrize("history", [(1,), (1, 2), (1, 2, 3)], ids=len)
def test_power_loss_at_any_moment_of_a_save_leaves_the_old_or_the_new_one(history):
    """Each call of the save is the last one; of the names not yet synced any subset reached the disk."""
    *before, last = history
    for calls in range(MOST_CALLS):
        files = saved(*before)
        files.calls_left = calls
        config = open_file(files)
        config.load(parse)
        try:
            config.save({"n": last})
            is_done = True
        except KilledError:
            is_done = False
        allowed = {last} if is_done else {last, before[-1] if before else None}
        for image in (*(files.after_power_loss() for _ in range(50)), files.after_kill()):
            assert open_file(image).load(parse) in allowed
        if is_done:
            return
    pytest.fail(f"a save needs more than {MOST_CALLS} calls")


DAMAGES = {
    "cut": b"{",
    "cut later": b'{"n":1',
    "other type": b'{"n":"1"}',
    "other shape": b"[]",
    "no text": b"\xff\xfe",
    "zeros": b"\0" * 20,
}


def test_a_damaged_file_gives_way_to_its_backup_and_is_kept_as_evidence():
    with every_row() as row:
        for name, damage in DAMAGES.items():
            with row(name):
                files = saved(1, 2)
                files.write_file(PATH, damage)
                config = open_file(files)
                assert config.load(parse) == 1
                assert [data for path, data in files.contents().items() if path.parent == EVIDENCE] == [
                    damage
                ]
                assert not files.exists(PATH)
                config.save({"n": 5})
                assert open_file(files).load(parse) == 5
                assert files.read_file(BACKUP) == saved(1).read_file(PATH), "the good backup is still there"


def test_a_file_that_rots_under_a_running_owner_does_not_become_the_backup():
    files = saved(1)
    config = open_file(files)
    config.load(parse)
    config.save({"n": 2})
    files.write_file(PATH, b'{"n":')
    config.save({"n": 3})
    assert parse({"n": 1}) == open_file(CrashFiles.holding({PATH: files.read_file(BACKUP)})).load(parse)


def test_the_same_damage_is_kept_once():
    files = saved(1, 2)
    for _ in range(3):
        files.write_file(PATH, b"{")
        open_file(files).load(parse)
    assert len([path for path in files.contents() if path.parent == EVIDENCE]) == 1


def test_a_reader_that_must_not_change_anything_leaves_the_damage_where_it_is():
    files = saved(1, 2)
    files.write_file(PATH, b"{")
    before = files.contents()
    assert open_file(files, evidence=None).load(parse) == 1
    assert files.contents() == before


def test_an_empty_file_counts_as_absent():
    files = saved(1, 2)
    files.write_file(PATH, b"")
    assert open_file(files).load(parse) == 1
    assert open_file(CrashFiles.holding({PATH: b""})).load(parse) is None


@pytest.mark.parametrize(
    "names",
    [{PATH: b"{", BACKUP: b"{"}, {PATH: b"{"}, {BACKUP: b"{"}, {PATH: b"", BACKUP: b"["}],
    ids=["both damaged", "no backup", "only a damaged backup", "empty and damaged"],
)
def test_nothing_readable_is_an_error_and_not_an_empty_table(names):
    files = CrashFiles.holding(names)
    with pytest.raises(ConfigError, match=r"topics\.json"):
        open_file(files).load(parse)
    assert files.contents() == names


def test_a_folder_in_the_place_of_a_file_is_said(tmp_path):
    path = tmp_path / "config" / "x.json"
    path.mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"x\.json is a folder"):
        ConfigFile(RealFiles(), path).load(parse)
