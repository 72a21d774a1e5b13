"""RocketMQ's first programs (``example/quickstart``) ported, in process, over connections and there."""

from __future__ import annotations

from seglog import ConsumeFrom, Producer, PushConsumer


def test_s4_45_the_demo_ported_consumes_all_of_its_topic_from_the_first_offset(place, topic, group):
    hello = {b"Hello RocketMQ %d" % number for number in range(100)}
    with Producer(place.target) as producer:
        for body in sorted(hello):
            producer.send(topic, body, tags="TagA")
    seen = []
    consumer = place.consumer(
        PushConsumer,
        group,
        {topic: "*"},
        seen.append,
        consume_from=ConsumeFrom.FIRST,
        consume_timestamp="20181109221800",
    )
    place.settle(lambda: len(seen) >= 100)
    place.settle(lambda: sum(place.done(consumer, topic, number) or 0 for number in range(4)) == 100)
    assert {message.payload() for message in seen} == hello
    assert {(message.topic, message.tags) for message in seen} == {(topic, "TagA")}
