"""A preview of a change leaves the store as it is, the lock file too, and refuses one that is open."""

from __future__ import annotations

import pytest

from seglog.clock import SystemClock
from seglog.doctor.draft import PreviewFiles
from seglog.doctor.groups import end_transaction, park, skip
from seglog.errors import StoreLockedError
from seglog.storage.files import StoreRoot
from seglog.storage.files.files import RealFiles
from seglog.storage.format.names import LOCK_FILE
from seglog.storage.store import MessageStore
from tests.support.material import golden
from tests.support.material.lives import TOPIC, UNIQUE, live


def _state(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_what_a_preview_says_is_what_the_change_does(tmp_path):
    root = live(tmp_path / "s").path
    before = _state(root)
    shown = park(PreviewFiles(StoreRoot(root)), root, SystemClock(), UNIQUE, "audit")
    assert _state(root) == before
    assert park(StoreRoot(root), root, SystemClock(), UNIQUE, "audit") == shown
    half = golden.extract("tx", tmp_path)
    before = _state(half)
    ended = end_transaction(PreviewFiles(StoreRoot(half)), half, SystemClock(), "TXUNIQ0", commit=True)
    assert _state(half) == before
    assert end_transaction(StoreRoot(half), half, SystemClock(), "TXUNIQ0", commit=True) == ended


def test_no_lock_file_is_made(tmp_path):
    root = live(tmp_path / "s").path
    (root / LOCK_FILE).unlink(missing_ok=True)
    skip(PreviewFiles(StoreRoot(root)), root, SystemClock(), "audit", TOPIC, 0)
    assert not (root / LOCK_FILE).exists()


def test_a_store_that_is_open_is_refused(tmp_path):
    root = live(tmp_path / "s").path
    lock = RealFiles().lock(root)
    try:
        with pytest.raises(StoreLockedError, match=r"has .* open for writing"):
            skip(PreviewFiles(StoreRoot(root)), root, SystemClock(), "audit", TOPIC, 0)
    finally:
        lock.release()
    with MessageStore.open(root, files=PreviewFiles(StoreRoot(root))) as store:
        store.put(TOPIC, b"only shown")
