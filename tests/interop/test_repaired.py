"""RocketMQ opens a damaged store that was repaired, and serves it whole; undone, it is what it was."""

from __future__ import annotations

import shutil

import pytest

from seglog import MessageStore
from seglog.doctor.repair import FileSizes, plan_repair, repair_store
from seglog.doctor.undo import undo_repair
from seglog.storage.files import RealFiles
from seglog.storage.format.index import IndexGeometry
from seglog.storage.format.tombstone import LOST
from tests.interop.judge import SMALL_GEOMETRY
from tests.interop.lines import differences, lost_keys, place
from tests.support import golden
from tests.support.golden import tree_digest
from tests.support.stores import new_clock

pytestmark = pytest.mark.interop

SIZES = FileSizes(
    SMALL_GEOMETRY.queue_file_size_bytes,
    IndexGeometry(SMALL_GEOMETRY.index_slots, SMALL_GEOMETRY.index_entries),
)
DAMAGED = golden.golden_names(damaged=True)


def as_is(_root):
    """As the repair left it."""


def crashed(root):
    """A crash after that, and no checkpoint: RocketMQ checks every record."""
    (root / "abort").write_bytes(b"")
    (root / "checkpoint").unlink(missing_ok=True)


def bare(root):
    """Nothing but the log: RocketMQ makes everything else again."""
    crashed(root)
    for name in ("consumequeue", "index"):
        shutil.rmtree(root / name)


def repaired(root):
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True, SIZES)
    return plan


def original(name):
    if name.startswith("d-propcrc"):
        return "propcrc"
    return "roll-halt" if name.endswith("-halt") else "roll"


def ends(lines):
    return {(line["topic"], line["queueId"]): line["maxOffset"] for line in lines if line["kind"] == "queue"}


@pytest.mark.parametrize("state", [as_is, crashed, bare])
@pytest.mark.parametrize("name", DAMAGED)
def test_real_store_serves_every_intact_message_of_a_repaired_store(judge, tmp_path, copied, name, state):
    root = golden.extract(name, tmp_path)
    before = tree_digest(root)
    plan = repaired(root)
    lost = {
        (one.topic, one.queue_id, offset)
        for action in plan.actions
        for one in action.lost
        for offset in one.offsets
    }
    whole = [line for line in golden.expected(original(name)) if line["kind"] == "msg"]
    with MessageStore.open(root, read_only=True) as store:
        start = store.min_phy_offset
    intact = [
        line
        for line in whole
        if (line["topic"], line["queueId"], line["cqOffset"]) not in lost and line["cqPos"] >= start
    ]

    for_java = copied(root)
    state(for_java)
    dump = judge.dump(for_java, SMALL_GEOMETRY)
    assert dump.refusal is None
    assert ends(dump.lines) == ends(golden.expected(original(name)))
    served = {place(line): line for line in dump.of_kind("msg")}
    wanted = {place(line) for line in intact}
    ignored = ["keyFound", "properties"] if name == "d-propflip" else ["keyFound"]
    assert differences(intact, [served[one] for one in wanted if one in served], ignoring=ignored) == []
    stones = [line for at, line in served.items() if at not in wanted]
    assert {line["properties"].get(LOST) for line in stones} <= {"1"}
    assert len(stones) == len(lost)
    if name != "d-propflip":
        assert lost_keys([line for at, line in served.items() if at in wanted]) == []

    assert not plan_repair(RealFiles(), root, new_clock(), SIZES).changes
    if plan.changes:
        undo_repair(RealFiles(), root)
    assert tree_digest(root) == before
