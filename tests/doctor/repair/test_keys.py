"""A bit of a property that no checksum covers is flipped back where the index knows the record's keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.store import MessageStore
from tests.support.material.golden import file_digest
from tests.support.material.stores import SMALL, SMALL_INDEX, copy_store, new_clock
from tests.support.scale import scaled

COUNT = 40
KEY = b"KEYS\x01key-%d\x02"
ENTRIES_AT = IndexGeometry(50, 200).entries_at


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    root = tmp_path_factory.mktemp("whole") / "store"
    with MessageStore.open(root, clock=new_clock(), record_crc=False, **SMALL, **SMALL_INDEX) as store:
        for number in range(COUNT):
            store.put("T", b"body %d" % number, tags="TagA", keys=f"key-{number}")
    return root


def change(root, text, at, data):
    """Writes over a text that occurs once in the log, from its byte ``at`` on."""
    (path,) = [path for path in (root / "commitlog").iterdir() if text in path.read_bytes()]
    content = bytearray(path.read_bytes())
    start = content.index(text) + at
    content[start : start + len(data)] = data
    path.write_bytes(content)


def repaired(root):
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert not plan_repair(RealFiles(), root, new_clock()).changes
    assert check_store(root, clock=new_clock()).is_clean
    return {action.kind for action in plan.actions}


def test_every_bit_of_keys_and_their_name_is_flipped_back(whole, memory_path: Path):
    text = KEY % 17
    for bit in range(0, 8 * len(text), scaled(7, 1)):
        root = copy_store(whole, memory_path / str(bit))
        flipped = text[bit // 8] ^ 1 << bit % 8
        change(root, text, bit // 8, bytes([flipped]))
        assert "record-keys" in {one.code for one in check_store(root).findings} or flipped in (1, 2)
        assert "bit" in repaired(root), bit
        before, after = file_digest(whole), file_digest(root)
        assert {name: after[name] for name in before if name != "lock"} == {
            name: one for name, one in before.items() if name != "lock"
        }


def test_two_bits_are_left_as_the_log_has_them_and_the_index_follows(whole, tmp_path):
    root = copy_store(whole, tmp_path / "store")
    change(root, KEY % 17, 6, b"EV")
    assert repaired(root) == {"index"}
    with MessageStore.open(root, read_only=True) as store:
        assert [message.body for message in store.query("T", "kEV-17")] == [b"body 17"]


def test_a_damaged_hash_in_the_index_flips_no_bit_of_a_record(whole, tmp_path):
    root = copy_store(whole, tmp_path / "store")
    (path,) = (root / "index").iterdir()
    content = bytearray(path.read_bytes())
    content[ENTRIES_AT + 20 * 11 + 3] ^= 1  # as a flipped bit of the key's last letter would change it
    path.write_bytes(content)
    assert repaired(root) == {"index"}
    assert file_digest(root)["commitlog/" + f"{0:020d}"] == file_digest(whole)["commitlog/" + f"{0:020d}"]
