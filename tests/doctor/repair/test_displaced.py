"""Records that stand at another place of the log, as swapped sectors leave them, are saved and counted so."""

from __future__ import annotations

import pytest

from seglog import MessageStore
from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import repair_store
from seglog.doctor.undo.undo import undo_repair
from seglog.storage.files.files import RealFiles
from tests.support.audits import audit_as_survey
from tests.support.damage.campaign import SECTOR_BYTES
from tests.support.material import golden
from tests.support.material.golden import tree_digest
from tests.support.material.stores import new_clock, served

SWAPS = {
    "with record CRC": ("propcrc", (0, 19_968), (0, 17_408)),
    "of two files": ("roll", (65_536, 8_192), (131_072, 30_720)),
    "of inner batches": ("innerbatch", (0, 8_704), (0, 4_096)),
    "with the empty end of the file": ("tx", (0, 5_120), (0, 60_416)),
}
"""Store, and the files and positions of two sectors that change places."""
SECTORS = 4


def swap_sectors(root, one, other):
    """Makes some sectors from two places on change places."""
    paths = [root / "commitlog" / f"{first:020d}" for first, _position in (one, other)]
    size = SECTORS * SECTOR_BYTES
    data = [bytearray(path.read_bytes()) for path in paths] if one[0] != other[0] else []
    if not data:
        data = [bytearray(paths[0].read_bytes())] * 2
    (here, there), (_file, at), (_other_file, far) = data, one, other
    here[at : at + size], there[far : far + size] = there[far : far + size], here[at : at + size]
    for path, content in zip(paths, data, strict=True):
        path.write_bytes(content)


def bodies(root):
    with MessageStore.open(root, read_only=True, clock=new_clock()) as store:
        return {(*key, one.queue_offset): one.body for key, queue in served(store).items() for one in queue}


@pytest.mark.parametrize("name", SWAPS)
def test_a_check_counts_as_lost_what_a_repair_gives_up(name, tmp_path):
    of_store, *places = SWAPS[name]
    root = golden.extract(of_store, tmp_path)
    whole = bodies(root)
    swap_sectors(root, *places)
    before = tree_digest(root)
    report = check_store(root, clock=new_clock())
    audit_as_survey(root, 10_000)
    seen = bodies(root)
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    moved = [action for action in plan.actions if action.kind == "moved"]
    lost = {
        (one.topic, one.queue_id, offset)
        for action in plan.actions
        for one in action.lost
        for offset in one.offsets
    }
    assert report.lost_messages == sum(action.lost_messages for action in plan.actions)
    after = bodies(root)
    kept = {place: body for place, body in after.items() if whole.get(place) == body}
    assert whole.keys() - kept.keys() <= lost
    assert not kept.keys() & lost
    assert moved
    assert len(kept) >= len(seen) + len(moved)
    assert check_store(root, clock=new_clock()).is_clean
    undo_repair(RealFiles(), root)
    assert tree_digest(root) == before
