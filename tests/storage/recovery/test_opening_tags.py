"""A bit of a tag that its queue's unit and the index know is flipped back before opening writes to either."""

from __future__ import annotations

from pathlib import Path

import pytest

from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.errors import NotFoundError
from seglog.storage.files.files import RealFiles
from seglog.storage.format.queue.consume_queue import CQ_UNIT, CQ_UNIT_BYTES
from seglog.storage.store import MessageStore
from tests.support.damage.laws import Look, served_by
from tests.support.material import golden
from tests.support.material.stores import (
    QUEUE_FILE_BYTES,
    SEGMENT_BYTES,
    SMALL,
    SMALL_INDEX,
    UNITS_PER_FILE,
    copy_store,
    new_clock,
    read_all,
)
from tests.support.scale import scaled, start

COUNT = 40
VICTIM = 17
TAGGED = b"TAGS\x01Tag%d\x02"


@pytest.fixture(scope="module")
def whole(module_folders):
    root = module_folders.mktemp("whole") / "store"
    with MessageStore.open(root, clock=new_clock(), record_crc=False, **SMALL, **SMALL_INDEX) as store:
        for number in range(COUNT):
            store.put("T", b"body %d" % number, tags=f"Tag{number}", keys=f"key-{number}")
    return root


def flip(root, phy_offset, bit, segment_bytes):
    first = phy_offset - phy_offset % segment_bytes
    path = root / "commitlog" / f"{first:020d}"
    content = bytearray(path.read_bytes())
    content[phy_offset - first] ^= 1 << bit
    path.write_bytes(content)


def place_of_tag(root):
    with MessageStore.open(root, read_only=True) as store:
        (message,) = store.get("T", 0, VICTIM, 1)
        at = message.properties_raw.index(b"TAGS\x01")
        return message.phy_offset + message.size_bytes - len(message.properties_raw) + at


def tagged(root, tag):
    with MessageStore.open(root, read_only=True) as store:
        return [message.queue_offset for message in read_all(store, "T", 0, tag)]


@pytest.mark.parametrize("mended_by", ["an opening and a put", "a repair"])
def test_every_bit_of_a_tag_and_its_name_is_flipped_back(mended_by, whole, memory_path: Path):
    text, place = TAGGED % VICTIM, place_of_tag(whole)
    wanted = served_by(whole)
    step = scaled(7, 1)
    for bit in range(start(step, mended_by), 8 * len(text), step):
        root = copy_store(whole, memory_path / str(bit))
        flip(root, place + bit // 8, bit % 8, SEGMENT_BYTES)
        if mended_by == "a repair":
            repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
        else:
            with MessageStore.open(root, clock=new_clock()) as store:
                assert "record-mended" in {one.code for one in store.recovery.findings}, bit
                store.put("U", b"hi")
        assert not plan_repair(RealFiles(), root, new_clock()).changes, bit
        served = served_by(root)
        assert isinstance(served, Look)
        assert served.without("U") == wanted, bit
        assert tagged(root, f"Tag{VICTIM}") == [VICTIM], bit


def test_a_damaged_code_in_the_unit_flips_no_bit_of_the_record(whole, memory_path: Path):
    wanted = served_by(whole)
    for bit in range(64):
        root = copy_store(whole, memory_path / str(bit))
        slot = VICTIM % UNITS_PER_FILE
        path = root / "consumequeue" / "T" / "0" / f"{QUEUE_FILE_BYTES:020d}"
        content = bytearray(path.read_bytes())
        content[CQ_UNIT_BYTES * slot + CQ_UNIT.offsets["tags_code"] + bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        MessageStore.open(root, clock=new_clock()).close()
        assert served_by(root) == wanted
        assert tagged(root, f"Tag{VICTIM}") == [VICTIM]


def test_two_bits_stay_as_the_log_has_them(whole, memory_path: Path):
    root, place = copy_store(whole, memory_path / "store"), place_of_tag(whole)
    for at in (5, 6):
        flip(root, place + at, 3, SEGMENT_BYTES)
    MessageStore.open(root, clock=new_clock()).close()
    assert tagged(root, f"Tag{VICTIM}") == []


def test_a_reader_serves_no_tag_that_a_repair_would_change(whole, memory_path: Path):
    root, place = copy_store(whole, memory_path / "store"), place_of_tag(whole)
    with MessageStore.open(root, read_only=True) as store:
        (message,) = store.get("T", 0, VICTIM, 1)
        phy_offset = message.phy_offset
    flip(root, place + 5, 1, SEGMENT_BYTES)
    with MessageStore.open(root, read_only=True) as store:
        found = store.get("T", 0, VICTIM, 2)
        assert [message.queue_offset for message in found] == [VICTIM + 1]
        assert (found.lost, found.repairable) == ((), (range(VICTIM, VICTIM + 1),))
        assert found.stepped_over == found.repairable
        assert not store.query("T", f"key-{VICTIM}")
        (finding,) = (one for one in store.recovery.findings if one.code == "record-repairable")
        with pytest.raises(NotFoundError, match="proven"):
            store.message_at(phy_offset)
    assert finding.position_bytes == (place + 5) % SEGMENT_BYTES


@pytest.mark.parametrize(
    ("name", "place", "bit"),
    [
        ("roll", 54772, 6),
        ("roll", 54780, 1),
        ("tx", 7846, 0),
        ("roll-halt", 153322, 2),
        ("outerbatch", 143148, 4),
    ],
)
def test_tags_of_rocketmqs_stores_are_as_they_were_behind_a_put(name, place, bit, memory_path: Path):
    root = golden.extract(name, memory_path)
    wanted = served_by(root)
    flip(root, place, bit, 65536)
    with MessageStore.open(root, clock=new_clock(), create=False) as store:
        assert "record-mended" in {one.code for one in store.recovery.findings}
        store.put("BrandNew", b"hi")
    served = served_by(root)
    assert isinstance(served, Look)
    assert served.without("BrandNew") == wanted
    assert not plan_repair(RealFiles(), root, new_clock()).changes
