"""Tags that are probably not what was meant are said, and taken as they are."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seglog import LitePullConsumer, Message, NewMessage, PushConsumer, Subscription
from seglog.remoting.subscription import probably_meant
from seglog.testing import VirtualBroker

ODD = {
    "paid | refunded": "paid || refunded",
    "paid|refunded": "paid || refunded",
    "a,b": "a || b",
    "a, b || c": "a || b || c",
    "a && b": "a || b",
    "a|a": "a",
    "a ||| b": "a || b",
}
PLAIN = ("paid || refunded", "a||b", "*", "a", "R&D", "two words", "|| a ||", "|", ",")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    with VirtualBroker.at(tmp_path / "s") as opened:
        yield opened


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING and "tag" in one.msg]


@pytest.mark.parametrize("expression", ODD)
def test_what_was_probably_meant_is_named(expression: str):
    assert probably_meant(expression) == ODD[expression]


@pytest.mark.parametrize("expression", PLAIN)
def test_what_looks_like_tags_or_like_nothing_is_not_odd(expression: str):
    assert probably_meant(expression) is None


def by_subscribe(broker: VirtualBroker, tags: str) -> None:
    with LitePullConsumer(broker.link(), "g") as consumer:
        consumer.subscribe("T", tags)
        broker.advance("1m")
        consumer.poll()


def by_constructor(broker: VirtualBroker, tags: str) -> None:
    with PushConsumer(broker.link(), "g", {"T": tags}, print) as consumer:
        consumer.run_until_idle()
        broker.advance("1m")


def by_on(broker: VirtualBroker, tags: str) -> None:
    with PushConsumer(broker.link(), "g") as consumer:
        consumer.on("T", tags=tags)(print)
        consumer.run_until_idle()


@pytest.mark.parametrize("subscribe", [by_subscribe, by_constructor, by_on])
def test_an_odd_subscription_is_said_once(
    broker: VirtualBroker, subscribe: Any, caplog: pytest.LogCaptureFixture
):
    subscribe(broker, "paid | refunded")
    (text,) = said(caplog)
    assert "subscription of T" in text
    assert "was 'paid || refunded' meant?" in text
    caplog.clear()
    subscribe(broker, "paid || refunded")
    assert said(caplog) == []


def test_it_wants_that_tag_all_the_same_and_sql_is_not_odd(
    broker: VirtualBroker, caplog: pytest.LogCaptureFixture
):
    broker.producer().send("T", b"x", tags="a,b")
    broker.producer().send("T", b"y", tags="a")
    got: list[Message] = []
    with PushConsumer(broker.link(), "g", {"T": "a,b"}, got.append) as consumer:
        consumer.run_until_idle()
    assert [message.body for message in got] == [b"x"]
    caplog.clear()
    PushConsumer(broker.link(), "s", {"T": Subscription.by_sql("kind IN ('a', 'b')")}, print).close()
    assert said(caplog) == []


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_message_that_no_subscription_can_want_is_said_once(
    broker: VirtualBroker, caplog: pytest.LogCaptureFixture, *, is_batch: bool
):
    producer = broker.producer()
    for _ in range(3):
        if is_batch:
            producer.send_batch("T", [NewMessage(b"x", tags="a || b")])
        else:
            producer.send("T", b"x", tags="a || b")
    (text,) = said(caplog)
    assert "the tag 'a || b'" in text
