"""What is put comes back: its place, its values, its limits; alone, in batches, at the end of a segment."""

from __future__ import annotations

import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from typing_extensions import override

from seglog.clock import VirtualClock
from seglog.errors import InvalidArgumentError, InvalidNameError, MessageIllegalError, NotFoundError
from seglog.storage.files.files import RealFiles
from seglog.storage.format.record.host import Host
from seglog.storage.format.record.message import decode_message
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import NewMessage
from tests.support.material.stores import (
    SEGMENT_BYTES,
    SMALL,
    SMALL_INDEX,
    OpenStore,
    as_written,
    fill,
    read_all,
    served,
)
from tests.support.scale import scaled

PREPARED, COMMIT, ROLLBACK, INNER_BATCH = 0x4, 0x8, 0xC, 0x80


def position_of(store):
    return store.max_phy_offset, {(q.topic, q.queue_id): q.max_offset for q in store.queues()}


def sized(store, size_bytes: int) -> bytes:
    """Returns a body that makes a record of topic ``T`` without properties that long."""
    return b"x" * (size_bytes - 91 - 1 - (20 if store.record_crc else 0))


def fill_segment_but(store, rest_bytes: int) -> None:
    """Puts records until that many bytes are left of the segment."""
    while (rest := SEGMENT_BYTES - store.max_phy_offset % SEGMENT_BYTES) > rest_bytes:
        store.put("T", sized(store, min(1000, rest - rest_bytes) if rest - rest_bytes < 1200 else 1000))


def test_result_says_where_the_message_went(open_store: OpenStore, clock: VirtualClock):
    store = open_store()
    store.put("T", b"first", queue_id=3)
    put = store.put("T", b"second", queue_id=3, tags="TagA")
    assert (put.topic, put.queue_id, put.queue_offset) == ("T", 3, 1)
    assert (put.store_timestamp_ms, put.durability) == (clock.now_ms(), Durability.ASYNC)
    message = store.message_at(put.phy_offset)
    assert (message.body, message.size_bytes, message.message_id) == (
        b"second",
        put.size_bytes,
        put.message_id,
    )
    assert store.max_phy_offset == put.phy_offset + put.size_bytes


def test_every_queue_counts_for_itself(open_store: OpenStore):
    store = open_store()
    offsets = [
        (store.put("T", b"x", queue_id=q).queue_offset, store.put("U", b"x").queue_offset) for q in (0, 1, 0)
    ]
    assert offsets == [(0, 0), (0, 1), (1, 2)]


def test_all_values_come_back_also_after_closing(open_store: OpenStore):
    store = open_store()
    store.put("T", b"body", tags="TagA", keys=["k1", "k2"], properties={"a": "ü", "b": "𝄞"}, flag=-5)
    store.append(
        "T", 0, memoryview(b"raw"), b"p\x01q", 0,
        sys_flag=0x101, flag=9, born_timestamp_ms=123, born_host=Host(bytes(range(16)), 77),
        store_host=Host(b"\x01\x02\x03\x04", 88), reconsume_times=3, prepared_transaction_offset=44,
    )  # fmt: skip
    before = read_all(store, "T", 0)
    store.close()
    first, second = after = read_all(open_store(), "T", 0)
    assert after == before
    assert (first.tags, first.keys, first.flag) == ("TagA", ["k1", "k2"], -5)
    assert (first.properties["a"], first.properties["b"]) == ("ü", "𝄞")
    assert (second.body, second.flag, second.sys_flag) == (b"raw", 9, 0x101 | 0x10)
    assert (second.born_timestamp_ms, second.reconsume_times) == (123, 3)
    assert second.prepared_transaction_offset == 44
    assert (second.born_host, second.store_host) == (
        Host(bytes(range(16)), 77),
        Host(b"\x01\x02\x03\x04", 88),
    )


@pytest.mark.parametrize("body", [b"", b"\0" * 100, b"\xda\xa3\x20\xa7" * 50])
@pytest.mark.parametrize("record_crc", [True, False])
def test_awkward_bodies_come_back_also_after_closing(open_store: OpenStore, body, record_crc):
    store = open_store(record_crc=record_crc)
    store.put("T", body)
    store.put("T", b"next")
    store.close()
    assert [message.body for message in read_all(open_store(), "T", 0)] == [body, b"next"]


def test_topic_longer_than_127_makes_a_version_2_record_that_comes_back(open_store: OpenStore):
    store = open_store()
    topics = ["a" * 127, "a" * 128, "a" * 255]
    for topic in topics:
        store.put(topic, b"x", tags="t")
    store.close()
    again = open_store()
    assert {topic: read_all(again, topic, 0)[0].topic for topic in topics} == {
        topic: topic for topic in topics
    }


