"""Messages that a consumer does not consume: too old ones are passed, those that keep failing given up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.client.connect import make_client
from seglog.client.home.flows import start
from seglog.client.home.waiting import wait_for
from seglog.clock import VirtualClock
from seglog.consumer.listener import Consume
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.consumer.send_back import SendBack
from seglog.errors import RemoteProtocolError
from seglog.producer.producer import Producer
from seglog.remoting.codes import RequestCode
from seglog.storage.format.record.message import Message
from seglog.storage.format.record.properties import decode_properties
from seglog.storage.format.record.sys_flag import COMPRESSED
from tests.support.consumers import NewConsumer, Send
from tests.support.recording import RecordingLink, recording

SUSPEND_MS = 1_000
SUSPEND = Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT


@pytest.fixture
def link(broker: Broker) -> Iterator[RecordingLink]:
    with recording(broker) as made:
        yield made


def give_back(link: RecordingLink, message, method="retry_later", *arguments, **options):
    """Gives a message back as a consumer of group ``g`` does."""
    client = make_client(link)
    client.routes.to_read("T")
    steps = getattr(SendBack(client, "g", **options), method)(message, *arguments)
    wait_for(client.home, start(client.home, steps, "a test"))


def stored(broker, topic, queue_id=0):
    return broker.store.get(topic, queue_id, 0, 100).messages


def fails_at(offset, attempts):
    def listener(message):
        if message.queue_offset == offset:
            attempts.append(message.reconsume_times)
            return SUSPEND
        return None

    return listener


def run_for(consumer, broker, seconds):
    consumer.run_until_idle()
    broker.advance((seconds - 1) * SUSPEND_MS)
    consumer.run_until_idle()


def test_s1_16_a_message_whose_ttl_is_over_is_passed(
    broker: Broker, clock: VirtualClock, consume: NewConsumer
):
    producer = Producer(broker)
    for ttl_ms in (0, 10, 60_000):
        producer.send("T", b"x", queue_id=0, ttl_ms=ttl_ms)
    assert [message.properties.get("TTL") for message in stored(broker, "T")] == [None, "10", "60000"]
    clock.advance(50)
    consumer, seen = consume()
    consumer.run_until_idle()
    assert seen == [(0, 0), (0, 2)]
    assert (consumer.counts.expired, consumer.counts.delivered) == (1, 2)
    assert broker.offsets.query("g", "T", 0) == 3


def test_s1_16_waiting_counts_against_the_ttl(broker: Broker, link: RecordingLink, consume: NewConsumer):
    Producer(broker).send("T", b"x", queue_id=0, ttl_ms=4_999, delay_level=2)
    broker.advance("5s")
    consumer, seen = consume()
    consumer.run_until_idle()
    assert (seen, consumer.counts.expired) == ([], 1)


def test_s2_25_after_the_last_attempt_a_message_is_a_dead_letter_and_the_queue_goes_on(
    broker: Broker, clock: VirtualClock, send: Send, consume: NewConsumer
):
    send(3)
    attempts = []
    consumer, seen = consume(listener=fails_at(1, attempts), max_reconsume_times=3)
    run_for(consumer, broker, 4)
    assert attempts == [0, 1, 2, 3]
    assert seen[-1] == (0, 2)
    (dead,) = stored(broker, "%DLQ%g")
    first = stored(broker, "T")[1]
    assert dead.body == first.body
    assert dead.properties["ORIGIN_MESSAGE_ID"] == dead.unique_key == first.unique_key
    assert (dead.reconsume_times, dead.properties["RETRY_TOPIC"]) == (3, "T")
    assert broker.offsets.query("g", "T", 0) == 3
    counts = consumer.counts
    assert (counts.delivered, counts.failed, counts.given_up) == (2, 4, 1)


@pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
def test_a_dead_letter_is_given_up_and_not_delivered_in_either_kind(broker: Broker, send: Send, kind: Any):
    send(2)
    attempts: list[int] = []
    with kind(broker, "g", "T", fails_at(1, attempts), max_reconsume_times=0) as consumer:
        consumer.run_until_idle()
        broker.advance("10s")
        assert len(stored(broker, "%DLQ%g")) == 1
        assert (consumer.counts.delivered, consumer.counts.given_up) == (1, 1)


def test_s2_25_without_a_limit_a_queue_waits_for_ever(broker: Broker, send: Send, consume: NewConsumer):
    send(2)
    attempts = []
    consumer, _seen = consume(listener=fails_at(0, attempts))
    run_for(consumer, broker, 50)
    assert len(attempts) == 50
    assert broker.topics.get("%DLQ%g") is None


def test_a_message_that_cannot_be_given_up_stays_first(
    broker: Broker, link: RecordingLink, send: Send, consume: NewConsumer, caplog
):
    send(2)
    link.refused = {RequestCode.SEND_MESSAGE_V2}
    attempts = []
    consumer, seen = consume(listener=fails_at(0, attempts), via=link, max_reconsume_times=1)
    run_for(consumer, broker, 4)
    assert attempts == [0, 1, 2, 3]
    assert "cannot be given up" in caplog.text
    link.refused = set()
    broker.advance(SUSPEND_MS)
    assert seen[-1] == (0, 1)
    assert [message.reconsume_times for message in stored(broker, "%DLQ%g")] == [4]


def test_a_message_is_given_back_to_the_log_that_has_it(broker: Broker, link: RecordingLink, send: Send):
    send(1)
    give_back(link, stored(broker, "T")[0], "retry_later", "broker-a")
    broker.advance("10s")
    (again,) = stored(broker, "%RETRY%g")
    assert (again.reconsume_times, again.born_timestamp_ms) == (1, stored(broker, "T")[0].born_timestamp_ms)


@pytest.mark.parametrize("transaction", [{}, {"TRAN_MSG": "true"}], ids=["plain", "committed"])
def test_a_message_that_cannot_be_given_back_is_sent_anew(
    broker: Broker, link: RecordingLink, send: Send, caplog, transaction
):
    send(1)
    raw = b"TAGS\x01A\x02own\x011\x02" + b"".join(b"%b\x01true\x02" % name.encode() for name in transaction)
    put = broker.store.append("T", 0, b"x", raw, 65, sys_flag=COMPRESSED | 8, flag=3)
    message = broker.store.message_at(put.phy_offset)
    link.refused = {RequestCode.CONSUMER_SEND_MSG_BACK}
    give_back(link, message, "retry_later", "broker-a", max_reconsume_times=5)
    assert "is sent again" in caplog.text
    broker.advance("10s")
    (again,) = stored(broker, "%RETRY%g")
    assert (again.body, again.flag, again.sys_flag, again.reconsume_times) == (b"x", 3, COMPRESSED, 1)
    found = decode_properties(again.properties_raw)
    wanted = {
        "TAGS": "A",
        "own": "1",
        "RETRY_TOPIC": "T",
        "ORIGIN_MESSAGE_ID": message.message_id,
        "RECONSUME_TIME": "1",
        "MAX_RECONSUME_TIMES": "5",
        "DELAY": "3",
    }
    assert wanted.items() <= found.items()


def test_what_can_be_sent_neither_back_nor_anew_is_an_error(broker: Broker, link: RecordingLink, send: Send):
    send(1)
    link.refused = {RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.SEND_MESSAGE_V2}
    with pytest.raises(RemoteProtocolError, match="not now"):
        give_back(link, stored(broker, "T")[0], "retry_later", "broker-a")


def test_s2_25_under_a_lock_even_the_first_failure_that_is_sent_anew_is_the_last(
    broker: Broker, link: RecordingLink, send: Send, consume: NewConsumer
):
    """RocketMQ's rule: a group with a live lock consumes in order, and gives up what it sends away."""
    send(1)
    consumer, _seen = consume()
    consumer.run_until_idle()
    give_back(link, stored(broker, "T")[0], "send_anew", 1)
    assert len(stored(broker, "%DLQ%g")) == 1


