"""What was polled of queues before the application gave them up is committed by the commit that follows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from seglog import AsyncLitePullConsumer, LitePullConsumer, Message, MessageQueue
from seglog.broker.broker import Broker
from seglog.errors import CommitError
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.testing import VirtualBroker
from tests.support.machine.patience import patience_s
from tests.support.recording import RecordingLink


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    with VirtualBroker.at(tmp_path / "s") as opened:
        producer = opened.producer()
        for topic in ("T", "U"):
            for queue_id in range(2):
                for number in range(4):
                    producer.send(topic, b"%d" % number, queue_id=queue_id)
        yield opened


def queue(queue_id: int = 0, topic: str = "T") -> MessageQueue:
    return MessageQueue(topic, "broker-a", queue_id)


def assigned(
    broker: VirtualBroker, *queues: MessageQueue, auto_commit: bool = True
) -> LitePullConsumer[Message]:
    consumer = LitePullConsumer(broker.link(), "g", pull_count=2, auto_commit=auto_commit)
    consumer.assign(queues)
    return consumer


def offsets(consumer: LitePullConsumer[Message]) -> list[tuple[int, int]]:
    return [(message.queue_id, message.queue_offset) for message in consumer.poll()]


@pytest.mark.parametrize("auto_commit", [True, False])
def test_a_commit_is_of_what_was_polled_before_other_queues_were_assigned(broker, auto_commit):
    with assigned(broker, queue(0), auto_commit=auto_commit) as consumer:
        assert offsets(consumer) == [(0, 0), (0, 1)]
        consumer.assign([queue(1)])
        assert broker.offsets.query("g", "T", 0) in (None, 0), "the application is at them still"
        consumer.commit()
        assert broker.offsets.query("g", "T", 0) == 2
        assert offsets(consumer) == [(1, 0), (1, 1)]
        consumer.commit()
        consumer.assign([queue(0)])
        assert offsets(consumer) == [(0, 2), (0, 3)]
    assert [broker.offsets.query("g", "T", number) for number in (0, 1)] == [2, 2]


@pytest.mark.parametrize("auto_commit", [True, False])
def test_a_commit_is_of_what_was_polled_before_the_topic_was_given_up(broker, auto_commit):
    with LitePullConsumer(
        broker.link(), "g", {"T": "*", "U": "*"}, pull_count=4, auto_commit=auto_commit
    ) as consumer:
        polled = {(one.topic, one.queue_id) for _ in range(4) for one in consumer.poll()}
        assert len(polled) == 4
        consumer.unsubscribe("T")
        broker.advance("1s")
        assert {one.topic for one in consumer.assignment} == {"U"}
        consumer.commit()
        found = [broker.offsets.query("g", topic, number) for topic in "TU" for number in (0, 1)]
        assert found == [4, 4, 4, 4]


def test_what_the_next_poll_ends_of_a_queue_that_was_given_up_is_committed_by_time(broker):
    with assigned(broker, queue(0)) as consumer:
        consumer.poll()
        consumer.assign([queue(1)])
        broker.advance("1m")
        assert broker.offsets.query("g", "T", 0) in (None, 0)
        consumer.poll()
        broker.advance("10s")
        assert broker.offsets.query("g", "T", 0) == 2
        assert not [*consumer._member._held.parted], "and what was pulled of it is not kept"
        assert consumer._member.counts.delivered == 2


def test_what_the_next_poll_has_ended_is_not_polled_again_when_the_queue_is_assigned_again(broker):
    with assigned(broker, queue(0)) as consumer:
        assert offsets(consumer) == [(0, 0), (0, 1)]
        consumer.assign([queue(1)])
        assert offsets(consumer) == [(1, 0), (1, 1)]
        consumer.assign([queue(0), queue(1)])
        assert sorted([*offsets(consumer), *offsets(consumer)]) == [(0, 2), (0, 3), (1, 2), (1, 3)]


@pytest.mark.parametrize("polls", [0, 1])
def test_a_queue_that_was_given_up_and_is_had_again_goes_on_behind_what_is_committed(broker, polls):
    with assigned(broker, queue(0), auto_commit=False) as consumer:
        assert offsets(consumer) == [(0, 0), (0, 1)]
        consumer.assign([queue(1)])
        consumer.assign([queue(0)])
        for _ in range(polls):
            assert offsets(consumer) == [(0, 0), (0, 1)], "no one has said that they are done"
        broker.advance("1s")
        consumer.commit()
        assert broker.offsets.query("g", "T", 0) == 2
        assert offsets(consumer) == [(0, 2), (0, 3)]


def test_the_place_that_was_sought_since_is_committed_and_not_what_was_polled_before(broker):
    with assigned(broker, queue(0)) as consumer:
        consumer.poll()
        consumer.assign([queue(1)])
        consumer.assign([queue(0)])
        consumer.seek(queue(0), 1)
        consumer.commit()
        assert broker.offsets.query("g", "T", 0) == 1
        assert offsets(consumer) == [(0, 1), (0, 2)]


def test_what_another_member_has_committed_behind_it_stays(broker):
    with assigned(broker, queue(0)) as consumer, assigned(broker, queue(0)) as other:
        consumer.poll()
        consumer.assign([queue(1)])
        other.poll()
        other.poll()
        other.commit()
        assert broker.offsets.query("g", "T", 0) == 4
        consumer.commit()
        assert broker.offsets.query("g", "T", 0) == 4


def test_a_commit_that_the_broker_refuses_is_an_error_and_is_tried_again(broker):
    link = RecordingLink(broker, "c1")
    with LitePullConsumer(link, "g", pull_count=2) as consumer:
        consumer.assign([queue(0)])
        consumer.poll()
        consumer.assign([queue(1)])
        link.refused, link.refusal = {RequestCode.UPDATE_CONSUMER_OFFSET}, ResponseCode.SYSTEM_BUSY
        with pytest.raises(CommitError, match="queue 0 of T at broker-a up to 2"):
            consumer.commit()
        link.refused = set()
        broker.advance("10s")
        assert broker.offsets.query("g", "T", 0) == 2


def test_a_loop_leaves_the_queue_of_the_message_that_it_is_at(broker):
    with assigned(broker, queue(0)) as consumer:
        for message in consumer:
            if message.queue_id:
                assert message.queue_offset == 0
                break
            consumer.assign([queue(1)])
        consumer.commit()
    assert [broker.offsets.query("g", "T", number) for number in (0, 1)] == [1, 1]


def test_one_that_is_awaited_does_the_same(tmp_path: Path):
    async def main(broker: Broker) -> int | None:
        async with AsyncLitePullConsumer(broker, "g", pull_count=2) as consumer:
            await consumer.assign([queue(0)])
            assert len(await consumer.poll(patience_s(10))) == 2
            await consumer.assign([queue(1)])
            await consumer.commit()
            return await consumer.committed(queue(0))

    with VirtualBroker.at(tmp_path / "s") as filled:
        filled.producer().send_batch("T", [b"0", b"1", b"2"], queue_id=0)
    with Broker.open(tmp_path / "s") as broker:
        assert asyncio.run(main(broker)) == 2
