"""The verdict that a check begins with agrees with what the real store does with the same directory."""

from __future__ import annotations

import random
import shutil

import pytest

from seglog import MessageStore
from seglog.doctor.check import check_store, verdict_on
from seglog.doctor.check.broker_start import Start
from seglog.storage.directory.geometry import FileSizes
from seglog.storage.format.index.index import IndexGeometry
from tests.interop.judging.judge import Judge
from tests.interop.judging.questions import SMALL_GEOMETRY
from tests.interop.judging.states import as_is, crashed
from tests.support.damage.campaign import KINDS
from tests.support.damage.subjects import make_subject
from tests.support.material import golden

pytestmark = pytest.mark.interop

GIVEN = FileSizes(
    SMALL_GEOMETRY.queue_file_size_bytes,
    IndexGeometry(SMALL_GEOMETRY.index_slots, SMALL_GEOMETRY.index_entries),
    SMALL_GEOMETRY.segment_size_bytes,
)
SEEDS = range(2)


def hold(judge, root):
    """Holds the verdict on a store against what RocketMQ does with a copy of it."""
    report = check_store(root, given=GIVEN)
    start = verdict_on(report).start
    dump = judge.dump(root, SMALL_GEOMETRY)
    codes = [(finding.code, finding.file, finding.found) for finding in report.findings]
    said = (start, dump.refusal, codes)
    if start.start is Start.NO:
        assert dump.refusal is not None, said
    elif start.start is Start.YES:
        assert dump.refusal is None, said
        assert dump.store["maxPhyOffset"] == report.end_phy_offset, said
    elif start.start is Start.LOSES:
        assert dump.refusal is None, said
        assert dump.store["maxPhyOffset"] == max(start.cut_at, 0), said


@pytest.mark.parametrize("state", [as_is, crashed])
@pytest.mark.parametrize("name", golden.golden_names(damaged=True))
def test_the_verdict_on_a_damaged_store_of_rocketmq_is_what_rocketmq_does(
    judge: Judge, tmp_path, name, state
):
    root = golden.extract(name, tmp_path)
    state(root)
    hold(judge, root)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["roll", "roll-halt"])
def test_the_verdict_on_random_damage_is_what_rocketmq_does(judge: Judge, tmp_path, name, kind):
    subject = make_subject(name, tmp_path)
    for seed in SEEDS:
        root = tmp_path / f"damaged-{seed}"
        shutil.copytree(subject.root, root)
        KINDS[kind](subject, root, random.Random(f"{name} {kind} {seed}"))
        hold(judge, root)


@pytest.mark.parametrize(
    ("at", "size", "is_random"),
    [
        (8, 4, False), (12, 40, True), (12, 8, True), (20, 16, True), (21, 100, False), (28, 8, False),
        (28, 9, False), (28, 56, True), (28, 60, False), (32, 8, True), (36, 4, True), (56, 8, False),
    ],
)  # fmt: skip
def test_the_verdict_on_a_record_that_says_another_place_and_more_is_what_rocketmq_does(
    judge: Judge, tmp_path, at, size, is_random
):
    root = golden.extract("roll", tmp_path)
    with MessageStore.open(root, read_only=True) as store:
        places = [
            message.phy_offset
            for queue in store.queues()
            for message in store.get(queue.topic, queue.queue_id, 0, 1_000)
        ]
    last = max((root / "commitlog").iterdir())
    inside = sorted(place for place in places if place > int(last.name))
    data = bytearray(last.read_bytes())
    start = inside[len(inside) // 2] - int(last.name) + at
    chance = random.Random(f"{at} {size}")
    data[start : start + size] = chance.randbytes(size) if is_random else bytes(size)
    last.write_bytes(data)
    hold(judge, root)
