"""Records of a compaction log: the commit log puts them right, and one that is lost costs only itself."""

from __future__ import annotations

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.doctor.undo.undo import undo_repair
from seglog.storage.directory.index_files import list_index_files
from seglog.storage.files.files import RealFiles
from seglog.storage.format.index.index import INDEX_ENTRY
from seglog.storage.format.queue.batch_consume_queue import view_batch_units
from seglog.storage.format.record.record import MIN_RECORD_BYTES
from seglog.storage.store import MessageStore
from tests.support.damage.broker_damage import compacted, compacted_once
from tests.support.material.golden import tree_digest
from tests.support.material.stores import copy_store, new_clock

LOG, QUEUE = "compaction/compactionLog/C/0", "compaction/compactionCq/C/0"


@pytest.fixture(scope="module", params=[compacted, compacted_once], ids=["never compacted", "compacted"])
def whole(request, module_folders):
    return request.param(module_folders.mktemp("whole") / "store")


@pytest.fixture(scope="module", params=[compacted, compacted_once], ids=["never compacted", "compacted"])
def without_front(request, module_folders):
    """A store of which retention took the first file of the commit log, and no more than that."""
    root = request.param(module_folders.mktemp("cut") / "store")
    (root / "commitlog" / f"{0:020d}").unlink()
    MessageStore.open(root, clock=new_clock()).close()
    return root


def read(root):
    """Returns what a reader serves, and the offsets that it names as lost."""
    with MessageStore.open(root, read_only=True) as store:
        found, lost, offset = {}, set(), 0
        while offset < 40:
            got = store.get("C", 0, offset)
            found |= {one.queue_offset: (one.body, one.keys) for one in got.messages}
            lost |= {each for span in got.lost for each in span}
            offset = max(offset + 1, got.next_offset)
        return found, lost


def place_of(root, number):
    """Returns path, position and length of a record in the first file of the compaction log."""
    first = min((root / QUEUE).iterdir())
    unit = view_batch_units(first.read_bytes())[number]
    return root / LOG / first.name, int(unit["phy_offset"]), int(unit["size_bytes"])


def put(path, position, data):
    content = bytearray(path.read_bytes())
    content[position : position + len(data)] = data
    path.write_bytes(content)


def damage(root, kind, number):
    path, position, size = place_of(root, number)
    record = path.read_bytes()[position : position + size]
    changed = {
        "a key": record.replace(b"KEYS\x01k", b"KEYS\x01q"),
        "the end": record[:-12] + b"\xaa" * 12,
        "the body": record.replace(b"cccc", b"dddd"),
        "all of it": b"\xaa" * size,
        "its length": (MIN_RECORD_BYTES + 999).to_bytes(4, "big") + record[4:],
    }[kind]
    assert changed != record
    put(path, position, changed)


def is_clean(root):
    return check_store(root, clock=new_clock()).is_clean


def repaired(root):
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert plan.left == []
    return plan


def opened(root):
    MessageStore.open(root, clock=new_clock()).close()


@pytest.mark.parametrize("number", [0, 3])
@pytest.mark.parametrize("kind", ["a key", "the end", "the body", "all of it", "its length"])
def test_a_copy_that_differs_comes_from_the_commit_log(whole, kind, number, tmp_path):
    root = copy_store(whole, tmp_path / "store")
    before = tree_digest(root)
    damage(root, kind, number)
    damaged = tree_digest(root)
    assert [one.code for one in check_store(root, clock=new_clock()).findings] == ["compaction-damaged"]
    assert read(root) == read(whole)
    plan = repaired(root)
    assert [(one.kind, one.detail) for one in plan.actions] == [
        ("compaction-record", "1 record from the commit log")
    ]
    assert {name: one for name, one in tree_digest(root).items() if name.startswith("compaction/")} == {
        name: one for name, one in before.items() if name.startswith("compaction/")
    }
    assert is_clean(root)
    undo_repair(RealFiles(), root)
    assert tree_digest(root) == damaged