def test_tag_among_the_properties_is_the_tag(open_store: OpenStore):
    store = open_store()
    store.put("T", b"x", properties={"TAGS": "TagA"})
    assert len(store.get("T", 0, 0, filter="TagA")) == 1
    store.close()
    assert survey(store.path, RealFiles()).findings == []


def test_argument_wins_over_the_property_of_the_same_name(open_store: OpenStore):
    store = open_store()
    store.put("T", b"x", tags="TagB", keys="k", properties={"TAGS": "TagA", "KEYS": "j"})
    assert len(store.get("T", 0, 0, filter="TagA")) == 0
    assert store.get("T", 0, 0, filter="TagB").messages[0].keys == ["k"]


@pytest.mark.parametrize("record_crc", [True, False])
def test_record_crc_property_of_a_client_is_not_stored(open_store: OpenStore, record_crc):
    store = open_store(record_crc=record_crc)
    store.put("T", b"x", properties={"a": "b", "__CRC32#": "1234567890"})
    store.close()
    again = open_store(record_crc=record_crc)
    assert again.recovery.findings == ()
    assert read_all(again, "T", 0)[0].properties.get("__CRC32#") != "1234567890"


# ------------------------------------------------------------------------------------------ limits


@pytest.mark.parametrize("limit", [0, 100, 4 << 20])
def test_body_up_to_the_limit_is_taken_and_one_byte_more_is_not(open_store: OpenStore, limit):
    store = open_store(segment_size_bytes=8 << 20, max_message_size_bytes=limit)
    store.put("T", bytes(limit))
    before = position_of(store)
    with pytest.raises(MessageIllegalError, match=f"{limit + 1} bytes, at most {limit}"):
        store.put("T", bytes(limit + 1))
    assert position_of(store) == before


@pytest.mark.parametrize(("record_crc", "room"), [(True, 32747), (False, 32767)])
def test_properties_up_to_the_limit_are_taken_and_one_byte_more_is_not(
    open_store: OpenStore, record_crc, room
):
    store = open_store(segment_size_bytes=1 << 20, record_crc=record_crc)
    store.put("T", b"x", properties={"a": "v" * (room - 3)})
    before = position_of(store)
    with pytest.raises(MessageIllegalError, match="32768 bytes"):
        store.put("T", b"x", properties={"a": "v" * (room - 2)})
    assert position_of(store) == before
    assert len(read_all(store, "T", 0)[0].properties["a"]) == room - 3


ILLEGAL = {
    "topic empty": (InvalidNameError, {"topic": ""}),
    "topic with newline": (InvalidNameError, {"topic": "T\n"}),
    "topic with NUL": (InvalidNameError, {"topic": "T\0"}),
    "topic that climbs": (InvalidNameError, {"topic": "../T"}),
    "topic of 256": (InvalidNameError, {"topic": "T" * 256}),
    "queue -1": (InvalidNameError, {"queue_id": -1}),
    "queue 2^31": (InvalidNameError, {"queue_id": 2**31}),
    "separator in a tag": (MessageIllegalError, {"tags": "a\x02b"}),
    "separator in a property name": (MessageIllegalError, {"properties": {"a\x01b": "c"}}),
    "half a pair in a key": (MessageIllegalError, {"keys": "\ud800"}),
    "flag of 33 bits": (InvalidArgumentError, {"flag": 2**32}),
}


@pytest.mark.parametrize(("error", "wrong"), ILLEGAL.values(), ids=ILLEGAL)
def test_message_that_no_store_can_hold_changes_nothing(open_store: OpenStore, error, wrong):
    store = open_store()
    store.put("T", b"x")
    before = position_of(store)
    with pytest.raises(error):
        store.put(**({"topic": "T", "body": b"x"} | wrong))
    assert position_of(store) == before


@pytest.mark.parametrize("code", [2**63, -(2**63) - 1])
def test_tags_code_beyond_64_bits_changes_nothing(open_store: OpenStore, code):
    store = open_store()
    before = position_of(store)
    with pytest.raises(InvalidArgumentError):
        store.append("T", 0, b"x", b"", code)
    assert position_of(store) == before
    assert store.put("T", b"y").queue_offset == 0


def test_record_longer_than_a_segment_is_refused(open_store: OpenStore):
    store = open_store()
    store.put("T", sized(store, SEGMENT_BYTES - 8))
    before = position_of(store)
    with pytest.raises(MessageIllegalError, match="do not fit into a commit-log file of 4096"):
        store.put("T", sized(store, SEGMENT_BYTES - 7))
    assert position_of(store) == before


# ---------------------------------------------------------------------------------- end of a segment


