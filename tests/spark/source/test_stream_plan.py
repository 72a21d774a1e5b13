"""The batches of a stream, without Spark: every message once, for any cut into batches."""

from __future__ import annotations

import shutil

import pytest

from seglog import MessageStore
from seglog.errors import CorruptError, InvalidArgumentError, MisnamedFileError
from seglog.spark.source.read.read_plan import plan_pieces
from seglog.spark.source.wanted.options import Options
from tests.doctor.check.test_misnamed import call
from tests.support.material.golden import expected, extract
from tests.support.streams import Stream


def test_batches_together_are_the_log(tmp_path):
    stream = Stream(extract("roll", tmp_path), starting="earliest")
    found = [stream.batch(37) for _ in range(12)]
    assert [len(batch) for batch in found] == [37] * 10 + [30, 0]
    places = [row["physicalOffset"] for batch in found for row in batch]
    assert places == sorted(line["cqPos"] for line in expected("roll") if line["kind"] == "msg")
    ends = {
        (line["topic"], line["queueId"]): line["maxOffset"]
        for line in expected("roll")
        if line["kind"] == "queue"
    }
    (state,) = stream.at.values()
    queues = {
        (topic, int(queue_id)): at
        for topic, found in state["queues"].items()
        for queue_id, at in found.items()
    }
    assert queues == ends


def test_a_stream_goes_on_behind_a_restart_and_sees_new_topics(tmp_path):
    store = MessageStore.open(tmp_path, segment_size_bytes=1 << 16)
    for number in range(100):
        store.put("A", b"a%d" % number + bytes(900))
    stream = Stream(tmp_path, starting="earliest", broker_names=("broker-a",))
    bodies = [row["body"][:4] for row in stream.batch(64)]
    for number in range(50):
        store.put("B", b"b%d" % number + bytes(900), queue_id=number % 2)
    stream.restart()
    begun, planned = stream.at, stream.plan.advance(stream.at, 60)
    stream.restart()  # the batch was planned, and then the driver died
    assert [row["body"][:4] for row in stream.rows(begun, planned)] == [
        row["body"][:4] for row in stream.rows(begun, planned)
    ]
    bodies += [row["body"][:4] for row in stream.rows(begun, planned)]
    stream.at = planned
    bodies += [row["body"][:4] for row in stream.batch()]
    wanted = [b"a%d" % number for number in range(100)] + [b"b%d" % number for number in range(50)]
    assert [body.rstrip(b"\0") for body in bodies] == wanted
    assert stream.batch() == []
    assert stream.at[str(tmp_path)]["queues"] == {"A": {"0": 100}, "B": {"0": 25, "1": 25}}
    store.close()


def test_without_startingoffsets_only_what_comes_is_read(tmp_path):
    with MessageStore.open(tmp_path) as store:
        store.put("A", b"before")
        stream = Stream(tmp_path)
        assert stream.batch() == []
        store.put("A", b"after")
        assert [row["body"] for row in stream.batch()] == [b"after"]


def test_a_stream_that_ends_takes_nothing_that_comes_later(tmp_path):
    with MessageStore.open(tmp_path) as store:
        store.put("A", b"before")
        stream = Stream(tmp_path, starting="earliest")
        stream.plan.stop_at_end()
        store.put("A", b"after")
        assert [row["body"] for row in stream.batch()] == [b"before"]
        assert stream.plan.advance(stream.at, None) == stream.at


def test_only_messages_that_are_wanted_count(tmp_path):
    with MessageStore.open(tmp_path) as store:
        for number in range(40):
            store.put("AB"[number % 2], b"%d" % number)
    stream = Stream(tmp_path, starting={("B", 0): 5}, topics=frozenset({"B"}))
    assert [row["queueOffset"] for row in stream.batch(6)] == [5, 6, 7, 8, 9, 10]
    assert [row["queueOffset"] for row in stream.batch(6)] == [11, 12, 13, 14, 15, 16]


def test_several_stores_share_a_batch(tmp_path):
    for name in ("one", "two"):
        with MessageStore.open(tmp_path / name) as store:
            for number in range(10):
                store.put(name, b"%d" % number)
    stream = Stream(tmp_path / "one", tmp_path / "two", starting="earliest")
    assert [row["topic"] for row in stream.batch(6)] == ["one"] * 3 + ["two"] * 3
    assert len(stream.batch()) == 14


@pytest.mark.parametrize("name", ["d-magic", "d-zeropage-last-halt", "d-bodyflip-first"])
def test_damage_ends_a_stream_or_is_left_out(name, tmp_path):
    root = extract(name, tmp_path)
    with pytest.raises(CorruptError):
        Stream(root, starting="earliest").batch()
    stream = Stream(root, starting="earliest", fail_on_data_loss=False)
    whole = Stream(root, starting="earliest", fail_on_data_loss=False).batch()
    assert [row for _ in range(80) for row in stream.batch(7)] == whole
    assert len(whole) > 300


@pytest.mark.parametrize("names", [(1, 0, 2, 3, 4), (1, 2, 3, 4, 0)])
def test_a_store_whose_log_files_have_each_others_names_is_refused(names, tmp_path):
    root = extract("roll", tmp_path)
    restarted = Stream(root, starting="earliest")
    restarted.restart()
    call(root, names)
    for read in (
        lambda: plan_pieces(Options((str(root),), fail_on_data_loss=False)),
        lambda: Stream(root, starting="earliest", fail_on_data_loss=False),
        restarted.batch,
    ):
        with pytest.raises(MisnamedFileError, match="is not what it is called") as refused:
            read()
        assert "seglog repair" in refused.value.help


def test_what_retention_took_is_a_loss(tmp_path):
    root = extract("roll", tmp_path)
    stream = Stream(root, starting="earliest")
    stream.batch(10)
    (root / "commitlog" / f"{0:020}").unlink()
    with pytest.raises(CorruptError, match="retention"):
        stream.batch()
    stream = Stream(root, starting="earliest", fail_on_data_loss=False)
    stream.at = {str(root): {"physicalOffset": 0, "storeTimestamp": 0, "queues": {}}}
    assert stream.batch()[0]["physicalOffset"] == 65536


def test_a_checkpoint_of_other_stores_is_refused(tmp_path):
    one, two = extract("roll", tmp_path), extract("comp", tmp_path)
    stream = Stream(one, starting="earliest")
    other = Stream(two, starting="earliest")
    with pytest.raises(InvalidArgumentError, match="knows nothing of"):
        other.plan.pieces(stream.at, stream.at)


def test_a_log_that_is_shorter_than_it_was_is_a_loss(tmp_path):
    root = extract("roll", tmp_path)
    stream = Stream(root, starting="earliest")
    stream.batch()
    shutil.rmtree(root / "commitlog")
    (root / "commitlog").mkdir()
    shutil.copy(extract("comp", tmp_path) / "commitlog" / f"{0:020}", root / "commitlog")
    with pytest.raises(CorruptError, match="log-shorter"):
        stream.batch()


def test_a_checkpoint_of_an_older_version_goes_on(tmp_path):
    with MessageStore.open(tmp_path) as store:
        for number in range(20):
            store.put("A", b"%d" % number)
        stream = Stream(tmp_path, starting="earliest")
        stream.batch(12)
        (state,) = stream.at.values()
        del state["lastRecord"]
        stream.restart()
        assert [row["body"] for row in stream.batch()] == [b"%d" % number for number in range(12, 20)]
        assert stream.at[str(tmp_path)]["lastRecord"]["queueOffset"] == 19
