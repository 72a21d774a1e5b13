"""What the driver reads to plan a batch or a stream: ends of queues and single records, not the log."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import numpy as np
import pytest

from seglog import MessageStore
from seglog.clock import VirtualClock
from seglog.errors import CorruptError, InvalidArgumentError
from seglog.spark.source.read.log_end import find_log_end
from seglog.spark.source.read.log_plan import plan_log
from seglog.spark.source.read.queue_units import Queue, StoreQueues, look_at_store
from seglog.spark.source.read.read_plan import plan_pieces, read_piece
from seglog.spark.source.wanted.options import Options, parse_options
from seglog.storage.files.files import RealFiles
from seglog.storage.format.queue import CQ_UNIT, pre_blanks
from seglog.storage.walk import LogScan
from tests.support.material.golden import expected, extract
from tests.support.material.stores import SMALL_INDEX, served
from tests.support.streams import COLUMNS, Stream

BEGIN_MS = 1_800_000_000_000
SEGMENT = 1 << 16


@pytest.fixture
def walked(monkeypatch):
    """Counts the records that are walked over."""
    counts = Counter()
    plain = LogScan.iter_rows

    def iter_rows(self, progress=None):
        for rows in plain(self, progress):
            counts["records"] += len(rows)
            yield rows

    monkeypatch.setattr(LogScan, "iter_rows", iter_rows)
    return counts


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A store of 3,000 messages in five queues, a second between any two."""
    root, clock = tmp_path_factory.mktemp("planning") / "store", VirtualClock(BEGIN_MS)
    with MessageStore.open(root, segment_size_bytes=SEGMENT, clock=clock, **SMALL_INDEX) as store:
        for number in range(3000):
            store.put(f"T{number % 5 // 3}", b"%d" % number + bytes(300), queue_id=number % 5)
            clock.advance(1000)
    return root


@pytest.fixture
def filled(template, tmp_path):
    """A copy of that store."""
    return shutil.copytree(template, tmp_path / "store")


def read(options):
    batches = [
        batch
        for piece in plan_pieces(options)
        for batch in read_piece(piece, options, options.selection, COLUMNS)
    ]
    return [row for batch in batches for row in batch.to_pylist()]


def numbers(rows):
    return sorted(int(row["body"].rstrip(b"\0")) for row in rows)


def test_a_read_in_batch_is_planned_without_a_walk(filled, walked):
    plan = plan_log(filled, RealFiles())
    assert plan.end_phy_offset > 1_000_000
    assert walked["records"] < 10


@pytest.mark.parametrize("starting", [None, "earliest", {("T0", 0): 300, ("T0", 1): 300}])
def test_a_stream_begins_and_goes_on_without_a_walk(filled, walked, starting):
    topics = frozenset({"T0"}) if isinstance(starting, dict) else None
    stream = Stream(filled, starting=starting, walked_bytes=0, topics=topics)
    stream.restart()
    end = stream.planned(500)
    stream.plan.pieces(stream.at, end)
    stream.restart()
    stream.plan.stop_at_end()
    stream.plan.pieces(stream.at, end)
    assert walked["records"] < 10


@pytest.mark.parametrize("most", [1, 37, 1000, None])
def test_batches_that_units_end_are_those_that_a_walk_ends(filled, most):
    ways = [Stream(filled, starting="earliest", walked_bytes=walked) for walked in (0, 1 << 30)]
    for _ in range(5):
        one, other = (stream.batch(most) for stream in ways)
        assert numbers(one) == numbers(other)
        assert ways[0].at == ways[1].at


@pytest.mark.parametrize("name", ["roll", "comp", "innerbatch", "broker-store", "roll-halt"])
def test_the_end_that_queues_show_is_that_of_a_walk(name, tmp_path):
    root = extract(name, tmp_path)
    files = RealFiles()
    listing, queues = look_at_store(files, root)
    found = find_log_end(files, root, listing, queues, verify=True)
    without = StoreQueues(queues._sources[False], queues._sources[True], [])
    walked = find_log_end(files, root, listing, without, verify=True)
    assert (found.phy_offset, found.last_phy_offset) == (walked.phy_offset, walked.last_phy_offset)
    assert walked.is_walked
    assert found.lost == walked.lost == ()


def test_latest_does_not_fail_on_old_damage(filled):
    first = filled / "commitlog" / f"{0:020}"
    data = bytearray(first.read_bytes())
    data[5000:9000] = bytes(4000)
    first.write_bytes(data)
    stream = Stream(filled)
    with MessageStore.open(filled) as store:
        store.put("T0", b"3000")
        assert numbers(stream.batch()) == [3000]
    with pytest.raises(CorruptError, match=r"commitlog/0{20}"):
        Stream(filled, starting="earliest").batch()


