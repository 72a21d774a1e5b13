"""Readers beside a writer that rolls files and deletes old ones: nothing fails, nothing counts as lost."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from typing_extensions import override

from seglog.cli.main import commands
from seglog.cli.read.du import topic_bytes
from seglog.doctor.check.check import check_store
from seglog.doctor.copies.backup import make_backup
from seglog.errors import NotFoundError
from seglog.storage.directory.reading_root import ReadingRoot
from seglog.storage.files.store_root import StoreRoot
from seglog.storage.findings.code import Severity
from seglog.storage.format.get_status import GetStatus
from seglog.storage.store import MessageStore
from seglog.storage.survey import leave_front, start_now, survey, survey_written
from tests.support import scale
from tests.support.machine.patience import wait_until
from tests.support.material.stores import SEGMENT_BYTES, SMALL, SMALL_INDEX, new_clock
from tests.support.narrow import not_none

QUEUES = [("T", 0), ("T", 1), ("U", 0)]
WRITER = """
import sys
from seglog import MessageStore
root = sys.argv[1]
small = {"segment_size_bytes": 4096, "queue_file_size_bytes": 400}
with MessageStore.open(root, recovery_step_bytes=0, **small) as store:
    number = 0
    while True:
        for topic, queue_id in (("T", 0), ("T", 1), ("U", 0)):
            body = b"%s/%d %d" % (topic.encode(), queue_id, number)
            store.put(topic, body + b"." * 60, queue_id=queue_id, keys=f"k{number}")
        number += 1
        if number == 60:
            print("ready", flush=True)
        if number > 60 and number % 4 == 0:
            store.retention.delete_before(store.max_phy_offset - 5 * 4096)
