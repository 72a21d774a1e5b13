"""Rows become messages, once, whatever is tried again."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from seglog import MessageStore
from seglog.doctor.check.check import check_store
from seglog.errors import InvalidArgumentError, MessageIllegalError, StoreLockedError
from seglog.spark.source.values.columns import BY_NAME
from seglog.spark.source.write import append_job
from seglog.spark.source.write.append_job import AppendJob
from seglog.spark.source.write.staging import check_written_schema, stage
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
    found = [stage([batch], job.staging / f"{first}.arrow", first) for first, batch in batches.items()]
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


def test_a_store_that_is_open_elsewhere_is_left_alone(tmp_path):
    job = AppendJob(tmp_path / "store", "job")
    with MessageStore.open(tmp_path / "store"), pytest.raises(StoreLockedError):
        job.commit(staged(job), RealFiles())
    assert messages(tmp_path / "store") == []


def test_topics_of_rocketmq_itself_are_refused_before_anything_is_written(tmp_path):
    job = AppendJob(tmp_path / "store", "job")
    rows = [*ROWS[:5], {**ROWS[5], "topic": "SCHEDULE_TOPIC_XXXX"}]
    with pytest.raises(InvalidArgumentError, match="SCHEDULE_TOPIC_XXXX"):
        job.commit(staged(job, rows), RealFiles())
    assert messages(tmp_path / "store") == []


def test_rows_that_cannot_be_messages(tmp_path):
    with pytest.raises(InvalidArgumentError, match="no column 'body'"):
        check_written_schema(pa.schema([("topic", pa.string())]))
    with pytest.raises(InvalidArgumentError, match="no column 'x'"):
        check_written_schema(pa.schema([("topic", pa.string()), ("body", pa.binary()), ("x", pa.int32())]))
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
    assert json.loads((tmp_path / "store/seglog/spark-writes/job.json").read_text()) == {"physicalOffset": -1}