@pytest.mark.parametrize(
    ("size_bytes", "rolls"), [(200, False), (300 - 8, False), (300 - 7, True), (300, True), (400, True)]
)
def test_record_needs_eight_bytes_more_than_itself_to_stay_in_the_segment(
    open_store: OpenStore, size_bytes, rolls
):
    store = open_store()
    fill_segment_but(store, 300)
    put = store.put("T", sized(store, size_bytes))
    assert put.size_bytes == size_bytes
    assert put.phy_offset == (SEGMENT_BYTES if rolls else SEGMENT_BYTES - 300)
    store.close()
    segment = (store.path / "commitlog" / "00000000000000000000").read_bytes()
    if rolls:
        assert struct.unpack_from(">iI", segment, SEGMENT_BYTES - 300) == (300, 0xCBD43194)
        assert not any(segment[SEGMENT_BYTES - 292 :])
    found = survey(store.path, RealFiles())
    assert (found.findings, found.max_phy_offset) == ([], put.phy_offset + size_bytes)


def test_messages_over_many_segments_come_back(open_store: OpenStore):
    store = open_store()
    written = fill(store, 300)
    assert len(list((store.path / "commitlog").iterdir())) > 10
    assert as_written(served(store)) == set(written)
    store.close()
    again = open_store()
    assert again.recovery.findings == ()
    assert as_written(served(again)) == set(written)


# ------------------------------------------------------------------------------------------ batches


def test_batch_lies_together_with_one_store_time_and_offsets_in_a_row(open_store: OpenStore):
    store = open_store()
    store.put("T", b"before")
    batch = store.put_batch("T", [NewMessage(b"a", tags="t", keys="k", flag=3), b"b", NewMessage(b"c")])
    assert (batch.queue_offset, batch.count, len(batch.message_ids)) == (1, 3, 3)
    a, b, c = read_all(store, "T", 0)[1:]
    assert [m.queue_offset for m in (a, b, c)] == [1, 2, 3]
    assert a.phy_offset == batch.phy_offset
    assert (b.phy_offset, c.phy_offset) == (a.phy_offset + a.size_bytes, b.phy_offset + b.size_bytes)
    assert batch.size_bytes == a.size_bytes + b.size_bytes + c.size_bytes
    assert {m.store_timestamp_ms for m in (a, b, c)} == {batch.store_timestamp_ms}
    assert (a.tags, a.keys, a.flag) == ("t", ["k"], 3)
    assert [m.message_id for m in (a, b, c)] == batch.message_ids


@pytest.mark.parametrize(
    ("sizes", "rolls"), [([146, 146], False), ([146, 147], True), ([120, 120, 120], True)]
)
def test_batch_is_never_cut_by_the_end_of_a_segment(open_store: OpenStore, sizes, rolls):
    store = open_store()
    fill_segment_but(store, 300)
    batch = store.put_batch("T", [sized(store, size) for size in sizes])
    assert batch.phy_offset == (SEGMENT_BYTES if rolls else SEGMENT_BYTES - 300)
    assert batch.size_bytes == sum(sizes)
    store.close()
    assert survey(store.path, RealFiles()).findings == []


def test_batch_over_several_queue_files_comes_back(open_store: OpenStore):
    store = open_store(segment_size_bytes=1 << 20)
    batch = store.put_batch("T", [b"%d" % i for i in range(35)])
    assert [m.body for m in read_all(store, "T", 0)] == [b"%d" % i for i in range(35)]
    store.close()
    again = open_store()
    assert (again.recovery.findings, batch.count) == ((), 35)
    assert [m.body for m in read_all(again, "T", 0)] == [b"%d" % i for i in range(35)]


BAD_BATCHES = {
    "empty": (InvalidArgumentError, []),
    "longer than a segment": (MessageIllegalError, [bytes(1000)] * 5),
    "one body too large": (MessageIllegalError, [b"a", bytes(2001)]),
    "one property with a separator": (MessageIllegalError, [b"a", NewMessage(b"b", tags="\x02")]),
    "one flag of 33 bits": (InvalidArgumentError, [b"a", b"b", NewMessage(b"c", flag=2**32)]),
}


@pytest.mark.parametrize(("error", "messages"), BAD_BATCHES.values(), ids=BAD_BATCHES)
def test_batch_with_an_illegal_message_leaves_nothing(open_store: OpenStore, error, messages):
    store = open_store(max_message_size_bytes=2000)
    store.put("T", b"x")
    before = position_of(store)
    with pytest.raises(error):
        store.put_batch("T", messages)
    assert position_of(store) == before
    store.close()
    again = open_store()
    assert (again.recovery.cut_bytes, again.recovery.findings, position_of(again)) == (0, (), before)


