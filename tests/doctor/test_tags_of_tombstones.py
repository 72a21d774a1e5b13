"""Tombstones have a tag that the index does not know; whether it has tags others must tell."""

from __future__ import annotations

from seglog.doctor.check import check_store
from seglog.doctor.repair import repair_store
from seglog.storage.files import RealFiles
from seglog.storage.store import MessageStore
from tests.support.stores import SMALL, SMALL_INDEX, fill, new_clock


def test_an_index_of_a_store_that_lost_a_whole_file_still_has_tags(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        fill(store, 100)
    (root / "commitlog" / f"{4096:020d}").unlink()
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert check_store(root, clock=new_clock()).is_clean


def test_a_store_whose_newest_messages_were_lost_goes_on_to_index_tags(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        puts = [store.put("T", b"%d" % number, tags="TagA") for number in range(60)]
    log = max((root / "commitlog").iterdir())
    content = bytearray(log.read_bytes())
    for put in puts[-3:-1]:
        start = put.phy_offset % len(content)
        content[start : start + put.size_bytes] = bytes(put.size_bytes)
    log.write_bytes(content)
    with MessageStore.open(root, clock=new_clock(), **SMALL_INDEX) as store:
        store.put("T", b"new", tags="TagA")
    assert check_store(root, clock=new_clock()).is_clean
