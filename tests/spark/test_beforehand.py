"""What is wrong with folders is said before Spark starts: here it could not, for there is no Java."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from seglog import MessageStore
from seglog.errors import (
    ConfigError,
    InvalidArgumentError,
    MissingDependencyError,
    NotAStoreError,
    NotFoundError,
    ReadOnlyError,
)
from tests.support.machine.disks import memory_disk, why_not

COMPACT = ("compact", "store", "--topic", "T", "--apply")
RETAIN = ("retain", "store", "--max-age", "T=7d")


@pytest.fixture
def seglog(tmp_path):
    """Runs a job in a folder with ``store``, ``other`` (no store) and ``empty``, where no Java is found."""
    with MessageStore.open(tmp_path / "store") as store:
        store.put("T", b"body")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter").write_text("no store")
    (tmp_path / "empty").mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}

    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "seglog.cli.main", "spark", *words],
            env=environment | {"PATH": str(tmp_path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def ended(done):
    return done.returncode, done.stderr.splitlines()[0].partition(": ")[2], done.stdout


@pytest.mark.parametrize(
    ("words", "error", "text"),
    [
        (("archive", "nothing", "archive"), NotFoundError, "there is no store at nothing"),
        (("archive", "other", "archive"), NotAStoreError, "other is no RocketMQ store"),
        (("archive", "store", "store/archive"), InvalidArgumentError, "the archive store/archive is in"),
        (("archive", "store", "archive", "--as", ""), InvalidArgumentError, ""),
        (("restore", "nothing", "new"), NotFoundError, "nothing is no archive: it has no manifest"),
        (("restore", "empty", "new", "--apply"), NotFoundError, "empty is no archive: it has no manifest"),
        (("compact", "nothing"), NotFoundError, "there is no store at "),
        (("compact", "store", "nothing", "--apply"), NotFoundError, "there is no store at "),
        (("retain", "other", "--max-age", "T=7d"), NotAStoreError, ""),
    ],
)
def test_a_wrong_folder_is_said_first(seglog, words, error, text):
    code, said, shown = ended(seglog(*words))
    assert (code, shown) == (error.exit_code, ""), said
    assert text in said


def test_a_manifest_that_cannot_be_read_is_said_first(seglog, tmp_path):
    folder = tmp_path / "archive" / "_manifest"
    folder.mkdir(parents=True)
    (folder / "00000001.json").write_text("{")
    for words in (("archive", "store", "archive"), ("restore", "archive", "new")):
        code, said, _shown = ended(seglog(*words))
        assert (code, "00000001.json is no manifest" in said) == (ConfigError.exit_code, True), said


@pytest.mark.parametrize(
    "words", [("archive", "store", "archive"), COMPACT, RETAIN], ids=lambda words: words[0]
)
def test_with_the_right_folders_it_comes_to_spark(seglog, words):
    assert seglog(*words).returncode == MissingDependencyError.exit_code


@pytest.mark.skipif(why_not("tmpfs") is not None, reason=str(why_not("tmpfs")))
def test_a_folder_that_cannot_be_written_is_said_first(seglog, tmp_path):
    with memory_disk(tmp_path, 64) as path:
        with MessageStore.open(path / "store") as store:
            store.put("T", b"body")
        subprocess.run(["mount", "-o", "remount,ro", path], check=True)
        own = str(path / "store")
        for words in (
            ("archive", "store", str(path / "deep" / "archive")),
            ("compact", own, "--topic", "T", "--apply"),
            ("retain", own, "--max-age", "T=7d", "--apply"),
        ):
            code, said, _shown = ended(seglog(*words))
            assert (code, said) == (ReadOnlyError.exit_code, f"{path}: the file system is read-only")
        # A plan writes nothing, and neither does an archive into the store.
        for only_read in (("compact", own, "--topic", "T"), ("archive", own, "archive")):
            assert seglog(*only_read).returncode == MissingDependencyError.exit_code
