"""What to do about a damaged store with queues in RocksDB: never a repair, which is refused."""

from __future__ import annotations

import shutil

import pytest

from tests.support.material import rocksdb_stores
from tests.support.material.rocksdb_stores import NAMES, QUEUE_FOLDERS

COMMANDS = (
    ("check",), ("check", "--json"), ("verify",), ("verify", "--json"), ("inspect", "segments"),
    ("inspect", "segments", "--json"), ("inspect", "queues", "--json"), ("dump", "--json"), ("info",),
    ("info", "--json"), ("backup",), ("backup", "--json"),
)  # fmt: skip


def break_log(root):
    with (root / "commitlog" / ("0" * 20)).open("r+b") as log:
        log.seek(20_000)
        log.write(b"\xa5" * 4_000)


def rename_log_file(root):
    last = max((root / "commitlog").iterdir())
    last.rename(last.with_name(f"{int(last.name) + 65_536:020d}"))


@pytest.mark.parametrize("harm", [break_log, rename_log_file])
@pytest.mark.parametrize("name", NAMES)
def test_no_command_advises_a_repair_that_is_refused(name, harm, tmp_path, seglog):
    root = rocksdb_stores.extract(name, tmp_path)
    harm(root)
    current = root / QUEUE_FOLDERS[name] / "CURRENT"
    current.write_bytes(b"")
    assert seglog("repair", root).exit_code == 21
    for words in COMMANDS:
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        target = (tmp_path / "copy",) if words[0] == "backup" else ()
        ran = seglog(*words, root, *target)
        assert "seglog repair" not in ran.stdout + ran.stderr, (words, ran)
