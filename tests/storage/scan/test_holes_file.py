"""What recoveries know of a log's damage is kept in seglog/holes, and never believed over the log."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from seglog.storage.files.files import RealFiles
from seglog.storage.overlay.lost_messages import JUMP, UNIT, LostMessages
from seglog.storage.scan.holes_file import TOMBSTONES, KnownHole, load_holes, merge_holes, save_holes
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.damage.images import Image, in_segment, slots
from tests.support.material import golden
from tests.support.material.records import Record
from tests.support.material.stores import SMALL, SMALL_INDEX, copy_store, fill, new_clock

COUNT = 100


@pytest.fixture(scope="module")
def original(module_folders):
    folder = module_folders.mktemp("original")
    with MessageStore.open(folder / "store", clock=new_clock(), **SMALL) as store:
        puts = [store.put("T", b"%d " % slot + bytes(range(60))) for slot in range(COUNT)]
        root = copy_store(store.path, folder / "killed")
    return Image(root, [put.phy_offset for put in puts], [put.size_bytes for put in puts])


@pytest.fixture
def image(original, memory_path: Path):
    return Image(copy_store(original.root, memory_path / "store"), original.starts, original.sizes)


def recovered(image, now_ms=None):
    clock = new_clock()
    if now_ms is not None:
        clock.advance(now_ms - clock.now_ms())
    with MessageStore.open(image.root, clock=clock) as store:
        found = slots(store)
    return found, load_holes(RealFiles(), image.root)


def lost(first, count=1, evidence=UNIT, *, is_sure=True):
    return LostMessages("T", 0, range(first, first + count), evidence, is_sure)


@pytest.mark.parametrize("evidence", [UNIT, JUMP])
def test_hole_is_written_down_with_the_messages_it_took(image, evidence):
    image.rot(image.starts[40] + 90)
    image.rot(image.starts[41] + 90)
    if evidence == JUMP:
        shutil.rmtree(image.root / "consumequeue")
    found = survey(image.root, RealFiles())
    (finding,) = [finding for finding in found.findings if finding.code == "log-hole"]
    assert finding.messages == 2
    assert finding.found.endswith("; lost: T/0 40..41")
    served, (hole,) = recovered(image)
    assert served == [slot for slot in range(COUNT) if slot not in (40, 41)]
    assert (hole.phy_offset, hole.size_bytes) == (image.starts[40], sum(image.sizes[40:42]))
    assert hole.why == "record-crc"
    assert hole.first_seen_ms == new_clock().now_ms()
    assert hole.lost == (lost(40, 2, evidence),)


def test_what_units_told_is_known_when_the_queues_are_gone(image):
    image.rot(image.starts[40] + 90)
    image.rot(image.starts[60] + 90)
    _served, before = recovered(image)
    shutil.rmtree(image.root / "consumequeue")
    _served, after = recovered(image, new_clock().now_ms() + 5000)
    assert after == before


def test_jump_over_several_holes_is_told_of_each_and_not_for_sure(image):
    middle = in_segment(image, 1)
    for slot in (middle[0], middle[2]):
        image.rot(image.starts[slot] + 90)
    other = image.starts[middle[1]]
    image.write(other, replace_queue(image, other))
    shutil.rmtree(image.root / "consumequeue")
    _served, holes = recovered(image)
    gap = lost(middle[0], 3, JUMP, is_sure=False)
    assert [hole.lost for hole in holes] == [(gap,), (gap,)]


def replace_queue(image, phy_offset):
    """Returns a record of another queue with the size of the one there."""
    size = image.sizes[image.starts.index(phy_offset)]
    made = Record(
        topic=b"U", phy_offset=phy_offset, store_timestamp_ms=new_clock().now_ms(), record_crc=True, body=b""
    )
    padded = replace(made, body=bytes(size - len(made.pack()))).pack()
    assert len(padded) == size
    return padded


def test_hole_that_can_be_read_again_is_dropped(image):
    image.rot(image.starts[40] + 90)
    assert len(recovered(image)[1]) == 1
    image.rot(image.starts[40] + 90)
    assert recovered(image) == (list(range(COUNT)), [])


def test_hole_that_retention_took_is_dropped(image):
    image.rot(image.starts[in_segment(image, 0)[2]] + 90)
    image.rot(image.starts[40] + 90)
    assert len(recovered(image)[1]) == 2
    image.segment(0).unlink()
    assert [hole.phy_offset for hole in recovered(image)[1]] == [image.starts[40]]


def test_lost_tail_is_written_down_and_kept(image):
    image.write(image.starts[98], bytes(image.sizes[98] + image.sizes[99]))
    for _ in range(2):
        _served, (hole,) = recovered(image)
        assert (hole.why, hole.phy_offset, hole.end) == (TOMBSTONES, image.starts[98], image.end)
        assert hole.lost == (lost(98, 2),)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"holes":3}', b'{"holes":[{}]}', b"\xff" * 40, b'{"holes":[{"phyOffset":-1}]}'],
)
def test_damaged_file_is_made_again(image, content):
    image.rot(image.starts[40] + 90)
    _served, holes = recovered(image)
    for name in ("holes", "holes.bak"):
        (image.root / "seglog" / name).write_bytes(content)
    assert recovered(image)[1] == holes


def test_file_that_says_too_much_is_not_believed(image):
    image.rot(image.starts[40] + 90)
    recovered(image)
    path = image.root / "seglog" / "holes"
    table = json.loads(path.read_text())
    table["holes"][0]["lost"] = [
        {"topic": "T", "queueId": 0, "firstOffset": 30, "count": 25, "evidence": "unit", "sure": True},
        {"topic": "T", "queueId": 0, "firstOffset": 500, "count": 100, "evidence": "unit", "sure": True},
    ]
    path.write_text(json.dumps(table))
    served, (hole,) = recovered(image)
    assert served == [slot for slot in range(COUNT) if slot != 40]
    assert hole.lost == (lost(40),)


def test_healthy_store_gets_no_such_file(memory_path: Path):
    with MessageStore.open(memory_path / "store", clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        fill(store, 20)
    MessageStore.open(memory_path / "store", clock=new_clock()).close()
    assert not (memory_path / "store" / "seglog" / "holes").exists()


def test_store_with_holes_is_as_before_when_it_is_opened_again(tmp_path):
    root = golden.extract("d-zeropage-last-halt", tmp_path)
    MessageStore.open(root, create=False).close()
    holes = load_holes(RealFiles(), root)
    (hole,) = holes
    assert sum(len(one.offsets) for one in hole.lost) == 11
    before = golden.tree_digest(root)
    findings = survey(root, RealFiles()).findings
    MessageStore.open(root, create=False).close()
    assert survey(root, RealFiles()).findings == findings
    after = golden.tree_digest(root)
    assert {name for name in after if after[name] != before.get(name)} <= {"lock", "checkpoint"}


def test_known_holes_merge_by_place(memory_path: Path):
    of_u = LostMessages("U", 1, range(7, 8), UNIT)
    now = [KnownHole(1000, 200, "magic", first_seen_ms=9, lost=(lost(3),))]
    before = [
        KnownHole(
            900, 150, "size", first_seen_ms=5, lost=(lost(2, 3), LostMessages("U", 1, range(7, 8), UNIT))
        ),
        KnownHole(5000, 100, TOMBSTONES, first_seen_ms=6, lost=(lost(90),)),
        KnownHole(9000, 2000, TOMBSTONES, first_seen_ms=6, lost=(lost(95),)),
    ]
    merged = merge_holes(now, before, (0, 10_000), lambda _topic, _queue_id, offsets: (offsets,))
    assert merged == [
        KnownHole(
            1000,
            200,
            "magic",
            first_seen_ms=5,
            lost=(lost(2), lost(3), lost(4), of_u),
        ),
        before[1],
    ]
    save_holes(RealFiles(), memory_path, merged)
    assert load_holes(RealFiles(), memory_path) == merged
