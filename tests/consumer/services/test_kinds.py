"""What both kinds of consumers have alike, and what the kind decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typing_extensions import override

from seglog import sleep_ms
from seglog.broker.broker import Broker
from seglog.client.links.served import OnNotice, OnRequest
from seglog.consumer.listener import Consume, ConsumeFrom
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.consumer.settings import ConsumerSettings, subscriptions_of
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request, expect_header
from seglog.remoting.headers import PullMessageHeader, SendMessageHeader
from seglog.remoting.heartbeat import TopicRates
from tests.support.consumers import Send
from tests.support.recording import LOOKUP, RecordingLink

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])


class ListeningLink(RecordingLink):
    """A link that notes what the broker says without being asked."""

    @override
    def serve(self, on_notice: OnNotice, on_request: OnRequest) -> None:
        self.said: list[Request] = []

        def note(request: Request) -> None:
            self.said.append(request)
            on_notice(request)

        super().serve(note, on_request)


@pytest.fixture
def link(broker: Broker) -> Iterator[ListeningLink]:
    made = ListeningLink(broker, "127.0.0.1@1#one")
    yield made
    made.close()


@pytest.mark.parametrize(("kind", "is_in_order"), [(OrderlyConsumer, True), (PushConsumer, False)])
def test_s2_01_the_kind_decides_how_it_consumes_and_what_it_says_of_itself(
    broker: Broker, link: ListeningLink, send: Send, kind: Any, is_in_order: bool
):
    seen: list[int] = []

    def listener(message: Any) -> Consume | None:
        seen.append(message.queue_offset)
        return Consume.RECONSUME_LATER if message.queue_offset == 0 and len(seen) == 1 else None

    send(2)
    consumer = kind(link, "g", "T", listener)
    consumer.start()
    broker.advance(0)
    assert seen == ([0] if is_in_order else [0, 1]), "what follows a failure waits in order only"
    assert bool(link.moments(RequestCode.LOCK_BATCH_MQ)) is is_in_order
    said = consumer._member.running_info().properties["PROP_CONSUMEORDERLY"]
    assert said == str(is_in_order).lower()
    broker.advance("1s")
    consumer.close()


@BOTH
def test_s2_10_both_kinds_pull_alike(broker: Broker, link: ListeningLink, send: Send, kind: Any):
    send(70)
    consumer = kind(link, "g", "T", lambda _message: None)
    consumer.start()
    broker.advance(0)
    asked = [expect_header(one, PullMessageHeader) for one in link.pulls]
    found = [(one.queue_offset, one.max_msg_nums) for one in asked if (one.topic, one.queue_id) == ("T", 0)]
    assert found == [(0, 32), (32, 32), (64, 32), (70, 32)], "one after another, for ever"
    send(1)
    broker.advance(0)
    last = expect_header(link.pulls[-1], PullMessageHeader)
    assert (last.queue_id, last.queue_offset) == (0, 71)
    consumer.close()


@BOTH
def test_s4_01_every_message_comes_in_the_answer_to_a_pull(
    broker: Broker, link: ListeningLink, send: Send, kind: Any
):
    consumer = kind(link, "g", "T", lambda _message: None)
    consumer.start()
    for _ in range(5):
        send(3)
        broker.advance("1m")
    assert consumer.counts.delivered == 15
    assert {one.code for one in link.said} <= {RequestCode.NOTIFY_CONSUMER_IDS_CHANGED}
    assert all(not one.body for one in link.said)
    consumer.close()


def test_s4_05_what_is_not_set_is_as_in_rocketmq():
    settings = ConsumerSettings("g", subscriptions_of("T"))
    assert settings.consume_from is ConsumeFrom.LAST
    assert (settings.threads, settings.batch_size) == (20, 1)
    assert (settings.max_span, settings.max_cached, settings.max_cached_bytes) == (2_000, 1_000, 100 << 20)
    assert (settings.pull_count, settings.pull_bytes, settings.pull_interval_ms) == (32, 256 << 10, 0)
    assert (settings.consume_timeout_ms, settings.suspend_ms) == (15 * 60_000, 1_000)
    assert settings.max_reconsume_times == -1


def test_s4_05_without_a_number_the_seventeenth_failure_is_the_last_side_by_side(broker: Broker, send: Send):
    attempts: list[int] = []

    def listener(message: Any) -> Consume:
        attempts.append(message.reconsume_times)
        return Consume.RECONSUME_LATER

    send(1)
    with PushConsumer(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance("6h")
    assert attempts == list(range(17))
    assert len(broker.store.get("%DLQ%g", 0, 0, 9).messages) == 1


@BOTH
def test_s4_06_what_is_subscribed_is_said_with_the_retry_topic_of_the_group(
    broker: Broker, link: ListeningLink, send: Send, kind: Any
):
    send(1)
    wanted = {"T": "a || b"}
    consumer = kind(link, "g", wanted, lambda _message: None)
    wanted["U"] = "*"
    consumer.start()
    broker.advance(0)
    said = {one.topic: one.expression for one in consumer._member.heartbeat().subscriptions}
    assert said == {"T": "a || b", "%RETRY%g": "*"}, "a copy"
    assert {queue.topic for queue in consumer.queues} == {"T", "%RETRY%g"}
    consumer.close()


def test_s4_14_what_cannot_be_sent_back_is_sent_by_the_producer_inside(
    broker: Broker, link: ListeningLink, send: Send
):
    send(1)
    link.refused = {RequestCode.CONSUMER_SEND_MSG_BACK}
    with PushConsumer(link, "g", "T", lambda _message: Consume.RECONSUME_LATER) as consumer:
        consumer.run_until_idle()
        (sent,) = [one for _moment, one in link.asked if one.code == RequestCode.SEND_MESSAGE_V2]
        header = expect_header(sent, SendMessageHeader)
        assert (header.producer_group, header.topic) == ("CLIENT_INNER_PRODUCER", "%RETRY%g")


@BOTH
def test_s4_48_the_rates_of_a_consumer_are_those_of_a_counted_run(
    broker: Broker, link: ListeningLink, send: Send, kind: Any
):
    """Times are means: of the calls of the listener, and of the pulls that have found something."""

    async def listener(message: Any) -> None:
        await sleep_ms(30)
        if message.body == b"1" and not message.reconsume_times:
            raise RuntimeError("the application fails")

    def rates() -> TopicRates:
        found: TopicRates = consumer._member.running_info().rates["T"]
        return found

    send(1)  # its pull has its answer at once
    consumer = kind(link, "g", "T", listener, suspend_ms=100)
    consumer.start()
    broker.advance("2s")
    send(1)  # its pull was held for 2 s
    broker.advance("1s")
    send(2)  # and this one for a second
    broker.advance("1s")
    done = 4 if kind is OrderlyConsumer else 3
    found = rates()
    assert (found.pulled_per_s, found.pull_ms) == (4 / 60, 1_000)
    assert (found.done_per_s, found.failed_per_s, found.failed_in_hour) == (done / 60, 1 / 60, 1)
    assert found.consume_ms == 30
    broker.advance("2m")
    assert rates() == TopicRates(failed_in_hour=1), "a minute for all else, an hour for failures"
    broker.advance("1h")
    assert rates() == TopicRates()
    consumer.close()


@BOTH
def test_s4_10_a_start_asks_for_routes_says_that_it_is_there_and_shares_before_it_pulls(
    broker: Broker, link: ListeningLink, send: Send, kind: Any
):
    send(1)
    consumer = kind(link, "g", "T", lambda _message: None)
    assert link.asked == [], "it is made, and not started"
    consumer.start()
    broker.advance(0)
    first = [RequestCode(code) for code in dict.fromkeys(one.code for _moment, one in link.asked)]
    in_order = [RequestCode.LOCK_BATCH_MQ] if kind is OrderlyConsumer else []
    assert first == [
        RequestCode.GET_ROUTEINFO_BY_TOPIC,
        RequestCode.HEART_BEAT,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        *in_order,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.PULL_MESSAGE,
        RequestCode.GET_MAX_OFFSET,  # where no offset is committed: of queues without a message
    ]
    assert {moment for moment, _one in link.asked} == {0}
    consumer.close()


@BOTH
def test_s4_10_a_factory_starts_lookup_channel_timers_pulls_shares_and_its_producer_in_order(
    broker: Broker, link: ListeningLink, send: Send, kind: Any
):
    """The inner producer, which sends what cannot be sent back, is used last: when a message has failed."""
    send(1)
    link.look_at("http://names.example:8080/rocketmq/nsaddr")
    link.list_of_servers = "10.0.0.1:9876"
    link.refused = {RequestCode.CONSUMER_SEND_MSG_BACK}

    def listener(_message: Any) -> None:
        raise RuntimeError("the application fails")

    consumer = kind(link, "g", "T", listener, max_reconsume_times=0)
    consumer.start()
    broker.advance("20s")
    first = list(dict.fromkeys(link.events))
    in_order = [RequestCode.LOCK_BATCH_MQ] if kind is OrderlyConsumer else []
    sent_back = [] if kind is OrderlyConsumer else [RequestCode.CONSUMER_SEND_MSG_BACK]
    assert [code for code in first if code != RequestCode.GET_MAX_OFFSET][
        : 7 + len(in_order + sent_back)
    ] == [
        LOOKUP,
        RequestCode.GET_ROUTEINFO_BY_TOPIC,
        RequestCode.HEART_BEAT,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        *in_order,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.PULL_MESSAGE,
        *sent_back,
        RequestCode.SEND_MESSAGE_V2,
    ]
    (sent,) = [one for _moment, one in link.asked if one.code == RequestCode.SEND_MESSAGE_V2]
    assert expect_header(sent, SendMessageHeader).producer_group == "CLIENT_INNER_PRODUCER"
    assert (link.looked, link.moments(RequestCode.HEART_BEAT)) == ([0, 10], [0, 1])
    consumer.close()


@BOTH
def test_s4_12_what_is_done_is_kept_by_the_broker_after_10_s_and_every_5_s(
    broker: Broker, link: ListeningLink, send: Send, kind: Any
):
    """Side by side and in order it goes to the broker of the queue, one request for each queue."""
    consumer = kind(link, "g", "T", lambda _message: None)
    consumer.start()
    broker.advance("1s")
    send(1)
    broker.advance(0)
    link.asked.clear()
    broker.advance(8_999)
    assert link.moments(RequestCode.UPDATE_CONSUMER_OFFSET) == []
    broker.advance(1)
    assert set(link.moments(RequestCode.UPDATE_CONSUMER_OFFSET)) == {10}
    assert broker.offsets.query("g", "T", 0) == 1
    link.asked.clear()
    broker.advance("1s")
    send(1)
    broker.advance("4s")
    committed = link.moments(RequestCode.UPDATE_CONSUMER_OFFSET)
    assert (committed, broker.offsets.query("g", "T", 0)) == ([15], 2)
    consumer.close()
