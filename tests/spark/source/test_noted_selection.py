"""A stream keeps to the messages that it began with."""

from __future__ import annotations

import json
import re

import pytest

from seglog import MessageStore
from seglog.errors import InvalidArgumentError
from seglog.spark.source.wanted.options import parse_options
from tests.support.streams import Stream


@pytest.fixture
def root(tmp_path):
    with MessageStore.open(tmp_path / "store") as store:
        for number in range(10):
            for topic in "AB":
                store.put(topic, b"%d" % number, queue_id=number % 2)
    return tmp_path / "store"


def begun(root, at=None, **given):
    options = parse_options({"path": str(root), **given})
    fields = {name: getattr(options, name) for name in options.__slots__ if name != "paths"}
    stream = Stream(root, **fields)
    stream.at = stream.at if at is None else json.loads(json.dumps(at))
    return stream


A = {"subscribe": "A"}


def test_a_first_batch_that_is_planned_again_begins_where_it_did(root):
    stream = begun(root, startingOffsets="earliest", **A)
    first = stream.at
    stream.batch(5)
    assert stream.plan.initial() == first  # Spark asks again


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (A, {"subscribe": "A,B"}, "subscribe was A when this stream began, and is A,B now"),
        (A, {"topic": "B"}, "subscribe was A when this stream began, and is B now"),
        (A, {}, "subscribe was A when this stream began, and is not given now"),
        ({}, A, "subscribe was not given"),
        ({"subscribePattern": "A.*"}, {"subscribePattern": "A|B"}, "subscribePattern was A.* when"),
        ({"assign": '{"A": [0]}'}, {"assign": '{"A": [0, 1]}'}, "assign was {'A': [0]} when"),
        ({"endingTimestamp": "5"}, {"endingTimestamp": "6"}, "endingTimestamp was 5 when"),
    ],
)
def test_a_restart_that_wants_other_messages_is_refused(root, before, now, said):
    stream = begun(root, startingOffsets="earliest", **before)
    first = stream.at
    stream.batch()
    other = begun(root, stream.at, **now)
    for restart in (other.batch, lambda: other.rows(first, stream.at)):
        with pytest.raises(InvalidArgumentError, match=re.escape(said)) as refused:
            restart()
        assert "new checkpointLocation" in refused.value.help


def test_topics_in_another_order_are_the_same(root):
    stream = begun(root, subscribe="A,B", startingOffsets="earliest")
    assert len(stream.batch()) == 20
    assert begun(root, stream.at, topic="B, A").batch() == []


def test_a_checkpoint_of_an_earlier_version_says_nothing_of_them(root):
    stream = begun(root, startingOffsets="earliest", **A)
    stream.batch(5)
    (state,) = stream.at.values()
    del state["wanted"]
    stream = begun(root, stream.at, subscribe="A,B")
    assert len(stream.batch()) == 11
    assert stream.at[str(root)]["wanted"] == {"subscribe": ["A", "B"]}


@pytest.mark.parametrize(
    "again", [{}, {"startingOffsets": '{"A": {"0": 5, "1": 5}}'}, {"startingTimestamp": "9999999999999"}]
)
@pytest.mark.parametrize("before", [{"startingOffsets": '{"A": {"0": 1}}'}, {"startingTimestamp": "1"}])
def test_where_to_begin_counts_only_for_a_new_stream(root, before, again):
    stream = begun(root, **A, **before)
    rows = stream.batch(3)
    stream = begun(root, stream.at, **A, **again)
    rows += stream.batch()
    assert len(rows) == (9 if "startingOffsets" in before else 10)
