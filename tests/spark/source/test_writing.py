"""Rows become messages, once, after any retry."""

from __future__ import annotations

import json
import uuid

import pyarrow as pa
import pytest

from seglog import MessageStore
from seglog.doctor.check.check import check_store
from seglog.errors import ConfigError, InvalidArgumentError, MessageIllegalError, StoreError, StoreLockedError
from seglog.spark.source.values.columns import BY_NAME
from seglog.spark.source.write import append_job
from seglog.spark.source.write.append_job import AppendJob
from seglog.spark.source.write.staging import stage, staged_runs
from seglog.spark.source.write.written_columns import cast_columns, written_columns
from seglog.storage.files.files import RealFiles

ROWS = [
    {
        "topic": "T" if number % 3 else "U",
        "body": b"%d" % number,
        "queueId": number % 2,
        "tags": f"t{number % 4}",
        "keys": f"k{number} k",
        "properties": [("own", str(number)), ("empty", "")],
        "bornTimestamp": 1_700_000_000_000 + number,
        "bornHost": "10.1.2.3:40000",
        "flag": number,
    }
    for number in range(200)
]
SCHEMA = pa.schema(
    [(name, pa.int64() if name == "bornTimestamp" else BY_NAME[name].types[0]) for name in ROWS[0]]
)


class DriverDiedError(Exception):
    """Stands for the end of the driver."""


