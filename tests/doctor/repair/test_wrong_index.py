"""An index that is wrong never changes a record of the log, in an opening or a repair."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from seglog.clock import VirtualClock
from seglog.doctor.repair.repair import repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from tests.support.damage.damage import Blow
from tests.support.damage.subjects import shared_subject
from tests.support.machine.shared import copy_tree
from tests.support.material.stores import SMALL, SMALL_INDEX, new_clock, served
from tests.support.scale import chance, scaled

EACH = 25
KINDS = ["flip", "overwrite", "zero", "copy within", "cut", "append", "delete", "rename", "copy over"]


def make(root, key, *, later_ms=0):
    """Returns a store without record CRC of which one message has that key."""
    clock = VirtualClock(new_clock().now_ms() + later_ms)
    with MessageStore.open(root, clock=clock, record_crc=False, **SMALL, **SMALL_INDEX) as store:
        for number in range(40):
            store.put("T", b"%d" % number, tags="TagA", keys=key if number == 7 else f"key{number:02d}b")
            clock.advance(40)
    return root


def log_of(root):
    return {path.name: path.read_bytes() for path in (root / "commitlog").iterdir()}


def repaired(root):
    repair_store(RealFiles(), root, new_clock(), lambda _plan: True)


def opened(root):
    MessageStore.open(root, clock=new_clock(), create=False).close()
    repaired(root)


@pytest.mark.parametrize("put_right", [repaired, opened])
@pytest.mark.parametrize("later_ms", [1, 300, 3000])
@pytest.mark.parametrize("parts", [["index"], ["index", "consumequeue"]], ids=["index", "queues too"])
def test_the_index_of_another_store_changes_no_key(parts, later_ms, put_right, tmp_path):
    root = make(tmp_path / "one", "key07a")
    other = make(tmp_path / "other", "key07c", later_ms=later_ms)
    for part in parts:
        shutil.rmtree(root / part)
        shutil.copytree(other / part, root / part)
    before = log_of(root)
    put_right(root)
    assert log_of(root) == before
    with MessageStore.open(root, read_only=True) as store:
        assert [message.keys for message in store.query("T", "key07a")] == [["key07a"]]


@pytest.mark.parametrize("put_right", [repaired, opened])
def test_the_index_that_a_log_of_another_life_left_changes_no_tag(put_right, tmp_path):
    root = make(tmp_path / "one", "key07a")
    other = tmp_path / "other"
    clock = VirtualClock(new_clock().now_ms() + 1)
    with MessageStore.open(other, clock=clock, record_crc=False, **SMALL, **SMALL_INDEX) as store:
        for number in range(40):
            tag = "TagC" if number == 9 else "TagA"
            key = "key07a" if number == 7 else f"key{number:02d}b"
            store.put("T", b"%d" % number, tags=tag, keys=key)
            clock.advance(40)
    for part in ("index", "consumequeue"):
        shutil.rmtree(root / part)
        shutil.copytree(other / part, root / part)
    before = log_of(root)
    put_right(root)
    assert log_of(root) == before


def damage_index(root, draw):
    """Damages files of the index, and no others; returns what was done."""
    blows = [
        Blow(draw.choice(KINDS), draw.random(), draw.random(), draw.choice([1, 4, 20, 300, 3000]))
        for _ in range(draw.choice([1, 1, 3]))
    ]
    return [blow.apply(root / "index") for blow in blows]


@pytest.mark.parametrize("name", ["own killed", "roll", "real-conf"])
@pytest.mark.parametrize("put_right", [repaired, opened])
def test_damage_to_the_index_alone_changes_no_record(name, put_right, memory_path: Path):
    subject = shared_subject(name)
    with MessageStore.open(subject.root, read_only=True) as store:
        end, whole = store.max_phy_offset, served(store)
    wanted = b"".join(content for _name, content in sorted(log_of(subject.root).items()))[:end]
    draws = chance("damage to the index", name, put_right.__name__)
    for seed in (draws.randrange(1 << 32) for _ in range(scaled(EACH, 1000))):
        copy = copy_tree(subject.root, memory_path / "store")
        told = damage_index(copy, random.Random(f"index {seed}"))
        put_right(copy)
        found = b"".join(content for _name, content in sorted(log_of(copy).items()))[:end]
        assert found == wanted, f"seed {seed}: {told}"
        with MessageStore.open(copy, read_only=True) as store:
            assert served(store) == whole, f"seed {seed}: {told}"
        shutil.rmtree(copy)
