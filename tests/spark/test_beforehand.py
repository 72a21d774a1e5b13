"""What is wrong with folders is said before Spark starts: here it could not, for there is no Java."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.cli.main import commands
from seglog.errors import (
    ConfigError,
    InvalidArgumentError,
    MissingDependencyError,
    NotAStoreError,
    NotFoundError,
    ReadOnlyError,
    UnsupportedStoreError,
)
from tests.support.machine.disks import memory_disk, why_not
from tests.support.machine.patience import patience_s
from tests.support.material import rocksdb_stores
from tests.support.material.golden import tree_digest
from tests.support.rows import every_row

COMPACT = ("compact", "store", "--topic", "T", "--apply")
RETAIN = ("retain", "store", "--max-age", "T=7d")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A working folder with ``store``, ``other`` (no store) and ``empty``."""
    with MessageStore.open(tmp_path / "store") as store:
        store.put("T", b"body")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter").write_text("no store")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    # Where all tests run in one process, another one may have left a session.
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    return tmp_path


WITHOUT_JAVA = {"JAVA_HOME": None, "PATH": ""}


def run(*words):
    return CliRunner(env=WITHOUT_JAVA).invoke(commands, ["spark", *words])


def ended(done):
    return done.exit_code, done.stderr.splitlines()[0].partition(": ")[2], done.stdout


WRONG_FOLDERS = [
    (("archive", "nothing", "archive"), NotFoundError, "there is no store at nothing"),
    (("archive", "other", "archive"), NotAStoreError, "other is no RocketMQ store"),
    (("archive", "store", "store/archive"), InvalidArgumentError, "the archive store/archive is in"),
    (("archive", "store", "archive", "--as", ""), InvalidArgumentError, ""),
    (("restore", "nothing", "new"), NotFoundError, "nothing is no archive: it has no manifest"),
    (("restore", "empty", "new", "--apply"), NotFoundError, "empty is no archive: it has no manifest"),
    (("compact", "nothing"), NotFoundError, "there is no store at "),
    (("compact", "store", "nothing", "--apply"), NotFoundError, "there is no store at "),
    (("retain", "other", "--max-age", "T=7d"), NotAStoreError, ""),
]


def test_a_wrong_folder_is_said_first(folders):
    with every_row() as row:
        for words, error, text in WRONG_FOLDERS:
            with row(*words):
                code, said, shown = ended(run(*words))
                assert (code, shown) == (error.exit_code, ""), said
                assert text in said


@pytest.mark.parametrize("name", rocksdb_stores.NAMES)
def test_a_compaction_beside_queues_in_rocksdb_is_refused_first(folders, name):
    root = rocksdb_stores.extract(name, folders)
    before = tree_digest(root)
    for words in (
        ("compact", name, "--topic", "TopicA", "--apply"),
        ("retain", name, "--max-age", "TopicA=7d"),
    ):
        code, said, shown = ended(run(*words))
        assert (code, shown) == (UnsupportedStoreError.exit_code, ""), said
        assert "RocksDB" in said
    assert tree_digest(root) == before


def test_a_manifest_that_cannot_be_read_is_said_first(folders):
    folder = folders / "archive" / "_manifest"
    folder.mkdir(parents=True)
    (folder / "00000001.json").write_text("{")
    for words in (("archive", "store", "archive"), ("restore", "archive", "new")):
        code, said, _shown = ended(run(*words))
        assert (code, "00000001.json is no manifest" in said) == (ConfigError.exit_code, True), said


def test_with_the_right_folders_it_comes_to_spark(folders):
    with every_row() as row:
        for words in (("archive", "store", "archive"), COMPACT, RETAIN):
            with row(*words):
                assert run(*words).exit_code == MissingDependencyError.exit_code


def test_a_process_of_its_own_ends_with_the_same_codes(folders):
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    command = [sys.executable, "-m", "seglog.cli.main", "spark", "archive"]
    for words, error in (
        (("other", "archive"), NotAStoreError),
        (("store", "archive"), MissingDependencyError),
    ):
        done = subprocess.run(
            [*command, *words],
            env=environment | {"PATH": ""},
            capture_output=True,
            timeout=patience_s(60),
            check=False,
        )
        assert (done.returncode, done.stdout) == (error.exit_code, b"")


@pytest.mark.skipif(why_not("tmpfs") is not None, reason=str(why_not("tmpfs")))
def test_a_folder_that_cannot_be_written_is_said_first(folders):
    with memory_disk(folders, 64) as path:
        with MessageStore.open(path / "store") as store:
            store.put("T", b"body")
        subprocess.run(["mount", "-o", "remount,ro", path], check=True)
        own = str(path / "store")
        for words in (
            ("archive", "store", str(path / "deep" / "archive")),
            ("compact", own, "--topic", "T", "--apply"),
            ("retain", own, "--max-age", "T=7d", "--apply"),
        ):
            code, said, _shown = ended(run(*words))
            assert (code, said) == (ReadOnlyError.exit_code, f"{path}: the file system is read-only")
        # A plan writes nothing, and neither does an archive into the store.
        for only_read in (("compact", own, "--topic", "T"), ("archive", own, "archive")):
            assert run(*only_read).exit_code == MissingDependencyError.exit_code
