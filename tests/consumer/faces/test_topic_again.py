"""A topic that was deleted and created again is another topic: its messages are not skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from seglog import (
    AsyncOrderlyConsumer,
    AsyncPushConsumer,
    ConsumeFrom,
    OrderlyConsumer,
    PushConsumer,
)
from seglog.remoting.admin_headers import DeleteTopicHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.testing import VirtualBroker
from tests.support.faces import driven

COUNT = 8


def send(broker: VirtualBroker, word: str) -> None:
    producer = broker.producer()
    for number in range(COUNT):
        producer.send("T", f"{word} {number}".encode(), queue_id=0)


def delete(broker: VirtualBroker) -> None:
    answer = broker.dispatch(Request(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicHeader("T")))
    assert answer.code is ResponseCode.SUCCESS


@pytest.fixture
def broker(tmp_path: Path):
    with VirtualBroker.at(tmp_path / "s") as opened:
        send(opened, "old")
        yield opened


@pytest.mark.parametrize("consume_from", [ConsumeFrom.FIRST, ConsumeFrom.LAST])
@pytest.mark.parametrize("away", ["3s", "90s"])
@pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer, AsyncOrderlyConsumer, AsyncPushConsumer])
def test_a_running_consumer_gets_every_message_of_the_new_topic(broker, kind, away, consume_from):
    seen: list[bytes] = []

    def listener(message) -> None:
        seen.append(message.body)

    with driven(kind, broker, "g", "T", listener, consume_from=consume_from) as consumer:
        consumer.start()
        broker.advance("20s")
        delete(broker)
        broker.advance(away)
        seen.clear()
        send(broker, "new")
        broker.advance("60s")
        assert sorted(seen) == [b"new %d" % number for number in range(COUNT)]
        consumer.commit()
    assert broker.offsets.query("g", "T", 0) == COUNT
