"""Queues of a consumer that is polled: what one waits for holds no other back, and moves no offset."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from seglog import (
    AsyncLitePullConsumer,
    Broker,
    LitePullConsumer,
    MessageQueue,
    Producer,
    PushConsumer,
    Subscription,
)
from seglog.broker.settings import BrokerConfig
from seglog.consumer.listener import ConsumeFrom
from seglog.errors import (
    ClientClosedError,
    ConsumerError,
    InvalidArgumentError,
    InvalidNameError,
    RemoteProtocolError,
)
from seglog.testing import VirtualBroker
from tests.support.consumers import cached_counts
from tests.support.faces import driven
from tests.support.machine.said import said

QUEUES = 4
EACH = 40


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    config = BrokerConfig(enable_property_filter=True)
    with VirtualBroker.at(tmp_path / "s", config=config) as opened:
        producer = opened.producer()
        for number in range(QUEUES * EACH):
            producer.send("T", b"%d" % number, queue_id=number % QUEUES)
        yield opened


def queue(queue_id: int) -> MessageQueue:
    return MessageQueue("T", "broker-a", queue_id)


def is_refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except ClientClosedError:
        return True
    return False


def test_a_queue_that_waits_for_room_from_the_start_goes_on_where_the_group_is(broker):
    for queue_id in range(QUEUES):
        broker.offsets.commit("g", "T", queue_id, EACH // 2)
    seen: list[int] = []
    with LitePullConsumer(broker.link(), "g", "T", pull_count=8, max_cached_all=8) as consumer:
        consumer.poll(count=1)
        broker.advance("1m")  # others are full meanwhile: it is asked whether their offsets were reset
        while messages := consumer.poll():
            seen += [message.queue_offset for message in messages]
    assert min(seen) == EACH // 2
    assert len(seen) == QUEUES * EACH // 2 - 1


def test_paused_queues_keep_no_others_from_being_pulled(broker):
    with LitePullConsumer(broker.link(), "g", "T", pull_count=8, max_cached_all=8) as consumer:
        consumer.start()
        broker.advance("1s")
        waiting = [one for one, count in cached_counts(broker, consumer.client_id).items() if count]
        assert 0 < len(waiting) < QUEUES, "the bound of all is reached"
        consumer.pause(waiting)
        count = 0
        while messages := consumer.poll():
            assert not {queue(message.queue_id) for message in messages} & set(waiting)
            count += len(messages)
            broker.advance("1s")
        assert count == (QUEUES - len(waiting)) * EACH


def test_what_was_polled_is_done_once_a_loop_begins(broker):
    with LitePullConsumer(broker.link(), "g", {"T": "*"}, consume_from=ConsumeFrom.FIRST) as consumer:
        polled = len(consumer.poll())
        rest = sum(1 for _ in consumer)
        assert polled + rest == QUEUES * EACH
    assert [broker.offsets.query("g", "T", queue_id) for queue_id in range(QUEUES)] == [EACH] * QUEUES


def test_a_message_whose_ttl_ends_while_a_loop_is_at_others_is_not_given(tmp_path: Path):
    with VirtualBroker.at(tmp_path / "s") as broker:
        for number in range(6):
            broker.producer().send("T", b"%d" % number, queue_id=0, ttl_ms=5_000)
        seen = []
        with LitePullConsumer(broker.link(), "g", "T") as consumer:
            for message in consumer:
                seen.append(message.queue_offset)
                broker.advance("2s")
            assert seen == [0, 1, 2]
            assert consumer.counts.expired == 3
        assert broker.offsets.query("g", "T", 0) == 6


def test_a_subscription_that_is_refused_while_it_runs_is_raised_and_the_one_before_goes_on(broker):
    with LitePullConsumer(broker.link(), "g", "T") as consumer:
        consumer.poll(count=1)
        with pytest.raises(RemoteProtocolError, match="price"):
            consumer.subscribe("T", Subscription.by_sql("price >"))
        assert consumer.poll()


@pytest.mark.parametrize("place", [None, b"begin", 1.0, True, "middle", datetime(1, 1, 1)])  # noqa: DTZ001
def test_a_place_that_is_none_is_refused_with_those_that_there_are(broker, place: Any):
    with LitePullConsumer(broker.link(), "g", "T") as consumer:
        consumer.poll()
        with pytest.raises(InvalidArgumentError, match='"begin", "end" or a datetime'):
            consumer.seek(queue(0), place)


@pytest.mark.parametrize("call", ["assign", "pause", "resume"])
@pytest.mark.parametrize("queues", [None, 5, "T"])
def test_queues_that_are_none_are_refused_by_name(broker, call: str, queues: Any):
    with (
        LitePullConsumer(broker.link(), "g") as consumer,
        pytest.raises(InvalidArgumentError, match="a list of MessageQueue"),
    ):
        getattr(consumer, call)(queues)


@pytest.mark.parametrize("kind", [LitePullConsumer, AsyncLitePullConsumer])
def test_the_queues_of_a_topic_are_named_for_an_assignment(tmp_path: Path, kind: Any):
    with (
        Broker.open(tmp_path / "s") as broker,
        Producer(broker) as producer,
        driven(kind, broker, "g") as consumer,
    ):
        with pytest.raises(RemoteProtocolError, match="topic T has no queue to read from"):
            consumer.queues_of("T")
        with pytest.raises(InvalidNameError):
            consumer.queues_of("no topic")
        producer.send("T", b"x", queue_id=3)
        queues = consumer.queues_of("T")
        assert queues == tuple(MessageQueue("T", "broker-a", number) for number in range(4))
        assert consumer.queues == ()
        consumer.assign(queues[3:])
        assert [message.body for message in consumer.poll(30)] == [b"x"]
        consumer.close()
        with pytest.raises(ConsumerError, match="was closed"):
            consumer.queues_of("T")


def test_a_forked_child_gets_nothing_of_what_its_parent_has_pulled(tmp_path: Path):
    with Broker.open(tmp_path / "s") as broker, Producer(broker) as producer:
        for number in range(4):
            producer.send("T", b"%d" % number, queue_id=0)
        with LitePullConsumer(broker, "g", "T", consume_from=ConsumeFrom.FIRST) as consumer:
            assert len(consumer.poll(30, 2)) == 2
            child = os.fork()
            if not child:
                os._exit(
                    0 if all(is_refused(call) for call in (consumer.poll, lambda: next(consumer))) else 1
                )
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert [message.queue_offset for message in consumer.poll(30, 2)] == [2, 3]


@pytest.mark.parametrize(
    "wrong",
    [
        MessageQueue([], "broker-a", 0),  # type: ignore[arg-type]
        MessageQueue("T", {}, 0),  # type: ignore[arg-type]
        MessageQueue("T", "broker-a", "x"),  # type: ignore[arg-type]
        MessageQueue("T", "broker-a", True),
        MessageQueue("T", "broker-a", -1),
    ],
)
def test_what_is_no_queue_is_refused_wherever_one_is_given(broker, wrong, caplog):
    with LitePullConsumer(broker.link(), "g") as consumer:
        for call in (
            lambda: consumer.assign([queue(0), wrong]),
            lambda: consumer.pause([queue(0), wrong]),
            lambda: consumer.resume([wrong]),
            lambda: consumer.seek(wrong, "begin"),
            lambda: consumer.position(wrong),
            lambda: consumer.committed(wrong),
        ):
            with pytest.raises(InvalidArgumentError, match=r"queues?\.(topic|broker_name|queue_id)="):
                call()
        assert said(caplog) == []


def test_what_is_no_topic_is_refused_by_each_call_that_takes_one(broker):
    with (
        LitePullConsumer(broker.link(), "g") as polled,
        PushConsumer(broker.link(), "h", "T", print) as pushed,
    ):
        calls: tuple[Any, ...] = (polled.subscribe, pushed.subscribe, pushed.on)
        for call in calls:
            with pytest.raises(InvalidArgumentError, match=r"topic=\[\] is not valid"):
                call([])


@pytest.mark.parametrize("timeout_s", [10**400, 10**30], ids=["400 digits", "30 digits"])
def test_a_timeout_beyond_all_bounds_is_as_long_as_it_takes(broker, timeout_s):
    consumer = LitePullConsumer(broker.link(), "g", "T")
    assert consumer.poll(timeout_s)
    consumer.close(timeout_s)
