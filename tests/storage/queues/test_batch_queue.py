"""Batch queues are read, written and worked out from the log as RocketMQ has them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Unpack

import pytest

from seglog.errors import InvalidArgumentError, MessageIllegalError
from seglog.storage import lookups
from seglog.storage.files.files import RealFiles
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.record import properties as props
from seglog.storage.format.record.inner_batch import BatchMessage, encode_batch, iter_batch
from seglog.storage.format.record.sys_flag import INNER_BATCH, NEED_UNWRAP
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.material import golden
from tests.support.material.mixed import declare
from tests.support.material.stores import SMALL, OpenOptions, copy_store, new_clock

INNER = INNER_BATCH | NEED_UNWRAP
UNITS_PER_FILE = 10


@pytest.fixture
def root(tmp_path):
    return declare(tmp_path / "store", B={"queue.type": "BatchCQ"})


def open_store(root: Path, **options: Unpack[OpenOptions]) -> MessageStore:
    chosen: OpenOptions = {"clock": new_clock(), **SMALL, **options}
    return MessageStore.open(root, **chosen)


def put_inner(store, count, *, queue_id=0, tags=None, **options):
    body = encode_batch([BatchMessage(b"m%d" % number) for number in range(count)])
    raw = props.encode_properties({"KEYS": "k"} | ({"TAGS": tags} if tags else {}))
    return store.append("B", queue_id, body, raw, 0, sys_flag=INNER, **options)


def files_of(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in (root / "batchconsumequeue").rglob("*")
        if path.is_file()
    }


def ranges(store, start=0, **options):
    """Returns base and size of the records of one read."""
    found = store.get("B", 0, start, **options)
    return [
        (message.queue_offset, int(message.properties.get("INNER_NUM", "1"))) for message in found
    ], found.next_offset


@pytest.mark.parametrize("lost", ["nothing", "a file", "every file", "folder"])
@pytest.mark.parametrize("read_only", [True, False])
def test_queues_of_rocketmq_follow_from_the_log(tmp_path, lost, read_only):
    root = golden.extract("innerbatch", tmp_path)
    before = files_of(root)
    first = root / "batchconsumequeue" / "BCQTopic" / "1" / "0".zfill(20)
    if lost == "a file":
        first.write_bytes(first.read_bytes()[:500].ljust(2300, b"\0"))
    elif lost == "every file":
        for path in (root / "batchconsumequeue").rglob("*"):
            if path.is_file() and path != first:
                path.unlink()
        first.write_bytes(bytes(2300))
    elif lost == "folder":
        shutil.rmtree(root / "batchconsumequeue")
    with MessageStore.open(root, create=False, read_only=read_only) as store:
        served = {
            (queue.topic, queue.queue_id): (queue.min_offset, queue.max_offset, queue.max_phy_offset)
            for queue in store.queues()
        }
    wanted = {
        (line["topic"], line["queueId"]): (line["minOffset"], line["maxOffset"], line["cqMaxPhysicOffset"])
        for line in golden.expected("innerbatch")
        if line["kind"] == "queue"
    }
    assert served == wanted
    if not read_only and lost != "folder":
        assert files_of(root) == before
    if lost == "folder" and not read_only:
        rebuilt = files_of(root)
        assert rebuilt.keys() == before.keys()
        assert all(rebuilt[name].rstrip(b"\0") == before[name].rstrip(b"\0") for name in before)
    assert survey(root, RealFiles()).findings == [] or read_only


def test_inner_batch_gets_its_range_and_moves_the_queue_on(root):
    with open_store(root) as store:
        assert [put_inner(store, count).queue_offset for count in (3, 1, 5)] == [0, 3, 4]
        plain = store.put("B", b"plain", tags="T")
        assert (plain.queue_offset, store.max_offset("B", 0)) == (9, 10)
        batch = store.put_batch("B", [b"x", b"y"])
        assert (batch.queue_offset, store.max_offset("B", 0)) == (10, 12)
        found = store.get("B", 0, 0).messages
        assert [message.queue_offset for message in found] == [0, 3, 4, 9, 10, 11]
        assert found[0].properties == {"KEYS": "k", "INNER_NUM": "3", "INNER_BASE": "0"} | {
            name: value for name, value in found[0].properties.items() if name == "__CRC32#"
        }
        assert [bytes(each.body) for each in iter_batch(found[2].body)] == [b"m%d" % n for n in range(5)]
        assert found[3].properties.keys() <= {"TAGS", "__CRC32#"}
    assert not (root / "consumequeue").exists()
    assert survey(root, RealFiles()).findings == []


def test_the_bytes_of_a_range_are_those_of_the_records_that_begin_in_it(root, monkeypatch):
    monkeypatch.setattr(lookups, "_UNITS_AT_ONCE", 2)
    with open_store(root) as store:
        for count in (3, 1, 5, 2):
            put_inner(store, count)
        for length in (1, 30, 600):
            store.put("Plain", b"x" * length)
        for topic, ends in (("B", (0, 3, 4, 9, 11)), ("Plain", (0, 1, 2, 3))):
            found = store.get(topic, 0, 0).messages
            sizes = {message.queue_offset: message.size_bytes for message in found}
            for first in ends:
                for end in ends:
                    wanted = sum(size for offset, size in sizes.items() if first <= offset < end)
                    assert store.stored_bytes(topic, 0, first, end) == wanted, (topic, first, end)
        assert store.stored_bytes("Plain", 0, -7, 99) == store.stored_bytes("Plain", 0, 0, 3)
        assert store.stored_bytes("nothing", 0, 0, 3) == 0


def test_reads_begin_with_the_record_that_holds_the_offset(root):
    with open_store(root) as store:
        for count in (3, 1, 5, 2):
            put_inner(store, count)
        assert ranges(store, 0) == ([(0, 3), (3, 1), (4, 5), (9, 2)], 11)
        assert ranges(store, 2) == ([(0, 3), (3, 1), (4, 5), (9, 2)], 11)
        assert ranges(store, 6) == ([(4, 5), (9, 2)], 11)
        assert ranges(store, 0, max_count=4) == ([(0, 3), (3, 1)], 4)
        assert ranges(store, 0, max_count=1) == ([(0, 3)], 3)
        assert store.get("B", 0, 11).status is GetStatus.OFFSET_OVERFLOW_ONE
        assert store.get("B", 0, 12).status is GetStatus.OFFSET_OVERFLOW_BADLY
        assert store.get("B", 1, 0).status is GetStatus.NO_MESSAGE_IN_QUEUE


def test_filter_chooses_records_by_their_tag(root):
    with open_store(root) as store:
        for tags in ("a", "b", "a"):
            store.put("B", b"", tags=tags)
        assert ranges(store, 0, filter="b") == ([(1, 1)], 3)
        nothing = store.get("B", 0, 0, filter="c")
        assert (nothing.status, nothing.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, 3)


def test_queue_goes_over_many_files_and_is_found_again(root):
    with open_store(root) as store:
        sizes = [1 + number % 4 for number in range(3 * UNITS_PER_FILE + 1)]
        bases = [put_inner(store, size).queue_offset for size in sizes]
    assert len(files_of(root)) == 4
    for read_only in (True, False):
        with MessageStore.open(root, create=False, read_only=read_only) as store:
            assert store.max_offset("B", 0) == sum(sizes)
            for base, size in zip(bases, sizes, strict=True):
                for at in range(base, base + size):
                    assert ranges(store, at, max_count=1)[0] == [(base, size)]
            # A read ends with the file that it began in.
            assert len(ranges(store, 0, max_count=100)[0]) == UNITS_PER_FILE


def test_offset_by_time_is_that_of_a_record(root):
    clock = new_clock()
    with open_store(root, clock=clock) as store:
        stamps = []
        for _number in range(4):
            stamps.append(put_inner(store, 3).store_timestamp_ms)
            clock.advance(10)
        assert store.offset_by_time("B", 0, stamps[2]) == 6
        assert store.offset_by_time("B", 0, stamps[2] - 1) == 6
        assert store.offset_by_time("B", 0, stamps[2] - 1, "upper") == 3
        assert store.offset_by_time("B", 0, stamps[3] + 1) == 12
        assert store.offset_by_time("B", 0, 0, "upper") == 0


def test_reader_follows_a_writer(root):
    with open_store(root) as store:
        put_inner(store, 2)
        with MessageStore.open(root, read_only=True) as reader:
            put_inner(store, 3)
            put_inner(store, 1, queue_id=7)
            reader.refresh()
            assert ranges(reader) == ([(0, 2), (2, 3)], 5)
            assert reader.max_offset("B", 7) == 1
            assert reader.wait_for("B", 0, 4, 1000)


def test_killed_writer_loses_nothing(root, tmp_path):
    with open_store(root) as store:
        for number in range(25):
            put_inner(store, 1 + number % 3)
        copy = copy_store(root, tmp_path / "copy")
        shutil.rmtree(copy / "batchconsumequeue")
        wanted = ranges(store, 0)
    with MessageStore.open(copy, create=False) as store:
        assert ranges(store, 0, max_count=19) == wanted
        assert put_inner(store, 2).queue_offset == sum(1 + number % 3 for number in range(25))
    assert not (copy / "consumequeue").exists()


@pytest.mark.parametrize(
    ("topic", "raw", "sys_flag", "why"),
    [
        pytest.param("Plain", {}, INNER, "BatchCQ", id="flag on a plain topic"),
        pytest.param("B", {"INNER_NUM": "2"}, 0, "INNER_NUM", id="number without flag"),
        pytest.param("Plain", {"INNER_NUM": "2"}, 0, "INNER_NUM", id="number without flag, plain topic"),
        pytest.param("B", {"INNER_NUM": "x"}, INNER, "messages", id="no number"),
        pytest.param("B", {"INNER_NUM": "0"}, INNER, "messages", id="no messages"),
        pytest.param("B", {"INNER_NUM": "32768"}, INNER, "messages", id="too many"),
        pytest.param("B", {"INNER_NUM": "9" * 5000}, INNER, "messages", id="a number without end"),
        pytest.param("B", {}, INNER | 1, "INNER_NUM", id="compressed without number"),
        pytest.param("B", {}, INNER, "no inner batch", id="body that is none"),
    ],
)
def test_refuses(root, topic, raw, sys_flag, why):
    with open_store(root) as store:
        with pytest.raises(MessageIllegalError, match=why):
            store.append(topic, 0, b"body", props.encode_properties(raw), 0, sys_flag=sys_flag)
        assert (store.max_phy_offset, store.queues()) == (0, [])
        with pytest.raises(MessageIllegalError, match="one message"):
            store.append_batch("B", 0, [], sys_flag=INNER)


def test_topics_declared_while_the_store_is_open_count_once_they_are_loaded(tmp_path):
    with open_store(tmp_path / "store") as store:
        store.put("Old", b"")
        declare(tmp_path / "store", B={"queue.type": "BatchCQ"}, Old={"queue.type": "BatchCQ"})
        with pytest.raises(MessageIllegalError):
            put_inner(store, 2)
        store.reload_topics()
        assert put_inner(store, 2).queue_offset == 0
        assert store.put("Old", b"").queue_offset == 1
        assert (store.max_offset("B", 0), store.max_offset("Old", 0)) == (2, 2)
    assert survey(tmp_path / "store", RealFiles()).findings == []


def test_arrays_of_units_are_for_plain_queues(root):
    with open_store(root) as store:
        put_inner(store, 1)
        with pytest.raises(InvalidArgumentError, match="batch queue"):
            store.queue("B", 0)


def test_damaged_record_costs_its_messages_and_no_other(root):
    with open_store(root) as store:
        placed = [put_inner(store, 2) for _number in range(5)]
    log = next((root / "commitlog").iterdir())
    data = bytearray(log.read_bytes())
    data[placed[2].phy_offset + 95] ^= 0xFF
    log.write_bytes(data)
    with MessageStore.open(root, create=False) as store:
        assert ranges(store, 0) == ([(0, 2), (2, 2), (6, 2), (8, 2)], 10)
        lost = store.get("B", 0, 4, max_count=1)
        assert lost.next_offset == 8  # the unit of the lost record stays: its offsets are not given again
        assert put_inner(store, 1).queue_offset == 10
