"""A group goes from our LitePullConsumer to Java's DefaultLitePullConsumer and back, and both share it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from seglog import LitePullConsumer, Message
from seglog.consumer.listener import ConsumeFrom
from seglog.errors import FencedError
from seglog.producer.producer import Producer
from tests.interop.clients.conftest import DRAWN
from tests.interop.judging.java_worker import JavaWorker
from tests.support.machine.patience import wait_until

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("place", ["over connections", DRAWN], indirect=True, scope="session")
def test_java_s_lite_consumer_goes_on_where_ours_has_committed_and_ours_where_it_has(
    place, topic, group, tmp_path, judge
):
    ours = []

    def poll(consumer):
        ours.extend((one.queue_id, one.queue_offset) for one in consumer.poll(0.2))
        consumer.commit()

    def are_committed(count):
        return sum(place.offset(group, topic, queue_id) or 0 for queue_id in range(4)) == count

    def send(count):
        for number in range(count):
            producer.send(topic, b"%d" % number, queue_id=number % 4)

    with JavaWorker(place.target, tmp_path / "java") as java, Producer(place.target) as producer:
        send(8)
        with LitePullConsumer(place.target, group, topic, consume_from=ConsumeFrom.FIRST) as consumer:
            wait_until(lambda: poll(consumer) or len(ours) >= 8, idle_s=60)
        send(8)
        java.join("j", group, topic, "LITE")
        wait_until(lambda: len(java.given["j"]) >= 8, idle_s=60)
        wait_until(lambda: are_committed(16), idle_s=60)  # Java's client says so once a second, here
        with LitePullConsumer(place.target, group, topic, consume_from=ConsumeFrom.FIRST) as consumer:
            wait_until(lambda: poll(consumer) or len(consumer.assignment) == 2, idle_s=60)
            wait_until(lambda: poll(consumer) or len(java.queues("j", topic)) == 2, idle_s=60)
            send(8)
            wait_until(lambda: poll(consumer) or len(ours) + len(java.given["j"]) >= 24, idle_s=60)
            wait_until(lambda: poll(consumer) or are_committed(24), idle_s=60)
            java.leave("j")
            wait_until(lambda: poll(consumer) or len(consumer.assignment) == 4, idle_s=60)
            send(8)
            wait_until(lambda: poll(consumer) or len(ours) + len(java.given["j"]) >= 32, idle_s=60)
        theirs = [(one.queue_id, one.queue_offset) for one in java.given["j"]]
    assert Counter(ours + theirs) == Counter(
        (queue_id, offset) for queue_id in range(4) for offset in range(8)
    )
    assert len(theirs) >= 10, "both had some while they shared"


@pytest.mark.parametrize("place", ["in process", "over connections", DRAWN], indirect=True, scope="session")
def test_who_lost_a_queue_commits_nothing_of_it_also_at_a_broker_that_takes_every_commit(
    place, topic, group, judge
):
    with Producer(place.target) as producer:
        for number in range(40):
            producer.send(topic, b"%d" % number, queue_id=number % 4)
    settings: Any = {"auto_commit": False, "consume_from": ConsumeFrom.FIRST}
    refused: list[str] = []
    given: list[int] = []
    done: list[int] = []

    def poll(consumer: LitePullConsumer[Message], count: int, into: list[int]) -> list[int]:
        into.extend(one.queue_id for one in consumer.poll(0.1, count))
        return into

    with LitePullConsumer(place.target, group, topic, **settings) as first:
        wait_until(lambda: len(set(poll(first, 1, given))) == 4, idle_s=60)
        with LitePullConsumer(place.target, group, topic, **settings) as second:
            wait_until(lambda: len(poll(second, 32, done)) >= 20, idle_s=60)
            second.commit()
            theirs = set(done)
            try:
                first.commit()
            except FencedError as error:
                refused.append(str(error))
            assert {queue_id: place.offset(group, topic, queue_id) for queue_id in theirs} == dict.fromkeys(
                theirs, 10
            )
    assert len(theirs) == 2
    assert refused, "and it is said"
