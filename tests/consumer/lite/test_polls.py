"""A consumer that is polled: what it brings, what that commits, and what comes again after its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from seglog import LitePullConsumer, MessageQueue, Subscription
from seglog.broker.settings import BrokerConfig
from seglog.broker.tables import TopicConfig
from seglog.errors import (
    CommitError,
    ConsumerError,
    FencedError,
    InvalidArgumentError,
    RemoteProtocolError,
)
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import expect_body, expect_header
from seglog.remoting.headers import PullMessageHeader
from seglog.remoting.heartbeat import ConsumeType, HeartbeatBody
from seglog.testing import VirtualBroker
from tests.support.consumers import cached_counts
from tests.support.counted_calls import counted_calls
from tests.support.recording import RecordingLink


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    with VirtualBroker.at(tmp_path / "s", config=BrokerConfig(enable_property_filter=True)) as opened:
        yield opened


def fill(broker: VirtualBroker, count: int, *, queue_id: int = 0, topic: str = "T", **given: Any) -> None:
    producer = broker.producer()
    for number in range(count):
        producer.send(topic, b"%d" % number, queue_id=queue_id, **given)


def offsets(messages: Any) -> list[int]:
    return [message.queue_offset for message in messages]


def queue(queue_id: int = 0, topic: str = "T") -> MessageQueue:
    return MessageQueue(topic, "broker-a", queue_id)


def test_what_was_polled_is_done_with_the_next_poll_and_committed_five_seconds_later(broker):
    fill(broker, 5)
    with LitePullConsumer(broker.link(), "g", "T", pull_count=2) as consumer:
        assert offsets(consumer.poll()) == [0, 1]
        broker.advance("1m")
        assert broker.offsets.query("g", "T", 0) == 0, "the application is at them still"
        assert offsets(consumer.poll()) == [2, 3]
        broker.advance("5s")
        assert broker.offsets.query("g", "T", 0) == 2
        assert offsets(consumer.poll()) == [4]
        assert consumer.poll() == []
        broker.advance("5s")
        assert broker.offsets.query("g", "T", 0) == 5
        assert consumer.counts.delivered == 5


def test_a_commit_commits_what_was_polled_last_and_a_close_does_not(broker):
    fill(broker, 4)
    with LitePullConsumer(broker.link(), "g", "T") as consumer:
        consumer.poll(count=1)
        consumer.poll(count=1)
        consumer.commit()
        assert consumer.committed(queue()) == 2
        consumer.poll(count=1)
    assert broker.offsets.query("g", "T", 0) == 2
    with LitePullConsumer(broker.link(), "g", "T") as consumer:
        assert offsets(consumer.poll()) == [2, 3]


def test_without_auto_commit_only_commit_commits_and_pulls_go_on(broker):
    fill(broker, 60)
    with LitePullConsumer(broker.link(), "g", "T", auto_commit=False, max_cached=8, pull_count=4) as consumer:
        polled = [offset for _ in range(10) for offset in offsets(consumer.poll(count=4))]
        assert polled == list(range(40)), "what was polled takes no room of the cache"
        broker.advance("10m")
        assert broker.offsets.query("g", "T", 0) in (0, None)
        consumer.commit()
        assert broker.offsets.query("g", "T", 0) == 40
        consumer.poll()
        broker.advance("10m")
    assert broker.offsets.query("g", "T", 0) == 40


def test_members_share_the_queues_and_one_that_ends_leaves_its_own_to_the_other(broker):
    for queue_id in range(4):
        fill(broker, 2, queue_id=queue_id)
    with (
        LitePullConsumer(broker.link(), "g", "T") as first,
        LitePullConsumer(broker.link(), "g", "T") as second,
    ):
        first.start()
        second.start()
        broker.advance("25s")
        assert sorted((*first.assignment, *second.assignment)) == [queue(number) for number in range(4)]
        seen = []
        while polled := first.poll():
            seen += polled
        assert {message.queue_id for message in seen} == {one.queue_id for one in first.assignment}
        first.close()
        broker.advance("25s")
        assert len(second.assignment) == 4
        rest = []
        while polled := second.poll():
            rest += polled
        both = sorted((message.queue_id, message.queue_offset) for message in (*seen, *rest))
        assert both == [(queue_id, offset) for queue_id in range(4) for offset in range(2)]


def test_what_was_polled_last_of_a_queue_that_another_member_gets_comes_to_that_one_and_no_more(broker):
    for queue_id in range(4):
        fill(broker, 3, queue_id=queue_id)
    with (
        LitePullConsumer(broker.link(), "g", "T") as first,
        LitePullConsumer(broker.link(), "g", "T") as second,
    ):
        assert [first.poll()[0].queue_id for _ in range(4)] == [0, 1, 2, 3]
        broker.advance("10s")
        second.start()
        broker.advance("25s")
        assert second.assignment == (queue(2), queue(3))
        assert [broker.offsets.query("g", "T", number) for number in (2, 3)] == [3, 0]
        assert [(one.queue_id, one.queue_offset) for one in second.poll()] == [(3, 0), (3, 1), (3, 2)]
        assert second.poll() == []
        with pytest.raises(FencedError, match=r"queue 3 of T at broker-a is not committed") as error:
            first.commit()
        assert not error.value.is_retryable
        first.commit()  # what there is to say was said
        assert broker.offsets.query("g", "T", 3) == 3, "by the second, which has polled again"
        assert first.poll() == []


def test_subscriptions_are_by_tags_or_sql_and_change_while_it_runs(broker):
    fill(broker, 2, tags="paid", properties={"price": "7"})
    fill(broker, 2, tags="open", properties={"price": "3"})
    with LitePullConsumer(broker.link(), "g") as consumer:
        consumer.subscribe("T", "paid || refunded")
        assert offsets(consumer.poll()) == [0, 1]
        consumer.subscribe("U", Subscription.by_sql("price > 5"))
        fill(broker, 1, topic="U", properties={"price": "9"})
        fill(broker, 1, topic="U", properties={"price": "1"})
        broker.advance("30s")
        (dear,) = consumer.poll()
        assert (dear.topic, dear.queue_offset) == ("U", 0)
        consumer.unsubscribe("U")
        broker.advance("1s")
        assert {one.topic for one in consumer.assignment} == {"T"}
        fill(broker, 1, topic="U", properties={"price": "9"})
        consumer.subscribe("T", "open")
        fill(broker, 1, tags="open")
        fill(broker, 1, tags="paid")
        broker.advance("1s")
        assert offsets(consumer.poll()) == [4]


def test_a_subscription_that_the_broker_refuses_is_refused_at_the_first_poll(broker):
    with (
        LitePullConsumer(broker.link(), "g", {"T": Subscription.by_sql("price >")}) as consumer,
        pytest.raises(RemoteProtocolError, match="refuses SQL92"),
    ):
        consumer.poll()


def test_assigned_queues_are_had_whichever_members_have_them_too(broker):
    for queue_id in range(4):
        fill(broker, 3, queue_id=queue_id)
    with (
        LitePullConsumer(broker.link(), "g", "T") as shared,
        LitePullConsumer(broker.link(), "h") as consumer,
    ):
        shared.start()
        consumer.assign([queue(1), queue(2)])
        assert consumer.assignment == (queue(1), queue(2))
        assert consumer.lag() == {queue(1): 3, queue(2): 3}, "as the broker says: nothing was pulled yet"
        assert [consumer.committed(one) for one in consumer.assignment] == [None, None]
        polled = [*consumer.poll(), *consumer.poll()]
        assert {message.queue_id for message in polled} == {1, 2}
        consumer.commit()
        assert consumer.lag() == {queue(1): 0, queue(2): 0}
        consumer.assign([queue(2), queue(3)])
        assert consumer.assignment == (queue(2), queue(3))
        assert {message.queue_id for message in consumer.poll()} == {3}
        assert len(shared.assignment) == 4
    assert [broker.offsets.query("h", "T", queue_id) for queue_id in (1, 2)] == [3, 3]


def test_a_seek_goes_to_an_offset_an_end_or_a_time_and_its_place_is_committed(broker):
    fill(broker, 3)
    broker.advance("1h")
    middle = broker._clock.now_ms()
    fill(broker, 3)
    with LitePullConsumer(broker.link(), "g") as consumer:
        consumer.assign([queue()])
        assert consumer.seek(queue(), "end") == 6
        assert consumer.poll() == []
        assert consumer.seek(queue(), datetime.fromtimestamp(middle / 1000, UTC)) == 3
        assert consumer.position(queue()) == 3
        assert offsets(consumer.poll()) == [3, 4, 5]
        assert consumer.seek(queue(), "begin") == 0
        assert offsets(consumer.poll(count=2)) == [0, 1]
        assert consumer.position(queue()) == 2
        assert consumer.seek(queue(), 5) == 5
        consumer.commit()
        assert broker.offsets.query("g", "T", 0) == 5, "the place of a seek is committed, as in Java"
        assert offsets(consumer.poll()) == [5]


@pytest.mark.parametrize("place", [7, "middle", -1, None, True])
def test_a_place_that_there_is_none_of_is_refused_and_the_consumer_stays_where_it_is(broker, place):
    fill(broker, 3)
    with LitePullConsumer(broker.link(), "g", "T") as consumer:
        consumer.poll(count=1)
        with pytest.raises((ConsumerError, InvalidArgumentError)):
            consumer.seek(queue(), place)
        assert consumer.position(queue()) == 1


def test_a_paused_queue_is_not_polled_until_it_is_resumed(broker):
    fill(broker, 2, queue_id=0)
    fill(broker, 2, queue_id=1)
    with LitePullConsumer(broker.link(), "g", "T") as consumer:
        consumer.poll(count=1)
        consumer.pause([queue(0)])
        polled = [message for _ in range(4) for message in consumer.poll()]
        assert {message.queue_id for message in polled} == {1}
        fill(broker, 1, queue_id=0)
        assert consumer.poll() == []
        consumer.resume([queue(0)])
        assert offsets(consumer.poll())[-1] in (1, 2)


def test_errors_say_what_is_wrong(broker):
    consumer = LitePullConsumer(broker.link(), "g", "T")
    with pytest.raises(ConsumerError, match=r"by subscribe\(\), and not by assign\(\)"):
        consumer.assign([queue()])
    for strange in (lambda: consumer.seek(queue(0, "U"), 0), lambda: consumer.pause([queue(0, "U")])):
        with pytest.raises(ConsumerError, match="queue 0 of U at broker-a is none of this consumer's"):
            strange()
    consumer.close()
    calls: list[Callable[[], object]] = [
        consumer.poll,
        consumer.commit,
        consumer.lag,
        lambda: consumer.seek(queue(), 0),
        lambda: consumer.subscribe("U"),
    ]
    for call in calls:
        with pytest.raises(ConsumerError, match="closed"):
            call()
    fill(broker, 1)
    with LitePullConsumer(broker.link(), "g") as other:
        for queues in (
            [queue(), queue(7)],
            [queue(topic="nothing")],
            [MessageQueue("T", "broker-b", 0)],
        ):
            with pytest.raises(ConsumerError, match=r"cannot be assigned: topic \w+ (has|does not exist)"):
                other.assign(queues)
        assert other.assignment == ()
        other.assign([queue()])
        with pytest.raises(ConsumerError, match=r"by assign\(\), and not by subscribe\(\)"):
            other.subscribe("T")
        with pytest.raises(InvalidArgumentError, match="queues="):
            other.assign("T")  # type: ignore[arg-type]


def test_its_pulls_and_heartbeats_are_those_of_java(broker):
    fill(broker, 1)
    link = RecordingLink(broker, "c1")
    with LitePullConsumer(link, "g", {"T": "a || b"}) as consumer:
        consumer.poll()
        pulls = [one for _moment, one in link.asked if one.code == RequestCode.LITE_PULL_MESSAGE]
        assert pulls
        assert not link.pulls
        for request in pulls:
            header = expect_header(request, PullMessageHeader)
            assert PullFlag.LITE | PullFlag.SUBSCRIPTION in PullFlag(header.sys_flag)
            assert header.subscription == "a || b"
        beats = [one for _moment, one in link.asked if one.code == RequestCode.HEART_BEAT]
        (said,) = expect_body(beats[0], HeartbeatBody).consumers
        assert said.consume_type is ConsumeType.ACTIVELY
        assert [one.topic for one in said.subscriptions] == ["T"], "it has no retry topic"


def test_pulls_wait_while_a_queue_or_all_of_them_are_full(broker):
    for queue_id in range(4):
        fill(broker, 50, queue_id=queue_id)
    with LitePullConsumer(
        broker.link(), "g", "T", max_cached_all=20, pull_count=10, max_cached=1_000
    ) as consumer:
        consumer.start()
        broker.advance("10s")
        cached = sum(cached_counts(broker, consumer.client_id).values())
        assert 20 < cached <= 60, "about so many: each queue may have had a pull on its way"
        polled = 0
        while got := consumer.poll():
            polled += len(got)
        assert polled == 200


def test_a_poll_of_four_times_as_many_queues_costs_four_times_as_much(broker):
    """Whether all queues together are full was found out for each by a look at all."""

    def calls_of(topic: str, queues: int) -> int:
        broker.topics.put(TopicConfig(topic, queues, queues))
        for queue_id in range(0, queues, 2):
            fill(broker, 1, queue_id=queue_id, topic=topic)
        with (
            LitePullConsumer(broker.link(), topic, topic) as consumer,
            counted_calls() as calls,
        ):
            polled = consumer.poll()
            while got := consumer.poll():
                polled += got
        assert len(polled) == queues // 2
        return calls[0]

    calls_of("warm", 4)
    assert calls_of("many", 200) < 6 * calls_of("few", 50)


def test_what_a_broker_does_not_take_of_a_commit_is_raised_and_committed_later(broker):
    fill(broker, 4)
    link = RecordingLink(broker, "c1")
    with LitePullConsumer(link, "g", "T", auto_commit=False) as consumer:
        assert len(consumer.poll()) == 4
        link.refused = {RequestCode.UPDATE_CONSUMER_OFFSET}
        for code, is_retryable in ((ResponseCode.SYSTEM_BUSY, True), (ResponseCode.SYSTEM_ERROR, False)):
            link.refusal = code
            with pytest.raises(CommitError, match=r"queue 0 of T at broker-a up to 4: .*not now") as error:
                consumer.commit()
            assert error.value.is_retryable is is_retryable
            (failure, *_others) = error.value.failures
            assert (failure.topic, failure.queue_id, failure.queue_offset) == ("T", 0, 4)
        broker.advance("5s")
        assert broker.offsets.query("g", "T", 0) in (None, 0)
        link.refused = set()
        broker.advance("30s")
        assert consumer.committed(queue()) == 4, "by the commit that is due by time"
        consumer.commit()


def test_what_was_polled_before_of_a_queue_that_went_elsewhere_is_said_at_the_commit(broker):
    for queue_id in range(4):
        fill(broker, 1, queue_id=queue_id)
    with (
        LitePullConsumer(broker.link(), "g", "T", auto_commit=False) as first,
        LitePullConsumer(broker.link(), "g", "T") as second,
    ):
        assert len([message for _ in range(4) for message in first.poll()]) == 4
        assert first.poll() == []
        second.start()
        broker.advance("25s")
        assert second.assignment == (queue(2), queue(3))
        with pytest.raises(FencedError, match="queue 2, 3 of T at broker-a is not committed"):
            first.commit()
        assert [first.committed(queue(number)) for number in range(4)] == [1, 1, 0, 0]
        first.commit()


def test_the_offset_of_a_group_that_has_none_is_none_and_not_0(broker):
    fill(broker, 1)
    with LitePullConsumer(broker.link(), "g", "T", auto_commit=False) as consumer:
        consumer.poll()
        assert consumer.committed(queue()) is None
        consumer.seek(queue(), "begin")
        consumer.commit()
        assert consumer.committed(queue()) == 0
