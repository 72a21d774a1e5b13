"""A wanted topic that no store has is said."""

from __future__ import annotations

import shutil

import pytest

from seglog import MessageStore
from seglog.spark.source.read.read_plan import plan_pieces
from seglog.spark.source.wanted.options import parse_options
from tests.support.streams import Stream


@pytest.fixture
def root(tmp_path):
    with MessageStore.open(tmp_path / "store", segment_size_bytes=1 << 16) as store:
        store.put("orders", b"x")
    (tmp_path / "store/config").mkdir(exist_ok=True)
    (tmp_path / "store/config/topics.json").write_text('{"topicConfigTable": {"payments": {}}}')
    return tmp_path / "store"


CASES = {
    "subscribe=orders,payments": [],
    "subscribe=Orders,Nope": [
        "no store has the topic Nope, so it gives no rows",
        "no store has the topic Orders, so it gives no rows; did you mean orders?",
    ],
    'assign={"paiments": [0]}': [
        "no store has the topic paiments, so it gives no rows; did you mean payments?"
    ],
    "subscribePattern=Nope": [],
}


@pytest.mark.parametrize("given", CASES)
def test_a_topic_that_no_store_has_is_a_warning(root, caplog, given):
    name, _is, value = given.partition("=")
    options = parse_options({"path": str(root), name: value})
    plan_pieces(options)
    assert [record.getMessage() for record in caplog.records] == CASES[given]
    caplog.clear()
    Stream(root, topics=options.topics, queues=options.queues, topic_pattern=options.topic_pattern)
    assert [record.getMessage() for record in caplog.records] == CASES[given]


def test_a_store_without_queues_says_nothing_of_topics(root, caplog):
    shutil.rmtree(root / "consumequeue")
    plan_pieces(parse_options({"path": str(root), "subscribe": "Nope", "failOnDataLoss": "false"}))
    assert not any("no store has" in record.getMessage() for record in caplog.records)
