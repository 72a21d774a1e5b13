"""Random damage to five stores costs what it hits, is reported, and never becomes a wrong message."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.support.damage.campaign import suffer
from tests.support.damage.subjects import SUBJECTS, shared_subject
from tests.support.scale import chance, is_full, is_gate, scaled

EACH = scaled(50, 4000)
SEEDS = 4000 if is_gate() or is_full() else 1 << 32
"""The gate takes some of the seeds that the full size has tried; the campaign takes new ones."""
SEVERAL_FILES = [name for name in SUBJECTS if name != "real-conf"]
"""Its log is one file; once that is gone or cut, an opening cannot know that there was more."""


@pytest.mark.parametrize("name", SEVERAL_FILES)
def test_damage_costs_no_message_that_it_does_not_hit(
    name, memory_path: Path, request, record_testsuite_property
):
    subject, draws = shared_subject(name), chance("damage", name)
    bad, tally = [], Counter()
    for seed in draws.sample(range(SEEDS), EACH):
        copy = memory_path / str(seed)
        outcome = suffer(subject, copy, random.Random(seed))
        tally.update(
            {
                "damages": 1,
                "hit": len(outcome.hit),
                "lost beyond": len(outcome.lost),
                "seen to differ": len(outcome.changed),
                "hit but whole": len(outcome.whole),
            }
        )
        if not outcome.is_good:
            bad.append((seed, outcome))
        shutil.rmtree(copy)
    for what, count in tally.items():
        record_testsuite_property(f"{request.node.name}: {what}", count)
    assert bad == []
