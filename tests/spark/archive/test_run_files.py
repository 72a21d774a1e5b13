"""Tasks of an archive's run: what they write, what they say of it, and attempts that came to nothing."""

from __future__ import annotations

import random
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.spark.archive.columns import WANTED
from seglog.spark.archive.folder import ArchiveFolder
from seglog.spark.archive.made import run_files
from seglog.spark.archive.made.made_columns import IN_FILES, folders_of
from seglog.spark.archive.made.run_files import RunTarget, write_rows
from seglog.spark.archive.made.stretches import Noted, put_together
from seglog.spark.archive.manifest import Run, StoreIdentity
from seglog.spark.source.read.read_plan import plan_pieces, read_piece
from seglog.spark.source.wanted.options import parse_options
from tests.spark.archive.stores import BEGIN_MS
from tests.support.material.compactions import SIZES
from tests.support.material.stores import served

DAY_MS = 86_400_000
GIVEN = {"includePlaceholders": "true", "innerBatches": "records", "maxPartitionBytes": "6000"}


@pytest.fixture
def store(tmp_path):
    """A store with three topics, one of the broker, over four days."""
    clock, root = VirtualClock(BEGIN_MS), tmp_path / "s"
    with MessageStore.open(root, clock=clock, **SIZES) as opened:
        for number in range(400):
            topic = ("T", "a|b%c", "RMQ_SYS_TRACE_TOPIC")[number % 3]
            opened.put(topic, b"body %d" % number, queue_id=number % 2, keys=f"k{number}", tags="A")
            clock.advance(DAY_MS // 100)
    return root


def read(root):
    """Returns the batches of each piece of a log."""
    options = parse_options({**GIVEN, "path": str(root)})
    pieces = plan_pieces(options)
    assert len(pieces) > 3
    return [list(read_piece(piece, options, options.selection, WANTED)) for piece in pieces]


def target_in(archive, *, own=False):
    return RunTarget(archive.path, archive.staged(1), 1, "s:1", own)


def rows_of(folder, names):
    return [row for name in names for row in pq.ParquetFile(folder / name).read().to_pylist()]


@pytest.mark.parametrize("held_bytes", [0, 1 << 30])
def test_files_hold_all_records_and_the_tasks_say_which(store, tmp_path, monkeypatch, held_bytes):
    monkeypatch.setattr(run_files, "_HELD_BYTES", held_bytes)
    archive = ArchiveFolder(tmp_path / "archive")
    found = put_together(write_rows(target_in(archive, own=True), *one) for one in enumerate(read(store)))
    rows = rows_of(archive.staged(1), found.files)
    with MessageStore.open(store, read_only=True) as opened:
        logged = {m.phy_offset: m for messages in served(opened).values() for m in messages}
    assert len(rows) == found.messages == len(logged) == 400
    for row in rows:
        message = logged[row["physicalOffset"]]
        assert (row["topic"], row["queueId"], row["queueOffset"]) == (
            message.topic,
            message.queue_id,
            message.queue_offset,
        )
        assert row["body"] == message.body
        assert len(row["head"] + row["body"] + row["tail"]) == row["size"]
        assert dict(row["properties"])["KEYS"] == row["keys"] == " ".join(message.keys)
    assert sum(one.end - one.first for one in found.intervals) == 400
    assert not found.turned
    folders = {name.rpartition("/")[0] for name in found.files}
    assert len(folders) == 3 * 5
    assert {folder.split("/")[0] for folder in folders} == {"store=s%3A1"}
    assert {folder.split("/")[1] for folder in folders} == {
        "topicFolder=T",
        "topicFolder=a_b_c",
        "topicFolder=RMQ_SYS_TRACE_TOPIC",
    }


def test_topics_of_the_broker_are_left_out(store, tmp_path):
    archive = ArchiveFolder(tmp_path / "archive")
    found = put_together(write_rows(target_in(archive), *one) for one in enumerate(read(store)))
    assert {one.topic for one in found.intervals} == {"T", "a|b%c"}
    assert found.messages == len(rows_of(archive.staged(1), found.files)) == 267


def test_an_attempt_that_was_killed_or_ran_beside_another_adds_nothing(store, tmp_path):
    archive = ArchiveFolder(tmp_path / "archive")
    target = target_in(archive)

    def broken(batches):
        yield from batches[:1]
        raise OSError("the task ends here")

    noted = []
    for task, part in enumerate(read(store)):
        with pytest.raises(OSError, match="ends here"):
            write_rows(target, task, broken(part))
        write_rows(target, task, part)
        noted.append(write_rows(target, task, part))
    found = put_together(noted)
    identity = StoreIdentity("s:1", 16384, 0, 0)
    names, intervals = tuple(found.files), tuple(found.intervals)
    archive.commit(Run(1, 0, names, intervals, found.messages, found.size_bytes, identity))
    archive.finish()
    held = sorted(archive.names(archive.path / "data", ".parquet"))
    assert held == sorted(found.files)
    assert len(rows_of(archive.path / "data", held)) == 267


def test_a_row_group_of_each_folder_for_so_many_bytes(store, tmp_path, monkeypatch):
    monkeypatch.setattr(run_files, "_HELD_BYTES", 0)
    archive = ArchiveFolder(tmp_path / "archive")
    batches = [batch for part in read(store) for batch in part]
    for most_open, files in ((100, 10), (1, 20)):
        monkeypatch.setattr(run_files, "_MOST_OPEN", most_open)
        noted = write_rows(target_in(archive), 0, batches)
        groups = sum(pq.ParquetFile(archive.staged(1) / name).num_row_groups for name in noted.files)
        assert groups > 10
        assert (len(noted.files) == files) if most_open > files else (len(noted.files) >= files)


@pytest.mark.parametrize("seed", range(40))
def test_stretches_are_those_of_a_count_row_by_row(seed):
    rng = random.Random(seed)
    log, ends = [], {}
    for place in range(rng.randrange(1, 120)):
        key = rng.choice("TU"), rng.randrange(2)
        offset = ends.get(key, 0) + (rng.random() < 0.1) * rng.randrange(1, 9)
        if seed % 2 and rng.random() < 0.05:
            offset = max(0, offset - rng.randrange(1, 9))
        slots = rng.choice([1, 1, 1, 3])
        ends[key] = offset + slots
        log.append((*key, offset, place, slots, rng.random() < 0.2))
    tasks, at = [], 0
    while at < len(log):
        noted, end = Noted(), at + rng.randrange(1, 60)
        while at < min(end, len(log)):
            stop = min(end, at + rng.randrange(1, 30))
            noted.note(batch_of(log[at:stop]))
            at = min(stop, len(log))
        tasks.append(noted)
    found = put_together(tasks)
    turned = {
        key
        for key in ends
        for one, other in pairwise([row for row in log if row[:2] == key])
        if other[2] <= one[2]
    }
    assert found.turned == turned
    assert (found.messages, found.placeholders) == (
        sum(not row[5] for row in log),
        sum(row[5] for row in log),
    )
    assert {key: last.queue_offset for key, last in found.last.items()} == {
        key: max(row[2] for row in log if row[:2] == key) for key in ends
    }
    for key in ends.keys() - turned:
        expected = []
        for row in [row for row in log if row[:2] == key]:
            if expected and expected[-1][1] == row[2]:
                expected[-1][1] += row[4]
            else:
                expected.append([row[2], row[2] + row[4], row[3]])
        own = [
            [one.first, one.end, place]
            for one, place in zip(found.intervals, found.places, strict=True)
            if (one.topic, one.queue_id) == key
        ]
        assert own == expected


def batch_of(log):
    """Returns rows of a file as far as a count looks at them."""
    columns = {
        "topic": [row[0] for row in log],
        "queueId": pa.array([row[1] for row in log], pa.int32()),
        "queueOffset": [row[2] for row in log],
        "physicalOffset": [row[3] for row in log],
        "size": [100] * len(log),
        "sysFlag": pa.array([128 if row[4] > 1 else 0 for row in log], pa.int32()),
        "placeholder": [row[5] for row in log],
        "properties": pa.array(
            [[("INNER_NUM", str(row[4]))] for row in log], pa.map_(pa.string(), pa.string())
        ),
    }
    others = {
        "recordCrc": [0] * len(log),
        "bornTimestamp": [0] * len(log),
        "storeTimestamp": [0] * len(log),
        "bornHost": [""] * len(log),
        "storeHost": [""] * len(log),
    }
    return pa.RecordBatch.from_pydict({**columns, **others})


@pytest.mark.parametrize(
    ("topic", "time_ms", "folder"),
    [
        ("T", 0, "topicFolder=T/day=1970-01-01"),
        ("T", DAY_MS - 1, "topicFolder=T/day=1970-01-01"),
        ("T", -1, "topicFolder=T/day=1969-12-31"),
        ("%RETRY%g", BEGIN_MS, "topicFolder=_RETRY_g/day=2027-01-15"),
        ("é" * 120, BEGIN_MS, f"topicFolder={'_' * 100}/day=2027-01-15"),
        ("", BEGIN_MS, "topicFolder=__HIVE_DEFAULT_PARTITION__/day=2027-01-15"),
    ],
)
def test_folders_are_named_as_spark_names_them(topic, time_ms, folder):
    batch = pa.RecordBatch.from_pydict({"topic": [topic], "storeTimestamp": [time_ms]})
    numbers, folders = folders_of(batch, "a/b=c d")
    assert (numbers.tolist(), folders) == ([0], [f"store=a%2Fb%3Dc d/{folder}"])


def test_columns_of_files_are_those_that_readers_expect(store, tmp_path):
    archive = ArchiveFolder(tmp_path / "archive")
    noted = write_rows(target_in(archive), 0, read(store)[0])
    assert pq.ParquetFile(archive.staged(1) / noted.files[0]).schema_arrow.names == list(IN_FILES)
