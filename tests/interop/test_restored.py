"""RocketMQ serves a store that was restored over losses: messages where they were, tombstones between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from seglog import MessageStore
from seglog.spark.archive.archive import archive_store
from seglog.spark.archive.restore import restore_store
from seglog.spark.session import local_session
from seglog.storage.format.record import LOST_FLAG
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, message_line, place
from tests.interop.judging.questions import Geometry, JavaMessages
from tests.interop.judging.states import as_is, bare, crashed
from tests.spark.archive.stores import NEW_SIZES, damage, put
from tests.support.machine.spark_here import need_spark
from tests.support.material.stores import served

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.campaign]

GEOMETRY = Geometry(16384, 2000, 500, 2000)
LOST = {("T", 0, 40), ("T", 1, 77), ("T", 1, 78)}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session on this machine."""
    need_spark()
    session = local_session("seglog interop", conf={"spark.sql.shuffle.partitions": "4"})
    yield session
    session.stop()


def lines_of(root):
    with MessageStore.open(root, read_only=True) as store:
        return [message_line(message) for queue in served(store).values() for message in queue]


@pytest.fixture(scope="module")
def restored(spark: SparkSession, tmp_path_factory):
    """A store that was restored from an archive without three messages, and what those lines were before."""
    folder = tmp_path_factory.mktemp("restored")
    root = put(folder / "s", 300)
    before = {place(line): line for line in lines_of(root)}
    for topic, queue_id, queue_offset in sorted(LOST):
        damage(root, queue_id, queue_offset, topic)
    archive_store(root, folder / "archive", spark, allow_loss=True)
    restore_store(folder / "archive", folder / "again", spark, sizes=NEW_SIZES, apply=True)
    return folder / "again", before


@pytest.mark.parametrize("state", [as_is, crashed, bare])
def test_rocketmq_serves_what_was_restored(
    judge: Judge, restored, copied: Callable[[Path], Path], state: Callable[[Path], None]
):
    root, before = restored
    ours = lines_of(root)
    for_java = copied(root)
    state(for_java)
    dump = judge.dump(for_java, GEOMETRY)
    assert dump.refusal is None
    theirs = dump.of_kind("msg")
    # RocketMQ gives tombstones out as messages; our readers say that a message is lost.
    assert differences(ours, [line for line in theirs if place(line) not in LOST]) == []
    assert {place(line) for line in theirs} == before.keys()
    assert {place(line) for line in theirs if line["flag"] == LOST_FLAG} == LOST
    moved = ("commitLogOffset", "cqPos", "msgId", "offsetMsgId", "storeSize", "properties")
    for line in theirs:
        if place(line) not in LOST:
            old = before[place(line)]
            assert {name: line[name] for name in old if name not in moved and name in line} == {
                name: old[name] for name in old if name not in moved and name in line
            }
    judge.append(for_java, [JavaMessages(topic="T", queue_id=1, count=3)], GEOMETRY)
    with MessageStore.open(for_java, read_only=True) as store:
        assert [store.max_offset("T", queue_id) for queue_id in (0, 1)] == [150, 153]
