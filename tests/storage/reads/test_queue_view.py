"""A queue as numpy arrays says what reading its messages one by one says."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog.errors import ClosedError, InvalidArgumentError, NotFoundError, OffsetRangeError
from seglog.storage.format.names import segment_file_name
from seglog.storage.format.queue.consume_queue import CQ_UNIT, PRE_BLANK_BYTES
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.tags import tags_code
from seglog.storage.log.commit_log import HoleMap
from seglog.storage.reads.buffer_leases import Leases
from seglog.storage.reads.queue_view import COLUMNS, QueueView
from seglog.storage.reads.record_ranges import Place
from seglog.storage.store import MessageStore
from seglog.storage.walk.behind_damage import Hole
from seglog.storage.writes.values import NewMessage
from tests.support.material import golden
from tests.support.material.mixed import fill_mixed
from tests.support.scale import chance, is_gate

HOSTS = (Host(b"\x0a\x01\x02\x03", 40000), Host(bytes(range(16)), 9))
OF_MESSAGES = (
    "queue_offset",
    "phy_offset",
    "size_bytes",
    "store_timestamp_ms",
    "born_timestamp_ms",
    "sys_flag",
    "flag",
    "reconsume_times",
    "prepared_transaction_offset",
    "body_crc",
)


def mixed_store(path):
    """Three queues over many small files: both address families, bodies of many lengths, long topics."""
    chance = random.Random(1)
    store = MessageStore.open(path, segment_size_bytes=1 << 16, queue_file_size_bytes=20 * 50)
    for number in range(600):
        tag = f"T{number % 4}"
        store.append(
            ("orders", "t" * 200)[number % 5 == 0],
            number % 3,
            chance.randbytes(chance.choice([0, 1, 12, 13, 50, 900, 5000])),
            f"TAGS\x01{tag}\x02".encode() if number % 7 else b"",
            tags_code(tag) if number % 7 else 0,
            flag=number - 300,
            born_timestamp_ms=number,
            born_host=chance.choice(HOSTS),
            store_host=chance.choice(HOSTS),
            reconsume_times=number % 16,
        )
    return store


def messages_of(store, view):
    """Returns the messages of a view by queue offset, read in the ordinary way."""
    found = {}
    at = view.min_offset
    while at < view.max_offset:
        result = store.get(view.topic, view.queue_id, at, 32)
        found |= {message.queue_offset: message for message in result}
        at = max(result.next_offset, at + 1)
    return found


def check_view(store, view):
    messages = messages_of(store, view)
    units = view.units()
    table = view.read_columns()
    bodies, properties = view.bodies(), view.properties()
    assert len(view) == len(units) == len(table) == len(bodies) == len(properties)
    assert not units.flags.writeable
    assert (table["tags_code"] == units["tags_code"]).all()
    assert (table["phy_offset"] == units["phy_offset"]).all()
    assert (view.timestamps() == table["store_timestamp_ms"]).all()
    offsets, data = bodies.pack()
    assert offsets[-1] == len(data) == bodies.total_bytes
    for row, (body, raw) in enumerate(zip(bodies, properties, strict=True)):
        message = messages.get(view.min_offset + row)
        assert table["is_message"][row] == bodies.is_there[row] == properties.is_there[row]
        assert table["is_message"][row] == (message is not None)
        assert bytes(bodies[row]) == bytes(body) == data[offsets[row] : offsets[row + 1]].tobytes()
        if message is None:
            assert table["store_timestamp_ms"][row] == -1
            assert len(body) == len(raw) == 0
        else:
            assert [table[name][row] for name in OF_MESSAGES] == [
                getattr(message, name) for name in OF_MESSAGES
            ]
            assert (bytes(body), bytes(raw)) == (message.body, message.properties_raw)
            assert table["body_bytes"][row] == len(message.body)


@pytest.mark.parametrize("read_only", [False, True])
def test_every_column_equals_the_messages(tmp_path, read_only):
    store = mixed_store(tmp_path)
    if read_only:
        store.close()
        store = MessageStore.open(tmp_path, read_only=True)
    with store:
        for queue in store.queues():
            check_view(store, store.queue(queue.topic, queue.queue_id))


@pytest.mark.parametrize("name", [name for name in golden.golden_names() if name != "innerbatch"])
def test_real_stores_are_seen_alike_damaged_or_not(tmp_path, name):
    # The gate opens each store in one of both ways.
    for read_only in [chance("seen alike", name).random() < 0.5] if is_gate() else [False, True]:
        check_real_store(golden.shared(name) if read_only else golden.extract(name, tmp_path), read_only)


def check_real_store(root, read_only):
    # Without queue files nothing shows their length, which a writer must know.
    length = 2000 if root.name.startswith("d-nocq") and not read_only else None
    with MessageStore.open(root, read_only=read_only, queue_file_size_bytes=length) as store:
        batch_topics = {path.name for path in (store.path / "batchconsumequeue").glob("*")}
        for queue in store.queues():
            if queue.topic in batch_topics:
                with pytest.raises(InvalidArgumentError, match="batch queue"):
                    store.queue(queue.topic, queue.queue_id)
            else:
                check_view(store, store.queue(queue.topic, queue.queue_id))


def test_a_batch_queue_has_no_view_because_a_unit_is_no_message():
    with (
        MessageStore.open(golden.shared("innerbatch"), read_only=True) as store,
        pytest.raises(InvalidArgumentError, match="batch queue"),
    ):
        store.queue("BCQTopic", 0)


def test_units_within_a_file_share_memory_and_others_are_copied(tmp_path):
    with mixed_store(tmp_path) as store:
        view = store.queue("orders", 0)
        first = view.units(0, 50)
        assert np.shares_memory(first, view.units(10, 5))
        assert not np.shares_memory(view.units(40, 20), first)
        assert [start for start, _units in view.iter_units()] == [0, 50, 100, 150][: -(-len(view) // 50)]
        joined = np.concatenate([units for _start, units in view.iter_units()])
        assert (joined == view.units()).all()
        with pytest.raises(ValueError, match="read-only"):
            first["size_bytes"] = 0
        del first, joined


def test_pieces_that_begin_within_a_file_end_with_it_and_are_not_copied(tmp_path):
    with mixed_store(tmp_path) as store:
        view = store.queue("orders", 0)
        end = len(view)
        assert end > 50
        pieces = [(start, len(units)) for start, units in view.iter_units(30, end - 30)]
        assert pieces == [(30, 20), *((at, min(50, end - at)) for at in range(50, end, 50))]
        ((_, units),) = view.iter_units(30, 20)
        assert np.shares_memory(units, view.units(0, 50))
        del units


def test_bodies_share_memory_with_the_log(tmp_path):
    with mixed_store(tmp_path) as store:
        view = store.queue("orders", 1)
        one, other = view.bodies(), view.bodies(5, 3)
        assert np.shares_memory(np.frombuffer(one[6], np.uint8), np.frombuffer(other[1], np.uint8))
        with pytest.raises(TypeError):
            one[6][0] = 1
        del one, other


def test_a_read_only_store_gives_copies(tmp_path):
    mixed_store(tmp_path).close()
    with MessageStore.open(tmp_path, read_only=True) as store:
        view = store.queue("orders", 1)
        assert not np.shares_memory(view.bodies().buffers[0], view.bodies().buffers[0])
        held = (view.units(), view.bodies())
    assert len(held[0]) == len(held[1])


def test_ranges_are_cut_at_the_end_and_refused_outside(tmp_path):
    with mixed_store(tmp_path) as store:
        view = store.queue("orders", 2)
        end = view.max_offset
        assert len(view.units(end - 3, 100)) == 3
        assert len(view.units(end)) == len(view.timestamps(end)) == len(view.bodies(end)) == 0
        assert len(view.bodies(end).pack()[1]) == 0
        assert view.read_columns(("phy_offset",), 5, 0).shape == (0,)
        assert view.read_columns((), 5, 2).shape == (2,)
        assert view.timestamps(7, 1)[0] == view.timestamps()[7]
        for outside in (-1, end + 1):
            with pytest.raises(OffsetRangeError) as caught:
                view.units(outside)
            assert (caught.value.min_offset, caught.value.max_offset) == (0, end)
        with pytest.raises(InvalidArgumentError):
            view.units(0, -1)
        with pytest.raises(InvalidArgumentError, match="no column 'nonsense'"):
            view.columns(("nonsense",))
        with pytest.raises(IndexError):
            view.bodies(0, 3)[3]
        assert [bytes(body) for body in view.bodies()[2:4]] == [bytes(view.bodies()[n]) for n in (2, 3)]


def test_columns_have_the_types_that_are_stated(tmp_path):
    with mixed_store(tmp_path) as store:
        for name, values in store.queue("orders", 0).columns().items():
            assert values.dtype == np.dtype(COLUMNS[name])
            assert values.flags.owndata


def test_a_bad_index_is_an_error_also_where_nothing_can_be_read(tmp_path):
    with MessageStore.open(tmp_path) as store:
        store.put("orders", b"x")
        store._core.log.holes = HoleMap([Hole(0, 1000, "test")])
        bodies = store.queue("orders", 0).bodies()
        assert bytes(bodies[0]) == b""
        with pytest.raises(IndexError):
            bodies[1]


def test_a_queue_that_never_was_is_an_error(tmp_path):
    with mixed_store(tmp_path) as store, pytest.raises(NotFoundError):
        store.queue("orders", 77)


def test_a_closed_store_has_no_views(tmp_path):
    store = mixed_store(tmp_path)
    view = store.queue("orders", 0)
    store.close()
    for read in (view.units, view.timestamps, view.bodies, view.read_columns):
        with pytest.raises(ClosedError):
            read()
    with pytest.raises(ClosedError):
        store.queue("orders", 0)


def test_ten_expressions_in_one(tmp_path):
    """What the arrays are for: by tag and time without touching a message."""
    with mixed_store(tmp_path) as store:
        view = store.queue("orders", 1)
        since = int(np.median(view.timestamps()))
        chosen = np.flatnonzero((view.units()["tags_code"] == tags_code("T2")) & (view.timestamps() >= since))
        wanted = [
            offset
            for offset, message in messages_of(store, view).items()
            if message.tags == "T2" and message.store_timestamp_ms >= since
        ]
        assert chosen.tolist() == wanted


def test_a_view_stays_what_it_was_while_a_writer_goes_on(tmp_path):
    with MessageStore.open(tmp_path, segment_size_bytes=1 << 16, queue_file_size_bytes=20 * 64) as store:
        store.put("orders", b"0")
        stop = threading.Event()

        def write():
            number = 1
            while not stop.is_set():
                batch = [
                    NewMessage(b"%d" % n, tags="even" if n % 2 == 0 else "odd")
                    for n in range(number, number + 7)
                ]
                store.put_batch("orders", batch)
                number += 7

        writer = threading.Thread(target=write)
        writer.start()
        try:
            lengths: list[int] = []
            deadline = time.monotonic() + 60
            # Enough looks, and some of them after more was written, however slow the writer is.
            while len(lengths) < 60 or (lengths[-1] == lengths[0] and time.monotonic() < deadline):
                view = store.queue("orders", 0)
                first = view.units()
                table = view.read_columns(("queue_offset", "store_timestamp_ms", "is_message"))
                bodies = view.bodies()
                assert len(first) == len(table) == len(bodies) == len(view)
                assert table["is_message"].all()
                assert (np.diff(table["store_timestamp_ms"]) >= 0).all()
                assert [bytes(body) for body in bodies] == [b"%d" % n for n in range(len(view))]
                assert (view.units() == first).all()
                lengths.append(len(view))
                del first, bodies
            assert lengths[-1] > lengths[0]
        finally:
            stop.set()
            writer.join()


def test_a_reader_follows_a_writer_with_new_views(tmp_path):
    with MessageStore.open(tmp_path) as writer:
        writer.put("orders", b"one")
        with MessageStore.open(tmp_path, read_only=True) as reader:
            old = reader.queue("orders", 0)
            writer.put("orders", b"two")
            reader.refresh()
            assert [bytes(body) for body in old.bodies()] == [b"one"]
            assert [bytes(body) for body in reader.queue("orders", 0).bodies()] == [b"one", b"two"]


def test_what_lies_in_a_hole_is_not_there(tmp_path):
    with mixed_store(tmp_path) as store:
        whole = store.queue("orders", 0)
        phy = whole.read_columns(("phy_offset", "size_bytes"))
        start = int(phy["phy_offset"][3])
        end = int(phy["phy_offset"][5]) + int(phy["size_bytes"][5])
        store._core.log.holes = HoleMap([Hole(start, end - start, "test")])
        view = store.queue("orders", 0)
        missing = np.flatnonzero(view.timestamps() == -1)
        assert missing.tolist() == [3, 4, 5]
        assert np.flatnonzero(~view.bodies().is_there).tolist() == [3, 4, 5]
        assert bytes(view.bodies()[4]) == b""


def test_what_was_removed_from_the_log_is_not_there_to_a_reader(tmp_path):
    mixed_store(tmp_path).close()
    with MessageStore.open(tmp_path, read_only=True) as store:
        view = store.queue("orders", 0)
        before = view.timestamps()
        (tmp_path / "commitlog" / segment_file_name(0)).unlink()
        gone = view.units()["phy_offset"] < 1 << 16
        assert gone.any()
        after = store.queue("orders", 0).timestamps()
        assert (after[gone] == -1).all()
        assert (after[~gone] == before[~gone]).all()


class FakeQueue:
    """A queue whose units may be anything."""

    min_offset = 0
    units_per_file = 10**6
    max_phy_offset = 0

    def __init__(self, units):
        self._units = units
        self.max_offset = len(units)

    def units(self, queue_offset, count):
        return self._units[queue_offset : queue_offset + count]


PLACES = st.integers(0, 70_000) | st.integers(-(2**63), 2**63 - 1)
SIZES = st.integers(0, 2000) | st.sampled_from([PRE_BLANK_BYTES, -1, 2**31 - 2])


@settings(max_examples=60)
@given(st.lists(st.tuples(PLACES, SIZES), max_size=20), st.booleans())
def test_units_that_lie_lead_nowhere(shared_log, lies, is_shared):
    units = np.zeros(len(lies) + 1, CQ_UNIT.dtype)
    for row, (phy_offset, size) in enumerate(lies):
        units[row] = (phy_offset, size, 0)
    log, end, true_unit = shared_log
    units[-1] = true_unit
    place = Place(0, len(units), end, 1 << 16, is_shared)
    view = QueueView("orders", 0, FakeQueue(units), log, place, Leases("test"))
    known = {tuple(unit) for unit in [true_unit]}
    for row, stamp in enumerate(view.timestamps().tolist()):
        if (int(units[row]["phy_offset"]), int(units[row]["size_bytes"])) in {unit[:2] for unit in known}:
            assert stamp > 0
    assert len(view.bodies()) == len(view.properties()) == len(units)


@pytest.fixture(scope="module")
def shared_log(module_folders):
    with mixed_store(module_folders.mktemp("log")) as store:
        yield (
            store._core.log,
            store.max_phy_offset,
            tuple(store._core.queues.find("orders", 0).units(7, 1)[0].tolist()),
        )


def test_view_of_a_further_queue_shows_the_records_of_others(tmp_path):
    fill_mixed(tmp_path, 40)
    with MessageStore.open(tmp_path, read_only=True) as store:
        served = list(store.get("%LMQ%b", 0, 0, 100))
        assert len(served) > 4
        view = store.queue("%LMQ%b", 0)
        assert [bytes(body) for body in view.bodies()] == [message.body for message in served]
        assert view.timestamps().tolist() == [message.store_timestamp_ms for message in served]
        assert view.units()["phy_offset"].tolist() == [message.phy_offset for message in served]
