"""What openings wrote over of queue units and removed of the index proves keys and tags to a later repair."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seglog.clock import VirtualClock
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.storage.files.files import RealFiles
from seglog.storage.format.names import ABORT_FILE, INDEX
from seglog.storage.small_files.attic import whole_files
from seglog.storage.store import MessageStore
from tests.support.damage.images import Image
from tests.support.material.stores import SMALL, SMALL_INDEX, copy_store, new_clock, read_all

COUNT = 40
VICTIM = 17


def put(store, number):
    return store.put("T", b"body %d" % number, tags=f"Tag{number}", keys=f"key-{number}")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    root = tmp_path_factory.mktemp("whole") / "store"
    with MessageStore.open(root, clock=new_clock(), record_crc=False, **SMALL, **SMALL_INDEX) as store:
        puts = [put(store, number) for number in range(COUNT)]
    return Image(root, [one.phy_offset for one in puts], [one.size_bytes for one in puts])


@pytest.fixture
def image(whole, memory_path: Path):
    return Image(copy_store(whole.root, memory_path / "store"), [*whole.starts], [*whole.sizes])


def flip_in(image, slot, text, at):
    image.flip(image.starts[slot] + image.record(slot).index(text) + at, 1 << 2)


def keys(image):
    with MessageStore.open(image.root, read_only=True, clock=new_clock()) as store:
        return {one.queue_offset: one.keys for one in read_all(store, "T", 0)}


def repaired(image):
    repair_store(RealFiles(), image.root, new_clock(), lambda _plan: True)
    assert not plan_repair(RealFiles(), image.root, new_clock()).changes


def forget_last(image):
    """Takes the last record, and what knows it but the index, as a power cut may."""
    image.write(image.starts[-1], bytes(image.sizes[-1]))
    shutil.rmtree(image.root / "consumequeue")
    (image.root / ABORT_FILE).touch()


def set_index_back(image, number):
    """Opens a store of which the index ends with no record, and puts a message."""
    forget_last(image)
    with MessageStore.open(image.root, clock=new_clock(), record_crc=False) as store:
        assert "index-damaged" in {one.code for one in store.recovery.findings}
        last = put(store, number)
    image.starts[-1], image.sizes[-1] = last.phy_offset, last.size_bytes


@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_a_key_comes_back_however_often_the_index_was_set_back(image, times):
    flip_in(image, VICTIM, b"key-%d" % VICTIM, 4)
    for number in range(times):
        set_index_back(image, COUNT + number)
    assert bool(whole_files(RealFiles(), image.root, INDEX)) == bool(times)
    assert keys(image)[VICTIM] != [f"key-{VICTIM}"]
    repaired(image)
    found = keys(image)
    assert all(found[slot] == [f"key-{slot}"] for slot in range(COUNT - 1))


def test_an_index_that_proves_no_more_than_the_next_goes(image):
    for number in range(5):
        set_index_back(image, COUNT + number)
        assert len(whole_files(RealFiles(), image.root, INDEX)) <= 2


def test_an_index_of_an_older_life_of_the_log_changes_no_key(image):
    last = COUNT - 1
    forget_last(image)
    later = VirtualClock(new_clock().now_ms() + 60_000)
    with MessageStore.open(image.root, clock=later, record_crc=False) as store:
        again = store.put("T", b"body %d" % last, tags=f"Tag{last}", keys="key-3=")
    assert (again.phy_offset, again.size_bytes) == (image.starts[last], image.sizes[last])
    assert whole_files(RealFiles(), image.root, INDEX)
    repaired(image)
    assert keys(image)[last] == ["key-3="]


def test_a_tag_comes_back_by_the_unit_that_an_opening_wrote_over(image, memory_path: Path):
    flip_in(image, VICTIM, b"Tag%d" % VICTIM, 1)
    shutil.move(image.root / INDEX, memory_path / "away")
    MessageStore.open(image.root, clock=new_clock(), index_geometry=SMALL_INDEX["index_geometry"]).close()
    shutil.rmtree(image.root / INDEX)
    shutil.move(memory_path / "away", image.root / INDEX)
    repaired(image)
    with MessageStore.open(image.root, clock=new_clock()) as store:
        assert [one.queue_offset for one in read_all(store, "T", 0, f"Tag{VICTIM}")] == [VICTIM]
