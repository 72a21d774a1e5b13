"""Messages lost with the log's end: their offsets stay taken, in every queue, after any opening."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from seglog.errors import NotFoundError
from seglog.storage.files.files import RealFiles
from seglog.storage.findings.code import Severity
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from seglog.storage.format.record.tombstone import LOST_TAGS_CODE, min_filler_bytes
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.audits import audit_as_survey
from tests.support.damage.images import Image, in_segment, shorten, slots
from tests.support.material import golden
from tests.support.material.golden import tree_digest
from tests.support.material.stores import (
    QUEUE_FILE_BYTES,
    SEGMENT_BYTES,
    SMALL,
    as_written,
    copy_store,
    fill,
    new_clock,
    read_all,
    served,
)

COUNT = 100


@pytest.fixture(scope="module", params=[True, False], ids=["crc", "no crc"])
def original(request, module_folders):
    folder = module_folders.mktemp("original")
    with MessageStore.open(folder / "store", clock=new_clock(), record_crc=request.param, **SMALL) as store:
        puts = [store.put("T", b"%d " % slot + bytes(range(60)), tags="A") for slot in range(COUNT)]
        root = copy_store(store.path, folder / "killed")
    return Image(root, [put.phy_offset for put in puts], [put.size_bytes for put in puts])


@pytest.fixture
def image(original, memory_path: Path):
    return Image(copy_store(original.root, memory_path / "store"), original.starts, original.sizes)


def zero_from(image: Image, slot: int) -> int:
    """Zeroes the log from a record on and removes later files; returns the first slot that is lost."""
    path = image.segment(image.starts[slot])
    data = path.read_bytes()[: image.starts[slot] % SEGMENT_BYTES]
    path.write_bytes(data.ljust(SEGMENT_BYTES, b"\0"))
    remove_behind(image, image.starts[slot])
    return slot


def remove_behind(image: Image, phy_offset: int) -> None:
    for path in image.segment(0).parent.iterdir():
        if int(path.name) > phy_offset:
            path.unlink()


def cut_within(image: Image, slot: int) -> int:
    shorten(image.segment(image.starts[slot]), image.starts[slot] % SEGMENT_BYTES + 40)
    remove_behind(image, image.starts[slot])
    return slot


def drop_last_files(image: Image, count: int) -> int:
    paths = sorted(image.segment(0).parent.iterdir())[-count:]
    for path in paths:
        path.unlink()
    return in_segment(image, int(paths[0].name) // SEGMENT_BYTES)[0]


def empty_last_file(image: Image) -> int:
    image.segment(image.end).write_bytes(b"")
    return in_segment(image, image.end // SEGMENT_BYTES)[0]


def garbage_tail(image: Image) -> int:
    for slot in (95, 96, 97, 98, 99):
        image.write(image.starts[slot], os.urandom(image.sizes[slot]))
    return 95


# name: damages the image and returns the first slot that is lost
TAILS = {
    "last record zeroed": lambda i: zero_from(i, 99),
    "three records zeroed": lambda i: zero_from(i, 97),
    "last record torn": lambda i: cut_within(i, 99),
    "tail of garbage": garbage_tail,
    "zeroed from the second-last file on": lambda i: zero_from(i, in_segment(i, 3)[5]),
    "cut in the second-last file": lambda i: cut_within(i, in_segment(i, 3)[5]),
    "last file lost": lambda i: drop_last_files(i, 1),
    "last three files lost": lambda i: drop_last_files(i, 3),
    "last file of no length": empty_last_file,
}  # fmt: skip


@pytest.mark.parametrize("damage", TAILS.values(), ids=TAILS)
def test_offsets_of_a_lost_tail_are_told_and_never_given_again(image, damage):
    first = damage(image)
    before = tree_digest(image.root)
    with MessageStore.open(image.root, read_only=True) as reader:
        assert slots(reader) == list(range(first))
        assert reader.max_offset("T", 0) == COUNT
        end = reader.get("T", 0, first)
        assert end.status is GetStatus.MESSAGE_WAS_REMOVING
        assert end.lost[0].start == first
    found = survey(image.root, RealFiles())
    (finding,) = [finding for finding in found.findings if finding.code == "messages-lost"]
    assert finding.severity is Severity.LOSS
    assert finding.messages == COUNT - first
    assert finding.expected == f"queue offsets {first}..99 of T/0"
    assert finding.file == f"commitlog/{image.segment(image.starts[first]).name}"
    assert finding.position_bytes == image.starts[first] % SEGMENT_BYTES
    assert tree_digest(image.root) == before

    with MessageStore.open(image.root, clock=new_clock()) as store:
        assert slots(store) == list(range(first))
        assert store.max_phy_offset == image.end
        put = store.put("T", b"100 next")
        assert put.queue_offset == COUNT
        assert put.phy_offset in {image.end, image.end - image.end % SEGMENT_BYTES + SEGMENT_BYTES}
        for slot in range(first, COUNT):
            result = store.get("T", 0, slot, 1)
            assert result.lost == (range(slot, slot + 1),)
            assert result.status is GetStatus.MESSAGE_WAS_REMOVING
            assert result.next_offset == slot + 1
        view = store.queue("T", 0)
        assert view.columns(["is_message"])["is_message"].tolist() == [True] * first + [False] * (
            COUNT - first
        ) + [True]
        assert len(view.bodies()[first]) == 0
        assert set(view.units(first, COUNT - first)["tags_code"].tolist()) <= {0, LOST_TAGS_CODE}
        del view

    assert [f.code for f in survey(image.root, RealFiles()).findings] == ["tombstones"]
    shutil.rmtree(image.root / "consumequeue")
    with MessageStore.open(image.root, clock=new_clock()) as again:
        assert slots(again) == [*range(first), COUNT]
        assert again.max_offset("T", 0) == COUNT + 1
        assert again.recovery.cut_bytes == 0


def test_reader_beside_the_recovering_writer_keeps_to_what_is_there(image):
    first = zero_from(image, 90)
    with MessageStore.open(image.root, read_only=True) as reader:
        assert slots(reader) == list(range(first))
        with MessageStore.open(image.root, clock=new_clock()) as store:
            store.put("T", b"100 next")
            reader.refresh()
            assert slots(reader) == [*range(first), COUNT]
            assert reader.get("T", 0, first).lost == (range(first, COUNT),)


def units_of(path):
    return np.frombuffer(path.read_bytes(), CQ_UNIT.dtype).copy()


def change_unit(image: Image, slot: int, **fields: int) -> None:
    path = image.queue_file(slot * 20 // QUEUE_FILE_BYTES)
    units = units_of(path)
    for name, value in fields.items():
        units[name][slot % (QUEUE_FILE_BYTES // 20)] = value
    path.write_bytes(units.tobytes())


# name: change to the unit of slot 97 when 95 and all behind are lost
GARBAGE = {
    "place before the one before": {"phy_offset": 0},
    "place far away": {"phy_offset": 1 << 50},
    "place over the end of a file": {"phy_offset": 5 * SEGMENT_BYTES - 50},
    "no place": {"phy_offset": -5},
    "size of nothing": {"size_bytes": 0},
    "size below any record": {"size_bytes": 90},
    "size of a gigabyte": {"size_bytes": 1 << 30},
    "pre-blank": {"phy_offset": 0, "size_bytes": 0x7FFFFFFF},
}


@pytest.mark.parametrize("change", GARBAGE.values(), ids=GARBAGE)
def test_garbage_behind_the_end_never_counts(image, change):
    zero_from(image, 95)
    change_unit(image, 97, **change)
    with MessageStore.open(image.root, clock=new_clock()) as store:
        assert slots(store) == list(range(95))
        assert store.max_offset("T", 0) <= 97
        assert store.max_phy_offset <= image.starts[97]
    assert sum(path.stat().st_size for path in (image.root / "commitlog").iterdir()) <= 6 * SEGMENT_BYTES


@pytest.mark.parametrize("number", [6, 7, 1000])
def test_unit_far_behind_the_last_file_makes_no_files(image, number):
    zero_from(image, 95)
    change_unit(image, 95, phy_offset=number * SEGMENT_BYTES)
    with MessageStore.open(image.root, clock=new_clock()) as store:
        assert store.max_offset("T", 0) == 95
    assert len(list((image.root / "commitlog").iterdir())) == image.end // SEGMENT_BYTES + 1


def stale_record(image: Image, slot: int, at: int) -> None:
    """Leaves a whole record of an older life where the unit of a slot leads."""
    image.write(at, image.stale(at, 1000, slot).ljust(image.sizes[slot], b"\0"))


def test_units_of_an_older_life_do_not_count(image):
    """RocketMQ cut log and queue at 90 and left what was behind; a new message took offset 90."""
    head = image.segment(image.starts[90]).read_bytes()[: image.starts[90] % SEGMENT_BYTES]
    image.segment(image.starts[90]).write_bytes(head.ljust(SEGMENT_BYTES, b"\0"))
    stale_record(image, 97, image.starts[97])
    with MessageStore.open(image.root, clock=new_clock()) as store:
        assert slots(store) == list(range(90))
        assert store.max_offset("T", 0) == 90
        assert store.recovery.cut_bytes > 0


def test_units_that_lead_before_the_end_make_all_behind_them_old(image):
    zero_from(image, 95)
    change_unit(image, 99, phy_offset=image.starts[3])
    found = survey(image.root, RealFiles())
    assert found.queues["T", 0].max_offset == 95
    assert "messages-lost" not in {finding.code for finding in found.findings}
    assert "queue-unit-stray" in {finding.code for finding in found.findings}


def test_all_queues_and_what_lay_between_them_are_taken_together(memory_path: Path):
    root = memory_path / "store"
    with MessageStore.open(root, clock=new_clock(), **SMALL) as store:
        written = fill(store, 40, topics=3, queues=2)
        cut = store.max_phy_offset
        lost = fill(store, 20, topics=3, queues=2)
        half = store.append("Topic0", 0, b"half" * 9, b"", 0, sys_flag=0x4)
        tail = fill(store, 6, topics=3, queues=2)
        ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in store.queues()}
        end = store.max_phy_offset
        killed = copy_store(root, memory_path / "killed")
    for path in (killed / "commitlog").iterdir():
        first = int(path.name)
        if first + SEGMENT_BYTES > cut:
            kept = path.read_bytes()[: max(0, cut - first)]
            path.write_bytes(kept.ljust(SEGMENT_BYTES, b"\0"))
    with MessageStore.open(killed, clock=new_clock()) as store:
        assert as_written(served(store)) == set(written)
        assert {(queue.topic, queue.queue_id): queue.max_offset for queue in store.queues()} == ends
        assert store.max_phy_offset == end
        with pytest.raises(NotFoundError, match="was lost"):
            store.message_at(half.phy_offset)
        lost_offsets = {
            (topic, queue_id, offset)
            for topic, queue_id in ends
            for stretch in store.get(topic, queue_id, 0, 100).lost
            for offset in stretch
        }
    assert {(w.topic, w.queue_id, w.queue_offset) for w in lost + tail} >= lost_offsets


def test_a_small_gap_before_a_lost_record_is_told_alike_by_survey_and_audit(memory_path: Path):
    """Nothing of the log is left that says whether it had record CRCs: fillers with them are longer."""
    with MessageStore.open(memory_path / "s", clock=new_clock(), record_crc=False, **SMALL) as store:
        half = store.append("T", 0, b"", b"", 0, sys_flag=0x4)
        put = store.put("T", b"body", tags="A")
        root = copy_store(store.path, memory_path / "killed")
    gap = range(min_filler_bytes(record_crc=False), min_filler_bytes(record_crc=True))
    assert half.phy_offset == 0
    assert put.phy_offset in gap
    for path in (root / "commitlog").iterdir():
        path.write_bytes(bytes(SEGMENT_BYTES))
    report = audit_as_survey(root, SEGMENT_BYTES)
    (lost,) = (one for one in report.findings if one.code == "messages-lost")
    assert lost.expected == "queue offsets 0..0 of T/0"
    with MessageStore.open(root, clock=new_clock()) as store:
        assert store.max_phy_offset == put.phy_offset + put.size_bytes
        assert store.put("T", b"next").queue_offset == 1


def lmq_store(root):
    properties = {"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b"}
    with MessageStore.open(root / "store", clock=new_clock(), **SMALL) as store:
        starts = [
            store.put("T", b"%d" % slot, properties=properties if slot % 2 else None).phy_offset
            for slot in range(8)
        ]
        return copy_store(store.path, root / "killed"), starts


def test_further_queues_keep_their_offsets_too(memory_path: Path):
    root, starts = lmq_store(memory_path)
    path = root / "commitlog" / f"{0:020d}"
    path.write_bytes(path.read_bytes()[: starts[4]].ljust(SEGMENT_BYTES, b"\0"))
    for _ in range(2):
        with MessageStore.open(root, clock=new_clock()) as store:
            assert store.max_offset("T", 0) == 8
            for name in ("%LMQ%a", "%LMQ%b"):
                assert store.max_offset(name, 0) == 4
                assert [message.body for message in read_all(store, name, 0)] == [b"1", b"3"]
                assert store.get(name, 0, 2).lost == (range(2, 4),)
        shutil.rmtree(root / "consumequeue")


def test_batch_queue_keeps_its_offsets(tmp_path):
    root = golden.extract("innerbatch", tmp_path)
    whole = survey(root, RealFiles())
    key, state = max(whole.batch_queues.items(), key=lambda item: len(item[1].units))
    cut = int(state.units["phy_offset"][len(state.units) // 2])
    segment = whole.geometry.segment_size_bytes
    for path in (root / "commitlog").iterdir():
        first = int(path.name)
        if first + segment > cut:
            path.write_bytes(path.read_bytes()[: max(0, cut - first)].ljust(segment, b"\0"))
    ends = {key: found.max_offset for key, found in (whole.queues | whole.batch_queues).items()}
    for _ in range(2):
        with MessageStore.open(root, create=False) as store:
            assert {(queue.topic, queue.queue_id): queue.max_offset for queue in store.queues()} == ends
            at = int(state.units["base_queue_offset"][len(state.units) // 2])
            result = store.get(*key, at, 1000)
            assert result.status is GetStatus.MESSAGE_WAS_REMOVING
            assert result.lost == (range(at, state.max_offset),)
            assert result.next_offset == state.max_offset
        shutil.rmtree(root / "batchconsumequeue")


FIXTURES = {"d-trunclast": 32, "d-zerotail": 3, "d-zerotail-halt": 3, "d-zeropage-last": 0}


@pytest.mark.parametrize(("name", "lost"), FIXTURES.items())
def test_real_stores_with_a_lost_tail_give_no_offset_twice(name, lost, tmp_path):
    whole = {
        (line["topic"], line["queueId"]): line["maxOffset"]
        for line in golden.expected("roll-halt" if name.endswith("-halt") else "roll")
        if line["kind"] == "queue"
    }
    root = golden.extract(name, tmp_path)
    with MessageStore.open(root, create=False) as store:
        assert {(queue.topic, queue.queue_id): queue.max_offset for queue in store.queues()} == whole
        told = [finding for finding in store.recovery.findings if finding.code == "messages-lost"]
        assert sum(finding.messages for finding in told) == lost
        for (topic, queue_id), end in whole.items():
            assert store.put(topic, b"next", queue_id=queue_id).queue_offset == end
    assert {finding.code for finding in survey(root, RealFiles()).findings} <= {"log-hole", "tombstones"}
