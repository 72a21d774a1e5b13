"""Opening a store for writing gives up no message that a repair would have saved."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seglog.doctor.repair.repair import repair_store
from seglog.errors import NotFoundError
from seglog.storage.files.files import RealFiles
from seglog.storage.format.layout import I32, I64
from seglog.storage.format.record.record import HEAD_V4, HOST_BITS, SYS_FLAG_AT
from seglog.storage.format.record.sys_flag import INNER_BATCH, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK
from seglog.storage.small_files.attic import iter_kept
from seglog.storage.store import MessageStore
from tests.support.damage.images import Image, slots
from tests.support.material import golden
from tests.support.material.stores import SMALL, SMALL_INDEX, copy_store, new_clock, read_all, served

COUNT = 60
VICTIM = 20


def made(folder, *, record_crc, recovery_step_bytes=0):
    """Returns a store that was closed, and whose next open walks it all or from a recovery point."""
    with MessageStore.open(
        folder / "store",
        clock=new_clock(),
        record_crc=record_crc,
        recovery_step_bytes=recovery_step_bytes,
        **SMALL,
        **SMALL_INDEX,
    ) as store:
        for other in range(3):
            store.put("T", b"other", queue_id=other + 1)
        puts = [store.put("T", b"%d " % slot + bytes(range(60)), keys=f"k{slot}") for slot in range(COUNT)]
    return Image(folder / "store", [put.phy_offset for put in puts], [put.size_bytes for put in puts])


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "record CRC"])
def whole(request, module_folders):
    return made(module_folders.mktemp("whole"), record_crc=request.param)


@pytest.fixture
def image(whole, memory_path: Path):
    return Image(copy_store(whole.root, memory_path / "store"), whole.starts, whole.sizes)


DAMAGE = {
    "huge size": lambda i, at: i.write(at, b"\x7f\xff\xff\xff"),
    "size of 0": lambda i, at: i.write(at, bytes(4)),
    "magic": lambda i, at: i.write(at + 4, b"\xde\xad\xbe\xef"),
    "place": lambda i, at: i.write(at + 28, b"\x5a" * 8),
    "flip in the body": lambda i, at: i.flip(at + 100, 4),
    "flip in the body CRC": lambda i, at: i.flip(at + 9, 4),
    "flip in the queue id": lambda i, at: i.flip(at + HEAD_V4.offsets["queue_id"] + 3, 1),
    "negative queue id": lambda i, at: i.write(at + HEAD_V4.offsets["queue_id"], I32.pack(-7)),
    "negative queue offset": lambda i, at: i.write(at + HEAD_V4.offsets["queue_offset"], I64.pack(-7)),
    "flags of both hosts": lambda i, at: i.write(at + SYS_FLAG_AT, I32.pack(HOST_BITS)),
    "flip in the topic": lambda i, at: i.flip(at + HEAD_V4.size_bytes + 64, 1),
}


@pytest.mark.parametrize("slot", [VICTIM, COUNT - 1], ids=["in the middle", "the last"])
@pytest.mark.parametrize("name", DAMAGE)
def test_a_put_keeps_what_a_repair_would_have_saved(image, name, slot):
    DAMAGE[name](image, image.starts[slot])
    with MessageStore.open(image.root, clock=new_clock()) as store:
        assert [one.code for one in store.recovery.findings if one.messages] == ["record-mended"]
        store.put("U", b"hi")
        assert slots(store) == [*range(COUNT)]
        assert {(queue.topic, queue.queue_id) for queue in store.queues()} == {
            *(("T", number) for number in range(4)),
            ("U", 0),
        }
    plan, pack = repair_store(RealFiles(), image.root, new_clock(), lambda _plan: True)
    assert (plan.actions, pack) == ([], None)


@pytest.mark.parametrize("name", DAMAGE)
def test_a_reader_steps_over_what_is_repairable_and_does_not_call_it_lost(image, name):
    DAMAGE[name](image, image.starts[VICTIM])
    with MessageStore.open(image.root, read_only=True) as store:
        assert slots(store) == [slot for slot in range(COUNT) if slot != VICTIM]
        assert {queue.topic for queue in store.queues()} == {"T"}
        codes = [one.code for one in store.recovery.findings]
        over = store.get("T", 0, VICTIM, 1)
        assert (over.lost, over.repairable) == ((), (range(VICTIM, VICTIM + 1),))
        assert not store.query("T", f"k{VICTIM}")
        with pytest.raises(NotFoundError, match="proven"):
            store.message_at(image.starts[VICTIM])
    assert codes.count("record-repairable") == 1
    assert "log-hole" not in codes


@pytest.mark.parametrize("slot", [VICTIM, COUNT - 1], ids=["in the middle", "the last"])
@pytest.mark.parametrize("letter", [b"\xc3", b"e", b"\n"])
def test_a_topic_that_never_was_is_what_its_old_queue_says(slot, letter, memory_path: Path):
    (memory_path / "of").mkdir()
    image = made(memory_path / "of", record_crc=False)
    image.write(image.starts[slot] + HEAD_V4.size_bytes + 63 + (slot > 9), letter)
    with MessageStore.open(image.root, clock=new_clock()) as store:
        assert slots(store) == [*range(COUNT)]
        assert {queue.topic for queue in store.queues()} == {"T"}
        assert store.put("T", b"%d next" % COUNT).queue_offset == COUNT


@pytest.mark.parametrize("slot", [0, VICTIM, COUNT - 1], ids=["the first", "in the middle", "the last"])
@pytest.mark.parametrize("queue_id", [246, 3, 1 << 30 | 1])
def test_a_queue_id_of_several_wrong_bits_is_what_its_queue_says(slot, queue_id, memory_path: Path):
    (memory_path / "of").mkdir()
    image = made(memory_path / "of", record_crc=False)
    image.write(image.starts[slot] + HEAD_V4.offsets["queue_id"], I32.pack(queue_id))
    with MessageStore.open(image.root, read_only=True, clock=new_clock()) as store:
        assert [one.code for one in store.recovery.findings if one.messages] == ["record-repairable"]
        assert slots(store) == [other for other in range(COUNT) if other != slot]
    with MessageStore.open(image.root, clock=new_clock()) as store:
        assert slots(store) == [*range(COUNT)]
        assert {queue.queue_id for queue in store.queues()} == {0, 1, 2, 3}
        assert store.put("T", b"%d next" % COUNT).queue_offset == COUNT


FLAGS = {
    "prepared": TRANSACTION_PREPARED,
    "rolled back": TRANSACTION_ROLLBACK,
    "a batch": INNER_BATCH,
    "a prepared batch": INNER_BATCH | TRANSACTION_PREPARED,
    "all": -1,
}


@pytest.mark.parametrize("slot", [0, VICTIM, COUNT - 1], ids=["the first", "in the middle", "the last"])
@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_flags_that_would_take_a_record_out_of_its_queue_are_put_right(slot, flags, memory_path: Path):
    (memory_path / "of").mkdir()
    image = made(memory_path / "of", record_crc=False)
    image.write(image.starts[slot] + SYS_FLAG_AT, I32.pack(flags))
    with MessageStore.open(image.root, read_only=True, clock=new_clock()) as store:
        assert [one.code for one in store.recovery.findings if one.messages] == ["record-repairable"]
        assert slots(store) == [other for other in range(COUNT) if other != slot]
    with MessageStore.open(image.root, clock=new_clock()) as store:
        assert slots(store) == [*range(COUNT)]
        assert store.put("T", b"%d next" % COUNT).queue_offset == COUNT


def test_a_half_message_does_not_get_a_place_in_its_queue(memory_path: Path):
    root = memory_path / "store"
    with MessageStore.open(root, clock=new_clock(), record_crc=False, **SMALL) as store:
        half = store.append("T", 0, b"half", b"", 0, sys_flag=TRANSACTION_PREPARED)
        for number in range(9):
            store.put("T", b"%d" % number)
    queue_file = root / "consumequeue" / "T" / "0" / f"{0:020d}"
    data = bytearray(queue_file.read_bytes())
    data[:12] = I64.pack(half.phy_offset) + I32.pack(half.size_bytes)
    queue_file.write_bytes(data)
    log = (root / "commitlog" / f"{0:020d}").read_bytes()
    with MessageStore.open(root, clock=new_clock()) as store:
        assert [message.body for message in read_all(store, "T", 0)] == [b"%d" % at for at in range(9)]
    assert (root / "commitlog" / f"{0:020d}").read_bytes() == log


def test_a_record_in_a_queue_that_has_its_offset_already_is_put_back(memory_path: Path):
    root = memory_path / "store"
    with MessageStore.open(root, clock=new_clock(), record_crc=False, **SMALL) as store:
        puts = [store.put("T", b"%d" % number, queue_id=number % 2) for number in range(40)]
    image = Image(root, [put.phy_offset for put in puts], [put.size_bytes for put in puts])
    image.write(image.starts[-1] + HEAD_V4.offsets["queue_id"], I32.pack(0))
    with MessageStore.open(root, read_only=True, clock=new_clock()) as store:
        assert [one.code for one in store.recovery.findings] == ["record-repairable"]
        assert (store.max_offset("T", 0), store.max_offset("T", 1)) == (20, 20)
    with MessageStore.open(root, clock=new_clock()) as store:
        assert [one.code for one in store.recovery.findings] == ["record-mended"]
        assert [len(read_all(store, "T", queue_id)) for queue_id in (0, 1)] == [20, 20]
        assert store.put("T", b"next", queue_id=1).queue_offset == 20


@pytest.mark.parametrize("slot", [VICTIM, COUNT - 1], ids=["in the middle", "the last"])
def test_a_record_that_lost_its_last_byte_with_the_end_of_its_file_is_whole_from_the_first_opening_on(
    slot, memory_path: Path
):
    image = made(memory_path, record_crc=True)
    last = image.starts[slot] + image.sizes[slot] - 1
    position = last % SMALL["segment_size_bytes"]
    os.truncate(image.root / "commitlog" / f"{last - position:020d}", position)
    given = []
    for _ in range(2):
        with MessageStore.open(image.root, clock=new_clock(), **SMALL) as store:
            given.append(served(store))
            assert slot in slots(store)
    assert given[0] == given[1]


def test_what_a_mend_wrote_over_is_in_the_attic(image):
    image.write(image.starts[VICTIM] + 4, b"\xde\xad\xbe\xef")
    MessageStore.open(image.root, clock=new_clock()).close()
    assert [(kept.data, kept.attic_file) for kept in iter_kept(RealFiles(), image.root)] == [
        (b"\xde\xad\xbe\xef", "seglog/attic/0000000001.kept")
    ]


def test_each_opening_keeps_under_a_generation_of_its_own(image):
    for slot in (COUNT - 3, COUNT - 2):
        image.rot(image.starts[slot] + 100)
        MessageStore.open(image.root, clock=new_clock()).close()
    generations = sorted({kept.attic_file for kept in iter_kept(RealFiles(), image.root)})
    assert [name.rpartition("/")[2] for name in generations] == ["0000000001.kept", "0000000002.kept"]


@pytest.mark.parametrize("name", DAMAGE)
def test_the_part_behind_a_recovery_point_is_mended_too(name, memory_path: Path):
    (memory_path / "of").mkdir()
    image = made(memory_path / "of", record_crc=False, recovery_step_bytes=4096)
    with MessageStore.open(
        image.root, clock=new_clock(), record_crc=False, recovery_step_bytes=1 << 30
    ) as store:
        puts = [store.put("T", b"%d " % slot + bytes(60)) for slot in range(COUNT, COUNT + 9)]
        copy = copy_store(image.root, memory_path / "killed")
    damaged = Image(copy, [put.phy_offset for put in puts], [put.size_bytes for put in puts])
    DAMAGE[name](damaged, damaged.starts[4])
    with MessageStore.open(copy, clock=new_clock(), recovery_step_bytes=1 << 30) as store:
        # An offset that cannot be puts the point in doubt.
        assert store.recovery.walked_from == (0 if name == "flip in the queue id" else image.end)
        assert slots(store) == [*range(COUNT + 9)]


@pytest.mark.parametrize("name", ["d-magic", "d-bodyflip-first", "d-bodyflip-last", "d-bodyflip-first-halt"])
def test_golden_stores_lose_nothing_by_an_opening(name, tmp_path):
    root = golden.extract(name, tmp_path)
    intact = golden.shared("roll-halt" if name.endswith("-halt") else "roll")
    with MessageStore.open(intact, read_only=True) as store:
        wanted = served(store)
    with MessageStore.open(root, create=False) as store:
        store.put("BrandNew", b"hi")
    with MessageStore.open(root, read_only=True) as store:
        assert read_all(store, "BrandNew", 0)[0].body == b"hi"
        found = {key: messages for key, messages in served(store).items() if key[0] != "BrandNew"}
    assert found == wanted
