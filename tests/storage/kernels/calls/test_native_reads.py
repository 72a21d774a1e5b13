"""A plain read in C finds what the Python method finds, and everything else is left to it."""

from __future__ import annotations

import gc
import weakref
from contextlib import contextmanager
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from seglog.errors import ClosedError, InvalidArgumentError, NotFoundError
from seglog.storage import lookups
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.record.message import decode_message
from seglog.storage.kernels import NATIVE, PYTHON
from seglog.storage.kernels.calls.read_result import PythonReadResult
from seglog.storage.reads import sequential_reads as plain_reads
from seglog.storage.reads.get import GetResult
from seglog.storage.reads.message_filter import TagFilter
from seglog.storage.store import MessageStore
from tests.support.machine.kernels import BOTH, native
from tests.support.machine.watched_reads import KINDS, Watched, damage
from tests.support.machine.watched_reads import put_kind as put
from tests.support.material.stores import SMALL, SMALL_INDEX, OpenStore, new_clock, writer_of
from tests.support.rows import every_row

TAGS = (None, "TagA", "Aa", "BB")


lives = st.sampled_from(["as it is", "reopened", "damaged"])
messages = st.tuples(
    st.integers(0, 2), st.sampled_from(TAGS), st.sampled_from(("usual", "usual", *KINDS)), st.integers(0, 300)
)
reads = st.tuples(
    st.integers(0, 3),
    st.integers(-2, 45),
    st.sampled_from([1, 2, 3, 7, 32, 900]),
    st.sampled_from(
        [None, "*", "TagA", "BB", "Aa || TagA", "none", TagFilter("BB", exact=False), TagFilter("Aa")]
    ),
    st.sampled_from([1, 200, 700, 1 << 20]),
)  # fmt: skip


@pytest.mark.parametrize("reader", [*BOTH, "read-only"])
@given(
    st.lists(messages, min_size=1, max_size=60),
    st.lists(reads, min_size=1, max_size=20),
    lives,
    st.integers(0, 1 << 20),
)
def test_both_ways_of_reading_find_the_same(module_folders, reader, puts, questions, life, place):
    root = module_folders.mktemp("store") / "store"
    step_bytes = 0 if life == "damaged" else 2000
    store = MessageStore.open(root, **SMALL, **SMALL_INDEX, clock=new_clock(), recovery_step_bytes=step_bytes)
    for number, message in enumerate(puts):
        put(store, number, *message)
    # What the store appended itself is no tombstone; those made here are of another life, as real ones are.
    has_lost = any(kind == "lost" for _queue_id, _tag, kind, _size in puts)
    if life != "as it is" or reader == "read-only" or has_lost:
        end = store.max_phy_offset
        store.close()
        if life == "damaged":
            damage(root, place % end)
        store = MessageStore.open(root, **SMALL_INDEX, clock=new_clock(), read_only=reader == "read-only")
    if reader != "read-only":
        for number, (queue_id, tag, kind, size) in enumerate(puts[::2]):  # some of its own behind those
            put(store, number, queue_id, tag, "filler" if kind == "lost" else kind, size)
    with store, looking_ahead(units=7, bytes_=1500):
        watched = Watched(store, NATIVE if reader == NATIVE else PYTHON)
        for queue_id, queue_offset, max_count, wanted, max_bytes in questions:
            watched.is_plain("T", queue_id, queue_offset, max_count, wanted, max_bytes=max_bytes)
        for queue_id in range(3):
            at = store.min_offset("T", queue_id)
            while at < store.max_offset("T", queue_id):
                watched.is_plain("T", queue_id, at, 3)
                at = watched.get("T", queue_id, at, 3).next_offset


