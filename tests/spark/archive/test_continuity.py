"""An archive takes what continues it and refuses the rest; every queue offset is archived or named."""

from __future__ import annotations

import shutil

import pytest
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.cli.ui.failures import exit_code_of
from seglog.clock import VirtualClock
from seglog.errors import StoreMismatchError
from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.manifest import SUPERSEDED
from seglog.spark.archive.restore import restore_store
from seglog.spark.compact.policy import Policy
from seglog.storage.format.names import CONSUME_QUEUE
from tests.spark.archive.stores import BEGIN_MS, NEW_SIZES, compact, content, copy, expire, named_missing, put
from tests.support.narrow import not_none

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def archived_once(tmp_path_factory, spark):
    """A folder with a store of 300 messages and its archive."""
    folder = tmp_path_factory.mktemp("life")
    assert not_none(archive_store(put(folder / "s", 300), folder / "archive", spark)).messages == 300
    return folder


@pytest.fixture
def life(archived_once, tmp_path):
    """A store of 300 messages that is archived."""
    return copy(archived_once / "s", tmp_path / "s"), copy(archived_once / "archive", tmp_path / "archive")


def rolled_back_and_written_on(root, tmp_path):
    shutil.rmtree(root)
    put(root, 200)
    put(root, 160, begin=200, word="other")


def rolled_back(root, tmp_path):
    shutil.rmtree(root)
    put(root, 298)


def rolled_back_without_queue_files(root, tmp_path):
    rolled_back(root, tmp_path)
    shutil.rmtree(root / CONSUME_QUEUE)


def another_store(root, tmp_path):
    shutil.rmtree(root)
    put(root, 410, word="another")


def topic_deleted_and_begun_again(root, tmp_path):
    with MessageStore.open(root, clock=VirtualClock(BEGIN_MS + 300_000)) as store:
        store.retention.delete_topic("T")
        for number in range(20):
            store.put("T", b"again %d" % number, queue_id=0)


def begun_again_and_longer(root, tmp_path):
    with MessageStore.open(root, clock=VirtualClock(BEGIN_MS + 300_000)) as store:
        store.retention.delete_topic("T")
        for number in range(400):
            store.put("T", b"again %d" % number, queue_id=number % 2)


REFUSED = {
    "rolled back and written on": (rolled_back_and_written_on, "CRC"),
    "rolled back": (rolled_back, "ends at 149"),
    "rolled back, queue files gone": (rolled_back_without_queue_files, "ends at 149"),
    "another store": (another_store, "CRC"),
    "begun again": (topic_deleted_and_begun_again, "begun again"),
    "begun again and longer": (begun_again_and_longer, "CRC"),
}

SIMILAR = {"rolled back", "rolled back, queue files gone", "another store", "begun again"}
"""Of these cases no second store is made: it would be like that of another."""


@pytest.mark.parametrize("case", REFUSED)
def test_store_that_does_not_continue_is_refused(spark: SparkSession, life, tmp_path, case):
    root, folder = life
    change, word = REFUSED[case]
    change(root, tmp_path)
    before = sorted(folder.rglob("*"))
    with pytest.raises(StoreMismatchError, match=rf"T/\d at queue offset 149: expected .*{word}") as caught:
        archive_store(root, folder, spark)
    assert str(caught.value).startswith(
        "the archive holds another store as 's'"
        if case == "another store"
        else "the store was rolled back since it was archived as 's'"
    )
    assert "`--as NAME` archives it as a store of its own beside 's'" in caught.value.help
    assert exit_code_of(caught.value, as_json=True) == 37
    assert sorted(folder.rglob("*")) == before
    if case in SIMILAR:
        return
    run = not_none(archive_store(root, folder, spark, name="second"))
    ends = {key: len(messages) for key, messages in content(root).items()}
    named_missing(folder, "second", ends)
    assert {(one.topic, one.queue_id): one.end for one in run.intervals} == ends
    restore_store(folder, tmp_path / "again", spark, store="second", sizes=NEW_SIZES, apply=True)
    assert content(tmp_path / "again") == content(root)
    rows = spark.read.parquet(str(folder / "data")).groupBy("store").count().collect()
    assert {row["store"]: row["count"] for row in rows} == {"s": 300, "second": run.messages}


def test_records_of_an_earlier_life_of_a_queue_are_named(spark: SparkSession, tmp_path):
    root = put(tmp_path / "s", 100)
    topic_deleted_and_begun_again(root, tmp_path)
    run = not_none(archive_store(root, tmp_path / "archive", spark))
    assert run.messages == 20 + 50
    assert [(one.queue_id, one.why) for one in run.missing] == [(0, SUPERSEDED)]
    assert archive_store(root, tmp_path / "archive", spark) is None
    restore_store(tmp_path / "archive", tmp_path / "again", spark, sizes=NEW_SIZES, apply=True)
    assert content(tmp_path / "again")["T", 0] == content(root)["T", 0]


def compacted(root, tmp_path):
    compact(root, BEGIN_MS + 10**9, T=Policy(compact=True))


def compacted_to_placeholders(root, tmp_path):
    compact(root, BEGIN_MS + 10**9, T=Policy(retention_ms=0))


def retained(root, tmp_path):
    expire(root)


def all_retained_but_the_last(root, tmp_path):
    put(root, 200, begin=300, topic="Other")
    with MessageStore.open(root) as store:
        segments = store.retention.segments()
        store.retention.delete_before(segments[-1].end_phy_offset)
        assert store.min_offset("T", 0) == store.max_offset("T", 0)


def moved(root, tmp_path):
    copy(root, tmp_path / "elsewhere")
    shutil.rmtree(root)
    (tmp_path / "elsewhere").rename(root)


def without_queue_files(root, tmp_path):
    shutil.rmtree(root / CONSUME_QUEUE)


def topic_deleted(root, tmp_path):
    put(root, 10, begin=300, topic="Other")
    with MessageStore.open(root) as store:
        store.retention.delete_topic("T")


CONTINUES = {
    "compacted": compacted,
    "compacted to placeholders": compacted_to_placeholders,
    "retained": retained,
    "all retained but the last": all_retained_but_the_last,
    "a copy": moved,
    "queue files gone": without_queue_files,
    "topic deleted": topic_deleted,
}


@pytest.mark.parametrize("case", CONTINUES)
def test_store_that_continues_is_archived_on(spark: SparkSession, life, tmp_path, case):
    root, folder = life
    CONTINUES[case](root, tmp_path)
    if case != "topic deleted":
        put(root, 40, begin=900)
    added = archive_store(root, folder, spark)
    ends = {("T", 0): 150, ("T", 1): 150} if case == "topic deleted" else {("T", 0): 170, ("T", 1): 170}
    assert not_none(added).missing == ()
    assert named_missing(folder, "s", ends) == set()
    assert archive_store(root, folder, spark) is None
