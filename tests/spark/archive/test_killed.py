"""A process that is killed leaves a whole store or archive, and the next run finishes."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typing_extensions import override

from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.folder import ArchiveFolder
from seglog.spark.archive.restore import restore_store
from seglog.spark.compact.policy import Policy
from seglog.spark.compact.swap import (
    Manifest,
    discard_old,
    finish_swap,
    new_store,
    old_store,
    state_of_store,
    work_folder,
    write_manifest,
)
from seglog.storage.files.files import RealFiles
from seglog.storage.files.store_root import StoreRoot
from tests.spark.archive.stores import BEGIN_MS, NEW_SIZES, compact, content, copy, put
from tests.support.machine.lent_session import lend
from tests.support.machine.patience import looks, patience_s
from tests.support.scale import is_full, scaled

LATER_MS = BEGIN_MS + 10**9
POLICIES = {"T": Policy(retention_ms=10**9 - 250_000)}
RETAINING = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from tests.spark.archive.stores import compact_with
from tests.spark.archive.test_killed import LATER_MS, POLICIES, KillingRoot
root = Path(sys.argv[1])
compact_with(KillingRoot(root, sys.argv[2], sys.argv[3]), root, LATER_MS, POLICIES)
"""
RESTORING = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[5])
from seglog.spark.archive.restore import restore_store
from tests.spark.archive.stores import NEW_SIZES
from tests.spark.archive.test_killed import KillingRoot
from tests.support.machine.lent_session import borrowed_session
root = Path(sys.argv[1])
files = KillingRoot(root, sys.argv[2], sys.argv[3])
restore_store(Path(sys.argv[4]), root, borrowed_session(), sizes=NEW_SIZES, apply=True, files=files)
"""
ARCHIVING = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from seglog.spark.archive.archive import archive_store
from tests.support.machine.lent_session import borrowed_session
archive_store(Path(sys.argv[1]), Path(sys.argv[2]), borrowed_session())
"""
SWAP = {
    "new log written": ("sync_dir", "new/commitlog"),
    "manifest not in place": ("rename", "manifest.json.written"),
    "not exchanged": ("exchange", "s"),
    "old store not named": ("rename", "compact/new"),
}


class KillingRoot(StoreRoot):
    """Files around a store; the process is killed before one kind of call for one path.

    Args:
        root: The store.
        call: Name of the method.
        end: How the path ends.
    """

    def __init__(self, root: Path, call: str, end: str) -> None:
        super().__init__(root.parent)
        self._moment = call, end

    @override
    def make_dirs(self, path: Path, *, sync: bool = True) -> None:
        self._reach("make_dirs", path)
        super().make_dirs(path, sync=sync)

    @override
    def sync_dir(self, path: Path) -> None:
        self._reach("sync_dir", path)
        super().sync_dir(path)

    @override
    def rename(self, source: Path, target: Path) -> None:
        self._reach("rename", source)
        super().rename(source, target)

    @override
    def exchange(self, first: Path, second: Path) -> bool:
        self._reach("exchange", first)
        return super().exchange(first, second)

    def _reach(self, call: str, path: Path) -> None:
        if call == self._moment[0] and path.as_posix().endswith(self._moment[1]):
            signal.raise_signal(signal.SIGKILL)


def killed(script, *arguments, environment=None):
    """Runs a script in a process of its own that has to be killed."""
    command = [sys.executable, "-c", script, *map(str, arguments), Path.cwd()]
    with tempfile.TemporaryFile() as printed:
        ran = subprocess.run(
            command, stdout=printed, stderr=printed, env=environment, timeout=patience_s(100), check=False
        )
        printed.seek(0)
        assert ran.returncode == -signal.SIGKILL, printed.read().decode()


@pytest.mark.parametrize("state", ["new store begun", *SWAP])
def test_retention_that_is_killed(tmp_path, state):
    root = put(tmp_path / "s", 300)
    twin = copy(root, tmp_path / "twin")
    before = content(root)
    compact(twin, LATER_MS, **POLICIES)
    after = content(twin)
    assert 0 < len(after["T", 0]) < len(before["T", 0])
    killed(RETAINING, root, *(SWAP | {"new store begun": ("make_dirs", "new/commitlog")})[state])
    assert content(root) in (before, after)
    compact(root, LATER_MS, **POLICIES)
    assert content(root) == after
    assert content(old_store(root)) == before