@contextmanager
def looking_ahead(units, bytes_):
    """Makes plain reads in Python look ahead in small stores too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_reads, "_STRETCH_UNITS", units)
        patch.setattr(plain_reads, "_STRETCH_BYTES", bytes_)
        patch.setattr(plain_reads, "_MIN_STRETCH_UNITS", 2)
        yield


@pytest.fixture
def watched(open_store: OpenStore):
    store = open_store()
    for number in range(40):
        put(store, number, number % 2, TAGS[number // 2 % 4], "usual", 100)
    return Watched(store)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("T", 0, 0), {}),
        (("T", 0, 3, 1), {}),
        (("T", 1, 19, 32), {}),
        (("T", 0, 8, 32, None), {}),
        (("T", 0, 8, 32, "*"), {}),
        (("T", 0, 0, 5, "TagA"), {}),
        (("T", 0, 0, 5, "TagA || BB"), {}),
        (("T", 0, 0, 5, "absent"), {}),
        pytest.param(("T", 0, 0, 5, TagFilter("TagA")), {}, id="tag filter"),
        pytest.param(("T", 0, 0, 5, TagFilter("TagA", exact=False)), {}, id="tag filter by hash"),
        (("T", 0, 0), {"max_bytes": 1}),
        (("T", 0, 0), {"max_bytes": 900, "filter": "Aa"}),
        (("T", 0), {"queue_offset": 2, "max_count": 4}),
        ((), {"topic": "T", "queue_id": 1, "queue_offset": 2}),
    ],
    ids=str,
)
def test_plain_reads_never_leave_c(watched, arguments, named):
    assert watched.is_plain(*arguments, **named)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("T", 0, -1), {}),
        (("T", 0, 20), {}),
        (("T", 7, 0), {}),
        (("T", -1, 0), {}),
        (("T", 2**40, 0), {}),
        (("absent", 0, 0), {}),
        (("no/topic", 0, 0), {}),
    ],
    ids=str,
)
def test_what_is_not_plain_is_answered_by_python(watched, arguments, named):
    assert not watched.is_plain(*arguments, **named)


@pytest.mark.parametrize("arguments", [("T", 0, 2**80), ("T", 0, 0, 2**70)], ids=str)
def test_numbers_beyond_64_bits_are_refused_by_both(watched, arguments):
    for get in (partial(MessageStore.get, watched.store), watched.get):
        with pytest.raises(InvalidArgumentError, match=r"an integer (in 0\.\.|up to )9223372036854775807"):
            get(*arguments)


def test_queue_and_filter_are_met_once(open_store: OpenStore):
    store = open_store()
    put(store, 0, 0, "TagA", "usual", 10)
    watched = Watched(store)
    for _ in range(3):
        watched.get("T", 0, 0, 1, "TagA")
    assert watched.slow_calls == 1


def test_filters_without_number_are_not_all_kept(watched):
    for number in range(200):
        assert watched.is_plain("T", 0, 0, 1, f"tag{number} || TagA")


def test_a_tombstone_is_left_to_python_and_its_neighbours_are_not(open_store: OpenStore):
    with open_store() as before:
        for number, kind in enumerate(["usual", "lost", "usual", "filler"]):
            put(before, number, 0, None, kind, 50)
    store = open_store()
    for number in (4, 5):
        put(store, number, 0, None, "filler", 50)
    watched = Watched(store)
    watched.get("T", 0, 0)
    assert watched.is_plain("T", 0, 0, 1)
    assert not watched.is_plain("T", 0, 0, 3)
    assert watched.is_plain("T", 0, 2, 1)
    assert watched.get("T", 0, 0).lost == (range(1, 2),)
    assert watched.is_plain("T", 0, 4, 2)
    assert not watched.is_plain("T", 0, 3, 2)


def test_what_is_put_meanwhile_is_found(watched):
    for number in range(30):
        put(watched.store, number, 1, None, "usual", 200)
        at = watched.store.max_offset("T", 1) - 1
        assert [message.queue_offset for message in watched.get("T", 1, at)] == [at]


def test_a_reopened_store_is_read_in_c_once_python_checked_the_blocks(open_store: OpenStore):
    with open_store(recovery_step_bytes=1000) as store:
        for number in range(100):
            put(store, number, 0, None, "usual", 100)
    store = open_store()
    assert writer_of(store).log.guard is not None
    watched = Watched(store)
    for offset in range(0, 100, 10):
        watched.get("T", 0, offset)
    assert all(watched.is_plain("T", 0, offset) for offset in range(0, 100, 10))


def test_a_block_that_is_not_as_it_was_is_never_read_in_c(open_store: OpenStore, tmp_path):
    with open_store(recovery_step_bytes=1000) as store:
        for number in range(100):
            put(store, number, 0, None, "usual", 100)
    path = tmp_path / "store" / "commitlog" / f"{4096:020}"
    data = bytearray(path.read_bytes())
    data[1000:1008] = b"\x5a" * 8  # more than the one bit that an opening puts right
    path.write_bytes(data)
    watched = Watched(open_store())
    in_second = [
        n for n in range(100) if watched.get("T", 0, n, 1).runs and 4096 <= phy_offset(watched, n) < 8192
    ]
    assert in_second
    assert not any(watched.is_plain("T", 0, offset, 1) for offset in in_second)


def phy_offset(watched, queue_offset):
    return watched.get("T", 0, queue_offset, 1).messages[0].phy_offset


def test_results_outlive_the_store(open_store: OpenStore):
    store = open_store()
    put(store, 0, 0, None, "usual", 10)
    store.get("T", 0, 0)
    unseen, seen = store.get("T", 0, 0), store.get("T", 0, 0)
    record = bytes(seen.records[0])
    store.close()
    assert unseen.records == unseen.runs == [record] == seen.runs
    assert all(view.readonly for view in (*seen.records, *unseen.runs))


def test_a_closed_store_says_so(open_store: OpenStore):
    store = open_store()
    put(store, 0, 0, None, "usual", 10)
    store.get("T", 0, 0)
    store.close()
    with pytest.raises(ClosedError):
        store.get("T", 0, 0)


def test_wrong_arguments_are_the_errors_of_python(watched):
    with pytest.raises(InvalidArgumentError):
        watched.get("T", 0, 0, 0)
    with pytest.raises(InvalidArgumentError):
        watched.get("T", 0, 0, filter=" || ")
    with pytest.raises(TypeError, match="queue_offset"):
        watched.get("T", 0)
    with pytest.raises(TypeError, match="unexpected"):
        watched.get("T", 0, 0, wanted=None)
    with pytest.raises(TypeError, match="multiple values"):
        watched.get("T", 0, 0, topic="T")


def test_a_class_with_a_get_of_its_own_keeps_it(tmp_path):
    class Loud(MessageStore):
        @override
        def get(self, *arguments, **named):
            return "loud"

    with Loud.open(tmp_path / "store", **SMALL, **SMALL_INDEX) as store:
        assert store.get("T", 0, 0) == "loud"


def test_a_store_that_nobody_has_any_more_is_collected(tmp_path):
    with MessageStore.open(tmp_path / "other", **SMALL, **SMALL_INDEX) as store:
        put(store, 0, 0, None, "usual", 10)
        store.get("T", 0, 0)
    gone = weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None


def found_types(kernels):
    return PythonReadResult if kernels == "python" else native().ReadResult


RUNS = [memoryview(b"aabbb"), memoryview(b"c")]


@pytest.mark.parametrize("kernels", BOTH)
def test_found_cuts_runs_into_records(kernels: str):
    found = found_types(kernels)(GetStatus.FOUND, 5, 0, 9, RUNS, (range(3, 4),), [2, 3, 1])
    assert (found.status, found.next_offset, found.min_offset, found.max_offset) == (GetStatus.FOUND, 5, 0, 9)
    assert (len(found), found.records, found.runs) == (3, [b"aa", b"bbb", b"c"], RUNS)
    assert found.records is found.records
    assert (found.runs is found.runs, found.lost, found.decoded) == (True, (range(3, 4),), None)


@pytest.mark.parametrize("kernels", BOTH)
def test_found_takes_runs_for_records_where_nothing_says_more(kernels: str):
    found = found_types(kernels)(GetStatus.FOUND, 5, 0, 9, RUNS)
    assert (len(found), found.records, found.runs, found.lost) == (2, RUNS, RUNS, ())
    empty = found_types(kernels)(GetStatus.OFFSET_TOO_SMALL, 0, 0, 9)
    assert (len(empty), empty.records, empty.runs) == (0, [], [])


def test_records_that_do_not_fill_the_runs_are_refused():
    with every_row() as row:
        for sizes in ([2, 3], [5, 1, 1], [6], [2, 4], [-1, 6, 1], [0, 5, 1], []):
            for kernels in BOTH:
                with row(sizes, kernels), pytest.raises(ValueError, match="fill"):
                    assert found_types(kernels)(GetStatus.FOUND, 5, 0, 9, RUNS, (), sizes).records is None


def test_maps_take_no_file_that_is_too_short_or_far_away():
    maps = native().Maps(10)
    maps.set(0, memoryview(bytes(9)), None)
    maps.set(0, memoryview(bytes(10)), None)
    maps.set(20, memoryview(bytes(10)), None)
    maps.set(10 << 40, memoryview(bytes(10)), None)
    maps.drop(10 << 40)
    maps.drop(-1)
    maps.drop(0)
    with pytest.raises(ValueError, match="no file"):
        maps.set(-10, memoryview(bytes(10)), None)
    with pytest.raises(TypeError):
        maps.set(0, "text", None)
    with pytest.raises(ValueError, match="length"):
        native().Maps(0)


def test_maps_hold_no_memory_that_they_were_told_to_drop():
    maps, memory, states = native().Maps(10), bytearray(10), bytearray(1)
    for first in (0, 10, 0):
        maps.set(first, memoryview(memory), None)
        maps.know(first, states)
    with pytest.raises(BufferError):
        memory.append(0)
    maps.drop(0)
    maps.drop(10)
    memory.append(0)
    del maps
    states.append(0)


def test_objects_of_others_are_refused():
    module = native()
    tail, maps = module.QueueTail(0, 0, -1), module.Maps(20)
    for arguments in ((tail, tail), (maps, maps), (None, None)):
        with pytest.raises(TypeError):
            module.Reads(len, GetResult, TagFilter, 1, 2, *arguments, (1, 1, 1))
    with pytest.raises(TypeError):
        module.Reads(len, dict, TagFilter, 1, 2, module.LogTail(0, -1, 0, 0), maps, (1, 1, 1))
    for arguments in (([1], None), ((1,), ["a"]), ((1,), ("a",)), ((2**64,), None), (("1",), None)):
        with pytest.raises((TypeError, OverflowError)):
            module.TagSet(*arguments)


@pytest.mark.parametrize("reader", [PYTHON, "read-only"])
def test_who_reads_on_in_python_is_served_from_what_was_looked_at_ahead(tmp_path, reader):
    clock = new_clock()
    store = MessageStore.open(tmp_path / "store", clock=clock, segment_size_bytes=1 << 20, **SMALL_INDEX)
    store.put_batch("T", [b"%d" % number for number in range(3000)])
    for number in range(600):
        put(store, number, number % 2 + 1, None, "usual", 10)
    if reader == "read-only":
        store.close()
        store = MessageStore.open(tmp_path / "store", read_only=True)
    with store:
        watched = Watched(store, PYTHON)
        for at in (0, 32):
            watched.get("T", 0, at)
        assert all(watched.is_plain("T", 0, at) for at in range(64, 3000, 32))
        assert not watched.is_plain("T", 0, 32)
        assert watched.is_plain("T", 0, 64)
        assert all(watched.is_plain("T", 0, at, 1) for at in (2999, 5, 5, 0))
        watched.get("T", 1, 0)
        assert not any(watched.is_plain("T", 1, at) for at in range(32, 300, 32))


def test_a_reader_finds_what_came_since_it_looked_ahead(tmp_path):
    clock = new_clock()
    with MessageStore.open(
        tmp_path / "store", clock=clock, segment_size_bytes=1 << 20, **SMALL_INDEX
    ) as store:
        store.put_batch("T", [b"%d" % number for number in range(600)])
        with MessageStore.open(tmp_path / "store", read_only=True) as reader:
            at = 0
            while at < 600:
                at = reader.get("T", 0, at, 100).next_offset
            store.put_batch("T", [b"%d" % number for number in range(600, 700)])
            assert reader.get("T", 0, at).status is GetStatus.OFFSET_OVERFLOW_ONE
            assert reader.refresh() == 100
            assert [int(message.body) for message in reader.get("T", 0, at, 200)] == list(range(600, 700))


@given(
    st.lists(messages, min_size=1, max_size=30),
    lives,
    st.data(),
)
def test_a_message_is_found_by_its_place_in_both_ways(module_folders, puts, life, data):
    root = module_folders.mktemp("store") / "store"
    step_bytes = 0 if life == "damaged" else 2000
    store = MessageStore.open(root, **SMALL, **SMALL_INDEX, clock=new_clock(), recovery_step_bytes=step_bytes)
    places = [put(store, number, *message) for number, message in enumerate(puts)]
    end = store.max_phy_offset
    if life != "as it is":
        store.close()
        if life == "damaged":
            damage(root, data.draw(st.integers(0, end - 1)))
        store = MessageStore.open(root, **SMALL_INDEX, clock=new_clock())
    others = st.integers(-5, end + 100) | st.sampled_from([2**63, -(2**70)])
    for place in [*places, *data.draw(st.lists(others, max_size=9))]:
        assert message_at(store, place) == message_at_in_python(store, place)
    store.close()


def message_at(store, phy_offset):
    try:
        return store.message_at(phy_offset)
    except NotFoundError as error:
        return str(error)


def message_at_in_python(store, phy_offset):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_reads", plain_reads.PlainReads(store._core.log))
        patch.setattr(lookups, "decode_message", decode_message)
        return message_at(store, phy_offset)


def test_a_message_that_was_put_is_found_in_c_and_its_neighbourhood_is_not(watched):
    reads, store = watched.store._reads, watched.store
    first = store.get("T", 0, 0).messages[0]
    assert reads.record_at(first.phy_offset) == store.get("T", 0, 0, 1).records[0]
    assert reads.record_at(first.phy_offset).readonly
    for place in (-1, first.phy_offset + 1, store.max_phy_offset, 2**63, "0", None):
        assert reads.record_at(place) is None
    store.close()
    assert reads.record_at(first.phy_offset) is None
    with pytest.raises(ClosedError):
        store.message_at(first.phy_offset)
