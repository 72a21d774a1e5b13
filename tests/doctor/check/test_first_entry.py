"""The time of an index file's first entry counts from the file before, which RocketMQ queries by."""

from __future__ import annotations

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import repair_store
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.format.index.index import INDEX_ENTRY
from seglog.storage.store import MessageStore
from tests.support.material.sealed import flip
from tests.support.material.stores import SMALL, SMALL_INDEX, new_clock


@pytest.mark.parametrize("number", [0, 1])
def test_another_time_of_a_first_entry_is_damage(number, tmp_path):
    clock, geometry = new_clock(), SMALL_INDEX["index_geometry"]
    with MessageStore.open(tmp_path, clock=clock, **SMALL, **SMALL_INDEX) as store:
        for key in range(geometry.entry_count + 5):
            store.put("A", b"x", keys=[f"k{key}"])
            clock.advance(3000)
    assert check_store(tmp_path).is_clean
    path = sorted((tmp_path / "index").iterdir())[number]
    position = geometry.entries_at + INDEX_ENTRY.size_bytes + INDEX_ENTRY.offsets["time_diff_s"]
    flip(path, position + 3)
    (found,) = (one for one in check_store(tmp_path).findings if one.code == "index-damaged")
    assert (found.code, found.position_bytes) == ("index-damaged", position)
    repair_store(StoreRoot(tmp_path), tmp_path, clock, lambda _plan: True)
    assert "index-damaged" not in {one.code for one in check_store(tmp_path).findings}
