"""Units in front of a queue's first message are compared with the log: RocketMQ looks for it among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from seglog.doctor.check import check_store
from seglog.doctor.repair.repair import repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.store import MessageStore
from tests.support.damage.queue_heads import HEADS, aged_store, rebuilt_store
from tests.support.material.stores import copy_store, new_clock, served
from tests.support.rows import every_row


def opened(root):
    MessageStore.open(root, clock=new_clock(), create=False).close()


def repaired(root):
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)


def serious(root):
    """Returns the codes of what a check finds, without notes."""
    return {one.code for one in check_store(root).findings if one.severity is not Severity.NOTE}


def served_by_reader(root):
    with MessageStore.open(root, read_only=True) as store:
        return served(store)


def queue_bytes(root):
    folder = root / "consumequeue"
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("make", [aged_store, rebuilt_store])
@pytest.mark.parametrize("put_right", [opened, repaired])
def test_units_before_the_first_message_are_found_and_put_right(make, put_right, memory_path: Path):
    whole = make(memory_path / "whole")
    messages = served_by_reader(whole)
    assert serious(whole) == set()
    with every_row() as row:
        for name, damage in HEADS.items():
            with row(name):
                root = copy_store(whole, memory_path / name)
                damage(root)
                assert serious(root)
                assert served_by_reader(root) == messages
                put_right(root)
                assert serious(root) == set()
                assert served_by_reader(root) == messages
                before = queue_bytes(root)
                opened(root)
                assert queue_bytes(root) == before


def test_what_stood_before_the_first_message_is_kept_in_the_attic(memory_path: Path):
    root = aged_store(memory_path / "store")
    HEADS["an older file with units of another queue"](root)
    held = next(iter(sorted((root / "consumequeue/A/0").iterdir()))).read_bytes()
    opened(root)
    kept = b"".join(path.read_bytes() for path in (root / "seglog/attic").iterdir())
    assert held.rstrip(b"\0") in kept
