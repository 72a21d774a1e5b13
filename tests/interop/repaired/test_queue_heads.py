"""RocketMQ begins a queue at its first message after a repair, or an opening, of the units in front of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from seglog import MessageStore
from seglog.doctor.repair.repair import repair_store
from seglog.storage.files.files import RealFiles
from tests.interop.judging.judge import Judge
from tests.interop.judging.questions import Geometry
from tests.support.damage.queue_heads import FILE_BYTES, HEADS, SEGMENT, aged_store, rebuilt_store
from tests.support.material.stores import new_clock
from tests.support.rows import every_row
from tests.support.scale import chance

pytestmark = pytest.mark.interop

GEOMETRY = Geometry(SEGMENT, FILE_BYTES, 50, 200)


def opened(root):
    MessageStore.open(root, clock=new_clock(), create=False).close()


def repaired(root):
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)


def answers(judge, root):
    """Returns the ends of all queues, and the messages of each, as RocketMQ serves them."""
    dump = judge.dump(root, GEOMETRY)
    assert dump.refusal is None
    ends = {line["topic"]: (line["minOffset"], line["maxOffset"]) for line in dump.of_kind("queue")}
    return ends, [(line["cqTopic"], line["cqOffset"], line.get("topic")) for line in dump.of_kind("msg")]


@pytest.mark.parametrize("make", [aged_store, rebuilt_store])
def test_rocketmq_begins_each_queue_at_its_first_message(
    judge: Judge, tmp_path, copied: Callable[[Path], Path], make
):
    whole = make(tmp_path / "whole")
    expected = answers(judge, copied(whole))
    harmed = set()
    with every_row() as row:
        for name, damage in HEADS.items():
            with row(name):
                root = copied(whole)
                damage(root)
                if answers(judge, copied(root)) != expected:
                    harmed.add(name)
                chance("queue heads", name).choice([opened, repaired])(root)
                assert answers(judge, root) == expected
    # Most of what a check warns of does harm: the binary search does not meet every unit.
    assert len(harmed) >= len(HEADS) - 2
