"""Clocks that were set while messages were written: damage still costs no more than what it hit."""

from __future__ import annotations

from pathlib import Path

import pytest

from seglog.doctor.check.check import check_store
from seglog.storage.files.files import RealFiles
from seglog.storage.small_files import read_checkpoint
from seglog.storage.store import MessageStore
from tests.support.damage.images import Image, in_segment, last_end, slots
from tests.support.material.stores import SEGMENT_BYTES, SMALL, SMALL_INDEX, copy_store, new_clock

COUNT = 100
STEPS = (8, 19, 60)
YEAR_MS = 365 * 86_400_000


def spoil(image: Image, slot: int) -> list[int]:
    """Writes over a body more than the one bit that an opening puts right; returns what it costs."""
    image.write(image.starts[slot] + image.sizes[slot] // 2, b"\x5a" * 8)
    return [slot]


def spoil_filler(image: Image) -> list[int]:
    image.write(last_end(image, 0), b"\x5a" * 8)
    return []


def spoil_file(image: Image) -> list[int]:
    image.segment(SEGMENT_BYTES).write_bytes(b"\x5a" * SEGMENT_BYTES)
    return in_segment(image, 1)


def before_a_step_and_at_the_start_of_the_next_file(image: Image) -> list[int]:
    step = STEPS[-1]
    return [
        *spoil(image, step - 1),
        *spoil(image, in_segment(image, image.starts[step] // SEGMENT_BYTES + 1)[0]),
    ]


DAMAGES = {
    "noise in a body": lambda i: spoil(i, 6),
    "last record of a file": lambda i: spoil(i, in_segment(i, 0)[-1]),
    "first record of the last file": lambda i: spoil(i, in_segment(i, i.starts[-1] // SEGMENT_BYTES)[0]),
    "filler of zeros": spoil_filler,
    "whole middle file": spoil_file,
    "before a step and the first record of the next file": before_a_step_and_at_the_start_of_the_next_file,
}
"""name: damages the image and returns the slots that it costs."""


@pytest.fixture(scope="module", params=[-YEAR_MS, YEAR_MS, -1], ids=["back", "forward", "a little back"])
def original(request, module_folders):
    folder = module_folders.mktemp("original")
    clock = new_clock()
    with MessageStore.open(folder / "store", clock=clock, **SMALL) as store:
        puts = []
        for slot in range(COUNT):
            if slot in STEPS:
                clock.advance(request.param)
            puts.append(store.put("T", b"%d " % slot + bytes(90)))
        root = copy_store(store.path, folder / "killed")
    return Image(root, [put.phy_offset for put in puts], [put.size_bytes for put in puts])


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_clock_that_was_set_costs_no_message_behind_damage(original, damage, memory_path: Path):
    image = Image(copy_store(original.root, memory_path / "store"), original.starts, original.sizes)
    lost = damage(image)
    for read_only in (True, False):
        with MessageStore.open(image.root, read_only=read_only, clock=new_clock()) as store:
            assert slots(store) == [slot for slot in range(COUNT) if slot not in lost]


def test_a_clock_that_was_ahead_leaves_no_checkpoint_ahead_of_the_log(tmp_path):
    """Once retention took the messages of that time, all in the log are older."""
    clock = new_clock()
    with MessageStore.open(tmp_path / "s", clock=clock, **SMALL, **SMALL_INDEX) as store:
        clock.advance(YEAR_MS)
        while store.max_phy_offset < 3 * SEGMENT_BYTES:
            store.put("T", b"ahead" * 20, keys="k")
        store.flush()
        clock.advance(-YEAR_MS)
        place = store.put("T", b"now", keys="k").phy_offset
        while store.max_phy_offset < place + 2 * SEGMENT_BYTES:
            store.put("T", b"now" * 30, keys="k")
        store.flush()
        assert read_checkpoint(RealFiles(), tmp_path / "s").physic_timestamp_ms == clock.now_ms()
        store.retention.delete_before(place + SEGMENT_BYTES)
    assert "checkpoint-ahead" not in {one.code for one in check_store(tmp_path / "s", clock=clock).findings}