def test_without_queues_a_stream_goes_on_by_the_log(filled):
    stream = Stream(filled, starting="earliest", walked_bytes=0)
    given = numbers(stream.batch(700))
    for path in sorted((filled / "consumequeue").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    given += numbers(stream.batch(700)) + numbers(stream.batch())
    assert given == list(range(3000))


class Units:
    """Units in memory."""

    def __init__(self, units, first=0):
        self.units, self.first = units, first

    def read(self, _topic, _queue_id, first_slot, count):
        found = np.zeros(count, CQ_UNIT.dtype)
        part = self.units[max(0, first_slot - self.first) : max(0, first_slot + count - self.first)]
        found[: len(part)] = part
        return found

    def extent(self, _topic, _queue_id):
        return range(self.first, self.first + len(self.units))


@pytest.mark.parametrize("blanks", [0, 1, 300, 5000])
@pytest.mark.parametrize("used", [0, 1, 255, 256, 257, 9000])
@pytest.mark.parametrize("hint", [0, 5000, 1 << 40])
def test_places_are_found_in_queues_of_any_length(blanks, used, hint):
    units = np.zeros(blanks + used + 700, CQ_UNIT.dtype)
    units[:blanks] = pre_blanks(blanks)
    units["phy_offset"][blanks : blanks + used] = 1000 + 10 * np.arange(used)
    units["size_bytes"][blanks : blanks + used] = 10
    source, queue = Units(units), Queue("T", 0)
    queues = StoreQueues(source, source, [queue], {("T", 0): hint})
    assert queues.ends[queue] == (blanks + used if used else queues.ends[queue])
    for slot in {0, 1, used // 2, used - 1} & set(range(used)):
        place = 1000 + 10 * slot
        assert queues.first_at(queue, place) == queues.first_at(queue, place - 9) == blanks + slot
        assert slot == 0 or queues.number_at(queue, place, hint) == blanks + slot
    assert queues.first_at(queue, 0) == (blanks if used else queues.ends[queue])
    assert queues.first_at(queue, 1 << 40) == queues.ends[queue]


def test_times_leave_files_of_the_log_out(filled):
    asked = {"paths": str(filled), "startingTimestamp": str(BEGIN_MS + 1_500_000)}
    asked["endingTimestamp"] = str(BEGIN_MS + 1_700_000)
    options = parse_options(asked)
    assert numbers(read(options)) == list(range(1500, 1700))
    every = plan_log(filled, RealFiles()).splits
    some = plan_log(filled, RealFiles(), times_ms=options.selection.store_times_ms).splits
    assert 0 < sum(one.end - one.start for one in some) < 0.6 * sum(one.end - one.start for one in every)


def test_a_clock_that_went_back_a_little_hides_nothing(tmp_path):
    clock = VirtualClock(BEGIN_MS)
    with MessageStore.open(tmp_path, segment_size_bytes=8192, clock=clock) as store:
        for number in range(400):
            store.put("T", b"%d" % number + bytes(200))
            clock.advance(-60_000 if number % 40 == 39 else 10_000)
    with MessageStore.open(tmp_path, read_only=True) as store:
        stored = [one.store_timestamp_ms for one in served(store)["T", 0]]
    for begin in range(BEGIN_MS, max(stored), 300_000):
        options = Options((str(tmp_path),), starting_ms=begin, ending_ms=begin + 200_000)
        wanted = [number for number, at in enumerate(stored) if begin <= at < begin + 200_000]
        assert numbers(read(options)) == wanted


def test_a_stream_begins_at_a_time(filled):
    stream = Stream(filled, starting_ms=BEGIN_MS + 2_990_000)
    assert stream.at[str(filled)]["physicalOffset"] > 0
    assert numbers(stream.batch()) == list(range(2990, 3000))


def test_queues_begin_and_end_at_times_of_their_own(filled):
    times = {"0": BEGIN_MS + 2_000_000, "1": BEGIN_MS + 2_500_000, "2": BEGIN_MS + 9_000_000}
    by_queue = json.dumps({"T0": times})
    asked = {"paths": str(filled), "topic": "T0", "startingOffsetsByTimestamp": by_queue}
    options = parse_options(asked)
    wanted = [*range(2000, 3000, 5), *range(2501, 3000, 5)]
    assert numbers(read(options)) == sorted(wanted)
    stream = Stream(filled, topics=options.topics, starting_by_ms=options.starting_by_ms)
    assert numbers(stream.batch(100) + stream.batch()) == sorted(wanted)
    with MessageStore.open(filled) as store:
        store.put("T0", b"3000", queue_id=2)
    assert numbers(stream.batch()) == [3000]
    ends = parse_options({"paths": str(filled), "topic": "T0", "endingOffsetsByTimestamp": by_queue})
    assert len(read(ends)) == 400 + 500 + 600 + 1


@pytest.mark.parametrize("text", ['{"T": 5}', '{"T": {"x": 5}}', '{"T": {"0": -1}}', '{"T": {"0": "5"}}'])
def test_times_that_are_none_are_refused(text):
    with pytest.raises(InvalidArgumentError, match="startingOffsetsByTimestamp"):
        parse_options({"path": "p", "startingOffsetsByTimestamp": text})


def test_a_batch_waits_for_messages_but_not_for_ever(filled):
    clock = VirtualClock()
    options = {"min_offsets_per_trigger": 10, "max_trigger_delay_ms": 60_000}
    stream = Stream(filled, starting="earliest", **options)
    stream.plan.clock = clock
    assert len(stream.batch()) == 3000
    with MessageStore.open(filled) as store:
        for number in range(3000, 3009):
            store.put("T0", b"%d" % number)
        at = stream.at
        assert stream.batch() == []
        assert stream.at == at
        store.put("T0", b"3009")
        assert numbers(stream.batch()) == list(range(3000, 3010))
        store.put("T0", b"3010")
        assert stream.batch() == []
        clock.advance(60_000)
        assert numbers(stream.batch()) == [3010]
        store.put("T0", b"3011")
        stream.plan.stop_at_end()
        assert numbers(stream.batch()) == [3011]


def test_golden_ends_are_those_that_rocketmq_serves(tmp_path):
    root = extract("roll", tmp_path)
    _listing, queues = look_at_store(RealFiles(), root)
    ends = {queue.key: queues.queue_offset(queue, end) for queue, end in queues.ends.items() if end}
    wanted = {
        (line["topic"], line["queueId"]): line["maxOffset"]
        for line in expected("roll")
        if line["kind"] == "queue" and line["maxOffset"]
    }
    assert ends == wanted
