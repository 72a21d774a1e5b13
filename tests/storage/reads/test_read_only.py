"""A reader changes nothing and sees what recovery would serve, beside a writer and after a crash."""

from __future__ import annotations

import pytest

from seglog.errors import ClosedError, NotFoundError, ReadOnlyError
from seglog.storage.format.get_status import GetStatus
from seglog.storage.store import MessageStore
from tests.support.crash.child import Child
from tests.support.material.golden import tree_digest
from tests.support.material.stores import (
    SMALL,
    OpenStore,
    as_written,
    copy_store,
    fill,
    read_all,
    reader_of,
    served,
)


def test_reader_sees_what_the_writer_put(open_store: OpenStore):
    writer = open_store()
    written = fill(writer, 100)
    assert as_written(served(open_store(read_only=True))) == set(written)


def test_reader_follows_messages_segments_queue_files_and_queues_of_another_process(
    tmp_path, open_store: OpenStore
):
    with Child(tmp_path / "store", **SMALL) as writer:
        writer.ask("put", topic="T", body="first")
        reader = open_store(read_only=True)
        assert [m.body for m in read_all(reader, "T", 0)] == [b"first"]
        segments = len(list((tmp_path / "store" / "commitlog").iterdir()))
        writer.ask("put", topic="T", count=99)
        writer.ask("put", topic="U", queue_id=7, tags="t")
        assert reader.get("T", 0, 1).status is GetStatus.OFFSET_OVERFLOW_ONE
        assert reader.refresh() == 100
        assert [m.queue_offset for m in read_all(reader, "T", 0)] == list(range(100))
        assert [m.tags for m in read_all(reader, "U", 7)] == ["t"]
        assert reader.topics() == ["T", "U"]
        assert len(list((tmp_path / "store" / "commitlog").iterdir())) > segments
        assert reader.refresh() == 0


def test_reader_of_an_empty_store_learns_how_long_its_files_are(open_store: OpenStore):
    writer = open_store()
    reader = open_store(read_only=True)
    written = fill(writer, 100)
    assert reader.refresh() == 100
    assert reader.geometry == writer.geometry
    assert as_written(served(reader)) == set(written)


def test_reader_of_an_empty_store_sees_its_first_message(tmp_path, open_store: OpenStore):
    with Child(tmp_path / "store", **SMALL) as writer:
        reader = open_store(read_only=True)
        assert (reader.refresh(), reader.queues(), reader.max_phy_offset) == (0, [], 0)
        writer.ask("put", topic="T", body="first")
        assert (reader.refresh(), reader.min_phy_offset) == (1, 0)
        assert [m.body for m in read_all(reader, "T", 0)] == [b"first"]


def test_reader_follows_over_a_kill_and_a_new_writer(tmp_path, open_store: OpenStore):
    with Child(tmp_path / "store", **SMALL) as writer:
        writer.ask("put", topic="T", count=50)
        reader = open_store(read_only=True)
        writer.ask("put", topic="T", count=50)
    with Child(tmp_path / "store") as writer:
        assert writer.opened == {"mode": "abnormal"}
        writer.ask("put", topic="T", count=50)
        reader.refresh()
        assert [m.queue_offset for m in read_all(reader, "T", 0)] == list(range(150))


def test_reader_that_is_refreshed_while_the_writer_runs_never_sees_a_hole_or_a_half(
    tmp_path, open_store: OpenStore
):
    with Child(tmp_path / "store", **SMALL) as writer:
        writer.ask("put", topic="T")
        reader = open_store(read_only=True)
        assert writer.process.stdin is not None
        writer.process.stdin.write('{"do": "put", "topic": "T", "count": 3000, "body": "%s"}\n' % ("b" * 70))
        writer.process.stdin.flush()
        at = 0
        while at < 3001:
            reader.refresh()
            for message in reader.get("T", 0, at, 1000):
                assert (message.queue_offset, message.topic) == (at, "T")
                at += 1
        assert reader._core.log.holes.covers(0) is False
        assert reader_of(reader)._found.holes == []
        assert reader_of(reader)._found.scan.tail is None


@pytest.mark.parametrize("crashed", [False, True])
def test_reading_changes_no_byte(open_store: OpenStore, tmp_path, crashed):
    store = open_store()
    fill(store, 100)
    if crashed:
        root = copy_store(store.path, tmp_path / "copy")
    else:
        store.close()
        root = store.path
    before = tree_digest(root)
    with MessageStore.open(root, read_only=True) as reader:
        served(reader)
        reader.refresh()
        reader.offset_by_time("T", 0, 0)
        assert reader.recovery.mode == ("abnormal" if crashed else "normal")
    assert tree_digest(root) == before


def test_reader_refuses_to_write(open_store: OpenStore):
    open_store().close()
    reader = open_store(read_only=True)
    assert reader.read_only
    for write in (lambda: reader.put("T", b"x"), lambda: reader.put_batch("T", [b"x"]), reader.flush):
        with pytest.raises(ReadOnlyError, match="was opened for reading"):
            write()


def test_reader_never_creates_a_store(tmp_path):
    with pytest.raises(NotFoundError):
        MessageStore.open(tmp_path / "none", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_reader_moves_its_minimum_when_the_oldest_segment_goes(open_store: OpenStore):
    writer = open_store()
    fill(writer, 200, topics=1, queues=1)
    reader = open_store(read_only=True)
    held = reader.get("Topic0", 0, 0).records
    (writer.path / "commitlog" / "00000000000000000000").unlink()
    reader.refresh()
    first = reader.min_offset("Topic0", 0)
    assert first > 0
    assert reader.get("Topic0", 0, 0).status is GetStatus.OFFSET_TOO_SMALL
    assert reader.get("Topic0", 0, first).messages[0].queue_offset == first
    assert reader.min_phy_offset > 0
    assert held


def test_closed_reader_says_so(open_store: OpenStore):
    open_store().close()
    reader = open_store(read_only=True)
    reader.close()
    reader.close()
    with pytest.raises(ClosedError):
        reader.get("T", 0, 0)
    with pytest.raises(ClosedError):
        reader.refresh()
