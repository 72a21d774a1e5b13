"""Filters see through addresses in ConsumeQueueExt, whether its files can be read or not."""

from __future__ import annotations

import shutil

import pytest

from seglog.storage.files.files import RealFiles
from seglog.storage.format.names import SCHEDULE_TOPIC
from seglog.storage.format.queue.consume_queue_ext import ExtUnit, is_ext_address
from seglog.storage.format.record.tags import tags_code
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.material import golden
from tests.support.material.ext_units import pack_ext_files
from tests.support.material.stores import SMALL, new_clock, read_all

EXT_FILE_BYTES = 200
TAGS = ("TagA", "Aa", None, "BB")


@pytest.fixture
def root(tmp_path):
    """A store whose queue has addresses for tags codes, as a broker with ConsumeQueueExt leaves it."""
    with MessageStore.open(tmp_path, clock=new_clock(), **SMALL) as store:
        for number in range(40):
            store.put("T", b"%d" % number, tags=TAGS[number % 4])
    units = [ExtUnit(tags_code(TAGS[number % 4]), 1, bytes(number % 3)) for number in range(40)]
    files, addresses = pack_ext_files(units, EXT_FILE_BYTES)
    folder = tmp_path / "consumequeue_ext" / "T" / "0"
    folder.mkdir(parents=True)
    for index, file in enumerate(files):
        (folder / f"{index * EXT_FILE_BYTES:020d}").write_bytes(file)
    for path in sorted((tmp_path / "consumequeue" / "T" / "0").iterdir()):
        data = bytearray(path.read_bytes())
        for unit in range(len(data) // 20):
            index = int(path.name) // 20 + unit
            if index < len(addresses):
                data[unit * 20 + 12 : unit * 20 + 20] = addresses[index].to_bytes(8, "big", signed=True)
        path.write_bytes(data)
    return tmp_path


def addresses(root):
    (state,) = survey(root, RealFiles()).queues.values()
    return [is_ext_address(code) for code in state.units["tags_code"].tolist()]


@pytest.mark.parametrize("ext", ["whole", "missing", "one file missing", "damaged", "short"])
@pytest.mark.parametrize("read_only", [True, False])
def test_filter_finds_the_same_messages(root, ext, read_only):
    files = sorted((root / "consumequeue_ext" / "T" / "0").iterdir())
    if ext == "missing":
        shutil.rmtree(root / "consumequeue_ext")
    elif ext == "one file missing":
        files[1].unlink()
    elif ext == "damaged":
        files[1].write_bytes(b"\x80" * EXT_FILE_BYTES)
    elif ext == "short":
        files[-1].write_bytes(files[-1].read_bytes()[:30])
    assert all(addresses(root))
    with MessageStore.open(root, create=False, read_only=read_only) as store:
        for wanted in ("TagA", "Aa || BB", "none"):
            tags = set(wanted.split(" || "))
            found = [int(message.body) for message in read_all(store, "T", 0, wanted)]
            assert found == [number for number in range(40) if TAGS[number % 4] in tags]
    assert all(addresses(root))


def test_rebuilt_queue_has_plain_tags(root):
    for path in (root / "consumequeue" / "T" / "0").iterdir():
        path.unlink()
    with MessageStore.open(root, create=False) as store:
        assert len(read_all(store, "T", 0, "TagA")) == 10
    (state,) = survey(root, RealFiles()).queues.values()
    assert state.units["tags_code"].tolist() == [tags_code(TAGS[number % 4]) for number in range(40)]


@pytest.mark.parametrize("name", ["real-conf", "real-conf-5.4.0"])
def test_filtered_reads_of_a_real_broker_store_are_right(name):
    root = golden.shared(name)
    store_root = next(path.parent for path in root.rglob("commitlog"))
    found = survey(store_root, RealFiles())
    assert any(is_ext_address(code) for s in found.queues.values() for code in s.units["tags_code"].tolist())
    with MessageStore.open(store_root, read_only=True) as store:
        for queue in store.queues():
            messages = read_all(store, queue.topic, queue.queue_id)
            if queue.topic == SCHEDULE_TOPIC:
                continue  # its codes are times of delivery, for any tags
            for tag in {message.tags for message in messages} - {None}:
                chosen = [m.queue_offset for m in read_all(store, queue.topic, queue.queue_id, tag)]
                assert chosen == [m.queue_offset for m in messages if m.tags == tag]
