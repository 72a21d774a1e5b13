"""RocketMQ opens what ``seglog backup`` made, also of a store that was written to meanwhile."""

from __future__ import annotations

import pytest

from seglog import MessageStore
from seglog.doctor.copies.backup import make_backup
from seglog.doctor.copies.branch import create_branch
from seglog.storage.files.store_root import StoreRoot
from tests.interop.judging.judge import Judge
from tests.interop.judging.lines import differences, message_line
from tests.interop.judging.questions import SMALL_GEOMETRY, JavaMessages
from tests.support.material import golden
from tests.support.material.lives import TOPIC, live
from tests.support.material.stores import new_clock, served

pytestmark = pytest.mark.interop


def lines_of(root):
    with MessageStore.open(root, read_only=True) as store:
        return [message_line(message) for queue in served(store).values() for message in queue]


@pytest.mark.parametrize("is_open", [False, True])
def test_rocketmq_serves_a_backup_and_goes_on(judge: Judge, tmp_path, is_open):
    life = live(tmp_path / "s", others=200)
    if is_open:
        with MessageStore.open(life.path) as store:
            store.put(TOPIC, b"the last one")
            make_backup(StoreRoot(life.path), life.path, tmp_path / "b", links=False)
    else:
        make_backup(StoreRoot(life.path), life.path, tmp_path / "b", links=False)
    ours = lines_of(life.path)
    dump = judge.dump(tmp_path / "b", SMALL_GEOMETRY)
    assert dump.refusal is None
    assert differences(ours, dump.of_kind("msg")) == []
    judge.append(tmp_path / "b", [JavaMessages(topic=TOPIC, count=5)], SMALL_GEOMETRY)
    with MessageStore.open(tmp_path / "b") as store:
        assert store.max_offset(TOPIC, 0) == 801 + is_open + 5


def test_rocketmq_ignores_the_branches_of_a_store(judge: Judge, tmp_path):
    root = golden.extract("roll", tmp_path)
    create_branch(StoreRoot(root), root, "replay", new_clock())
    branch = root / "seglog" / "branches" / "replay"
    before = golden.tree_digest(branch)
    ours = lines_of(root)
    dump = judge.dump(root, SMALL_GEOMETRY)
    assert differences(ours, dump.of_kind("msg")) == []
    judge.append(root, [JavaMessages(topic="FromJava", count=50, body_bytes=900)], SMALL_GEOMETRY)
    assert golden.tree_digest(branch) == before
    assert lines_of(branch) == ours
