"""Where a group begins in a queue without an offset: at the end, the begin, or a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.client.connect import make_client
from seglog.client.home import start
from seglog.clock import VirtualClock
from seglog.consumer.brokers import Brokers
from seglog.consumer.listener import ALSO_LAST, ConsumeFrom
from seglog.consumer.offsets.first_offsets import FirstOffsets
from seglog.consumer.push import PushConsumer
from seglog.consumer.settings import ConsumerSettings, subscriptions_of, timestamp_ms_of
from seglog.errors import InvalidArgumentError
from seglog.producer.producer import Producer
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.message_queue import MessageQueue
from tests.support.asks import send_to
from tests.support.recording import RecordingLink

HOUR = "1h"


@pytest.fixture
def hourly(broker: Broker, clock: VirtualClock) -> list[int]:
    """Sends five messages, an hour apart, to queue 0 of T; returns their store times."""
    moments = []
    with Producer(broker) as producer:
        for number in range(5):
            moments.append(clock.now_ms())
            producer.send("T", b"%d" % number, queue_id=0)
            broker.advance(HOUR)
    return moments


def first_offset(broker: Broker, where: ConsumeFrom, timestamp_ms: int = 0, topic: str = "T") -> int:
    with make_client(broker) as client:

        async def ask() -> None:
            await client.routes.refresh(topic)
            found.append(await FirstOffsets(Brokers(client), where, timestamp_ms).of(queue))

        found: list[int] = []
        queue = MessageQueue(topic, "broker-a", 0)
        start(client.home, ask(), "a question")
        broker.advance("0s")
    return found[0]


def test_s4_02_last_first_and_timestamp(broker: Broker, hourly: list[int]):
    assert first_offset(broker, ConsumeFrom.LAST) == 5
    assert first_offset(broker, ConsumeFrom.FIRST) == 0
    assert [first_offset(broker, ConsumeFrom.TIMESTAMP, moment) for moment in hourly] == [0, 1, 2, 3, 4]
    assert first_offset(broker, ConsumeFrom.TIMESTAMP, hourly[2] + 1) == 3


def test_s4_02_of_the_retry_topic_nothing_is_missed_but_with_a_timestamp(broker: Broker):
    topic = "%RETRY%g"
    with PushConsumer(broker, "g", "T", lambda _: None) as consumer:
        consumer.run_until_idle()
    for _ in range(2):
        broker.dispatch(send_to(topic))
    assert first_offset(broker, ConsumeFrom.LAST, topic=topic) == 0
    assert first_offset(broker, ConsumeFrom.FIRST, topic=topic) == 0
    assert first_offset(broker, ConsumeFrom.TIMESTAMP, topic=topic) == 2


@pytest.fixture
def consume(broker: Broker) -> Callable[..., list[int]]:
    def consume(**options: Any) -> list[int]:
        """Returns the offsets that a member of group g consumes of T, at a broker that has none for it."""
        link = RecordingLink(broker)
        link.refused, link.refusal = {RequestCode.QUERY_CONSUMER_OFFSET}, ResponseCode.QUERY_NOT_FOUND
        if broker.offsets.query("g", "T", 0) is not None:
            link.refused = set()
        seen: list[int] = []
        listener = lambda message: seen.append(message.queue_offset)  # noqa: E731
        with PushConsumer(link, "g", "T", listener, **options) as consumer:
            consumer.run_until_idle()
        return sorted(seen)

    return consume


@pytest.mark.parametrize("is_text", [False, True])
def test_s4_02_a_new_group_begins_at_its_time_and_one_that_has_offsets_goes_on(
    consume: Callable[..., list[int]], hourly: list[int], *, is_text: bool
):
    def at(hour: int) -> dict[str, Any]:
        moment = datetime.fromtimestamp(hourly[hour] / 1000, UTC)
        given = moment.astimezone().strftime("%Y%m%d%H%M%S") if is_text else moment
        return {"consume_from": ConsumeFrom.TIMESTAMP, "consume_timestamp": given}

    assert consume(**at(3)) == [3, 4]
    assert consume(**at(0)) == [], "the group has an offset"


@pytest.mark.parametrize(
    ("where", "expected"), [(ConsumeFrom.FIRST, [0, 1, 2, 3, 4]), (ConsumeFrom.LAST, [])]
)
def test_s4_02_a_new_group_begins_where_it_is_said(
    consume: Callable[..., list[int]], hourly: list[int], where: ConsumeFrom, expected: list[int]
):
    assert len(hourly) == 5
    assert consume(consume_from=where) == expected


@pytest.mark.parametrize("name", ALSO_LAST)
def test_s4_02_rocketmqs_deprecated_names_begin_at_the_end_as_there(
    consume: Callable[..., list[int]], hourly: list[int], name: str, caplog: pytest.LogCaptureFixture
):
    assert len(hourly) == 5
    assert ConsumeFrom(name) is ConsumeFrom.LAST
    assert consume(consume_from=name) == []
    assert f"consume_from='{name}' of group g is a deprecated name" in caplog.text


@pytest.mark.parametrize("name", ["CONSUME_FROM_MIN", "LAST_OFFSET", ""])
def test_s4_02_another_name_is_refused_with_those_that_there_are(name: str):
    with pytest.raises(InvalidArgumentError, match=r"expected .*CONSUME_FROM_LAST_OFFSET"):
        ConsumerSettings("g", subscriptions_of("T"), consume_from=name)  # type: ignore[arg-type]


def test_s4_03_the_time_is_half_an_hour_ago_by_default(
    broker: Broker, consume: Callable[..., list[int]], hourly: list[int]
):
    with Producer(broker) as producer:
        producer.send("T", b"now", queue_id=0)
    assert len(hourly) == 5
    assert consume(consume_from=ConsumeFrom.TIMESTAMP) == [5], "the one before it was stored an hour ago"


@pytest.mark.parametrize("wrong", ["19691230000000", datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)])
def test_a_time_before_1970_is_refused_where_it_is_set(wrong: Any):
    with pytest.raises(InvalidArgumentError, match="expected a time from 1970 on"):
        ConsumerSettings("g", subscriptions_of("T"), consume_timestamp=wrong)


@pytest.mark.parametrize(
    "wrong",
    ["2017_0422_221800", "20170422", "201704222218000", "20171322221800", "", " 20170422221800", 5, 5.0],
)
def test_s4_03_what_is_no_time_is_refused(wrong: Any):
    with pytest.raises(InvalidArgumentError, match="14 digits"):
        ConsumerSettings("g", subscriptions_of("T"), consume_timestamp=wrong)


def test_s4_03_a_text_is_of_this_machines_zone():
    assert timestamp_ms_of("20170422221801") == int(datetime(2017, 4, 22, 22, 18, 1).timestamp() * 1000)  # noqa: DTZ001
    assert timestamp_ms_of(datetime(2017, 4, 22, tzinfo=UTC)) == 1_492_819_200_000
