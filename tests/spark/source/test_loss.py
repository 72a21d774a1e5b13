"""What a read in batch or a stream calls a loss, and what it does not."""

from __future__ import annotations

import logging
import shutil
from typing import Final

import pytest

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.doctor.check.check import check_store
from seglog.errors import CorruptError
from seglog.spark.compact.compact import Compaction
from seglog.spark.compact.policy import Policy
from seglog.spark.compact.swap import discard_old, files_around
from seglog.spark.source.read.losses import Loss, report_losses
from seglog.spark.source.read.read_plan import plan_pieces, read_piece
from seglog.spark.source.wanted.options import Options
from seglog.storage.files.files import RealFiles
from seglog.storage.format.record import PLACEHOLDER_FLAG
from seglog.storage.survey.store_survey import survey
from tests.support.local_runner import LocalRunner
from tests.support.material.stores import SMALL_INDEX, AllLengths
from tests.support.streams import COLUMNS, Stream

SIZES: Final[AllLengths] = {**SMALL_INDEX, "segment_size_bytes": 8192, "queue_file_size_bytes": 400}
BEGIN_MS = 1_800_000_000_000


class Store:
    """A store whose messages say what they are."""

    def __init__(self, root):
        self.root, self.clock, self.count = root, VirtualClock(BEGIN_MS), 0

    def put(self, count, *, topic="T", keys=None):
        """Stores messages of which the next has the next number; returns their places."""
        self.clock.advance(1000)
        with MessageStore.open(self.root, clock=self.clock, **SIZES) as store:
            places = []
            for _ in range(count):
                body = b"%d" % self.count + b" " * 120
                places.append(store.put(topic, body, queue_id=self.count % 2, keys=keys and keys(self.count)))
                self.count += 1
            return places

    def cut(self, phy_offset):
        """Takes the end of the log, which the queues still know."""
        first = phy_offset - phy_offset % SIZES["segment_size_bytes"]
        for path in (self.root / "commitlog").iterdir():
            if int(path.name) > first:
                path.unlink()
            elif int(path.name) == first:
                data = path.read_bytes()
                path.write_bytes(data[: phy_offset - first].ljust(len(data), b"\0"))

    def compact(self, **policy):
        """Compacts topic T."""
        job = Compaction(
            self.root,
            {"T": Policy(**policy)},
            runner=LocalRunner(RealFiles()),
            clock=VirtualClock(self.clock.now_ms() + 1000),
        )
        assert job.apply().is_done
        discard_old(files_around(self.root), self.root)

    def keep(self, name):
        """Copies the store; returns what puts the copy in its place."""
        target = self.root.with_name(name)
        shutil.copytree(self.root, target)

        def put_back():
            shutil.rmtree(self.root)
            shutil.copytree(target, self.root)

        return put_back


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def numbers(rows):
    return sorted(int(row["body"]) for row in rows)


def read(root, **options):
    asked = Options((str(root),), **options)
    batches = [
        batch for piece in plan_pieces(asked) for batch in read_piece(piece, asked, asked.selection, COLUMNS)
    ]
    return [row for batch in batches for row in batch.to_pylist()]


def test_a_lost_tail_ends_a_read_in_batch_and_says_what_is_lost(store, caplog):
    store.cut(store.put(60)[50].phy_offset)
    with pytest.raises(CorruptError, match=r"log-tail-lost: .*lost: T/0 25\.\.29, T/1 25\.\.29") as refused:
        read(store.root)
    assert "failOnDataLoss" in refused.value.help
    told = {finding.code: finding for finding in check_store(store.root).findings}
    assert told["log-tail-lost"].found in str(refused.value)
    assert told["log-tail-lost"].expected in str(refused.value)
    with caplog.at_level(logging.WARNING):
        assert numbers(read(store.root, fail_on_data_loss=False)) == list(range(50))
    assert "T/0 25..29, T/1 25..29" in caplog.text


def test_a_lost_tail_of_topics_that_are_not_asked_for_is_no_loss(store):
    store.put(10, topic="U")
    store.cut(store.put(60)[50].phy_offset)
    assert numbers(read(store.root, topics=frozenset({"U"}))) == list(range(10))


