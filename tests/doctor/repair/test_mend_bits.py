"""One flipped bit in a record costs nothing: it is flipped back where a second witness says which it was."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seglog.doctor.repair.repair import repair_store
from seglog.storage.directory import FileSizes
from seglog.storage.files.files import RealFiles
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.queue.consume_queue import CQ_UNIT_BYTES
from seglog.storage.store import MessageStore
from tests.support.damage.images import Image
from tests.support.material.golden import file_digest
from tests.support.material.stores import SMALL, SMALL_INDEX, copy_store, new_clock
from tests.support.scale import scaled

COUNT = 60


def made(folder, *, record_crc):
    with MessageStore.open(
        folder / "store", clock=new_clock(), record_crc=record_crc, **SMALL, **SMALL_INDEX
    ) as store:
        puts = [
            store.put("T", b"%d " % slot + bytes(range(60)), tags="TagA", keys=f"k{slot}")
            for slot in range(COUNT)
        ]
    return Image(folder / "store", [put.phy_offset for put in puts], [put.size_bytes for put in puts])


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return made(tmp_path_factory.mktemp("plain"), record_crc=False)


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    return made(tmp_path_factory.mktemp("checked"), record_crc=True)


def after_flip(image, folder, slot, position, value):
    """Flips a bit and repairs; returns the plan, and the files of log and queues that are not as before."""
    root = copy_store(image.root, folder / "store")
    damaged = Image(root, image.starts, image.sizes)
    damaged.flip(image.starts[slot] + position, value)
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    before, after = file_digest(image.root), file_digest(root)
    differing = [
        name
        for name in before
        if name.startswith(("commitlog/", "consumequeue/")) and before[name] != after[name]
    ]
    return plan, differing


def test_every_bit_of_a_record_with_record_crc_is_flipped_back(checked, memory_path: Path):
    size_bits = 8 * checked.sizes[20]
    for bit in range(0, size_bits, scaled(37, 1)):
        folder = memory_path / str(bit)
        folder.mkdir()
        plan, differing = after_flip(checked, folder, 20, bit // 8, 1 << bit % 8)
        assert [action.kind for action in plan.actions] == ["bit"], bit
        assert differing == [], bit


HEAD = {"size": range(4), "magic": range(4, 8), "body CRC": range(8, 12), "place": range(28, 36),
        "queue id": range(12, 16), "body length": range(84, 88), "body": range(88, 150, 9),
        "topic": range(151, 154)}  # fmt: skip


@pytest.mark.parametrize("name", HEAD)
def test_bits_that_a_checksum_or_the_queue_tells_are_flipped_back_without_record_crc(
    plain, memory_path: Path, name
):
    for position in HEAD[name]:
        for bit in range(0, 8, scaled(3, 1)):
            folder = memory_path / f"{position}-{bit}"
            folder.mkdir()
            plan, differing = after_flip(plain, folder, 20, position, 1 << bit)
            assert "bit" in {action.kind for action in plan.actions}, (position, bit)
            assert differing == [], (position, bit)


def without_units(root: Path, is_all_gone: bool) -> None:
    """Removes the queue, or only the unit of message 20."""
    if is_all_gone:
        shutil.rmtree(root / "consumequeue")
        return
    write_unit(root, 20, bytes(CQ_UNIT_BYTES))


def write_unit(root: Path, slot: int, unit: bytes | None = None) -> bytes:
    """Writes a unit of the queue, if one is given; returns the one that was there."""
    folder, size = root / "consumequeue" / "T" / "0", SMALL["queue_file_size_bytes"]
    start = slot * CQ_UNIT_BYTES
    file = folder / segment_file_name(start - start % size)
    units = bytearray(file.read_bytes())
    place = slice(start % size, start % size + CQ_UNIT_BYTES)
    before = bytes(units[place])
    if unit is not None:
        units[place] = unit
        file.write_bytes(units)
    return before


@pytest.mark.parametrize("is_all_gone", [False, True])
def test_a_bit_of_a_length_is_told_by_the_next_record_where_the_unit_is_gone(
    plain, memory_path: Path, is_all_gone
):
    for bit in range(0, 32, scaled(3, 1)):
        root = copy_store(plain.root, memory_path / f"store-{bit}")
        Image(root, plain.starts, plain.sizes).flip(plain.starts[20] + bit // 8, 1 << bit % 8)
        without_units(root, is_all_gone)
        sizes = FileSizes(queue_file_bytes=SMALL["queue_file_size_bytes"])
        plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True, sizes)
        assert sum(action.kind == "bit" for action in plan.actions) == 1, bit
        before, after = file_digest(plain.root), file_digest(root)
        names = [name for name in before if name.startswith(("commitlog/", "consumequeue/"))]
        assert [name for name in names if before[name] != after.get(name)] == [], bit


def test_a_length_is_not_believed_where_the_body_is_damaged_or_the_unit_leads_elsewhere(
    plain, memory_path: Path
):
    for way in ("body", "unit"):
        root = copy_store(plain.root, memory_path / way)
        image = Image(root, plain.starts, plain.sizes)
        image.flip(plain.starts[20] + 2, 1)
        if way == "body":
            without_units(root, is_all_gone=False)
            image.flip(plain.starts[20] + 100, 3)
        else:
            unit = write_unit(root, 20)
            place, size = plain.starts[20] + 16, plain.sizes[20] - 16
            write_unit(root, 20, place.to_bytes(8) + size.to_bytes(4) + unit[12:])
        plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
        assert not any(action.kind == "bit" for action in plan.actions), way


def test_a_bit_in_the_last_record_is_no_torn_write(plain, memory_path: Path):
    plan, differing = after_flip(plain, memory_path, COUNT - 1, 100, 4)
    assert [action.kind for action in plan.actions] == ["bit"]
    assert differing == []


def test_a_place_is_not_believed_without_the_queue(plain, memory_path: Path):
    root = copy_store(plain.root, memory_path / "store")
    image = Image(root, plain.starts, plain.sizes)
    # The record of another place, as swapped sectors leave it; its place differs in one bit or in more.
    image.write(image.starts[40], image.record(41).ljust(image.sizes[40], b"\0"))
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert "bit" not in {action.kind for action in plan.actions}
    assert {offset for action in plan.actions for one in action.lost for offset in one.offsets} == {40}


FRONT = {"magic": (4, 8), "place": (28, 36), "length and magic": (0, 8), "all three": (0, 8, 28, 36)}


@pytest.mark.parametrize("junk", [b"\0", b"\xde", b"\x7f"], ids=["zeros", "junk", "large"])
@pytest.mark.parametrize("name", FRONT)
@pytest.mark.parametrize("kind", ["plain", "checked"])
def test_a_head_that_was_written_over_is_written_again(kind, name, junk, memory_path: Path, request):
    image = request.getfixturevalue(kind)
    root = copy_store(image.root, memory_path / "store")
    damaged = Image(root, image.starts, image.sizes)
    for start, end in zip(FRONT[name][::2], FRONT[name][1::2], strict=True):
        damaged.write(image.starts[20] + start, junk * (end - start))
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert [action.kind for action in plan.actions] == ["head"]
    assert plan.actions[0].saved == 1
    before, after = file_digest(image.root), file_digest(root)
    assert {name: after[name] for name in before} == before


def test_a_head_is_not_written_again_over_a_body_that_is_damaged_too(plain, memory_path: Path):
    root = copy_store(plain.root, memory_path / "store")
    image = Image(root, plain.starts, plain.sizes)
    image.write(plain.starts[20] + 4, b"\xde\xad\xbe\xef")
    image.write(plain.starts[20] + 100, b"other")
    plan, _pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert "head" not in {action.kind for action in plan.actions}
    assert {offset for action in plan.actions for one in action.lost for offset in one.offsets} == {20}
