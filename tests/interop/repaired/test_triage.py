"""The verdict that a check begins with agrees with what the real store does with the same directory."""

from __future__ import annotations

import random
import shutil

import pytest

from seglog.doctor.check import Start, check_store, verdict_on
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