def test_a_lost_tail_ends_a_stream_also_once_tombstones_stand_for_it(store, caplog):
    places = store.put(60)
    stream = Stream(store.root, starting="earliest")
    stream.batch(30)
    store.cut(places[50].phy_offset)
    lax = Stream(store.root, starting="earliest", fail_on_data_loss=False)
    lax.at = stream.at
    with pytest.raises(CorruptError, match=r"log-tail-lost: .*lost: T/0 25\.\.29, T/1 25\.\.29"):
        stream.batch()
    store.put(4)
    stream.restart()
    with pytest.raises(CorruptError, match=r"tombstones: .*lost: T/0 25"):
        stream.batch()
    with caplog.at_level(logging.WARNING):
        assert numbers(lax.batch()) == [*range(30, 50), *range(60, 64)]
    assert "T/1 29" in caplog.text


def test_a_log_that_was_cut_behind_a_stream_and_written_on_is_no_longer_the_one_it_read(store, caplog):
    back = (store.put(100), store.keep("copy"))[1]
    store.put(100)
    stream = Stream(store.root, starting="earliest")
    lax = Stream(store.root, starting="earliest", fail_on_data_loss=False)
    assert len(stream.batch()) == len(lax.batch()) == 200
    back()
    store.put(150)
    for _ in range(2):
        with pytest.raises(
            CorruptError, match=r"log-rolled-back: .*lost: T/0 50\.\.99, T/1 50\.\.99"
        ) as refused:
            stream.batch()
        assert "checkpointLocation" in refused.value.help
        stream.restart()
    with caplog.at_level(logging.WARNING):
        assert numbers(lax.batch()) == list(range(200, 350))
    assert "log-rolled-back" in caplog.text
    assert lax.batch() == []
    store.put(7)
    assert numbers(lax.batch()) == list(range(350, 357))


def test_a_log_that_became_shorter_within_a_segment_is_noticed(store):
    back = (store.put(10), store.keep("copy"))[1]
    store.put(10)
    stream = Stream(store.root, starting="earliest")
    stream.batch()
    back()
    stream.restart()
    with pytest.raises(CorruptError, match=r"log-shorter: .*lost: T/0 5\.\.9, T/1 5\.\.9"):
        stream.batch()
    stream.options = Options(stream.options.paths, fail_on_data_loss=False)
    stream.restart()
    assert stream.batch() == []
    store.put(6)
    assert numbers(stream.batch()) == list(range(20, 26))


def test_a_batch_that_was_planned_before_the_log_was_cut_is_refused_or_read_by_queue_offsets(store):
    back = (store.put(20), store.keep("copy"))[1]
    store.put(20)
    stream = Stream(store.root, starting="earliest")
    lax = Stream(store.root, starting="earliest", fail_on_data_loss=False)
    end = stream.planned(30)
    back()
    store.put(25)
    with pytest.raises(CorruptError, match="log-rolled-back"):
        stream.rows(stream.at, end)
    lax.restart()
    first = lax.rows(lax.at, end)
    lax.done(end)
    assert numbers(first) == list(range(20))
    assert numbers(first + lax.batch()) == [*range(20), *range(40, 65)]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("kill", [False, True])
def test_a_stream_goes_on_behind_a_compaction(store, strict, kill):
    store.put(200, keys=lambda number: f"k{number if number < 20 else number % 40 + 20}")
    stream = Stream(store.root, starting="earliest", fail_on_data_loss=strict)
    given = numbers(stream.batch(90))
    planned = stream.planned(40) if kill else None
    store.compact(compact=True)
    stream.restart()
    if planned is not None:
        given += numbers(stream.rows(stream.at, planned))
        stream.done(planned)
    given += numbers(stream.batch(10))
    stream.restart()
    store.put(3)
    at = None
    while at != stream.at:
        at = stream.at
        given += numbers(stream.batch(25))  # of which some may be placeholders, which are no rows
    assert given == [*range(90), *range(160, 203)]


