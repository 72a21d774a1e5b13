"""A read ends in one of nine ways, each with the offset to go on from; names and offsets are RocketMQ's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.queue.consume_queue import CQ_UNIT, PRE_BLANK_BYTES
from seglog.storage.format.record.tags import tags_code
from seglog.storage.reads.get import read_queue
from seglog.storage.reads.message_filter import TagFilter
from tests.support.material.records import Record
from tests.support.rows import every_row

UNITS_PER_FILE = 10
EVERYTHING = 1 << 30


@dataclass
class Memory:
    """A queue and its log in memory: one message per slot, with the tag given; None has no record."""

    tags: Sequence[str | None]
    min_offset: int = 0
    lost: set[int] = field(default_factory=set)
    pre_blank: set[int] = field(default_factory=set)
    never_written: set[int] = field(default_factory=set)
    units_per_file: int = UNITS_PER_FILE
    max_phy_offset: int = -1

    def __post_init__(self) -> None:
        self.max_offset = len(self.tags)
        self._records: dict[int, bytes] = {}
        self._units = np.zeros(len(self.tags), CQ_UNIT.dtype)
        phy_offset = 0
        for slot, tag in enumerate(self.tags):
            raw = b"" if tag is None else f"TAGS\x01{tag}\x02".encode()
            data = Record(phy_offset=phy_offset, queue_offset=slot, properties=raw).pack()
            self._units[slot] = (phy_offset, len(data), tags_code(tag))
            if slot in self.pre_blank:
                self._units[slot] = (0, PRE_BLANK_BYTES, 0)
            elif slot in self.never_written:
                self._units[slot] = (0, 0, 0)
            elif slot not in self.lost:
                self._records[phy_offset] = data
            phy_offset += len(data)

    def units(self, queue_offset, count):
        return self._units[queue_offset : queue_offset + max(0, count)]

    def read(self, phy_offset, size_bytes):
        data = self._records.get(phy_offset)
        return None if data is None or len(data) != size_bytes else memoryview(data)

    def read_run(self, phy_offset, size_bytes):
        run = b""
        while len(run) < size_bytes and phy_offset + len(run) in self._records:
            run += self._records[phy_offset + len(run)]
        return memoryview(run) if len(run) == size_bytes else None

    def pull(self, queue_offset, max_count=32, wanted=None, max_bytes=EVERYTHING):
        return read_queue(self, self, queue_offset, max_count, wanted and TagFilter(wanted), max_bytes)


TWENTY_FIVE = ["TagA"] * 25
S = GetStatus
# name: (queue, arguments of get, status, next offset, offsets of the messages)
CASES = {
    "empty queue": (Memory([]), (0,), S.NO_MESSAGE_IN_QUEUE, 0, []),
    "empty queue, far offset": (Memory([]), (99,), S.NO_MESSAGE_IN_QUEUE, 0, []),
    "empty queue, negative offset": (Memory([]), (-1,), S.NO_MESSAGE_IN_QUEUE, 0, []),
    "below the minimum": (Memory(TWENTY_FIVE, min_offset=7), (3,), S.OFFSET_TOO_SMALL, 7, []),
    "negative offset": (Memory(TWENTY_FIVE), (-1,), S.OFFSET_TOO_SMALL, 0, []),
    "very negative offset": (Memory(TWENTY_FIVE, min_offset=7), (-(2**63),), S.OFFSET_TOO_SMALL, 7, []),
    "at the maximum": (Memory(TWENTY_FIVE), (25,), S.OFFSET_OVERFLOW_ONE, 25, []),
    "everything expired, at the maximum": (
        Memory(TWENTY_FIVE, min_offset=25), (25,), S.OFFSET_OVERFLOW_ONE, 25, [],
    ),
    "everything expired, below": (Memory(TWENTY_FIVE, min_offset=25), (24,), S.OFFSET_TOO_SMALL, 25, []),
    "beyond the maximum": (Memory(TWENTY_FIVE), (26,), S.OFFSET_OVERFLOW_BADLY, 25, []),
    "far beyond the maximum": (Memory(TWENTY_FIVE), (2**62,), S.OFFSET_OVERFLOW_BADLY, 25, []),
    "first message": (Memory(TWENTY_FIVE), (0, 1), S.FOUND, 1, [0]),
    "three from the middle": (Memory(TWENTY_FIVE), (3, 3), S.FOUND, 6, [3, 4, 5]),
    "no further than the queue file": (Memory(TWENTY_FIVE), (8,), S.FOUND, 10, [8, 9]),
    "the next queue file from its start": (Memory(TWENTY_FIVE), (10,), S.FOUND, 20, list(range(10, 20))),
    "no further than the maximum": (Memory(TWENTY_FIVE), (22,), S.FOUND, 25, [22, 23, 24]),
    "huge count": (Memory(TWENTY_FIVE), (22, 2**40), S.FOUND, 25, [22, 23, 24]),
    "one byte still gives the first message whole": (Memory(TWENTY_FIVE), (3, 9, None, 1), S.FOUND, 4, [3]),
    "bytes for two": (Memory(TWENTY_FIVE), (3, 9, None, 2 * 111), S.FOUND, 5, [3, 4]),
    "bytes for almost three": (Memory(TWENTY_FIVE), (3, 9, None, 3 * 111 - 1), S.FOUND, 5, [3, 4]),
    "slots that no file ever held": (
        Memory(TWENTY_FIVE, never_written=set(range(5, 25))), (6,), S.OFFSET_FOUND_NULL, 10, [],
    ),
    "slots that no file ever held, at the end": (
        Memory(TWENTY_FIVE, never_written=set(range(5, 25))), (22,), S.OFFSET_FOUND_NULL, 25, [],
    ),
    "all examined filtered out": (Memory(TWENTY_FIVE), (3, 2, "TagB"), S.NO_MATCHED_MESSAGE, 10, []),
    "filtered out up to the maximum": (Memory(TWENTY_FIVE), (20, 2, "TagB"), S.NO_MATCHED_MESSAGE, 25, []),
    "some filtered out": (
        Memory(["TagA", "TagB"] * 5), (0, 9, "TagB"), S.FOUND, 10, [1, 3, 5, 7, 9],
    ),
    "filter stops at the count, before the next match": (
        Memory(["TagA", "TagB"] * 5), (0, 2, "TagB"), S.FOUND, 5, [1, 3],
    ),
    "either of two tags": (
        Memory(["TagA", "TagB", "TagC"] * 3), (0, 9, "TagB||TagC"), S.FOUND, 9, [1, 2, 4, 5, 7, 8],
    ),
    "codes collide, tags do not": (Memory(["Aa", "BB"] * 4), (0, 9, "BB"), S.FOUND, 8, [1, 3, 5, 7]),
    "only colliding codes": (Memory(["Aa"] * 4), (0, 9, "BB"), S.NO_MATCHED_MESSAGE, 4, []),
    "no tag matches no filter": (Memory([None] * 4), (0, 9, "TagA"), S.NO_MATCHED_MESSAGE, 4, []),
    "record gone from the log": (Memory(TWENTY_FIVE, lost={3}), (3, 1), S.MESSAGE_WAS_REMOVING, 4, []),
    "all records gone": (
        Memory(TWENTY_FIVE, lost=set(range(25))), (3,), S.MESSAGE_WAS_REMOVING, 10, [],
    ),
    "pre-blank slot": (Memory(TWENTY_FIVE, pre_blank={3}), (3, 1), S.MESSAGE_WAS_REMOVING, 4, []),
    "one record gone costs only that record": (
        Memory(TWENTY_FIVE, lost={4}), (3, 3), S.FOUND, 6, [3, 5],
    ),
    "one slot never written costs only that slot": (
        Memory(TWENTY_FIVE, never_written={3}), (3, 3), S.FOUND, 6, [4, 5],
    ),
    "gone and filtered out": (
        Memory(["TagB", "TagA"] * 2, lost={0}), (0, 9, "TagB"), S.FOUND, 4, [2],
    ),
}  # fmt: skip


def test_read_ends_as_in_rocketmq():
    with every_row() as row:
        for name, (queue, arguments, status, next_offset, offsets) in CASES.items():
            with row(name):
                result = queue.pull(*arguments)
                assert result.status is status
                assert result.next_offset == next_offset
                assert [message.queue_offset for message in result] == offsets
                assert (result.min_offset, result.max_offset) == (queue.min_offset, queue.max_offset)


def test_queue_that_cannot_exist_has_no_logic_queue():
    result = read_queue(None, Memory([]), 5, 32, None, EVERYTHING)
    assert (result.status, result.next_offset) == (S.NO_MATCHED_LOGIC_QUEUE, 0)


def test_the_nine_statuses_are_rocketmqs():
    covered = {case[2] for case in CASES.values()} | {S.NO_MATCHED_LOGIC_QUEUE}
    assert covered == set(GetStatus)
    assert all(status.name == status.value for status in GetStatus)


def test_filtered_read_looks_at_eight_hundred_units_at_most():
    queue = Memory(["TagA"] * 1000 + ["TagB"], units_per_file=2000)
    first = queue.pull(0, 32, "TagB")
    assert (first.status, first.next_offset) == (S.NO_MATCHED_MESSAGE, 800)
    assert queue.pull(800, 32, "TagB").messages[0].queue_offset == 1000


def test_result_counts_iterates_and_decodes_once():
    result = Memory(TWENTY_FIVE).pull(0, 3)
    assert len(result) == len(result.records) == 3
    assert result.messages is result.messages
    assert list(result) == result.messages


def test_neighbours_come_as_one_run():
    queue = Memory(TWENTY_FIVE)
    result = queue.pull(0, 3)
    assert result.runs == [b"".join(bytes(record) for record in result.records)]
    assert [len(record) for record in result.records] == [len(result.runs[0]) // 3] * 3


def test_runs_end_where_a_filter_leaves_something_out_or_something_is_lost():
    assert len(Memory(["TagA", "TagB"] * 5).pull(0, 9, "TagB").runs) == 5
    assert len(Memory(TWENTY_FIVE, lost={4}).pull(3, 3).runs) == 2


def test_results_are_equal_that_found_the_same():
    queue = Memory(TWENTY_FIVE)
    assert queue.pull(0, 3) == queue.pull(0, 3) != queue.pull(0, 4)
    assert queue.pull(0, 3) != queue.pull(0, 3).records
    assert repr(queue.pull(0, 3)) == (
        "GetResult(status=GetStatus.FOUND, next_offset=3, min_offset=0, max_offset=25, records=<3>, lost=())"
    )


slots = st.sets(st.integers(0, 39))


@given(
    st.lists(st.sampled_from(["TagA", "Aa", "BB", None]), min_size=1, max_size=40),
    slots,
    slots,
    st.integers(1, 9),
    st.sampled_from([None, "TagA", "BB", "Aa || TagA"]),
    st.integers(1, 500),
)
def test_going_on_from_each_next_offset_meets_every_readable_message_once(
    tags, lost, pre_blank, max_count, wanted, max_bytes
):
    queue = Memory(tags, lost=lost, pre_blank=pre_blank)
    met, at = [], 0
    while (result := queue.pull(at, max_count, wanted, max_bytes)).status is not S.OFFSET_OVERFLOW_ONE:
        assert at < result.next_offset <= len(tags)
        assert len(result) <= max_count
        assert bool(result.records) == (result.status is S.FOUND)
        met += [message.queue_offset for message in result]
        at = result.next_offset
    names = None if wanted is None else {name.strip() for name in wanted.split("||")}
    expected = [slot for slot, tag in enumerate(tags) if slot not in lost | pre_blank]
    assert met == [slot for slot in expected if names is None or tags[slot] in names]