def test_swap_of_a_store_that_grew_is_finished_and_keeps_the_old_one(tmp_path):
    root, files = put(tmp_path / "s", 40), RealFiles()
    put(copy(root, new_store(root)), 40, begin=40)
    states = state_of_store(files, root), state_of_store(files, new_store(root))
    before, after = content(root), content(new_store(root))
    write_manifest(files, root, Manifest(16384, *states, 0, ()))
    files.exchange(root, new_store(root))
    for _time in range(2):
        assert finish_swap(files, root)
        assert content(root) == after
        assert content(old_store(root)) == before


@pytest.fixture(scope="module")
def older_and_archive(tmp_path_factory, spark: SparkSession):
    """A folder with a store as it was, the store with more, and an archive of that."""
    folder = tmp_path_factory.mktemp("older")
    put(folder / "older", 100)
    put(copy(folder / "older", folder / "s"), 150, begin=100)
    archive_store(folder / "s", folder / "archive", spark)
    return folder


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(scaled(2, 40)))
def test_archive_that_is_killed_adds_nothing_twice(spark: SparkSession, start_child, tmp_path, seed):
    rng, root, folder = random.Random(seed), put(tmp_path / "s", 100), tmp_path / "archive"
    archive_store(root, folder, spark)
    put(root, 700, begin=100)
    staged = ArchiveFolder(folder).staged(2)
    command = [sys.executable, "-c", ARCHIVING, *map(str, (root, folder, Path.cwd()))]
    with tempfile.TemporaryFile() as printed:
        archiving = start_child(command, stdout=printed, stderr=printed, env=lend(spark))
        # Its tasks, which run in the session that was lent, may go on when it is dead.
        for _ in looks("what is archived", idle_s=100, look_s=0.005):
            if staged.exists() or archiving.poll() is not None:
                break
        time.sleep(rng.random() * 0.6)
        archiving.kill()
        assert archiving.wait() in (0, -signal.SIGKILL)
    archive_store(root, folder, spark)
    rows = spark.read.parquet(str(folder / "data")).select("topic", "queueId", "queueOffset").collect()
    served = content(root)
    assert sorted(map(tuple, rows)) == sorted((*key, offset) for key in served for offset in range(400))
    assert sum(run.messages for run in ArchiveFolder(folder).runs()) == 800
    restore_store(folder, tmp_path / "back", spark, sizes=NEW_SIZES, apply=True)
    assert content(tmp_path / "back") == served


@pytest.mark.spark
@pytest.mark.sampled(1)
@pytest.mark.parametrize("state", SWAP if is_full() else ["new log written", "old store not named"])
def test_restore_that_is_killed(spark: SparkSession, older_and_archive, tmp_path, state):
    archive, after = older_and_archive / "archive", content(older_and_archive / "s")
    root = copy(older_and_archive / "older", tmp_path / "s")
    before = content(root)
    killed(RESTORING, root, *SWAP[state], archive, environment=lend(spark))
    assert content(root) in (before, after)
    restore_store(archive, root, spark, apply=True)
    assert content(root) == after
    assert content(old_store(root)) == before
    discard_old(RealFiles(), root)
    assert not work_folder(root).exists()


@pytest.mark.spark
@pytest.mark.parametrize("state", ["new log written", "renamed"] if is_full() else ["renamed"])
def test_restore_of_a_new_store_that_is_killed(spark: SparkSession, older_and_archive, tmp_path, state):
    archive, root = older_and_archive / "archive", tmp_path / "s"
    killed(
        RESTORING, root, *(SWAP | {"renamed": ("rename", "compact/new")})[state], archive,
        environment=lend(spark),
    )  # fmt: skip
    assert not root.exists()
    restore_store(archive, root, spark, sizes=NEW_SIZES, apply=True)
    assert content(root) == content(older_and_archive / "s")
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
