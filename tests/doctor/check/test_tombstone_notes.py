"""Tombstones are told of as long as there are any."""

from __future__ import annotations

import json

from click.testing import CliRunner

from seglog.cli.main import commands
from seglog.doctor.check.check import check_store
from seglog.doctor.exchange.export import Selection, iter_rows
from seglog.doctor.repair.repair import repair_store
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.store import MessageStore
from tests.support.material.stores import SMALL, fill, new_clock


def counted(root):
    """How many messages a check and info say that the store has, and has lost; they agree."""
    found = check_store(root).messages
    shown = json.loads(CliRunner().invoke(commands, ["info", "--json", str(root)]).stdout)
    assert (shown["messages"], shown["lostMessages"]) == (found.messages, found.lost)
    return found.messages, found.lost


def test_they_are_not_told_of_where_the_file_was_put_back_from_a_copy(tmp_path):
    root = tmp_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL) as store:
        fill(store, 200)
    middle = sorted((root / "commitlog").iterdir())[1]
    kept = middle.read_bytes()
    assert counted(root) == (200, 0)
    middle.unlink()
    messages, lost = counted(root)
    assert messages + lost == 200 > messages
    repair_store(StoreRoot(root), root, new_clock(), lambda _plan: True)
    assert "tombstones" in {finding.code for finding in check_store(root).findings}
    assert counted(root) == (messages, lost)
    with MessageStore.open(root, read_only=True) as store:
        assert len(list(iter_rows(store, Selection(), [], lambda *_lost: None))) == messages
    middle.write_bytes(kept)
    repair_store(StoreRoot(root), root, new_clock(), lambda _plan: True)
    assert "tombstones" not in {finding.code for finding in check_store(root).findings}
    assert counted(root) == (200, 0)
