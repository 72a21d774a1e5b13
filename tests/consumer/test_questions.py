"""What brokers ask a consumer, and tell it: how it runs, a message by hand, offsets that were reset."""

from __future__ import annotations

import json
import sys

import pytest

from seglog.broker.broker import Broker
from seglog.client.connect import make_client
from seglog.client.links.local_link import LocalLink
from seglog.consumer.listener import Consume
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.producer.producer import Producer
from seglog.remoting.bodies import ResetOffsetsBody
from seglog.remoting.body_json import CONSUMED_DIRECTLY, RUNNING_INFO
from seglog.remoting.client_headers import ConsumeDirectlyHeader, RunningInfoHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response
from seglog.remoting.frames.limits import DEFAULT_LIMITS
from seglog.remoting.headers import ResetOffsetHeader
from seglog.remoting.heartbeat import DirectEnd, TopicRates
from seglog.remoting.message_queue import MessageQueue
from tests.support.consumers import Send
from tests.support.narrow import not_none

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])


def answered(broker, answer):
    """Returns an answer that may come once time moves."""
    broker.advance(0)
    return answer if isinstance(answer, Response) else answer.result()


def ask(broker, request):
    """Returns what the broker answers that asks the client."""
    return answered(broker, broker.answer(request))


def running_info(broker, client_id, *, is_with_stacks=False, group="g"):
    header = RunningInfoHeader(group, client_id, is_with_stacks)
    return ask(broker, Request(RequestCode.GET_CONSUMER_RUNNING_INFO, header))


def info_of(answer):
    assert answer.code is ResponseCode.SUCCESS
    return RUNNING_INFO.decode(answer.body, DEFAULT_LIMITS)


def consume_directly(broker, client_id, message_id, group="g"):
    header = ConsumeDirectlyHeader(group, client_id, message_id, topic="T")
    return ask(broker, Request(RequestCode.CONSUME_MESSAGE_DIRECTLY, header))


def ended(answer):
    assert answer.code is ResponseCode.SUCCESS
    return CONSUMED_DIRECTLY.decode(answer.body, DEFAULT_LIMITS)


def queue(queue_id, topic="T"):
    return MessageQueue(topic, "broker-a", queue_id)


