"""A compacted topic comes back whole from the commit log, unless retention took its beginning."""

from __future__ import annotations

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.format.queue.compaction import decode_positions
from seglog.storage.store import MessageStore
from tests.support.damage.broker_damage import DAMAGES, compacted_once
from tests.support.material.stores import new_clock, read_all

OF_COMPACTED = [
    name for name, (make, _damage, codes) in DAMAGES.items()
    if make is compacted_once and "config-damaged" not in codes
    and name not in {"units of a compacted topic", "a message of a compacted topic"}
]  # fmt: skip


def messages(root):
    with MessageStore.open(root, read_only=True) as store:
        return [(message.queue_offset, message.body) for message in read_all(store, "C", 0)]


def repaired(root):
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert plan.left == []
    assert check_store(root, clock=new_clock()).is_clean


@pytest.mark.parametrize("name", OF_COMPACTED)
def test_all_messages_are_served_again(name, tmp_path):
    root = compacted_once(tmp_path / "store")
    whole = messages(root)
    assert len(whole) == 40
    DAMAGES[name][1](root)
    assert len(messages(root)) < 40
    repaired(root)
    assert messages(root) == whole
    assert decode_positions((root / "compaction" / "position-checkpoint").read_text()) == {}


def test_without_the_beginning_of_the_log_what_is_whole_stays(tmp_path):
    root = compacted_once(tmp_path / "store")
    (root / "commitlog" / f"{0:020d}").unlink()
    whole = messages(root)
    DAMAGES["a pair of a compacted topic"][1](root)
    kept = messages(root)
    assert 0 < len(kept) < len(whole)
    repaired(root)
    assert messages(root) == kept
    assert decode_positions((root / "compaction" / "position-checkpoint").read_text()) == {("C", 0): 26}
