"""Random damage to six stores is seen but for what exact rules explain, repaired, and undone bit for bit.

The outcome in full size is in docs/campaign.md; ``tools/damage-campaign`` runs it in pieces.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.damage.campaign_run import FULL_PIECES, Piece
from tests.support.damage.subjects import SUBJECTS
from tests.support.damage.trial import KIND_NAMES, shared_patient, try_damage
from tests.support.damage.unseen import COPIES, NO_CHECKSUM
from tests.support.scale import chance, is_full, is_gate, scaled

WITH_RECORD_CRC = {"own with record CRC", "propcrc"}

MOST = scaled(36, 60)
"""Every kind of damage, and at the usual size with everything that comes only to every second or fourth."""

PIECES = FULL_PIECES if is_gate() else 1 << 20
"""Of which each commit tries another one of each store: at the gate one that the full size has tried too."""

SWAPS = [("real-conf", 105), ("propcrc", 960), ("propcrc", 1275), ("own with record CRC", 1347)]
"""A record keeps its body and gets the end of another's properties: its ``__CRC32#`` is out of its place."""


@pytest.mark.parametrize(("store", "seed"), SWAPS)
def test_record_with_the_end_of_another_is_not_served(store, seed, memory_path: Path):
    trial = try_damage(shared_patient(store), memory_path / str(seed), seed)
    assert (trial.kind, trial.broken) == ("swap", [])
    assert trial.seen


@pytest.mark.parametrize("number", range(scaled(1, FULL_PIECES)))
@pytest.mark.parametrize("store", SUBJECTS)
def test_random_damage_is_seen_repaired_and_undone(
    store, number, memory_path: Path, request, record_testsuite_property
):
    piece = Piece(store, number if is_full() else chance("piece", store).randrange(PIECES))
    trials = piece.run(memory_path, MOST)
    tally = Counter({"damages": len(trials), "seen": sum(trial.seen for trial in trials)})
    tally.update(f"unseen: {trial.reason}" for trial in trials if not trial.seen)
    for name, count in tally.items():
        record_testsuite_property(f"{request.node.name}: {name}", count)
    assert {trial.kind for trial in trials} == set(KIND_NAMES)
    assert [(trial.seed, trial.damage, trial.broken) for trial in trials if not trial.is_good] == []
    if store in WITH_RECORD_CRC:
        assert {NO_CHECKSUM, COPIES}.isdisjoint(trial.reason for trial in trials)