# ------------------------------------------------------------------------ transactions, delay, batches


@pytest.mark.parametrize("bits", [PREPARED, ROLLBACK])
def test_prepared_and_rollback_records_take_no_queue_offset(open_store: OpenStore, bits):
    store = open_store()
    put = store.append("T", 0, b"half", b"", 0, sys_flag=bits)
    assert (put.queue_offset, store.max_offset("T", 0), store.queues()) == (0, 0, [])
    assert store.put("T", b"x").queue_offset == 0
    again = store.append("T", 0, b"half", b"", 0, sys_flag=bits)
    assert (again.queue_offset, store.max_offset("T", 0)) == (0, 1)
    assert store.message_at(again.phy_offset).body == b"half"
    store.close()
    reopened = open_store()
    assert (reopened.recovery.records, reopened.recovery.findings) == (3, ())
    assert [m.body for m in read_all(reopened, "T", 0)] == [b"x"]


def test_commit_record_takes_a_queue_offset(open_store: OpenStore):
    store = open_store()
    assert store.append("T", 0, b"a", b"", 0, sys_flag=COMMIT).queue_offset == 0
    assert store.append("T", 0, b"b", b"", 0, sys_flag=COMMIT).queue_offset == 1


def test_inner_batch_is_refused(open_store: OpenStore):
    with pytest.raises(MessageIllegalError, match="BatchCQ"):
        open_store().append("T", 0, b"a", b"", 0, sys_flag=INNER_BATCH)


@pytest.mark.parametrize(
    ("properties", "code_after_ms"),
    [
        ({"DELAY": "1"}, 1000),
        ({"DELAY": "18"}, 7_200_000),
        ({"DELAY": "99"}, 7_200_000),
        ({"DELAY": "9" * 5000}, 7_200_000),
    ],
)
def test_unit_of_the_delay_topic_holds_the_time_of_delivery(open_store: OpenStore, properties, code_after_ms):
    store = open_store(segment_size_bytes=1 << 16)
    put = store.put("SCHEDULE_TOPIC_XXXX", b"x", tags="ignored", properties=properties)
    store.close()
    unit = (store.path / "consumequeue/SCHEDULE_TOPIC_XXXX/0/00000000000000000000").read_bytes()[:20]
    assert struct.unpack(">qiq", unit) == (0, put.size_bytes, put.store_timestamp_ms + code_after_ms)
    assert open_store().recovery.findings == ()


# ------------------------------------------------------------------------------------- message_at


def test_message_is_found_only_where_it_starts(open_store: OpenStore):
    store = open_store()
    fill(store, 80)
    starts = {m.phy_offset for queue in served(store).values() for m in queue}
    reader = open_store(read_only=True)
    for opened in (store, reader):
        for phy_offset in [-(2**63), -1, *range(store.max_phy_offset + 20), 2**40, 2**63 - 1, 2**70]:
            if phy_offset in starts:
                assert opened.message_at(phy_offset).phy_offset == phy_offset
                continue
            with pytest.raises(NotFoundError, match=f"no message starts at {phy_offset}"):
                opened.message_at(phy_offset)


# ---------------------------------------------------------------------------------- records and close


def test_records_stay_valid_after_the_store_was_closed(open_store: OpenStore):
    store = open_store()
    fill(store, 100)
    result = store.get("Topic0", 0, 0)
    copies = [bytes(record) for record in result.records]
    store.close()
    assert [bytes(record) for record in result.records] == copies
    assert [decode_message(record).queue_offset for record in result.records] == list(range(len(copies)))


def test_records_cannot_be_written_to(open_store: OpenStore):
    store = open_store()
    store.put("T", b"x")
    assert all(record.readonly for record in store.get("T", 0, 0).records)


class SlowlyRenaming(RealFiles):
    """Files whose renames take a while to be told of."""

    @override
    def rename(self, source, target):
        super().rename(source, target)
        time.sleep(0.001)


def test_queue_files_may_get_their_names_while_they_are_synced(tmp_path):
    """A flush that found a file under the name that it waits with must not take that for a failure."""
    stop, count = threading.Event(), scaled(600, 600)

    def flush(store):
        while not stop.is_set():
            store.flush()

    with (
        MessageStore.open(tmp_path / "store", files=SlowlyRenaming(), **SMALL, **SMALL_INDEX) as store,
        ThreadPoolExecutor() as pool,
    ):
        flushing = pool.submit(flush, store)
        try:
            for number in range(count):
                store.put("T", b"%d" % number, queue_id=number % (count // 2))
        finally:
            stop.set()
        flushing.result()
        assert sum(queue.max_offset for queue in store.queues()) == count
