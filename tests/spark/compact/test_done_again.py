"""A piece of work that is done again, as where its first task was killed, leaves the same bytes."""

from __future__ import annotations

import shutil

import pytest

from seglog.clock import VirtualClock
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import Policy
from seglog.storage.files.files import RealFiles
from tests.support.local_runner import LocalRunner, RepeatingRunner
from tests.support.material.compactions import STEP_MS, assert_survived, fill_random, survivors
from tests.support.narrow import not_none

POLICIES = {
    "Prices": Policy(compact=True, delete_retention_ms=50 * STEP_MS),
    "Events": Policy(compact=True, retention_bytes=15_000),
}


def bytes_of(root):
    return {
        path.relative_to(root): path.read_bytes()
        for folder in ("commitlog", "consumequeue", "index")
        for path in (root / folder).rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("times", [2, 3])
def test_a_compaction_whose_tasks_run_again_makes_the_same_store(tmp_path, times):
    filled = fill_random(tmp_path / "s", 51, 300)
    twin = tmp_path / "twin"
    shutil.copytree(filled.root, twin, copy_function=shutil.copy2)
    repeating = RepeatingRunner(RealFiles(), times)
    plans = {}
    for root, runner in ((filled.root, repeating), (twin, LocalRunner(RealFiles()))):
        job = Compaction(
            root,
            POLICIES,
            split_bytes=8_000,
            runner=runner,
            clock=VirtualClock(filled.now_ms),
            draw=lambda _bits: 4711,
        )
        plans[root] = not_none(job.apply().plan)
    assert repeating.repeated >= 8
    assert plans[filled.root].dropped == plans[twin].dropped > 0
    assert bytes_of(filled.root) == bytes_of(twin)
    assert_survived(filled.root, filled, survivors(filled, POLICIES))