# What the log says


def sent_once(broker: Broker) -> str:
    """Sends a message; returns its id."""
    return Producer(broker).send("T", b"x", queue_id=0).message_id


def lines_of(caplog: pytest.LogCaptureFixture, room: str, start: str) -> list[str]:
    """Returns the warnings of a room that begin so."""
    return [
        each.getMessage()
        for each in caplog.records
        if each.name.startswith(f"seglog.{room}.")
        and each.levelname == "WARNING"
        and each.getMessage().startswith(start)
    ]


@pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
def test_the_log_says_which_attempt_of_which_message_has_failed(broker: Broker, caplog, kind: Any):
    message_id = sent_once(broker)

    def listener(message: Message) -> None:
        if message.reconsume_times < 2:
            raise ValueError("the application fails")

    with kind(broker, "g", "T", listener) as consumer:
        consumer.start()
        broker.advance("5m")
        assert consumer.counts.delivered >= 1
    first, second = lines_of(caplog, "consumer", "the listener failed at ")
    what = f"message {message_id} of topic T, attempt"
    assert f"{what} 1 of group g, T, queue 0 of broker-a, offset 0" in first
    assert f"{what} 2 of group g, " in second


@pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
def test_the_log_of_the_consumer_and_of_the_broker_say_what_became_a_dead_letter(
    broker: Broker, caplog, kind: Any
):
    message_id = sent_once(broker)
    with kind(broker, "g", "T", lambda _message: SUSPEND, max_reconsume_times=2) as consumer:
        consumer.start()
        broker.advance("5m")
    assert len(stored(broker, "%DLQ%g")) == 1
    (said,) = lines_of(caplog, "consumer", "given up, and sent to the dead letters")
    assert f"message {message_id} of topic T, attempt 3 of group g, " in said
    assert ", queue 0 of broker-a, offset " in said
    (said,) = lines_of(caplog, "broker", f"message {message_id} ")
    assert "of topic T is a dead letter of group g after attempt 3" in said