"""


@pytest.fixture
def path(tmp_path, start_child):
    """A store with a writer that never rests."""
    path = tmp_path / "s"
    writer = start_child([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE)
    assert not_none(writer.stdout).readline() == b"ready\n"
    yield path
    assert writer.poll() is None


def read_through(store, topic, queue_id):
    """Reads a queue from its first message that is there; returns how many messages came."""
    at, seen = store.min_offset(topic, queue_id), 0
    while True:
        found = store.get(topic, queue_id, at)
        assert found.lost == ()
        if found.status is GetStatus.OFFSET_TOO_SMALL:
            assert found.next_offset == found.min_offset > at
        elif found.status is not GetStatus.FOUND:
            assert found.status in (GetStatus.OFFSET_OVERFLOW_ONE, GetStatus.OFFSET_OVERFLOW_BADLY)
            return seen
        for message in found:
            assert message.body.startswith(b"%s/%d %d." % (topic.encode(), queue_id, message.queue_offset))
            seen += 1
        at = found.next_offset


def test_opening_for_reading_never_fails_and_loses_nothing(path):
    seen = 0
    for _ in range(scale.scaled(40, 1000)):
        with MessageStore.open(path, read_only=True) as store:
            assert [
                one for one in store.recovery.findings if one.code.startswith(("log-hole", "log-file-m"))
            ] == []
            for key in QUEUES:
                seen += read_through(store, *key)
    assert seen > 0


def test_a_reader_that_stays_open_follows_over_rolls_and_deletions(path):
    chance = scale.chance("a reader that stays open")
    with MessageStore.open(path, read_only=True) as store:
        first = {key: store.min_offset(*key) for key in QUEUES}
        for _ in range(scale.scaled(60, 2000)):
            key = chance.choice(QUEUES)
            match chance.randrange(6):
                case 0:
                    store.refresh()
                case 1:
                    assert store.wait_for(*key, store.max_offset(*key), timeout_ms=20_000)
                case 2:
                    read_through(store, *key)
                case 3:
                    found = store.queue(*key).columns()
                    assert len(found["phy_offset"]) == len(found["is_message"])
                case 4:
                    for message in store.query(key[0], f"k{store.min_offset(*key) + 3}"):
                        assert message.topic == key[0]
                case 5:
                    at = store.offset_by_time(*key, int(time.time() * 1000) - 50)
                    assert at >= first[key]
            # As long as a reader may rest between two looks: all that it saw is gone meanwhile.
            time.sleep(chance.choice([0, 0, 0.01, 0.1]))

        def has_moved():
            store.refresh()
            return all(store.min_offset(*key) > first[key] for key in QUEUES)

        wait_until(has_moved, "retention took what the reader saw first", idle_s=10)


def test_commands_that_read_do_not_fail_beside_it(path):
    for _ in range(scale.scaled(12, 200)):
        for command in ("dump", "info", "tail", "queues"):
            ran = CliRunner().invoke(commands, [command, str(path)])
            assert ran.exit_code == 0, (command, ran.stderr)
            # A queue whose newest units are on their way is said to be short, with the words "none is lost".
            assert "lost" not in ran.stdout.replace("none is lost", "")


class MovingStore:
    """A store that is written to, and whose retention then takes all that was in its log and queues."""

    def __init__(self, path):
        self.path = path
        self.number = 0
        self.store = MessageStore.open(path, recovery_step_bytes=0, **SMALL, **SMALL_INDEX)
        self.write()

    def write(self, count=160):
        for _ in range(count):
            for topic, queue_id in QUEUES:
                self.store.put(topic, b"%d" % self.number + bytes(60), queue_id=queue_id)
            self.number += 1

    def move(self, count=160):
        self.write(count)
        self.store.retention.delete_before(self.store.max_phy_offset - SEGMENT_BYTES)


@pytest.fixture
def moving(tmp_path):
    made = MovingStore(tmp_path / "s")
    with made.store:
        yield made


class Moving(ReadingRoot):
    """Files of a store that moves on at chosen looks at one of its folders."""

    def __init__(self, moving, folder, turns):
        super().__init__(moving.path)
        self.moving, self.folder, self.turns, self.looks = moving, folder, turns, 0

    @override
    def open(self, path, *, writable):
        if self.folder in path.parts:
            self.looks += 1
            if self.looks in self.turns:
                self.moving.move()
        return super().open(path, writable=writable)


class MovingWhileListed(StoreRoot):
    """A store that moves on between the names of a listing and their lengths, once."""

    def __init__(self, moving):
        super().__init__(moving.path)
        self.moving, self.has_moved = moving, False

    @override
    def _status_of(self, item, parts):
        if not self.has_moved:
            self.has_moved = True
            self.moving.move()
        return super()._status_of(item, parts)


def test_a_listing_of_which_all_goes_is_made_again(moving):
    folder = moving.path / "commitlog"
    listed = [entry.name for entry in MovingWhileListed(moving).list_dir(folder)]
    assert listed == [entry.name for entry in StoreRoot(moving.path).list_dir(folder)] != []
    scanned = [name for name, _status in MovingWhileListed(moving).scan(folder)]
    assert scanned == [name for name, _status in StoreRoot(moving.path).scan(folder)] != []


@pytest.mark.parametrize("folder", ["commitlog", "consumequeue"])
@pytest.mark.parametrize("turn", range(1, 9))
def test_a_log_of_which_all_goes_during_a_look_is_looked_at_again(moving, folder, turn):
    files = Moving(moving, folder, {turn})
    with MessageStore.open(moving.path, read_only=True, files=files) as store:
        assert files.looks >= turn
        assert [one for one in store.recovery.findings if one.severity is Severity.LOSS] == []
        for key in QUEUES:
            assert read_through_moving(store, *key) > 0


def read_through_moving(store, topic, queue_id):
    at, seen = store.min_offset(topic, queue_id), 0
    while (found := store.get(topic, queue_id, at)).status in (GetStatus.FOUND, GetStatus.OFFSET_TOO_SMALL):
        assert found.lost == ()
        at, seen = found.next_offset, seen + len(found.records)
    return seen


def test_queue_files_that_go_time_and_again_do_not_end_a_look(moving):
    files = Moving(moving, "consumequeue", range(1, 80))
    with MessageStore.open(moving.path, read_only=True, files=files) as store:
        assert sum(read_through_moving(store, *key) for key in QUEUES) > 0


class MovingOncePerLook(ReadingRoot):
    """A store that gets messages behind each walk of its log, and loses all files behind its queues."""

    def __init__(self, moving):
        super().__init__(moving.path)
        self.moving, self.reads_queues = moving, False
        moving.write(1)  # the units of a look then fit into queue files that were listed, of 10 each

    @override
    def open(self, path, *, writable):
        if "consumequeue" in path.parts and not self.reads_queues:
            self.reads_queues = True
            self.moving.write(8)
        elif "commitlog" in path.parts and self.reads_queues:
            self.reads_queues = False
            self.moving.move(152)
        return super().open(path, writable=writable)


def test_a_writer_that_removes_all_of_every_look_loses_nothing(moving):
    """Of the last look the log is gone, and the queues, which are read later, lead to later records."""
    files = MovingOncePerLook(moving)
    found = survey_written(lambda: survey(moving.path, files), moving.path, files)
    assert found.log_files
    leave_front(found, start_now(found, moving.path, files))
    assert found.log_files == []
    assert found.lost_tail == []
    assert [one for one in found.findings if one.severity is not Severity.NOTE] == []
    units = [unit for state in found.queues.values() for unit in state.units["phy_offset"].tolist()]
    assert max(units, default=0) < found.max_phy_offset


class MovingRoot(StoreRoot):
    """A store that moves on whenever its log has just been listed, for a few times."""

    def __init__(self, moving, times):
        super().__init__(moving.path)
        self.moving, self.times = moving, times

    @override
    def list_dir(self, path):
        found = super().list_dir(path)
        if path.name == "commitlog" and self.times:
            self.times -= 1
            self.moving.move()
        return found


@pytest.mark.parametrize("times", range(1, 9))
def test_a_backup_of_a_log_of_which_all_goes_meanwhile_has_the_log_that_came(moving, tmp_path, times):
    done = make_backup(MovingRoot(moving, times), moving.path, tmp_path / "backup")
    assert done.is_hot
    report = check_store(tmp_path / "backup")
    assert [str(finding) for finding in report.findings if finding.severity is Severity.LOSS] == []
    assert report.records > 0


class Vanishing(ReadingRoot):
    """Files of which one goes just before it is opened."""

    def __init__(self, path, goes):
        super().__init__(path)
        self.goes = goes

    @override
    def open(self, path, *, writable):
        self.goes(path)
        return super().open(path, writable=writable)


def old_and_new(tmp_path):
    """A store of several log files whose first one may go."""
    path = tmp_path / "s"
    with MessageStore.open(path, clock=new_clock(), **SMALL, **SMALL_INDEX) as store:
        for number in range(120):
            store.put("T", b"%d" % number + bytes(60))
    return path, sorted((path / "commitlog").iterdir())


@pytest.mark.parametrize("count", [1, 2])
def test_a_file_that_goes_while_it_is_opened_is_no_hole(tmp_path, count):
    path, log_files = old_and_new(tmp_path)
    left = log_files[:count]

    def goes(wanted):
        if left and wanted == left[0]:
            left.pop(0).unlink()

    with MessageStore.open(path, read_only=True, files=Vanishing(path, goes)) as store:
        assert left == []
        assert all(finding.severity is not Severity.LOSS for finding in store.recovery.findings)
        assert store.min_phy_offset == int(log_files[count].name)
        assert store.get("T", 0, 0).status is GetStatus.OFFSET_TOO_SMALL
        assert read_all(store)


def test_a_read_that_meets_a_deleted_file_moves_the_minimum(tmp_path):
    path, log_files = old_and_new(tmp_path)
    with MessageStore.open(path, read_only=True) as store:
        assert store.get("T", 0, 119).status is GetStatus.FOUND  # which leaves the last file open
        log_files[0].unlink()
        log_files[1].unlink()
        found = store.get("T", 0, 0)
        assert (found.status, found.lost, found.records) == (GetStatus.OFFSET_TOO_SMALL, (), [])
        assert found.next_offset == found.min_offset == store.min_offset("T", 0) > 0
        assert [message.queue_offset for message in read_all(store)] == list(range(found.min_offset, 120))


def test_a_file_that_is_gone_from_the_middle_is_still_a_loss(tmp_path):
    path, log_files = old_and_new(tmp_path)
    log_files[1].unlink()
    with MessageStore.open(path, read_only=True) as store:
        assert "log-file-missing" in {finding.code for finding in store.recovery.findings}
        lost = [
            at for one in (store.get("T", 0, at).lost for at in range(120)) for part in one for at in part
        ]
        assert lost


def test_queue_files_that_go_while_they_are_opened_are_looked_for_again(tmp_path):
    path, _log_files = old_and_new(tmp_path)
    first = min((path / "consumequeue" / "T" / "0").iterdir())
    gone = []

    def goes(wanted):
        if wanted == first and not gone:
            gone.append(first.rename(tmp_path / "gone"))

    with MessageStore.open(path, read_only=True, files=Vanishing(path, goes)) as store:
        assert gone
        assert [message.queue_offset for message in read_all(store)] == list(range(120))


def test_a_store_that_is_gone_is_not_found(tmp_path):
    with pytest.raises(NotFoundError):
        MessageStore.open(tmp_path / "s", read_only=True)


def read_all(store):
    at, found = store.min_offset("T", 0), []
    while at < store.max_offset("T", 0):
        page = store.get("T", 0, at)
        found += page.messages
        at = page.next_offset
    return found


def test_a_check_ends_and_names_no_loss(path):
    for _ in range(scale.scaled(8, 300)):
        report = check_store(path)
        lost = [str(finding) for finding in report.findings if finding.severity is Severity.LOSS]
        assert lost == []
        topic_bytes(path)


@pytest.mark.parametrize("links", [True, False])
def test_a_backup_is_the_log_from_one_place_to_another(path, tmp_path, links):
    for number in range(scale.scaled(8, 300)):
        target = tmp_path / f"b{number}"
        done = make_backup(StoreRoot(path), path, target, links=links)
        assert done.is_hot
        report = check_store(target)
        assert [str(finding) for finding in report.findings if finding.severity is Severity.LOSS] == []
        assert report.end_phy_offset == done.end_phy_offset
        assert report.records > 0
        for file in (target / "commitlog").iterdir():  # none that its writer may still write shares its bytes
            assert file.stat().st_nlink == 1 or int(file.name) + 4096 <= done.end_phy_offset
