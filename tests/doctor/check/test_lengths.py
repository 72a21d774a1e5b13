"""Damaged lengths of files: no message is lost by them, and what cannot be known is asked for."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from seglog import MessageStore
from seglog.doctor.check.broker_start import Start
from seglog.doctor.check.check import check_store
from seglog.doctor.check.triage import verdict_on
from seglog.doctor.check.verdict_text import verdict_facts
from seglog.doctor.repair.repair import plan_repair, repair_store
from seglog.doctor.undo.undo import undo_repair
from seglog.errors import InvalidArgumentError, LengthUnknownError
from seglog.storage.directory.broker_conf import LENGTHS_FILE, read_broker_conf
from seglog.storage.directory.geometry import FileSizes
from seglog.storage.directory.log_facts import read_log_facts
from seglog.storage.directory.log_files import LogFile
from seglog.storage.files.files import RealFiles
from seglog.storage.format.queue.consume_queue import CQ_UNIT
from tests.support.material import golden
from tests.support.material.golden import tree_digest
from tests.support.material.stores import SMALL_INDEX, fill, new_clock
from tests.support.material.stores import served as read_all

SEGMENT = 64 << 10
SOLE = ("delay", "innerbatch", "ipv6", "tx")


def log_files(root):
    return sorted((root / "commitlog").iterdir())


def queue_files(root):
    return [path for path in sorted((root / "consumequeue").rglob("*")) if path.is_file()]


def messages(store):
    return {
        key: [(one.queue_offset, one.phy_offset, one.body, one.properties_raw) for one in queue]
        for key, queue in read_all(store).items()
    }


def served(root):
    with MessageStore.open(root, read_only=True, clock=new_clock()) as store:
        return messages(store)


def repaired(root, sizes=None):
    return repair_store(RealFiles(), root, new_clock(), lambda _plan: True, sizes)[0]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return served(golden.extract("roll", tmp_path_factory.mktemp("whole")))


def cut_each(root, bytes_off):
    for path in log_files(root):
        os.truncate(path, path.stat().st_size - bytes_off)


@pytest.mark.parametrize("bytes_off", [1, 8, 16])
def test_all_log_files_cut_by_a_little_lose_no_message(bytes_off, whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    cut_each(root, bytes_off)
    before = tree_digest(root)
    report = check_store(root, clock=new_clock())
    assert (report.lost_messages, served(root)) == (0, whole)
    plan = repaired(root)
    assert sum(action.lost_messages for action in plan.actions) == 0
    assert {path.stat().st_size for path in log_files(root)} == {SEGMENT}
    assert served(root) == whole
    assert not (root / "seglog" / "stray").exists()
    undo_repair(RealFiles(), root)
    assert tree_digest(root) == before


@pytest.mark.parametrize("bytes_off", [1, 8, 16])
def test_opening_makes_cut_log_files_as_long_as_their_names_say(bytes_off, whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    cut_each(root, bytes_off)
    with MessageStore.open(root, clock=new_clock()) as store:
        assert store.geometry.segment_size_bytes == SEGMENT
        assert messages(store) == whole
    assert {path.stat().st_size for path in log_files(root)} == {SEGMENT}


def test_an_empty_file_beside_a_cut_one_tells_the_length_by_its_name(tmp_path):
    root = golden.extract("roll", tmp_path)
    first, second, *others = log_files(root)
    for path in others:
        path.unlink()
    os.truncate(first, SEGMENT - 1)
    os.truncate(second, 0)
    repaired(root)
    assert {path.stat().st_size for path in log_files(root)} == {SEGMENT}


@pytest.mark.parametrize("change", [-5000, -1, 5000, None], ids=["cut", "cut by a byte", "grown", "empty"])
@pytest.mark.parametrize("name", SOLE)
def test_a_sole_log_file_of_an_odd_length_is_not_written_to_until_the_length_is_given(name, change, tmp_path):
    root = golden.extract(name, tmp_path)
    before = served(root)
    (log,) = log_files(root)
    size = log.stat().st_size
    os.truncate(log, 0 if change is None else size + change)
    damaged = tree_digest(root)
    codes = {finding.code for finding in check_store(root, clock=new_clock()).findings}
    assert "log-length-unknown" in codes
    with pytest.raises(LengthUnknownError, match="log files"):
        MessageStore.open(root, clock=new_clock())
    with pytest.raises(LengthUnknownError) as refused:
        plan_repair(RealFiles(), root, new_clock())
    assert "--segment-bytes" in refused.value.help
    now = tree_digest(root)
    assert {file: now[file] for file in damaged if file != "lock"} == {
        file: digest for file, digest in damaged.items() if file != "lock"
    }
    plan = repaired(root, FileSizes(segment_bytes=size))
    assert log.stat().st_size == size
    lost = sum(action.lost_messages for action in plan.actions)
    assert (served(root) == before) == (lost == 0)
    assert lost == 0 or change is None
    assert check_store(root, clock=new_clock()).is_clean


@pytest.fixture
def foreign_queue():
    """Units of a queue of a store with five log files."""
    path = golden.shared("roll") / "consumequeue" / "TopicA" / "0" / f"{0:020d}"
    return np.frombuffer(path.read_bytes(), CQ_UNIT.dtype)


def test_a_queue_of_another_store_says_nothing_of_the_only_log_file(foreign_queue, tmp_path):
    root = golden.extract("tx", tmp_path)
    before = served(root)
    queue_files(root)[0].write_bytes(foreign_queue.tobytes())
    report = check_store(root, clock=new_clock(), given=FileSizes(segment_bytes=SEGMENT))
    assert "log-length-unknown" not in {finding.code for finding in report.findings}
    assert (verdict_on(report).start.start, report.lost_messages) == (Start.YES, 0)
    assert sum(action.lost_messages for action in repaired(root).actions) == 0
    assert served(root) == before


def test_an_only_file_that_was_cut_in_its_empty_end_is_not_called_whole(tmp_path):
    root = golden.extract("tx", tmp_path)
    (log,) = (root / "commitlog").iterdir()
    for size in (SEGMENT, 4 * 4096):
        os.truncate(log, size)
        report = check_store(root, clock=new_clock())
        start = verdict_on(report).start
        assert report.is_clean
        assert (start.start, start.reason) == (Start.UNKNOWN, "how long its files must be is not stated")
        assert verdict_facts(report, root)["next"] == f"seglog check --broker-conf FILE {root}"
        given = FileSizes(segment_bytes=SEGMENT, queue_file_bytes=report.geometry.queue_file_size_bytes)
        start = verdict_on(check_store(root, clock=new_clock(), given=given)).start
        assert start.start is (Start.YES if size == SEGMENT else Start.NO)


def test_the_given_length_of_the_only_log_file_counts_more_than_units_that_lead_behind_it(
    foreign_queue, tmp_path
):
    root = golden.extract("tx", tmp_path)
    behind = foreign_queue[foreign_queue["phy_offset"] >= SEGMENT]
    path = root / "consumequeue" / "TopicA" / "0" / f"{0:020d}"
    path.parent.mkdir(parents=True)
    path.write_bytes(behind.tobytes().ljust(2_000, b"\0"))
    assert "log-length-unknown" in {finding.code for finding in check_store(root, clock=new_clock()).findings}
    report = check_store(root, clock=new_clock(), given=FileSizes(segment_bytes=SEGMENT))
    assert verdict_on(report).start.start is Start.YES
    with pytest.raises(InvalidArgumentError, match="at least"):
        check_store(root, clock=new_clock(), given=FileSizes(segment_bytes=SEGMENT // 2))


def test_a_store_of_ours_says_itself_how_long_its_only_file_was(tmp_path):
    root = tmp_path / "s"
    with MessageStore.open(root, clock=new_clock(), segment_size_bytes=100_000, **SMALL_INDEX) as store:
        fill(store, 5)
    before = served(root)
    (log,) = log_files(root)
    for size in (8192, 1 << 20):
        os.truncate(log, size)
        repaired(root)
        assert log.stat().st_size == 100_000
        assert served(root) == before


def test_queue_files_cut_by_one_byte_each_are_made_by_rocketmq_or_with_the_length_that_is_given(
    whole, tmp_path
):
    root = golden.extract("roll", tmp_path)
    for path in queue_files(root):
        os.truncate(path, path.stat().st_size - 1)
    assert "queue-length-unknown" in {one.code for one in check_store(root, clock=new_clock()).findings}
    with pytest.raises(LengthUnknownError, match="queue files"):
        MessageStore.open(root, clock=new_clock())
    other = shutil.copytree(root, tmp_path / "other")
    assert repaired(root).is_rescanned
    assert not queue_files(root)
    assert not repaired(other, FileSizes(2000)).is_rescanned
    assert {path.stat().st_size for path in queue_files(other)} == {2000}
    assert served(other) == whole


def test_lengths_come_from_the_brokers_configuration(tmp_path):
    root = golden.extract("tx", tmp_path)
    (log,) = log_files(root)
    os.truncate(log, 60_000)
    conf = tmp_path / "broker.conf"
    conf.write_text(
        "# a broker\nbrokerName = a\nmappedFileSizeCommitLog=65536\nmappedFileSizeConsumeQueue : 1990\n"
    )
    assert read_broker_conf(conf).queue_file_bytes == 2000, "RocketMQ rounds up to whole units"
    assert repaired(root, read_broker_conf(conf)).left == []
    assert log.stat().st_size == SEGMENT


CONF = "brokerName = a\nmappedFileSizeCommitLog=65536\nmappedFileSizeConsumeQueue : 1990\nmaxIndexNum=none\n"


@pytest.mark.parametrize("harm", [-5536, 5000, None], ids=["cut", "grown", "empty"])
def test_lengths_come_from_a_configuration_in_the_store(harm, tmp_path):
    root = golden.extract("tx", tmp_path)
    (log,) = log_files(root)
    whole = served(root)
    os.truncate(log, 0 if harm is None else SEGMENT + harm)
    for path in queue_files(root):
        os.truncate(path, path.stat().st_size - 1)
    assert "log-length-unknown" in {one.code for one in check_store(root, clock=new_clock()).findings}
    (root / "broker.conf").write_text(CONF)
    report = check_store(root, clock=new_clock())
    assert not {one.code for one in report.findings} & {"log-length-unknown", "queue-length-unknown"}
    assert report.geometry.segment_size_bytes == SEGMENT
    assert report.geometry.queue_file_size_bytes == 2000
    plan = repaired(root)
    assert not plan.is_rescanned
    assert log.stat().st_size == SEGMENT
    assert {path.stat().st_size for path in queue_files(root)} == {2000}
    assert harm is None or served(root) == whole
    assert check_store(root, clock=new_clock()).is_clean


@pytest.mark.parametrize("text", [
    b"mappedFileSizeCommitLog=1000000\nmappedFileSizeConsumeQueue=40\n", b"\xff\xfe\x00",
    b"mappedFileSizeCommitLog=abc\n",
])  # fmt: skip
def test_a_configuration_in_the_store_is_not_believed_where_files_disprove_it(text, whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    (root / "broker.conf").write_bytes(text)
    report = check_store(root, clock=new_clock())
    assert report.is_clean
    assert report.geometry.segment_size_bytes == SEGMENT
    assert report.geometry.queue_file_size_bytes == 2000
    assert not repaired(root).changes
    assert served(root) == whole


def test_a_length_that_the_files_disprove_is_refused(tmp_path):
    root = golden.extract("roll", tmp_path)
    for sizes in (FileSizes(segment_bytes=1 << 30), FileSizes(6_000_000)):
        with pytest.raises(InvalidArgumentError, match="have"):
            plan_repair(RealFiles(), root, new_clock(), sizes)
        with pytest.raises(InvalidArgumentError, match="have"):
            check_store(root, clock=new_clock(), given=sizes)


def test_a_length_that_the_configuration_does_not_name_is_not_said_to_be_in_it(tmp_path):
    root, conf = golden.extract("roll", tmp_path), tmp_path / "broker.conf"
    for text, name, why in (
        ("mappedFileSizeConsumeQueue=2000\n", "mappedFileSizeCommitLog", "default"),
        ("mappedFileSizeCommitLog=65536\n", "mappedFileSizeConsumeQueue", "default"),
        ("mappedFileSizeCommitLog=131072\n", "mappedFileSizeCommitLog=131072, but", ""),
    ):
        conf.write_text(text)
        with pytest.raises(InvalidArgumentError, match=name) as refused:
            check_store(root, clock=new_clock(), given=read_broker_conf(conf))
        assert ("default" in str(refused.value)) == ("not in this one" in refused.value.help) == bool(why)


@pytest.mark.parametrize("content", [b"", b"mappedFileSizeCommitLog=1\n", b"\xff" * 100, b"x" * (2 << 20)])
def test_a_damaged_note_of_lengths_is_named_and_not_believed(content, whole, tmp_path):
    root = golden.extract("roll", tmp_path)
    (root / LENGTHS_FILE).parent.mkdir()
    (root / LENGTHS_FILE).write_bytes(content)
    assert [
        one.file for one in check_store(root, clock=new_clock()).findings if one.code == "own-damaged"
    ] == [LENGTHS_FILE]
    assert served(root) == whole
    repaired(root)
    assert check_store(root, clock=new_clock()).is_clean


@pytest.mark.parametrize(
    "text",
    ["mappedFileSizeCommitLog=abc", "mappedFileSizeConsumeQueue=-5", "maxIndexNum=99999999999999999999"],
)
def test_a_configuration_with_a_length_that_cannot_be_is_refused(text, tmp_path):
    (tmp_path / "broker.conf").write_text(text)
    with pytest.raises(InvalidArgumentError, match="length"):
        read_broker_conf(tmp_path / "broker.conf")


def test_a_configuration_that_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"#" * (2 << 20))
    for path in (tmp_path / "pipe", tmp_path / "large", tmp_path / "none", tmp_path):
        with pytest.raises(InvalidArgumentError):
            read_broker_conf(path)


def test_a_full_file_states_its_length_whatever_is_left_of_it(tmp_path):
    root = golden.extract("roll", tmp_path)
    first = log_files(root)[0]
    os.truncate(first, SEGMENT - 1)
    facts = read_log_facts(RealFiles(), root, LogFile(0, SEGMENT - 1))
    assert (facts.first_offset, facts.is_proven) == (0, True)
    assert SEGMENT // 2 < facts.needed_bytes <= SEGMENT


@pytest.mark.parametrize("count", [100, 10, 7])
@pytest.mark.parametrize("opened", [False, True], ids=["repaired", "opened"])
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "crashed"])
def test_a_queue_file_of_zeros_behind_the_last_unit_is_found_and_removed(is_closed, opened, count, tmp_path):
    root = tmp_path / "s"
    with MessageStore.open(
        root, clock=new_clock(), segment_size_bytes=SEGMENT, queue_file_size_bytes=200, **SMALL_INDEX
    ) as store:
        for number in range(count):
            store.put("T", b"%d" % number, queue_id=0)
    end = -(-count // 10) * 200
    empty = root / "consumequeue" / "T" / "0" / f"{end:020d}"
    empty.write_bytes(bytes(200))
    if not is_closed:  # power was lost before the first unit of the file was on the disk
        (root / "abort").write_bytes(b"")
    report = check_store(root, clock=new_clock())
    (found,) = [one for one in report.findings if one.code != "not-closed"]
    code = "queue-file-empty" if is_closed else "queue-file-due"
    assert (found.code, found.file) == (code, empty.relative_to(root).as_posix())
    assert report.is_clean is not is_closed
    assert verdict_on(report).do_not  # RocketMQ may count a message that is not there
    if opened:
        MessageStore.open(root, clock=new_clock()).close()
    else:
        repaired(root)
    assert not empty.exists()
    assert check_store(root, clock=new_clock()).is_clean
    with MessageStore.open(root, read_only=True, clock=new_clock()) as store:
        assert store.max_offset("T", 0) == count


@pytest.mark.parametrize(("size_bytes", "start"), [(4_096, Start.UNKNOWN), (5_000, Start.NO)])
def test_a_foreign_file_of_the_timer_log_may_pass_if_it_is_as_long_as_the_others(size_bytes, start, tmp_path):
    root = golden.extract("real-conf-5.4.0", tmp_path)
    (root / "timerlog" / "12345").write_bytes(bytes(size_bytes))
    assert verdict_on(check_store(root, clock=new_clock())).start.start is start