def test_a_dead_letter_by_the_number_of_the_group_is_logged_by_its_broker(broker: Broker, caplog):
    message_id = sent_once(broker)
    with PushConsumer(broker, "g", "T", lambda _message: SUSPEND) as consumer:
        consumer.start()
        broker.advance("6h")
    assert len(stored(broker, "%DLQ%g")) == 1
    (said,) = lines_of(caplog, "broker", f"message {message_id} ")
    assert "of topic T is a dead letter of group g after attempt 17: %RETRY%g, queue 0, offset 15" in said


@pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
@pytest.mark.parametrize("value", [5, None, "other", ["a"]])
def test_a_dead_letter_has_the_properties_that_were_pulled_whatever_the_listener_wrote_into_its_own(
    broker: Broker, kind: Any, value: Any
):
    def listener(message: Message) -> None:
        message.properties["n"] = message.properties["UNIQ_KEY"] = value
        raise ValueError("poison")

    Producer(broker).send("T", b"x", properties={"n": "1"})
    with kind(broker, "g", "T", listener, max_reconsume_times=2) as consumer:
        consumer.start()
        broker.advance("3m")
        (dead,) = stored(broker, "%DLQ%g")
        assert dead.properties["n"] == "1"
        assert dead.unique_key is None or len(dead.unique_key) == 32
        assert consumer.counts.failed == 3


def test_a_dead_letter_that_cannot_be_stored_is_not_logged_as_one(
    broker: Broker, link: RecordingLink, consume: NewConsumer, caplog: pytest.LogCaptureFixture
):
    consume()  # the group has its retry topic
    Producer(broker).send(
        "T", b"x", queue_id=0, properties={"n": "x" * 32_624}
    )  # no room for what a retry adds
    (message,) = stored(broker, "T")
    with pytest.raises(RemoteProtocolError, match="properties take"):
        give_back(link, message, "send_anew", 3, max_reconsume_times=2)
    assert stored(broker, "%DLQ%g") == []
    assert "is a dead letter" not in caplog.text