@pytest.mark.parametrize("strict", [True, False])
def test_messages_in_front_of_a_queue_that_a_compaction_dropped_are_no_loss(store, strict):
    store.put(200)
    stream = Stream(store.root, starting="earliest", fail_on_data_loss=strict)
    stream.batch(50)
    store.compact(retention_bytes=4000)
    assert len(numbers(stream.batch())) < 60
    store.put(100)
    store.compact(retention_bytes=3000)
    stream.restart()
    assert 0 < len(numbers(stream.batch())) < 60


def test_unread_messages_that_retention_took_in_front_of_a_compaction_are_lost(store):
    store.put(300)
    stream = Stream(store.root, starting="earliest")
    lax = Stream(store.root, starting="earliest", fail_on_data_loss=False)
    stream.batch(10)
    for path in sorted((store.root / "commitlog").iterdir())[:2]:
        path.unlink()
    with MessageStore.open(store.root, clock=store.clock) as opened:
        low = [opened.min_offset("T", queue_id) for queue_id in (0, 1)]
    store.compact(retention_bytes=8000)
    lost = rf"retention: .*lost: T/0 5\.\.{low[0] - 1}, T/1 5\.\.{low[1] - 1}, expected"
    with pytest.raises(CorruptError, match=lost):
        stream.batch()
    left = numbers(lax.batch())
    assert left == list(range(left[0], 300))


def test_a_stream_that_read_what_retention_took_lost_nothing(store):
    store.put(200)
    stream = Stream(store.root, starting="earliest")
    stream.batch()
    first, *_others, last = sorted((store.root / "commitlog").iterdir())
    first.unlink()
    store.put(3)
    assert numbers(stream.batch()) == [200, 201, 202]
    for path in sorted((store.root / "commitlog").iterdir()):
        if path < last:
            path.unlink()
    assert stream.batch() == []


@pytest.mark.parametrize("strict", [True, False])
def test_a_store_that_a_copy_was_made_of_and_put_back_is_the_same(store, strict):
    store.put(50)
    stream = Stream(store.root, starting="earliest", fail_on_data_loss=strict)
    stream.batch(20)
    store.keep("copy")()
    stream.restart()
    assert numbers(stream.batch()) == list(range(20, 50))


def test_an_open_writer_is_no_lost_tail(store):
    store.put(5)
    stream = Stream(store.root, starting="earliest")
    given = numbers(stream.batch())
    with MessageStore.open(store.root, clock=store.clock) as opened:
        for number in range(5, 200):
            opened.put("T", b"%d" % number)
            if not number % 17:
                given += numbers(stream.batch())
                assert len(read(store.root)) == number + 1
    assert given + numbers(stream.batch()) == list(range(200))


def test_placeholders_of_a_compaction_are_no_messages_unless_asked_for(store):
    store.put(40, keys=lambda number: f"k{number % 7}")
    before = {row["physicalOffset"] for row in read(store.root)}
    store.compact(compact=True, retention_bytes=None)
    assert numbers(read(store.root)) == list(range(26, 40))
    rows = read(store.root, include_placeholders=True)
    low = {queue: min(row["queueOffset"] for row in rows if row["queueId"] == queue) for queue in (0, 1)}
    assert len(rows) == sum(20 - first for first in low.values())
    assert before.isdisjoint(row["physicalOffset"] for row in rows)


def test_messages_with_the_flag_of_placeholders_stay_messages(store):
    with MessageStore.open(store.root, **SIZES) as opened:
        opened.put("T", b"5", flag=PLACEHOLDER_FLAG)
        opened.put("T", b"", flag=PLACEHOLDER_FLAG, tags="T")
        opened.put("T", b"", flag=PLACEHOLDER_FLAG, keys="k")
    assert len(read(store.root)) == 3


def test_a_warning_shows_control_characters_of_a_store_as_escapes(store, caplog):
    store.put(1)
    geometry = survey(store.root, RealFiles()).geometry
    loss = Loss(0, 100, "record-crc", found="__CRC32#\x01\x1b[41mPWNED\x02")
    with caplog.at_level(logging.WARNING):
        report_losses("a\x1bstore", [loss], geometry, fails=False)
    assert "\x1b" not in caplog.text
    assert r"\x1b[41mPWNED" in caplog.text
