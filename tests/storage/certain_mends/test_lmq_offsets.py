"""An offset that a record has in a further queue comes back where the queue's other records prove it."""

from __future__ import annotations

import pytest

from seglog.doctor.check.check import check_store
from seglog.doctor.repair.repair import repair_store
from seglog.doctor.undo.undo import undo_repair
from seglog.storage.files.files import RealFiles
from seglog.storage.store import MessageStore
from tests.support.material.golden import tree_digest
from tests.support.material.stores import SMALL_INDEX, copy_store, new_clock

NAME = b"INNER_MULTI_QUEUE_OFFSET\x01"
LOG = f"commitlog/{0:020d}"


@pytest.fixture(scope="module")
def whole(module_folders):
    root = module_folders.mktemp("whole") / "store"
    with MessageStore.open(
        root,
        record_crc=False,
        segment_size_bytes=1 << 16,
        queue_file_size_bytes=400,
        clock=new_clock(),
        **SMALL_INDEX,
    ) as store:
        for number in range(12):
            store.put("P", b"body %d" % number, properties={"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b"})
    return root


def damaged(whole, root, number, change):
    """Changes what one record says of its offsets in both queues."""
    copy_store(whole, root)
    content = (root / LOG).read_bytes()
    places, at = [], 0
    while (at := content.find(NAME, at)) >= 0:
        at += len(NAME)
        places.append(at)
    start = places[number]
    end = content.index(b"\x02", start) + 1
    made = change(content[start:end])
    assert len(made) == end - start
    assert made != content[start:end]
    (root / LOG).write_bytes(content[:start] + made + content[end:])
    return root


def served(root):
    with MessageStore.open(root, read_only=True) as store:
        return {
            (topic, one.queue_offset): (one.body, one.properties)
            for topic in ("P", "%LMQ%a", "%LMQ%b")
            for one in store.get(topic, 0, 0, max_count=32).messages
        }


def repaired(root):
    plan, pack = repair_store(RealFiles(), root, new_clock(), lambda _plan: True)
    assert plan.left == []
    return pack


def opened(root):
    MessageStore.open(root, clock=new_clock()).close()


DAMAGES = {
    "one bit of a digit": (3, lambda offsets: offsets.replace(b"3,", b"7,")),
    "a digit": (3, lambda offsets: offsets.replace(b"3,", b"8,")),
    "both digits": (3, lambda offsets: offsets.replace(b"3,3", b"7,9")),
    "the separator behind": (3, lambda offsets: offsets.replace(b"\x02", b"6")),
    "of the first record": (0, lambda offsets: offsets.replace(b"0,", b"4,")),
    "of two digits": (10, lambda offsets: offsets.replace(b"10,", b"90,")),
}


@pytest.mark.parametrize("mended_by", [opened, repaired])
@pytest.mark.parametrize("name", DAMAGES)
def test_an_offset_comes_back(name, mended_by, whole, tmp_path):
    root = damaged(whole, tmp_path / "store", *DAMAGES[name])
    assert {"record-queue-offset"} <= {one.code for one in check_store(root, clock=new_clock()).findings}
    mended_by(root)
    assert (root / LOG).read_bytes() == (whole / LOG).read_bytes()
    assert served(root) == served(whole)
    assert check_store(root, clock=new_clock()).is_clean


@pytest.mark.parametrize("name", DAMAGES)
def test_a_reader_serves_nothing_otherwise_than_a_repair(name, whole, tmp_path):
    root = damaged(whole, tmp_path / "store", *DAMAGES[name])
    before = tree_digest(root)
    right = served(whole)
    assert {key: one for key, one in served(root).items() if right[key] != one} == {}
    with MessageStore.open(root, read_only=True) as store:
        named = store.get("P", 0, 0, max_count=32).repairable
    assert [offset for span in named for offset in span] == [DAMAGES[name][0]]
    repaired(root)
    undo_repair(RealFiles(), root)
    assert tree_digest(root) == before


@pytest.mark.parametrize("mended_by", [opened, repaired])
def test_a_wrong_queue_file_changes_no_record(whole, mended_by, tmp_path):
    root = copy_store(whole, tmp_path / "store")
    queue = root / "consumequeue" / "%LMQ%a" / "0" / f"{0:020d}"
    units = queue.read_bytes()
    queue.write_bytes(units[20:40] + units[:20] + units[60:80] + units[40:60] + units[80:])
    mended_by(root)
    assert (root / LOG).read_bytes() == (whole / LOG).read_bytes()
    assert served(root) == served(whole)
