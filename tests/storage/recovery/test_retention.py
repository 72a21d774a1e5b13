"""Deleting the start of a log that is written to and read: what goes, what stays, and what readers see."""

from __future__ import annotations

import math
import random
import threading
from pathlib import Path

import pytest

from seglog.clock import VirtualClock
from seglog.errors import NotFoundError, ReadOnlyError, SeglogError, StoreInUseError
from seglog.storage.format.get_status import GetStatus
from seglog.storage.format.index.index import IndexGeometry
from seglog.storage.format.names import segment_file_name
from seglog.storage.seals.seal_files import list_seals
from seglog.storage.store import MessageStore
from seglog.storage.survey.store_survey import survey
from tests.support.crash.crash_files import CrashFiles, KilledError
from tests.support.crash.failing_files import FailingFiles, Fault
from tests.support.material.stores import (
    SEGMENT_BYTES,
    SMALL,
    SMALL_INDEX,
    UNITS_PER_FILE,
    OpenStore,
    as_written,
    fill,
    new_clock,
    served,
    writer_of,
)
from tests.support.scale import strides

HOUR_MS = 3_600_000
MANY = 400
STORE = Path("/store")


def log_files(store):
    return sorted(path.name for path in (store.path / "commitlog").iterdir())


def queue_files(store, topic, queue_id):
    folder = store.path / "consumequeue" / topic / str(queue_id)
    return sorted(int(path.name) // 20 for path in folder.iterdir())


def cut_of(store, share=0.5):
    """Returns a place in the log, at the start of a file."""
    at = int(store.max_phy_offset * share)
    return at - at % SEGMENT_BYTES


def split(store, written, cut):
    """Returns what was put below a place of the log, and what from there on."""
    places = {
        (message.topic, message.queue_id, message.queue_offset): message.phy_offset
        for queue in served(store).values()
        for message in queue
    }
    below = {one for one in written if places[one.topic, one.queue_id, one.queue_offset] < cut}
    return below, set(written) - below


def test_whole_files_go_and_everything_behind_them_is_served(open_store: OpenStore):
    store = open_store()
    written = fill(store, MANY)
    cut = cut_of(store)
    gone, stays = split(store, written, cut)
    trimmed = store.retention.delete_before(cut + SEGMENT_BYTES - 1)
    assert gone
    assert (trimmed.min_phy_offset, trimmed.log_files) == (cut, cut // SEGMENT_BYTES)
    assert trimmed.freed_bytes >= cut
    assert store.min_phy_offset == cut
    assert log_files(store)[0] == segment_file_name(cut)
    assert as_written(served(store)) == stays
    stays |= set(fill(store, 40))
    store.close()
    again = open_store()
    assert again.recovery.findings == ()
    # Offsets of messages that were put later name what was read back.
    assert {one.body for one in as_written(served(again))} == {one.body for one in stays}


def test_the_file_of_the_last_message_stays(open_store: OpenStore):
    store = open_store()
    fill(store, MANY)
    store.retention.delete_before(1 << 60)
    last = store.max_phy_offset - store.max_phy_offset % SEGMENT_BYTES
    assert store.min_phy_offset in {last, last - SEGMENT_BYTES}
    assert as_written(served(store))
    store.put("Topic0", b"goes on")
    assert served(store)["Topic0", 0][-1].body == b"goes on"


def test_an_empty_store_has_nothing_to_delete(open_store: OpenStore):
    store = open_store()
    assert store.retention.segments() == []
    assert store.retention.delete_before(1 << 40).log_files == 0


def test_queues_begin_where_the_log_does(open_store: OpenStore):
    store = open_store()
    fill(store, MANY)
    cut = cut_of(store)
    first = {key: next(m for m in queue if m.phy_offset >= cut) for key, queue in served(store).items()}
    store.retention.delete_before(cut)
    for (topic, queue_id), message in first.items():
        assert store.min_offset(topic, queue_id) == message.queue_offset
        result = store.get(topic, queue_id, message.queue_offset - 1)
        assert (result.status, result.next_offset) == (GetStatus.OFFSET_TOO_SMALL, message.queue_offset)
        assert store.offset_by_time(topic, queue_id, 0) == message.queue_offset


def test_a_queue_that_lost_all_messages_keeps_its_maximum_and_its_last_file(open_store: OpenStore):
    store = open_store()
    for number in range(25):
        store.put("Old", b"%d" % number)
    fill(store, MANY)
    store.retention.delete_before(cut_of(store))
    assert (store.min_offset("Old", 0), store.max_offset("Old", 0)) == (25, 25)
    assert queue_files(store, "Old", 0) == [24 // UNITS_PER_FILE * UNITS_PER_FILE]
    assert store.get("Old", 0, 3).status is GetStatus.OFFSET_TOO_SMALL
    assert store.put("Old", b"again").queue_offset == 25
    store.close()
    again = open_store()
    assert [message.body for message in again.get("Old", 0, 25)] == [b"again"]
    assert again.recovery.findings == ()


def test_queue_files_go_when_all_their_messages_have(open_store: OpenStore):
    store = open_store()
    fill(store, MANY)
    trimmed = store.retention.delete_before(cut_of(store))
    counted = 0
    for queue in store.queues():
        files = queue_files(store, queue.topic, queue.queue_id)
        assert files[0] == queue.min_offset // UNITS_PER_FILE * UNITS_PER_FILE
        counted += files[0] // UNITS_PER_FILE
    assert trimmed.queue_files == counted > 0


def test_batch_queues_lose_messages_and_files_too(open_store: OpenStore, tmp_path):
    (tmp_path / "store" / "config").mkdir(parents=True)
    (tmp_path / "store" / "config" / "topics.json").write_text(
        '{"topicConfigTable":{"B":{"topicName":"B","attributes":{"queue.type":"BatchCQ"}}}}'
    )
    store = open_store()
    for number in range(60):
        store.put("B", b"%d" % number + bytes(400))
    cut = cut_of(store)
    first = next(message for message in served(store)["B", 0] if message.phy_offset >= cut)
    trimmed = store.retention.delete_before(cut)
    assert store.min_offset("B", 0) == first.queue_offset
    assert trimmed.queue_files > 0
    kept = served(store)
    assert [message.queue_offset for message in kept["B", 0]] == list(range(first.queue_offset, 60))
    store.close()
    again = open_store()
    assert again.recovery.findings == ()
    assert served(again) == kept


def test_keys_of_deleted_messages_are_not_found(open_store: OpenStore):
    store = open_store(index_geometry=IndexGeometry(10, 40))
    written = fill(store, MANY)
    store.query("Topic0", "k0")
    files = len(list((store.path / "index").iterdir()))
    cut = cut_of(store)
    gone, stays = split(store, written, cut)
    trimmed = store.retention.delete_before(cut)
    assert 0 < trimmed.index_files < files
    assert len(list((store.path / "index").iterdir())) == files - trimmed.index_files
    for one in random.Random(1).sample(sorted(gone, key=str), 20):
        assert store.query(one.topic, f"k{one.body.split(b':')[0].decode()}") == []
    for one in random.Random(2).sample(sorted(stays, key=str), 20):
        (found,) = store.query(one.topic, f"k{one.body.split(b':')[0].decode()}")
        assert found.body == one.body


def test_deleted_messages_are_not_found_by_place(open_store: OpenStore):
    store = open_store()
    put = store.put("Topic0", b"first")
    fill(store, MANY)
    store.retention.delete_before(cut_of(store))
    with pytest.raises(NotFoundError):
        store.message_at(put.phy_offset)
    with pytest.raises(NotFoundError):
        store.message_by_id(put.message_id)


def test_seals_of_deleted_segments_go(open_store: OpenStore):
    store = open_store()
    fill(store, MANY)
    store.flush()
    writer_of(store)._sealer.seal_due()
    cut = cut_of(store)
    store.retention.delete_before(cut)
    seals = list_seals(store.files, store.path)
    assert seals
    assert min(seals) == cut
    assert writer_of(store)._sealer.seal_due() == 0


def test_views_of_what_is_deleted_stay_valid(open_store: OpenStore):
    store = open_store()
    fill(store, MANY)
    result = store.get("Topic0", 0, 0)
    bodies = [message.body for message in result.messages]
    units = store.queue("Topic0", 0).units(0, UNITS_PER_FILE)
    places = units["phy_offset"].tolist()
    store.retention.delete_before(1 << 60)
    fill(store, MANY)
    assert [message.body for message in result] == bodies
    assert units["phy_offset"].tolist() == places
    with pytest.raises(StoreInUseError):
        store.close()
    del units


def test_a_reader_beside_sees_the_new_start(open_store: OpenStore):
    store = open_store()
    fill(store, MANY)
    reader = open_store(read_only=True)
    store.retention.delete_before(cut_of(store))
    store.put("Topic0", b"new")
    reader.refresh()
    assert reader.min_phy_offset == store.min_phy_offset
    assert served(reader) == served(store)
    with pytest.raises(ReadOnlyError):
        reader.retention.delete_before(1 << 60)


def test_a_file_is_as_old_as_its_newest_message(open_store: OpenStore, clock: VirtualClock):
    store = open_store()
    for _ in range(40):
        store.put("T", bytes(1000))
        clock.advance(HOUR_MS)
    segments = store.retention.segments()
    assert [one.first_phy_offset for one in segments] == list(
        range(0, segments[-1].end_phy_offset, SEGMENT_BYTES)
    )
    stored = {message.phy_offset: message.store_timestamp_ms for message in served(store)["T", 0]}
    for one in segments:
        inside = [ms for place, ms in stored.items() if one.first_phy_offset <= place < one.end_phy_offset]
        assert max(inside) < one.newest_store_ms <= max(inside) + HOUR_MS
    reader = open_store(read_only=True)
    assert reader.retention.segments() == segments


def test_a_clock_that_was_set_back_makes_no_file_older(open_store: OpenStore, clock: VirtualClock):
    store = open_store()
    began_ms = clock.now_ms()
    store.put("T", bytes(3000))
    clock.advance(-10 * HOUR_MS)
    store.put("T", bytes(3000))
    (segment,) = store.retention.segments()
    assert segment.newest_store_ms == began_ms


def test_places_become_queue_offsets(open_store: OpenStore):
    store = open_store()
    fill(store, MANY)
    cuts = list(range(0, store.max_phy_offset + SEGMENT_BYTES, SEGMENT_BYTES))
    found = store.retention.offsets_from(cuts)
    reader = open_store(read_only=True)
    assert reader.retention.offsets_from(cuts) == found
    for key, queue in served(store).items():
        expected = [next((m.queue_offset for m in queue if m.phy_offset >= at), len(queue)) for at in cuts]
        assert found[key] == expected


def test_points_go_on_behind_a_new_start(open_store: OpenStore):
    store = open_store(recovery_step_bytes=SEGMENT_BYTES)
    fill(store, MANY)
    assert writer_of(store)._points._round()
    for _ in range(3):
        store.retention.delete_before(store.max_phy_offset - 6 * SEGMENT_BYTES)
        assert writer_of(store)._points._round()
        fill(store, MANY)
        assert writer_of(store)._points._round()
    store.retention.delete_before(store.max_phy_offset - 6 * SEGMENT_BYTES)
    kept = served(store)
    store.close()
    again = open_store()
    assert again.recovery.findings == ()
    assert again.recovery.walked_from > again.min_phy_offset > 0
    assert served(again) == kept
    again.retention.delete_before(again.max_phy_offset - 3 * SEGMENT_BYTES)
    assert again.later_findings == ()


def test_reading_writing_and_deleting_at_once(tmp_path):
    with MessageStore.open(tmp_path / "store", **SMALL, **SMALL_INDEX) as store:
        fill(store, MANY)
        done = threading.Event()
        problems = []

        def read(seed):
            chance = random.Random(seed)
            try:
                while not done.is_set():
                    topic, queue_id = f"Topic{chance.randrange(2)}", chance.randrange(2)
                    at = chance.randrange(store.max_offset(topic, queue_id))
                    found = store.get(topic, queue_id, at)
                    if found.status is GetStatus.OFFSET_TOO_SMALL:
                        assert found.next_offset > at
                    else:
                        assert [m.queue_offset for m in found][:1] in ([at], [])
                    store.query(topic, f"k{chance.randrange(MANY)}")
                    store.offset_by_time(topic, queue_id, 0)
            except BaseException as error:
                problems.append(error)
                raise

        readers = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
        for reader in readers:
            reader.start()
        try:
            for _ in range(25):
                fill(store, 20)
                store.retention.delete_before(store.max_phy_offset - 4 * SEGMENT_BYTES)
        finally:
            done.set()
            for reader in readers:
                reader.join()
        assert problems == []
        kept = served(store)
        assert store.later_findings == ()
    with MessageStore.open(tmp_path / "store") as store:
        assert store.recovery.findings == ()
        assert served(store) == kept


def lived(files, calls_left=None):
    """Returns what a store served before and must serve after a deletion that may be interrupted."""
    store = MessageStore.open(
        STORE, files=files, clock=new_clock(), **SMALL, index_geometry=IndexGeometry(5, 12)
    )
    written = fill(store, 120, body_bytes=120)
    store.query("Topic0", "k0")
    store.flush()
    before = served(store)
    cut = cut_of(store, 0.7)
    stays = split(store, written, cut)[1]
    files.calls_left = calls_left
    store.retention.delete_before(cut)
    return before, stays


@pytest.mark.parametrize("ending", ["after_kill", "after_power_loss"])
def test_a_crash_at_any_step_leaves_a_store_that_opens_clean(ending):
    whole = CrashFiles(random.Random(0))
    before, stays = lived(whole)
    known = as_written(before)
    partly = 0
    for calls_left in strides(0, 1, 1, "a deletion", ending):
        assert calls_left < 200, "it never came to an end"
        for seed in range(3):
            files = CrashFiles(random.Random(seed))
            try:
                lived(files, calls_left)
            except KilledError:
                pass
            else:
                assert partly
                return
            found = getattr(files, ending)()
            assert [one for one in survey(STORE, found).findings if one.code != "index-behind"] == []
            with MessageStore.open(STORE, create=False, files=found, clock=new_clock()) as store:
                kept = as_written(served(store))
                low = store.min_phy_offset
                assert stays <= kept <= known
                partly += stays < kept < known
                assert kept == {one for one in known if place_of(before, one) >= low}, (
                    "what is there is all that lies behind the start"
                )
                store.put("Topic0", b"goes on")


def place_of(before, one):
    queue = before[one.topic, one.queue_id]
    return queue[one.queue_offset].phy_offset


def test_a_disk_that_fails_while_deleting_loses_nothing_that_stays(tmp_path):
    for at in range(1, 200):
        fault = Fault(names=frozenset({"remove", "sync_dir", "sync", "open", "list_dir"}))
        path = tmp_path / str(at)
        store = MessageStore.open(path, files=FailingFiles(fault), clock=new_clock(), **SMALL, **SMALL_INDEX)
        written = fill(store, 120, body_bytes=120)
        store.flush()
        cut = cut_of(store)
        stays = split(store, written, cut)[1]
        fault.count, fault.at = 0, at
        error = None
        try:
            store.retention.delete_before(cut)
        except SeglogError as caught:
            error = caught
        fault.at = 0
        try:
            store.close()
        except SeglogError:
            assert error is not None
        with MessageStore.open(path) as again:
            assert {found.code for found in again.recovery.findings} <= {"index-damaged"}
            assert as_written(served(again)) >= stays
        if not fault.fired:
            assert at > 10
            return
    raise AssertionError("it never came to an end")


@pytest.mark.parametrize("place", [math.inf, -math.inf, math.nan])
def test_the_file_in_use_stays_whatever_place_is_given(tmp_path: Path, place: float):
    with MessageStore.open(tmp_path, clock=new_clock(), **SMALL) as store:
        fill(store, 40)
        with pytest.raises(SeglogError):
            store.retention.delete_before(place)  # type: ignore[arg-type]
        put = store.put("T", b"next")
        assert bytes(store.message_at(put.phy_offset).body) == b"next"
        assert log_files(store)[0] == segment_file_name(0)
