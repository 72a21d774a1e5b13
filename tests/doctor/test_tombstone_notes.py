"""Tombstones are told of as long as there are any."""

from __future__ import annotations

from seglog.doctor.check import check_store
from seglog.doctor.repair import repair_store
from seglog.storage.store import MessageStore
from seglog.storage.store_root import StoreRoot
from tests.support.stores import SMALL, fill, new_clock


def test_they_are_not_told_of_where_the_file_was_put_back_from_a_copy(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL) as store:
        fill(store, 200)
    middle = sorted((root / "commitlog").iterdir())[1]
    kept = middle.read_bytes()
    middle.unlink()
    repair_store(StoreRoot(root), root, new_clock(), lambda _plan: True)
    assert "tombstones" in {finding.code for finding in check_store(root).findings}
    middle.write_bytes(kept)
    repair_store(StoreRoot(root), root, new_clock(), lambda _plan: True)
    assert "tombstones" not in {finding.code for finding in check_store(root).findings}