def staged(job, rows=ROWS, parts=3):
    step = -(-len(rows) // parts)
    batches = {
        first: pa.RecordBatch.from_pylist(rows[first : first + step], SCHEMA)
        for first in range(0, len(rows), step)
    }
    found = [
        stage([batch], job.staging / f"{first}-{uuid.uuid4().hex}.arrow", first)
        for first, batch in batches.items()
    ]
    return found[::-1]


def messages(root):
    with MessageStore.open(root, read_only=True) as store:
        return [
            message
            for queue in store.queues()
            for message in store.get(queue.topic, queue.queue_id, 0, max_count=1000).messages
        ]


def test_rows_become_messages(tmp_path):
    job = AppendJob(tmp_path / "store", "job")
    assert job.commit(staged(job), RealFiles()) == 200
    found = sorted(messages(tmp_path / "store"), key=lambda message: message.flag)
    assert [message.body for message in found] == [row["body"] for row in ROWS]
    first = found[5]
    assert (first.topic, first.queue_id, first.tags, first.keys) == ("T", 1, "t1", ["k5", "k"])
    assert first.properties["own"] == "5"
    assert "empty" not in first.properties
    assert (first.born_timestamp_ms, str(first.born_host)) == (1_700_000_000_005, "10.1.2.3:40000")
    # Each queue has its rows in their order.
    of_queue = [one for one in messages(tmp_path / "store") if (one.topic, one.queue_id) == ("U", 0)]
    assert [one.flag for one in of_queue] == [*range(0, 200, 6)]
    assert check_store(tmp_path / "store").findings == ()
    assert not job.staging.exists()


def test_a_job_is_done_once(tmp_path):
    job = AppendJob(tmp_path / "store", "job")
    job.commit(staged(job), RealFiles())
    assert job.commit(staged(job), RealFiles()) == 0
    assert not job.staging.exists()
    assert AppendJob(tmp_path / "store", "other").commit(staged(job), RealFiles()) == 200
    assert len(messages(tmp_path / "store")) == 400


def rows_of(root):
    return sorted((one.topic, one.queue_id, one.queue_offset, one.body) for one in messages(root))


def test_rows_are_cast_as_the_sink_of_kafka_casts_them(tmp_path):
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    schema = pa.schema(
        [
            ("VALUE", pa.string()),
            ("key", pa.binary()),
            ("partition", pa.int64()),
            ("headers", headers),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", tz="UTC")),
            ("tags", pa.null()),
        ]
    )
    given = [{"key": "trace", "value": b"\xc3\xa4"}, {"key": "none", "value": None}]
    row = {"VALUE": "\u00e4", "key": b"k1 k2", "partition": 3, "headers": given, "offset": 7}
    job = AppendJob(tmp_path / "store", "job")
    batch = pa.RecordBatch.from_pylist([row], schema)
    job.commit([stage([batch], job.staging / "0.arrow", 0, "T")], RealFiles())
    (message,) = messages(tmp_path / "store")
    assert (message.topic, message.queue_id, message.body) == ("T", 3, "\u00e4".encode())
    assert (message.keys, message.properties["trace"], message.tags) == (["k1", "k2"], "\u00e4", None)
    assert "none" not in message.properties
    far = pa.RecordBatch.from_pylist([{**row, "partition": 1 << 31}], schema)
    with pytest.raises(MessageIllegalError, match="a row has a queueId that cannot be"):
        stage([far], job.staging / "1.arrow", 1, "T")


def test_rows_of_a_queue_are_appended_in_runs_that_fit_a_file(tmp_path):
    rows = [
        {"topic": "TU"[number % 2], "body": bytes([number % 256]) * (number % 7 * 100), "queueId": number % 3}
        for number in range(5000)
    ]
    schema = pa.schema([("topic", pa.string()), ("body", pa.binary()), ("queueId", pa.int16())])
    found = stage([pa.RecordBatch.from_pylist(rows, schema)], tmp_path / "0.arrow", 0)
    runs = list(staged_runs(found, 1 << 16))
    assert sum(len(run.messages) for run in runs) == 5000
    assert max(sum(len(one.body) for one in run.messages) for run in runs) <= 1 << 14
    assert len(runs) < 200
    again = [(run.topic, run.queue_id, one.body) for run in runs for one in run.messages]
    for topic in "TU":
        for queue_id in range(3):
            queue = [row["body"] for row in rows if (row["topic"], row["queueId"]) == (topic, queue_id)]
            assert [body for *key, body in again if key == [topic, queue_id]] == queue
    with MessageStore.open(tmp_path / "store", segment_size_bytes=1 << 16):
        pass
    job = AppendJob(tmp_path / "store", "job")
    assert job.commit([found], RealFiles()) == 5000
    assert check_store(tmp_path / "store").findings == ()


def test_a_commit_that_was_interrupted_within_a_run_goes_on_within_it(tmp_path):
    bodies = [b"%d" % number for number in range(100)]
    rows = [{"topic": "T", "body": body} for body in bodies]
    schema = pa.schema([("topic", pa.string()), ("body", pa.binary())])
    job = AppendJob(tmp_path / "store", "job")
    found = stage([pa.RecordBatch.from_pylist(rows, schema)], job.staging / "0.arrow", 0)
    with MessageStore.open(tmp_path / "store") as store:
        for body in bodies[:37]:
            store.append("T", 0, body, b"", 0)
    journal = tmp_path / "store/seglog/spark-writes/job.json"
    journal.parent.mkdir(parents=True)
    journal.write_text('{"physicalOffset": 0}')
    assert job.commit([found], RealFiles()) == 63
    assert rows_of(tmp_path / "store") == [("T", 0, at, b"%d" % at) for at in range(100)]


@pytest.mark.parametrize("dies_at", [0, 1, 57, 199, 200])
def test_a_commit_that_was_interrupted_goes_on_where_it_was(tmp_path, monkeypatch, dies_at):
    job = AppendJob(tmp_path / "store", "job")
    with MessageStore.open(tmp_path / "store") as store:
        store.put("T", b"before")
    append, count = append_job._append, iter(range(1000))

    def dying_append(*args):
        if next(count) == dies_at:
            raise DriverDiedError
        append(*args)

    def dying_flush(_self):
        raise DriverDiedError

    with monkeypatch.context() as patch:
        patch.setattr(append_job, "_append", dying_append)
        patch.setattr(MessageStore, "flush", dying_flush)
        with pytest.raises(DriverDiedError):
            job.commit(staged(job), RealFiles())
    with MessageStore.open(tmp_path / "store") as store:
        store.put("T", b"between")
    assert job.commit(staged(job), RealFiles()) == 200 - dies_at
    found = [message.body for message in messages(tmp_path / "store")]
    assert sorted(found) == sorted([b"before", b"between", *(row["body"] for row in ROWS)])
    assert check_store(tmp_path / "store").findings == ()


def interrupted(job, monkeypatch, dies_at):
    append, count = append_job._append, iter(range(1000))

    def dying_append(*args):
        if next(count) == dies_at:
            raise DriverDiedError
        append(*args)

    with monkeypatch.context() as patch:
        patch.setattr(append_job, "_append", dying_append)
        with pytest.raises(DriverDiedError):
            job.commit(staged(job), RealFiles())


@pytest.mark.parametrize("dies_at", [1, 60, 150])
@pytest.mark.parametrize("is_aborted", [False, True])
def test_a_commit_that_is_tried_again_with_rows_in_another_order(tmp_path, monkeypatch, dies_at, is_aborted):
    job = AppendJob(tmp_path / "store", "job")
    interrupted(job, monkeypatch, dies_at)
    if is_aborted:
        job.abort(RealFiles())
    job.commit(staged(job, ROWS[::-1], parts=5), RealFiles())
    assert sorted(one.flag for one in messages(tmp_path / "store")) == [*range(200)]
    assert check_store(tmp_path / "store").findings == ()
    assert not job.staging.exists()


def test_a_batch_that_was_interrupted_is_ended_before_the_next(tmp_path, monkeypatch):
    def batch(number, rows):
        job = AppendJob(tmp_path / "store", "query", number)
        return job, staged(job, rows)

    job, rows = batch(4, ROWS[:50])
    assert job.commit(rows, RealFiles()) == 50
    assert job.commit(batch(3, ROWS[:50])[1], RealFiles()) == 0
    interrupted(AppendJob(tmp_path / "store", "query", 5), monkeypatch, 7)
    job, rows = batch(6, ROWS[50:60])
    assert job.commit(rows, RealFiles()) == 193 + 10
    assert len(messages(tmp_path / "store")) == 50 + 200 + 10


def test_a_job_that_is_aborted_before_its_first_message_leaves_nothing(tmp_path):
    job = AppendJob(tmp_path / "store", "job")
    staged(job)
    job.abort(RealFiles())
    assert [*tmp_path.iterdir()] == []


def test_a_note_of_a_job_that_is_none_is_named(tmp_path):
    note = tmp_path / "store/seglog/spark-writes/job.json"
    with MessageStore.open(tmp_path / "store"):
        note.parent.mkdir(parents=True)
    for text in ("", "[]", "{}", '{"physicalOffset": "x"}', '{"physicalOffset": 1, "staged": [1]}'):
        note.write_text(text)
        job = AppendJob(tmp_path / "store", "job")
        with pytest.raises(ConfigError, match=r"job\.json is no journal of a job that writes"):
            job.commit(staged(job), RealFiles())
    assert messages(tmp_path / "store") == []


def test_a_store_that_is_open_elsewhere_is_left_alone(tmp_path):
    job = AppendJob(tmp_path / "store", "job")
    with MessageStore.open(tmp_path / "store"), pytest.raises(StoreLockedError):
        job.commit(staged(job), RealFiles())
    assert messages(tmp_path / "store") == []


def test_topics_of_rocketmq_itself_are_refused_before_anything_is_written(tmp_path):
    job = AppendJob(tmp_path / "store", "job")
    for topic in ("SCHEDULE_TOPIC_XXXX", "%RETRY%x", "%DLQ%x", "rmq_sys_wheel_timer", "c_REPLY_TOPIC"):
        rows = [*ROWS[:5], {**ROWS[5], "topic": topic}]
        with pytest.raises(InvalidArgumentError, match=topic):
            job.commit(staged(job, rows), RealFiles())
    assert not (tmp_path / "store").exists()


def test_rows_that_cannot_be_messages(tmp_path):
    text, blob, number = pa.string(), pa.binary(), pa.int32()
    for columns, said in (
        ([("topic", text)], "no column 'body'"),
        ([("value", blob)], "no column 'topic'"),
        ([("topic", text), ("body", blob), ("x", number)], "no column 'x'"),
        ([("topic", text), ("body", blob), ("VALUE", blob)], "'body' and 'VALUE' are the same"),
        ([("topic", blob), ("body", blob)], "column 'topic' of type binary cannot be written"),
        ([("topic", text), ("value", number)], "column 'value' of type int32 cannot be written"),
        ([("topic", text), ("body", blob), ("partition", text)], "column 'partition' of type string"),
    ):
        with pytest.raises(InvalidArgumentError, match=said):
            written_columns(pa.schema(columns), has_topic=False)
    with pytest.raises(InvalidArgumentError) as caught:
        written_columns(pa.schema([("topic", text), ("body", blob), ("quueId", number)]), has_topic=False)
    assert caught.value.help.startswith("did you mean queueId? ")
    with pytest.raises(MessageIllegalError, match="a row has no topic"):
        staged(AppendJob(tmp_path / "store", "job"), [{**ROWS[0], "topic": None}])


def test_properties_as_text_are_kept_as_they_are(tmp_path):
    schema = pa.schema([("topic", pa.string()), ("body", pa.binary()), ("properties", pa.string())])
    raw = "a\x01\x02b\x01x\x02b\x01y\x02TAGS\x01t\x02"
    job = AppendJob(tmp_path / "store", "job")
    batch = pa.RecordBatch.from_pylist([{"topic": "T", "body": b"", "properties": raw}], schema)
    job.commit([stage([batch], job.staging / "0.arrow", 0)], RealFiles())
    (message,) = messages(tmp_path / "store")
    assert message.properties_raw.startswith(raw.encode())
    assert json.loads((tmp_path / "store/seglog/spark-writes/job.json").read_text()) == {
        "physicalOffset": -1,
        "batchId": 0,
        "staged": [],
    }


HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def stage_one(folder, kind, **values):
    schema = pa.schema([("topic", pa.string()), ("body", pa.binary()), *kind.items()])
    batch = pa.RecordBatch.from_pylist([{"topic": "T", "body": b"x", **values}], schema)
    return stage([batch], folder / "0.arrow", 0)


def test_a_header_that_is_no_text_is_refused_by_its_name(tmp_path):
    given = [{"key": "fine", "value": b"x"}, {"key": "trace", "value": b"\xff"}]
    with pytest.raises(MessageIllegalError, match=r"header 'trace' that is not UTF-8") as caught:
        stage_one(tmp_path, {"headers": HEADERS}, headers=given)
    assert "base64" in caught.value.help


def test_properties_that_are_no_text_stay_as_they_are_or_are_refused(tmp_path):
    raw = {"properties": pa.binary(), "keys": pa.string()}
    (run,) = staged_runs(stage_one(tmp_path, raw, properties=b"a\x01\xff\x02", keys=None), 1 << 20)
    assert run.messages[0].properties == b"a\x01\xff\x02"
    with pytest.raises(MessageIllegalError, match="properties that are not UTF-8"):
        stage_one(tmp_path, raw, properties=b"a\x01\xff\x02", keys="k")


@pytest.mark.parametrize(
    ("name", "kind", "given"),
    [
        ("headers", HEADERS, [{"key": "a", "value": b"1"}, {"key": "a", "value": b"2"}]),
        ("headers", HEADERS, [{"key": "a", "value": b"1"}, {"key": "a", "value": None}]),
        ("properties", pa.map_(pa.string(), pa.string()), [("a", "1"), ("a", "2")]),
    ],
)
def test_two_headers_of_a_name_are_refused(tmp_path, name, kind, given):
    with pytest.raises(MessageIllegalError, match="two headers or properties of the name 'a'") as caught:
        stage_one(tmp_path, {name: kind}, **{name: given})
    assert "one value for a name" in caught.value.help


@pytest.mark.parametrize("queue_id", [-1, 1 << 31])
def test_a_queue_that_cannot_be_is_refused_with_the_numbers_that_can(tmp_path, queue_id):
    with pytest.raises(StoreError, match="queue") as caught:
        stage_one(tmp_path, {"queueId": pa.int64()}, queueId=queue_id)
    assert "numbers from 0 to 2147483647" in caught.value.help


def cast(rows, *columns):
    schema = pa.schema([("topic", pa.string()), *columns])
    batch = pa.RecordBatch.from_pylist([{"topic": "T", **row} for row in rows], schema)
    return cast_columns(batch, written_columns(schema, has_topic=False), None)


def test_a_body_that_is_null_is_refused_with_what_deletes_a_key():
    with pytest.raises(MessageIllegalError, match="a row has no body") as refused:
        cast([{"value": b"x"}, {"value": None}], ("value", pa.binary()))
    assert "write an empty body" in refused.value.help
    assert "deletes the key in a compaction" in refused.value.help


@pytest.mark.parametrize("name", ["key", "keys", "tags"])
def test_text_that_is_not_utf_8_is_refused_with_what_to_write(name):
    called = "keys" if name == "key" else name
    with pytest.raises(MessageIllegalError, match=f"a row has {called} that are not UTF-8") as refused:
        cast([{"value": b"", name: b"\xff"}], ("value", pa.binary()), (name, pa.binary()))
    assert "base64" in refused.value.help


def test_stored_properties_whose_tags_are_not_text_are_refused_with_row_and_bytes(tmp_path):
    stored = b"TAGS\x01a\x02", b"TAGS\x01\xff\x02"
    rows = [{"topic": "T", "body": b"x", "properties": raw} for raw in stored]
    schema = pa.schema([("topic", pa.string()), ("body", pa.binary()), ("properties", pa.binary())])
    with pytest.raises(MessageIllegalError, match=r"row 1 .*TAGS are not UTF-8.*found b'\\xff'"):
        stage([pa.RecordBatch.from_pylist(rows, schema)], tmp_path / "0.arrow", 0)
