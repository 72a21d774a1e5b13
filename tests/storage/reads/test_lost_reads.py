"""Reads step over what was lost, say which offsets that were, and always make progress."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seglog.errors import InvalidArgumentError
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.tombstone import LOST_FLAG
from seglog.storage.store import MessageStore
from tests.support.damage.images import Image
from tests.support.material.stores import (
    SEGMENT_BYTES,
    SMALL,
    SMALL_INDEX,
    UNITS_PER_FILE,
    AllLengths,
    copy_store,
    new_clock,
    read_all,
)

COUNT = 30


@pytest.fixture(scope="module")
def original(module_folders):
    """A store of which messages 4, 5 and 7 lie in holes, and 20 to 29 behind the end of the log."""
    folder = module_folders.mktemp("original")
    with MessageStore.open(folder / "store", clock=new_clock(), **SMALL) as store:
        puts = [
            store.put("T", b"%d " % slot + bytes(60), tags="A" if slot % 2 else "B") for slot in range(COUNT)
        ]
        root = copy_store(store.path, folder / "killed")
    image = Image(root, [put.phy_offset for put in puts], [put.size_bytes for put in puts])
    for slot in (4, 5, 7):
        image.rot(image.starts[slot] + 90)
    path = image.segment(image.starts[20])
    path.write_bytes(path.read_bytes()[: image.starts[20] % SEGMENT_BYTES].ljust(SEGMENT_BYTES, b"\0"))
    for later in path.parent.iterdir():
        if int(later.name) > image.starts[20]:
            later.unlink()
    return root


@pytest.fixture(params=["read only", "recovered", "recovered, queues made again"])
def store(request, original, memory_path: Path):
    root = copy_store(original, memory_path / "store")
    if request.param.endswith("again"):
        MessageStore.open(root, clock=new_clock()).close()
        shutil.rmtree(root / "consumequeue")
    with MessageStore.open(root, read_only=request.param == "read only", clock=new_clock()) as store:
        yield store


READS = {
    "over two holes": ((0, 8), GetStatus.FOUND, [0, 1, 2, 3, 6], 8, [(4, 6), (7, 8)]),
    "up to a hole": ((0, 4), GetStatus.FOUND, [0, 1, 2, 3], 4, []),
    "nothing but a hole": ((4, 2), GetStatus.MESSAGE_WAS_REMOVING, [], 6, [(4, 6)]),
    "from a hole on": ((5, 5), GetStatus.FOUND, [6, 8, 9], 10, [(5, 6), (7, 8)]),
    "the lost tail": ((20, 32), GetStatus.MESSAGE_WAS_REMOVING, [], 30, [(20, 30)]),
    "behind the lost tail": ((30, 32), GetStatus.OFFSET_OVERFLOW_ONE, [], 30, []),
}


@pytest.mark.parametrize(("asked", "status", "slots", "next_offset", "lost"), READS.values(), ids=READS)
def test_read_says_what_it_stepped_over(store, asked, status, slots, next_offset, lost):
    assert UNITS_PER_FILE == 10
    result = store.get("T", 0, *asked)
    assert (result.status, result.next_offset) == (status, next_offset)
    assert [message.queue_offset for message in result] == slots
    assert result.lost == tuple(range(*ends) for ends in lost)


def test_filtered_read_tells_of_what_may_have_matched(store):
    result = store.get("T", 0, 0, 32, "A")
    # How far one read goes depends on the length of queue files, which only queue files tell.
    assert [message.queue_offset for message in result][:3] == [1, 3, 9]
    lost = {offset for stretch in result.lost for offset in stretch if offset < 10}
    assert {5, 7} <= lost <= {4, 5, 7}
    tail = store.get("T", 0, 20, 32, "A")
    assert (tail.status, tail.next_offset) == (GetStatus.MESSAGE_WAS_REMOVING, 30)


def test_consumer_that_goes_on_where_it_is_told_gets_everything_and_ends(store):
    found = [message.queue_offset for message in read_all(store, "T", 0)]
    assert found == [slot for slot in range(20) if slot not in (4, 5, 7)]
    assert store.max_offset("T", 0) == COUNT


@pytest.mark.parametrize("body", [b"payload", b"\0\0\0x", bytes(40), b""])
def test_message_of_an_application_with_the_flag_of_tombstones_is_served(memory_path: Path, body):
    with MessageStore.open(memory_path / "store", clock=new_clock(), **SMALL) as store:
        for tags in (None, "SEGLOG_LOST"):
            store.put("T", body, flag=LOST_FLAG, tags=tags)
        assert [message.body for message in store.get("T", 0, 0)] == [body, body]
        assert store.get("T", 0, 0, filter="SEGLOG_LOST").messages[0].queue_offset == 1
        assert store.get("T", 0, 0).lost == ()
        assert store.queue("T", 0).columns(["is_message"])["is_message"].all()
        assert store.message_at(store.get("T", 0, 0).messages[0].phy_offset).body == body
        root = store.path
    with MessageStore.open(root, clock=new_clock()) as again:
        assert [message.body for message in again.get("T", 0, 0)] == [body, body]
        assert again.get("T", 0, 0).lost == ()


def test_message_that_a_tombstone_could_be_is_refused(memory_path: Path):
    nowhere = Host(b"\x7f\0\0\1", 0)
    with MessageStore.open(memory_path / "store", clock=new_clock(), **SMALL) as store:
        with pytest.raises(InvalidArgumentError, match="store_host"):
            store.append("T", 0, bytes(4), b"", 0, flag=LOST_FLAG, store_host=nowhere)
        store.append("T", 0, b"text", b"", 0, flag=LOST_FLAG, store_host=nowhere)
        assert [message.body for message in store.get("T", 0, 0)] == [b"text"]


@pytest.mark.parametrize("count", [1, 7, 32])
def test_what_was_lost_stays_so_beside_what_is_put_behind_it(original, memory_path: Path, count):
    """Reads do not look at the heads of what the store itself appended."""
    with MessageStore.open(copy_store(original, memory_path / "store"), clock=new_clock()) as store:
        for number in range(14):
            store.put("T", b"new %d" % number, flag=LOST_FLAG if number % 3 == 0 else 0)
        for _ in range(2):
            found, lost, at = [], [], 0
            while at < COUNT + 14:
                result = store.get("T", 0, at, count)
                found += [message.queue_offset for message in result]
                lost += [slot for stretch in result.lost for slot in stretch]
                at = result.next_offset
            assert lost == [4, 5, 7, *range(20, 30)]
            assert sorted(found + lost) == list(range(COUNT + 14))
        assert store.get("T", 0, COUNT).messages[0].body == b"new 0"


DUE, EXT_ADDRESS = 1_900_000_000_000, -(1 << 62)


@pytest.mark.parametrize("code", [DUE, EXT_ADDRESS])
def test_tombstones_are_not_served_where_a_broker_set_the_codes_of_the_units(memory_path: Path, code):
    count, lost = 700, range(640, 644)
    sizes: AllLengths = {"segment_size_bytes": 1 << 20, "queue_file_size_bytes": 20_000, **SMALL_INDEX}
    with MessageStore.open(memory_path / "store", clock=new_clock(), **sizes) as store:
        puts = [store.put("T", b"%d " % slot + bytes(60)) for slot in range(count)]
        root = copy_store(store.path, memory_path / "killed")
    log = root / "commitlog" / f"{0:020d}"
    with log.open("r+b") as file:
        for slot in lost:
            file.seek(puts[slot].phy_offset + 90)
            file.write(b"rot")
    with MessageStore.open(root, clock=new_clock()) as store:
        assert store.get("T", 0, lost.start).lost == (lost,)
        # A unit of before, as a copy of the queue file brings it back while the store is open.
        with (root / "consumequeue" / "T" / "0" / f"{0:020d}").open("r+b") as file:
            for slot in range(count):
                file.seek(slot * 20 + 12)
                file.write(code.to_bytes(8, "big", signed=True))
        store.flush()
        served = [message.queue_offset for message in read_all(store, "T", 0)]
        assert served == [slot for slot in range(count) if slot not in lost]
        assert [store.get("T", 0, slot, 1).lost for slot in lost] == [(range(s, s + 1),) for s in lost]
        assert store.get("T", 0, lost.start, 32).lost == (lost,)
