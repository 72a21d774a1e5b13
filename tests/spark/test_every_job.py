"""What holds for every job: its errors are ours, and what only shows a plan or a report writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from pyspark.sql import SparkSession

from seglog.clock import VirtualClock
from seglog.errors import InvalidArgumentError, SparkJobError, StoreLockedError
from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.restore import restore_store
from seglog.spark.archive.restore_base import Sizes
from seglog.spark.audit.stores import audit_store, audit_stores
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import DAY_MS, Policy
from seglog.spark.reconcile.outcome import reconcile_all
from seglog.storage.format.names import LOCK_FILE
from seglog.storage.store import MessageStore
from tests.spark.archive.stores import BEGIN_MS, copy, put
from tests.support.material.golden import tree_digest

pytestmark = pytest.mark.spark

KEEP_LAST: Final = {"T": Policy(compact=True)}


class Place(NamedTuple):
    """A store, an earlier copy of it, and an archive of it."""

    folder: Path

    @property
    def store(self) -> Path:
        return self.folder / "s"

    @property
    def older(self) -> Path:
        return self.folder / "older"

    @property
    def archive(self) -> Path:
        return self.folder / "archive"


Job = Callable[[Place, SparkSession], object]

PREVIEWS: Final[dict[str, Job]] = {
    "audit": lambda place, spark: audit_store(place.store, spark=spark),
    "audit of two": lambda place, spark: audit_stores([place.store, place.older], spark=spark),
    "reconcile": lambda place, spark: reconcile_all(spark, [place.store]),
    "reconcile messages": lambda place, spark: reconcile_all(spark, [place.store], messages=True),
    "plan of a compaction": lambda place, spark: Compaction(place.store, KEEP_LAST).plan(spark),
    "plan of a restore": lambda place, spark: restore_store(place.archive, place.older, spark),
    "plan of a restore of nothing": lambda place, spark: restore_store(place.archive, place.store, spark),
    "plan of a restore as new": lambda place, spark: restore_store(place.archive, place.folder / "n", spark),
}
JOBS: Final[dict[str, Job]] = PREVIEWS | {
    "compact": lambda place, spark: Compaction(place.store, KEEP_LAST).apply(spark),
    "archive": lambda place, spark: archive_store(place.older, place.folder / "other", spark),
    "restore": lambda place, spark: restore_store(place.archive, place.older, spark, apply=True),
    "restore as new": lambda place, spark: restore_store(
        place.archive, place.folder / "n", spark, apply=True
    ),
}


@pytest.fixture
def place(spark: SparkSession, tmp_path) -> Place:
    """Stores that were copied without their lock, as backups are."""
    place = Place(tmp_path)
    copy(put(place.store, 20), place.older)
    put(place.store, 20, begin=20)
    archive_store(place.store, place.archive, spark)
    for root in (place.store, place.older):
        (root / LOCK_FILE).unlink()
    return place


def state(place: Place) -> tuple[dict[str, tuple[int, str]], dict[str, int]]:
    """Returns each name with its content, and the time at which it was last written."""
    return tree_digest(place.folder), {
        path.relative_to(place.folder).as_posix(): path.stat().st_mtime_ns
        for path in place.folder.rglob("*")
        if path.is_file()
    }


def without_lock(root: Path) -> dict[str, tuple[int, str]]:
    return {name: said for name, said in tree_digest(root).items() if name != LOCK_FILE}


def test_a_job_whose_workers_do_not_start_raises_an_error_of_ours_and_leaves_the_stores(
    spark: SparkSession, place: Place, monkeypatch
):
    """Java's IOException about the program, in each job; none of Spark's classes reaches the caller."""
    before = {root: without_lock(root) for root in (place.older, place.archive)}
    with monkeypatch.context() as patch:
        patch.setattr(spark.sparkContext, "pythonExec", str(place.folder / "no-python"))
        for name, job in JOBS.items():
            with pytest.raises(SparkJobError, match="no-python") as caught:
                print(name, job(place, spark))  # shown where no error is raised
            assert caught.value.help, name
    for root in (place.older, place.archive):
        assert without_lock(root) == before[root]
    assert restore_store(place.archive, place.older, spark).messages == 20
    clock = VirtualClock(BEGIN_MS + 10 * DAY_MS)
    assert Compaction(place.store, KEEP_LAST, clock=clock).apply(spark).is_done


def test_what_only_shows_writes_nothing(spark: SparkSession, place: Place):
    before = state(place)
    for name, job in PREVIEWS.items():
        job(place, spark)
        assert state(place) == before, name


@pytest.mark.parametrize(
    "sizes",
    [
        Sizes(segment_bytes=3),
        Sizes(segment_bytes=-1),
        Sizes(segment_bytes=1 << 40),
        Sizes(queue_file_bytes=21),
        Sizes(queue_file_bytes=0),
    ],
    ids=str,
)
def test_a_plan_refuses_what_the_restore_refuses(spark: SparkSession, place: Place, sizes):
    before = tree_digest(place.folder)
    refusals = []
    for apply in (False, True):
        with pytest.raises(InvalidArgumentError) as caught:
            restore_store(place.archive, place.folder / "n", spark, sizes=sizes, apply=apply)
        refusals.append((str(caught.value), caught.value.help))
        assert tree_digest(place.folder) == before
    assert refusals[0] == refusals[1]


def test_a_plan_of_a_restore_into_a_store_in_use_is_refused_and_the_other_reports_are_given(
    spark: SparkSession, place: Place
):
    with MessageStore.open(place.store):
        for name, job in PREVIEWS.items():
            if name == "plan of a restore of nothing":
                with pytest.raises(StoreLockedError):
                    job(place, spark)
            elif not name.startswith("plan of a compaction"):
                job(place, spark)
