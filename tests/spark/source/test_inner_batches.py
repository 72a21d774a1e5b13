"""Messages of inner batches as rows: those that a client of RocketMQ gives to a listener."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

from seglog.spark.source.values.inner_batches import BatchRecord, InnerMessages
from seglog.storage.format.record.inner_batch import BatchMessage, encode_batch
from tests.spark.source.test_messages import read
from tests.support.material.golden import expected, extract


def by_hand(row):
    """Takes the messages of a record apart, as MessageDecoder.java does."""
    body, at, found = row["body"], 0, []
    named = dict(row["properties"])
    if not row["sysFlag"] & 0x80:
        return [(row["topic"], row["queueId"], row["queueOffset"], row["flag"], body, named)]
    while at < len(body):
        size, _magic, _crc, flag, length = struct.unpack_from(">5i", body, at)
        text = body[at + 20 : at + 20 + length]
        (own,) = struct.unpack_from(">h", body, at + 20 + length)
        raw = body[at + 22 + length : at + 22 + length + own].decode()
        properties = dict(part.split("\x01", 1) for part in raw.split("\x02") if part)
        offset = int(named["INNER_BASE"]) + len(found)
        found.append((row["topic"], row["queueId"], offset, flag, text, properties))
        at += size
    assert len(found) == int(named["INNER_NUM"])
    return found


def as_found(row):
    properties = dict(row["properties"])
    assert row["keys"] == properties.get("KEYS")
    assert row["tags"] == properties.get("TAGS")
    assert row["sysFlag"] & 0x80 == 0
    return row["topic"], row["queueId"], row["queueOffset"], row["flag"], row["body"], properties


def test_each_message_of_an_inner_batch_is_a_row(tmp_path):
    root = extract("innerbatch", tmp_path)
    records = read(root)
    rows = read(root, inner_batches="messages")
    assert [as_found(row) for row in rows] == [one for row in records for one in by_hand(row)]
    queues = [line for line in expected("innerbatch") if line["kind"] == "queue"]
    assert len(rows) == sum(line["maxOffset"] - line["minOffset"] for line in queues) == 130
    whole = {row["physicalOffset"]: row for row in records}
    for row in rows:
        for name in ("record", "size", "storeTimestamp", "bornHost", "offsetMsgId", "bodyCrc"):
            assert row[name] == whole[row["physicalOffset"]][name]
        assert row["msgId"] == dict(row["properties"]).get("UNIQ_KEY", whole[row["physicalOffset"]]["msgId"])


@pytest.mark.parametrize(("first", "end"), [(0, 65), (1, 64), (7, 8), (20, 41), (64, 65), (30, 30)])
def test_offsets_may_begin_and_end_within_a_batch(tmp_path, first, end):
    root = extract("innerbatch", tmp_path)
    rows = read(
        root, inner_batches="messages", starting={("BCQTopic", 0): first}, ending={("BCQTopic", 0): end}
    )
    assert [row["queueOffset"] for row in rows if row["queueId"] == 0] == [*range(first, end)]
    assert len([row for row in rows if row["queueId"] == 1]) == 65


def test_other_messages_are_as_they_were(tmp_path):
    for name in ("comp", "roll"):
        root = extract(name, tmp_path)
        assert read(root, inner_batches="messages") == read(root)


MESSAGES = [BatchMessage(b"one", b"TAGS\x01a\x02", 7), BatchMessage(b"", b"", -1), BatchMessage(b"three")]


def inner(body, properties):
    raw = b"...." + body + properties
    record = BatchRecord(5, 40, slice(4, 4 + len(body)), slice(4 + len(body), len(raw)))
    return InnerMessages(np.frombuffer(raw, np.uint8), [record])


def test_a_body_that_holds_something_else_stays_one_row():
    body = encode_batch(MESSAGES)
    whole = b"INNER_NUM\x013\x02INNER_BASE\x0140\x02"
    found = inner(body, whole)
    assert found.records.tolist() == [5, 5, 5]
    assert found.queue_offsets.tolist() == [40, 41, 42]
    nothing = pa.nulls(3, pa.string())
    assert found.column("tags", nothing).to_pylist() == ["a", None, None]
    assert found.column("body", nothing).to_pylist() == [b"one", b"", b"three"]
    assert found.column("tagsCode", pa.nulls(3, pa.int64())).to_pylist() == [97, 0, 0]
    for damaged in (body[:-1], body + b"x", b"\xff" * len(body), b""):
        assert inner(damaged, whole).records.tolist() == []
    for properties in (whole.replace(b"3", b"4"), whole.replace(b"3", b"x"), b""):
        assert inner(body, properties).records.tolist() == []
