"""Code of the application that is interrupted, or fails, costs no message and stops nothing for good."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from seglog import LitePullConsumer, Message, MessageQueue, OrderlyConsumer, PushConsumer
from seglog.consumer.listener import ConsumeFrom
from seglog.errors import InvalidArgumentError
from seglog.testing import VirtualBroker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    with VirtualBroker.at(tmp_path / "s") as opened:
        producer = opened.producer()
        for number in range(6):
            producer.send("T", b"%d" % number, queue_id=0)
        yield opened


class Interrupted:
    """Decodes; the first time that it comes to a body it is interrupted, as by Ctrl-C."""

    def __init__(self, at: bytes, by: BaseException) -> None:
        self._at = at
        self._by: BaseException | None = by

    def __call__(self, body: bytes) -> bytes:
        if body == self._at and self._by is not None:
            by, self._by = self._by, None
            raise by
        return body


@pytest.mark.parametrize("by", [KeyboardInterrupt(), SystemExit(3)])
def test_a_poll_that_is_interrupted_while_it_decodes_has_given_nothing(
    broker: VirtualBroker, by: BaseException
):
    with LitePullConsumer(broker.link(), "g", "T", decode=Interrupted(b"3", by), pull_count=6) as consumer:
        with pytest.raises(type(by)):
            consumer.poll()
        consumer.commit()
        assert not broker.offsets.query("g", "T", 0)
        assert [message.body for message in consumer.poll()] == [b"%d" % number for number in range(6)]
        consumer.commit()
        assert broker.offsets.query("g", "T", 0) == 6


def test_a_loop_that_is_interrupted_while_it_decodes_goes_on_with_the_same_message(broker: VirtualBroker):
    decode = Interrupted(b"3", KeyboardInterrupt())
    seen = []
    with LitePullConsumer(broker.link(), "g", "T", decode=decode, pull_count=6) as consumer:
        messages = iter(consumer)
        while len(seen) < 6:
            try:
                seen.append(next(messages).body)
            except KeyboardInterrupt:
                assert seen == [b"0", b"1", b"2"]
                consumer.commit()
                assert broker.offsets.query("g", "T", 0) == 3
                messages = iter(consumer)
    assert seen == [b"%d" % number for number in range(6)]


class FatalError(BaseException):
    """None that anything but bookkeeping catches."""


@pytest.mark.parametrize("kind", [PushConsumer, OrderlyConsumer])
def test_decoding_that_ends_a_batch_by_any_error_leaves_its_messages_to_come_again(
    broker: VirtualBroker, kind: Any
):
    seen: list[bytes] = []

    def listener(batch: Any) -> None:
        seen.extend(message.body for message in batch)

    decode = Interrupted(b"2", FatalError())
    with kind(
        broker.link(), "g", "T", listener, batch_size=4, decode=decode, consume_from=ConsumeFrom.FIRST
    ) as consumer:
        consumer.start()
        with pytest.raises(FatalError):
            broker.advance("1s")
        broker.advance("1m")
        consumer.commit()
        assert sorted(seen) == [b"%d" % number for number in range(6)]
        assert kind is PushConsumer or seen == sorted(seen)
        assert broker.offsets.query("g", "T", 0) == 6


class Failing:
    """An allocation strategy whose first answer is wrong."""

    name = "FAILING"

    def __init__(self, wrong: Any) -> None:
        self._wrong = wrong
        self.calls = 0

    def allocate(self, group: str, client_id: str, queues: Any, members: Any) -> Any:
        del group, client_id, members
        self.calls += 1
        if self.calls > 1:
            return tuple(queues)
        if isinstance(self._wrong, Exception):
            raise self._wrong
        return self._wrong


@pytest.mark.parametrize("wrong", [ValueError("no"), None, (MessageQueue("other", "broker-a", 0),)], ids=repr)
def test_a_strategy_that_fails_is_asked_again(broker: VirtualBroker, wrong: Any, caplog: Any):
    seen: list[Message] = []
    strategy = Failing(wrong)
    with PushConsumer(
        broker.link(), "g", "T", seen.append, strategy=strategy, consume_from=ConsumeFrom.FIRST
    ) as consumer:
        consumer.start()
        broker.advance("5s")
        assert (len(seen), strategy.calls > 1) == (6, True)
    assert "are shared again soon: the allocation strategy failed" in caplog.text


def test_listeners_that_are_registered_leave_subscriptions_as_they_were_changed(broker: VirtualBroker):
    producer = broker.producer()
    for topic, tag in (("a", "X"), ("a", "Y"), ("b", "X"), ("c", "X")):
        producer.send(topic, f"{topic}{tag}".encode(), tags=tag)
    seen: list[bytes] = []
    with PushConsumer(broker.link(), "g", consume_from=ConsumeFrom.FIRST) as consumer:
        for topic in "abc":
            if topic == "b":
                consumer.subscribe("a", "X")
            if topic == "c":
                consumer.unsubscribe("b")
            consumer.on(topic)(lambda message: seen.append(message.body))
        consumer.start()
        broker.advance("5s")
    assert sorted(seen) == [b"aX", b"cX"]


def test_a_time_that_no_clock_has_is_refused(broker: VirtualBroker):
    with pytest.raises(InvalidArgumentError, match="consume_timestamp"):
        PushConsumer(broker.link(), "g", "T", print, consume_timestamp=datetime(1, 1, 1))  # noqa: DTZ001
    PushConsumer(broker.link(), "g", "T", print, consume_timestamp=datetime(2024, 1, 1, tzinfo=UTC)).close()
