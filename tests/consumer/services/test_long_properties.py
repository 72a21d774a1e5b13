"""A message whose properties leave no room for what a retry adds is tried again here, and ends as others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seglog import OrderlyConsumer, PushConsumer
from seglog.storage.format.record import properties as props
from seglog.testing import VirtualBroker

LONG = {"note": "n" * 32_624}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    with VirtualBroker.at(tmp_path / "s") as opened:
        yield opened


def send_two(broker: VirtualBroker) -> None:
    producer = broker.producer()
    producer.send("T", b"long", queue_id=0, properties=LONG)
    producer.send("T", b"short", queue_id=0)
    (first, _second) = broker.messages("T")
    assert len(first.properties_raw) > props.MAX_PROPERTIES_BYTES - 200


def fails_at_long(seen: list[tuple[bytes, int]]) -> Any:
    def listener(message: Any) -> None:
        seen.append((message.body, message.reconsume_times))
        if message.body == b"long":
            raise ValueError("not now")

    return listener


def warnings_of(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    said = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
    return [one for one in said if words in one]


def test_it_is_tried_again_every_five_seconds_and_then_is_a_dead_letter(broker, caplog):
    send_two(broker)
    seen: list[tuple[bytes, int]] = []
    with PushConsumer(broker.link(), "g", "T", fails_at_long(seen), max_reconsume_times=4) as consumer:
        consumer.start()
        broker.advance("4s")
        assert (b"short", 0) in seen, "the others go on"
        assert [one for one in seen if one[0] == b"long"] == [(b"long", 0)]
        broker.advance("12s")
        assert broker.offsets.query("g", "T", 0) in (None, 0), "it would be lost with this process"
        broker.advance("30s")
        assert [one for one in seen if one[0] == b"long"] == [(b"long", number) for number in range(5)]
        assert broker.offsets.query("g", "T", 0) == 2
        assert (consumer.counts.delivered, consumer.counts.given_up) == (1, 1)
    (dead,) = broker.messages("%DLQ%g")
    assert (dead.body, dead.properties["note"], dead.unique_key) == (
        b"long",
        LONG["note"],
        broker.messages("T")[0].unique_key,
    )
    (said,) = warnings_of(caplog, "cannot be given back")
    for word in ("of topic T", "queue 0 of broker-a", "offset 0", "of 32767 bytes", "attempt 5", "accept it"):
        assert word in said
    assert len(warnings_of(caplog, "sent to the dead letters after its last attempt")) == 1
    assert len(warnings_of(caplog, "is sent again")) == 1


def test_without_an_end_it_is_tried_again_for_ever(broker, caplog):
    send_two(broker)
    seen: list[tuple[bytes, int]] = []
    with OrderlyConsumer(broker.link(), "o", "T", fails_at_long(seen), max_reconsume_times=-1) as consumer:
        consumer.start()
        broker.advance("10s")
        assert {one[0] for one in seen} == {b"long"}
    assert not broker.messages("%DLQ%o")


def test_one_that_the_listener_accepts_at_last_is_done(broker):
    send_two(broker)
    seen: list[int] = []

    def listener(message: Any) -> None:
        seen.append(message.reconsume_times)
        if message.body == b"long" and message.reconsume_times < 2:
            raise ValueError("not now")

    with PushConsumer(broker.link(), "g", "T", listener) as consumer:
        consumer.start()
        broker.advance("30s")
    assert sorted(seen) == [0, 0, 1, 2]
    assert broker.offsets.query("g", "T", 0) == 2
    assert not broker.messages("%DLQ%g")


def test_in_order_it_ends_with_the_dead_letters_and_the_queue_goes_on(broker, caplog):
    send_two(broker)
    seen: list[tuple[bytes, int]] = []
    with OrderlyConsumer(broker.link(), "g", "T", fails_at_long(seen), max_reconsume_times=2) as consumer:
        consumer.start()
        broker.advance("20s")
        assert seen == [(b"long", 0), (b"long", 1), (b"long", 2), (b"short", 0)]
        assert broker.offsets.query("g", "T", 0) == 2
        assert (consumer.counts.delivered, consumer.counts.given_up) == (1, 1)
    assert [dead.body for dead in broker.messages("%DLQ%g")] == [b"long"]