def test_an_opening_makes_the_same_mend_and_keeps_what_it_writes_over(whole, tmp_path):
    root = copy_store(whole, tmp_path / "store")
    damage(root, "the end", 3)
    opened(root)
    assert read(root) == read(whole)
    assert is_clean(root)
    kept = b"".join(path.read_bytes() for path in (root / "seglog/attic").iterdir())
    assert b"\xaa" * 12 in kept


def test_a_record_crc_goes_over_an_index_that_has_other_keys(whole, tmp_path):
    root = copy_store(whole, tmp_path / "store")
    damage(root, "a key", 3)
    for file in list_index_files(RealFiles(), root)[0]:
        content = bytearray(file.path.read_bytes())
        for number in range(1, file.header.index_count):
            content[file.geometry.entries_at + INDEX_ENTRY.size_bytes * number + 3] ^= 1
        file.path.write_bytes(content)
    assert read(root) == read(whole)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("mended_by", [opened, repaired])
@pytest.mark.parametrize("bit", range(0, 64, 5))
def test_a_unit_that_leads_elsewhere_changes_no_record(whole, mended_by, bit, tmp_path):
    root = copy_store(whole, tmp_path / "store")
    before = tree_digest(root)
    path = min((root / QUEUE).iterdir())
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    mended_by(root)
    after = tree_digest(root)
    assert {name: one for name, one in after.items() if name.startswith(("compaction/", "commitlog/"))} == {
        name: one for name, one in before.items() if name.startswith(("compaction/", "commitlog/"))
    }


@pytest.mark.parametrize("mended_by", [opened, repaired])
@pytest.mark.parametrize("kind", ["the body", "all of it", "its length"])
def test_a_record_that_the_commit_log_has_no_more_costs_itself(without_front, kind, mended_by, tmp_path):
    root = copy_store(without_front, tmp_path / "store")
    whole, lost_before = read(root)
    damage(root, kind, 2)
    assert lost_before == set()
    lost = set(whole) - {offset for offset in whole if offset != sorted(whole)[2]}
    left = {offset: one for offset, one in whole.items() if offset not in lost}
    assert "compaction-damaged" in {one.code for one in check_store(root, clock=new_clock()).findings}
    assert read(root) == (left, lost)
    told = [each for action in plan_repair(RealFiles(), root, new_clock()).actions for each in action.lost]
    assert {(one.topic, offset) for one in told for offset in one.offsets} == {("C", *lost)}
    mended_by(root)
    assert read(root) == (left, lost)
    assert is_clean(root)
    opened(root)
    assert read(root) == (left, lost)


@pytest.mark.parametrize("mended_by", [opened, repaired])
def test_queue_files_in_each_others_places_change_no_sound_record(whole, mended_by, tmp_path):
    root = copy_store(whole, tmp_path / "store")
    first, second, *_ = sorted((root / QUEUE).iterdir())
    mine, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(mine)
    logs = {path.name: path.read_bytes() for path in (root / LOG).iterdir()}
    mended_by(root)
    assert {path.name: path.read_bytes() for path in (root / LOG).iterdir()} == logs
    assert read(root) == read(whole)


@pytest.mark.parametrize("mended_by", [opened, repaired])
def test_a_queue_file_of_earlier_changes_no_sound_record(without_front, mended_by, tmp_path):
    """Its units lead to where other records lie now, though of the same length."""
    root = copy_store(without_front, tmp_path / "store")
    logs = {path.name: path.read_bytes() for path in (root / LOG).iterdir()}
    queue = min((root / QUEUE).iterdir())
    content = bytearray(queue.read_bytes())
    for number in range(5):
        at = number * 46 + 28
        offset = int.from_bytes(content[at : at + 8], "big") + 5
        content[at : at + 8] = offset.to_bytes(8, "big")
    queue.write_bytes(content)
    mended_by(root)
    assert {path.name: path.read_bytes() for path in (root / LOG).iterdir()} == logs


def test_sound_copies_are_left_alone(without_front, tmp_path):
    root = copy_store(without_front, tmp_path / "store")
    before = tree_digest(root)
    assert repaired(root).changes == []
    assert tree_digest(root) == before