@BOTH
def test_how_a_consumer_runs_is_answered_with_settings_queues_and_rates(broker: Broker, send: Send, kind):
    send(5, queue_id=1)
    with kind(broker, "g", "T", lambda _message: None, threads=7, pull_count=3) as consumer:
        consumer.start()
        broker.advance(1_000)
        info = info_of(running_info(broker, consumer.client_id))
        is_in_order = kind is OrderlyConsumer
        assert info.properties["consumerGroup"] == "g"
        assert info.properties["pullBatchSize"] == "3"
        assert info.properties["PROP_THREADPOOL_CORE_SIZE"] == "7"
        assert info.properties["PROP_CONSUMEORDERLY"] == str(is_in_order).lower()
        assert info.properties["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
        assert info.properties["PROP_CLIENT_VERSION"] == "V5_4_0"
        assert {one.topic for one in info.subscriptions} == {"T", "%RETRY%g"}
        assert set(info.queues) == {*map(queue, range(4)), queue(0, "%RETRY%g")}
        report = info.queues[queue(1)]
        assert (report.done_offset, report.cached_count, report.taken_count) == (5, 0, 0)
        assert report.is_locked is is_in_order
        assert (report.locked_ms > 0) is is_in_order
        assert broker.clock.now_ms() - 1_000 <= report.consumed_ms <= broker.clock.now_ms()
        assert info.rates["T"].done_per_s == 5 / 60
        assert info.rates["T"].pulled_per_s == 5 / 60
        assert info.rates["%RETRY%g"] == TopicRates()
        assert info.stacks is None


def test_a_stuck_message_is_seen_from_outside(broker: Broker, send: Send):
    send(4, queue_id=0)
    fails = lambda _message: Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT  # noqa: E731
    with OrderlyConsumer(broker, "g", "T", fails) as consumer:
        consumer.start()
        broker.advance("10s")
        info = info_of(running_info(broker, consumer.client_id))
        report = info.queues[queue(0)]
        assert (report.done_offset, report.cached_min_offset, report.cached_max_offset) == (0, 0, 3)
        assert report.cached_count == 4
        assert info.rates["T"].failed_in_hour >= 10
        assert info.rates["T"].done_per_s == 0


def test_rates_are_of_the_last_minute_and_failures_of_the_last_hour(broker: Broker, send: Send):
    send(3, queue_id=0)

    def listener(message):
        return Consume.RECONSUME_LATER if message.queue_offset == 1 and not message.reconsume_times else None

    with PushConsumer(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance("50s")
        soon = info_of(running_info(broker, consumer.client_id)).rates
        assert (soon["T"].done_per_s, soon["T"].failed_per_s) == (2 / 60, 1 / 60)
        assert soon["%RETRY%g"].done_per_s == 1 / 60
        broker.advance("2m")
        later = info_of(running_info(broker, consumer.client_id)).rates["T"]
        assert (later.done_per_s, later.failed_per_s, later.failed_in_hour) == (0, 0, 1)
        broker.advance("1h")
        assert info_of(running_info(broker, consumer.client_id)).rates["T"].failed_in_hour == 0


def test_stacks_come_if_they_are_asked_for(broker: Broker, send: Send):
    send(1)
    with OrderlyConsumer(broker, "g", "T", print) as consumer:
        consumer.start()
        broker.advance(0)
        stacks = not_none(info_of(running_info(broker, consumer.client_id, is_with_stacks=True)).stacks)
        assert "MainThread  id: " in stacks
        assert "test_stacks_come_if_they_are_asked_for" in stacks


def test_running_info_is_written_as_fastjson_does(broker: Broker, send: Send):
    send(1)
    with OrderlyConsumer(broker, "g", "T", print) as consumer:
        consumer.start()
        broker.advance(0)
        body = bytes(running_info(broker, consumer.client_id).body)
        assert (
            b'"mqTable":{{"brokerName":"broker-a","queueId":0,"topic":"%RETRY%g"}:{"cachedMsgCount":0,'
            in body
        )
        assert b'"mqPopTable":{},' in body
        assert b'"droped":false' in body


@pytest.mark.parametrize("question", [running_info, consume_directly])
def test_a_group_that_is_not_in_the_client_is_refused_as_by_java(broker: Broker, send: Send, question):
    """A client that has closed the consumer is asked by a broker that has not heard of it yet."""
    send(1)
    with make_client(broker) as client:
        asked = {
            running_info: Request(
                RequestCode.GET_CONSUMER_RUNNING_INFO, RunningInfoHeader("gone", client.client_id)
            ),
            consume_directly: Request(
                RequestCode.CONSUME_MESSAGE_DIRECTLY,
                ConsumeDirectlyHeader("gone", client.client_id),
                bytes(broker.store.record_at(0)),
            ),
        }
        refusal = answered(broker, client.on_request(asked[question]))
        assert refusal.code is ResponseCode.SYSTEM_ERROR
        assert refusal.remark == "The Consumer Group <gone> not exist in this consumer"


@BOTH
@pytest.mark.parametrize(
    ("does", "end"),
    [
        pytest.param(lambda: None, DirectEnd.SUCCESS, id="nothing"),
        pytest.param(lambda: Consume.SUCCESS, DirectEnd.SUCCESS, id="success"),
        pytest.param(lambda: Consume.RECONSUME_LATER, DirectEnd.LATER, id="later"),
        pytest.param(lambda: "SUSPEND_CURRENT_QUEUE_A_MOMENT", DirectEnd.LATER, id="its name"),
        pytest.param(lambda: json.loads("{"), DirectEnd.THROW_EXCEPTION, id="raises"),
        pytest.param(lambda: sys.exit(3), DirectEnd.THROW_EXCEPTION, id="exits"),
        pytest.param(lambda: "no such word", DirectEnd.THROW_EXCEPTION, id="no answer"),
    ],
)
def test_a_message_by_hand_ends_as_the_listener_says(broker: Broker, kind, does, end):
    sent = Producer(broker).send("T", b"x" * 5_000, keys="k", queue_id=2)
    seen = []
    with kind(broker, "g", "T", lambda message: seen.append(message.body)) as consumer:
        consumer.run_until_idle()

    def listener(message):
        seen.append(message.body)
        return does()

    seen.clear()
    with kind(broker, "g", "T", listener) as consumer:
        consumer.run_until_idle()
        answer = ended(consume_directly(broker, consumer.client_id, sent.offset_message_id))
        assert answer.end is end
        assert answer.is_in_order is (kind is OrderlyConsumer)
        assert answer.commits_itself
        assert (answer.remark is None) is (end is not DirectEnd.THROW_EXCEPTION)
        assert seen == [b"x" * 5_000]
        assert broker.offsets.query("g", "T", 2) == 1, "it is out of the order of the queue"


def test_a_retried_message_by_hand_has_the_topic_that_it_was_sent_to(broker: Broker):
    Producer(broker).send("T", b"x", queue_id=0)
    topics = []

    def listener(message):
        topics.append((message.topic, message.reconsume_times))
        return Consume.RECONSUME_LATER if not message.reconsume_times else None

    with PushConsumer(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance("11s")
        assert topics == [("T", 0), ("T", 1)]
        (retried,) = broker.store.get("%RETRY%g", 0, 0).messages
        consume_directly(broker, consumer.client_id, retried.message_id)
        assert topics[2:] == [("T", 1)]


def test_what_is_no_message_is_refused(broker: Broker):
    link = LocalLink(broker)
    with make_client(link):
        for body in (None, b"no record"):
            request = Request(RequestCode.CONSUME_MESSAGE_DIRECTLY, ConsumeDirectlyHeader("g"), body)
            assert link._channel.ask(request, 1_000).result().code is ResponseCode.SYSTEM_ERROR


def test_a_reply_that_nothing_waits_for_is_taken_as_java_does(broker: Broker):
    with make_client(broker) as client:
        reply = Request(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, ext={"topic": "T"})
        answer = answered(broker, client.on_request(reply))
        assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)


def reset_to(offset, topic="T", group="g", queue_id=0):
    header = ResetOffsetHeader(group, topic, 0, is_forced=True)
    body = ResetOffsetsBody({queue(queue_id): offset, queue(9): 5, queue(0, "else"): 1})
    return Request(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, header, body, is_oneway=True)


@BOTH
def test_finding_7_a_reset_that_the_client_is_told_reaches_a_consumer_that_is_stuck(
    broker: Broker, send: Send, kind
):
    send(40)
    seen = []

    def listener(message):
        seen.append((message.queue_offset, message.reconsume_times))
        return Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT if message.queue_offset == 0 else None

    with make_client(broker) as client, kind(client, "g", "T", listener, pull_count=4) as consumer:
        consumer.start()
        broker.advance("5s")
        seen.clear()
        client.on_notice(reset_to(38))
        broker.advance(0 if kind is PushConsumer else 1_000)
        assert [one for one in seen if one[0]] == [(38, 0), (39, 0)], (
            "a failure of another message is not theirs"
        )
        broker.advance("10s")
        assert broker.offsets.query("g", "T", 0) == 40


@BOTH
def test_a_reset_back_brings_messages_again_and_is_committed_at_once(broker: Broker, send: Send, kind):
    send(6)
    seen = []
    with (
        make_client(broker) as client,
        kind(client, "g", "T", lambda message: seen.append(message.queue_offset)) as consumer,
    ):
        consumer.start()
        broker.advance("6m")
        client.on_notice(reset_to(4))
        client.on_notice(reset_to(0, topic="unknown"))
        client.on_notice(reset_to(0, group="unknown"))
        broker.advance(0)
        assert seen == [0, 1, 2, 3, 4, 5, 4, 5]
        broker.advance("10s")
        assert broker.offsets.query("g", "T", 0) == 6
