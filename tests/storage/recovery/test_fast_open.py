"""Opening begins at the recovery point where it is certain, and says why where it is not."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import pytest
from typing_extensions import override

from seglog.doctor.check.verify import verify_store
from seglog.errors import FullError, InvalidArgumentError
from seglog.storage.directory.index_files import list_index_files
from seglog.storage.files.files import RealFiles
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.index.index_keys import IndexedRecord
from seglog.storage.format.index.index_rows import key_rows
from seglog.storage.small_files.recovery_point_file import (
    RECOVERY_POINT_FILE_NAME,
    read_recovery_point,
    write_recovery_point,
)
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from seglog.storage.writes import writer
from tests.support.machine.patience import wait_until
from tests.support.material.index_files import build_index_files
from tests.support.material.sealed import BLOCK_BYTES, BODY_BYTES, COUNT, SEGMENT_BYTES, segment
from tests.support.material.stores import Lengths, OpenOptions, new_clock, read_all, writer_of
from tests.support.narrow import not_none

STEP = 64 << 10
SIZES: Lengths = {"segment_size_bytes": SEGMENT_BYTES, "queue_file_size_bytes": 2000}


def put_many(store: MessageStore, count: int) -> None:
    for number in range(count):
        store.put("orders", b"%06d" % number + bytes(BODY_BYTES), queue_id=number % 3)


def opened(path: Path, **options: Unpack[OpenOptions]) -> MessageStore:
    chosen: OpenOptions = {"clock": new_clock(), "recovery_step_bytes": STEP, **options}
    return MessageStore.open(path, **chosen)


def doubts(store: MessageStore) -> list[str]:
    return [f.found for f in store.recovery.findings if f.code == "recovery-point-unused"]


def numbers(store: MessageStore, queue_id: int) -> list[int]:
    return [int(message.body[:6]) for message in read_all(store, "orders", queue_id)]


@pytest.fixture(scope="module")
def original(module_folders):
    path = module_folders.mktemp("fast") / "store"
    with opened(path, **SIZES) as store:
        put_many(store, COUNT)
    return path


@pytest.fixture
def path(original, tmp_path):
    return shutil.copytree(original, tmp_path / "store")


def test_a_store_that_was_closed_opens_without_a_walk(path):
    with opened(path) as store:
        assert (store.recovery.walked_from, store.recovery.records) == (store.max_phy_offset, 0)
        assert store.recovery.findings == ()
        assert [numbers(store, queue_id) for queue_id in range(3)] == [
            list(range(queue_id, COUNT, 3)) for queue_id in range(3)
        ]
        assert store.put("orders", b"more").queue_offset == len(range(0, COUNT, 3))


def test_only_what_came_since_the_point_is_walked_after_a_kill(path, tmp_path):
    with opened(path) as store:
        end = store.max_phy_offset
        put_many(store, 50)
        killed = shutil.copytree(path, tmp_path / "killed")
    with opened(killed) as store:
        assert (store.recovery.mode, store.recovery.walked_from, store.recovery.records) == (
            "abnormal",
            end,
            50,
        )
        assert sum(queue.max_offset for queue in store.queues()) == COUNT + 50


def test_points_are_written_while_the_store_is_open(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "POINT_INTERVAL_MS", 5)
    path = tmp_path / "store"
    with MessageStore.open(path, recovery_step_bytes=STEP, **SIZES) as store:
        ends = set()

        def has_three_points():
            put_many(store, 30)
            point = read_recovery_point(RealFiles(), path)
            ends.add(0 if point is None else point.end_phy_offset)
            return len(ends) >= 3

        wait_until(has_three_points)
        killed = shutil.copytree(path, tmp_path / "killed")
        total = sum(queue.max_offset for queue in store.queues())
    with opened(killed) as store:
        assert store.recovery.walked_from >= max(ends)
        assert sum(queue.max_offset for queue in store.queues()) == total


def test_no_point_is_written_of_a_small_store_or_if_none_are_wanted(tmp_path):
    for name, step in (("small", 1 << 30), ("unwanted", 0)):
        with opened(tmp_path / name, recovery_step_bytes=step, **SIZES) as store:
            put_many(store, 300)
        assert not (tmp_path / name / "seglog" / "recovery-point").exists()
    with pytest.raises(InvalidArgumentError):
        opened(tmp_path / "negative", recovery_step_bytes=-1)


def test_an_open_that_wants_no_point_removes_the_one_there(path):
    opened(path, recovery_step_bytes=0).close()
    assert not (path / RECOVERY_POINT_FILE_NAME).exists()


def rocketmq_started(path):
    (path / "lock").write_bytes(b"lock")


def shorten_segment(path):
    with segment(path, 1).open("r+b") as file:
        file.truncate(SEGMENT_BYTES - 1)


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def change_point(**values):
    def change(path):
        point = read_recovery_point(RealFiles(), path)
        write_recovery_point(RealFiles(), path, replace(not_none(point), **values))

    return change


def queue_file(path, number):
    return path / "consumequeue" / "orders" / "1" / f"{number * 2000:020d}"


def topics(path, attributes):
    (path / "config").mkdir()
    text = '{"topicConfigTable":{"X":{"topicName":"X","attributes":{%s}},"orders":{"topicName":"orders"}}}'
    (path / "config" / "topics.json").write_text(text % attributes)


DOUBTS = {
    "another engine": (rocketmq_started, "another engine started on the store since"),
    "a segment is gone": (lambda p: segment(p, 1).unlink(), "segments below the point are missing"),
    "a segment was cut": (shorten_segment, "segments below the point are missing"),
    "another segment": (lambda p: shutil.copy(segment(p, 0), segment(p, 1)), "is not as it was"),
    "the last block": (lambda p: flip(segment(p, COUNT * 1017 // SEGMENT_BYTES), 0), "is not as it was"),
    "a unit": (lambda p: flip(queue_file(p, 0), 7), "the units of queue orders/1 are not as they were"),
    "a queue file is gone": (lambda p: queue_file(p, 1).unlink(), "queue orders/1 has lost files"),
    "the queue's start is gone": (lambda p: queue_file(p, 0).unlink(), "queue orders/1 has lost files"),
    "a queue is gone": (lambda p: shutil.rmtree(queue_file(p, 0).parent), "queue orders/1 has no files"),
    "the point": (lambda p: flip(p / RECOVERY_POINT_FILE_NAME, 50), "point-crc"),
    "other lengths": (change_point(segment_bytes=SEGMENT_BYTES * 2), "files have other lengths"),
    "an older queue": (change_point(queues=()), "has more units that lead below the point"),
    "a batch topic": (lambda p: topics(p, '"queue.type":"BatchCQ"'), "topics that are not plain"),
}  # fmt: skip


@pytest.mark.parametrize(("happens", "why"), DOUBTS.values(), ids=DOUBTS)
def test_a_point_in_doubt_leads_to_the_full_walk_which_says_why(path, happens, why):
    happens(path)
    with opened(path) as store:
        (told,) = doubts(store)
        assert why in told
        assert store.recovery.walked_from == 0
        found = survey(path, RealFiles())
        assert store.recovery.records == len(found.rows) >= COUNT // 2


def test_a_full_walk_that_finds_all_well_is_followed_by_a_new_point(path):
    rocketmq_started(path)
    opened(path).close()
    with opened(path) as store:
        assert store.recovery.walked_from == store.max_phy_offset


def rot(path, number, block):
    flip(segment(path, number), block * BLOCK_BYTES + BLOCK_BYTES // 2)


@pytest.mark.parametrize("sealed", [False, True])
def test_rot_below_the_point_is_named_and_mended_by_the_next_open(path, sealed):
    written = COUNT
    if sealed:
        verify_and_seal(path)
        written += 100
    rot(path, 1, 2)
    with opened(path) as store:
        assert store.recovery.walked_from > 0
        assert store.later_findings == ()
        read = sorted(number for queue_id in range(3) for number in numbers(store, queue_id))
        assert len(read) == written - 1
        [finding] = list(store.later_findings)
        assert finding.code == "log-block-changed"
        assert (finding.file, finding.position_bytes) == (f"commitlog/{SEGMENT_BYTES:020d}", 2 * BLOCK_BYTES)
        assert not (path / RECOVERY_POINT_FILE_NAME).exists()
    with opened(path) as store:
        assert (store.recovery.walked_from, doubts(store)) == (0, [])
        assert [finding.code for finding in store.recovery.findings] == ["record-mended"]
        assert sum(len(numbers(store, queue_id)) for queue_id in range(3)) == written


def verify_and_seal(path):
    assert len(verify_store(path, seal=True, clock=new_clock()).sealed) == 4
    with opened(path) as store:
        put_many(store, 100)
    point = read_recovery_point(RealFiles(), path)
    assert not_none(point).blocks_from >= 4 * SEGMENT_BYTES


def test_views_leave_rot_out(path):
    rot(path, 0, 1)
    with opened(path) as store:
        found = [[bytes(body) for body in store.queue("orders", queue_id).bodies()] for queue_id in range(3)]
        assert sum(not body for bodies in found for body in bodies) == 1
        assert len(store.later_findings) == 1


def test_a_seal_that_cannot_be_read_makes_its_records_prove_themselves(path):
    verify_and_seal(path)
    with opened(path) as store:
        assert store.recovery.walked_from > 0
        flip(path / "seglog" / "seals" / f"{2 * SEGMENT_BYTES:020d}.seal", 30)
        assert sum(len(numbers(store, queue_id)) for queue_id in range(3)) == COUNT + 100


def test_a_lost_index_is_made_again_around_rot(path):
    with opened(path) as store:
        keyed = store.put("orders", b"keyed", keys="k").phy_offset
        put_many(store, 200)
    rot(path, 2, 1)
    shutil.rmtree(path / "index")
    with opened(path) as store:
        assert store.recovery.walked_from > keyed
        assert [message.phy_offset for message in store.query("orders", "k")] == [keyed]


def test_a_store_without_keys_is_not_read_for_the_index_again(path):
    with opened(path) as store:
        assert writer_of(store).index.behind_bytes == 0


class FullFiles(RealFiles):
    """A disk without room for a recovery point."""

    @override
    def write_file(self, path, data, *, sync=True):
        if "recovery-point" in path.name:
            raise FullError("no space")
        super().write_file(path, data, sync=sync)


def test_a_full_disk_keeps_the_point_before(path):
    before = (path / RECOVERY_POINT_FILE_NAME).read_bytes()
    with opened(path, files=FullFiles()) as store:
        put_many(store, 300)
    assert (path / RECOVERY_POINT_FILE_NAME).read_bytes() == before
    with opened(path) as store:
        assert store.recovery.records == 300


def test_a_block_is_checked_once(path):
    with opened(path) as store:
        read = [numbers(store, queue_id) for queue_id in range(3)]
        assert not_none(writer_of(store).log.guard).sound_segments == {n * SEGMENT_BYTES for n in range(5)}
        rot(path, 1, 2)
        assert [len(read_all(store, "orders", queue_id)) for queue_id in range(3)] == [*map(len, read)]
        assert store.later_findings == ()


def test_an_index_without_tags_gets_none_though_the_walk_sees_no_record(tmp_path):
    path, geometry = tmp_path / "store", IndexGeometry(100, 1000)

    def put(store, number):
        store.put("T", bytes(BODY_BYTES), tags="TagA", keys=f"k{number}")

    def newest():
        return list_index_files(RealFiles(), path)[0][-1]

    with opened(path, index_geometry=geometry) as store:
        put(store, 0)
    # As a broker before 5.4 would have made it.
    record = IndexedRecord(0, newest().header.end_timestamp_ms, 0, "T", b"KEYS\x01k0\x02TAGS\x01TagA\x02")
    newest().path.write_bytes(next(build_index_files(key_rows([record], tags=False), geometry)))
    with opened(path) as store:
        # More than the sample of the newest records takes: it does not begin where the log does.
        for number in range(1, 400):
            put(store, number)
    with opened(path) as store:
        assert (store.recovery.walked_from, store.recovery.records) == (store.max_phy_offset, 0)
        put(store, 400)
    assert newest().header.index_count == 1 + 401
