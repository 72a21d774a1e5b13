"""Which messages count as needed when a file of the log would go."""

from __future__ import annotations

from seglog.broker.retention.retention_impact import Standing, by_group, plan
from seglog.storage.format.record import properties as props
from tests.support.material.stores import read_all


def victims(broker, standing):
    segments = broker.store.retention.segments()
    found = plan(broker.store.retention, segments, standing)
    return by_group(victim for doomed in found for victim in doomed.victims)


def put(broker, topic, count, **more):
    for _ in range(count):
        broker.store.put(topic, bytes(1000), **more)


def test_a_plan_counts_what_a_scan_of_every_message_finds(open_broker):
    broker = open_broker()
    for number in range(200):
        broker.store.put(f"T{number % 3}", bytes(200 + number), queue_id=number % 2)
    standing = Standing(
        {("g", f"T{topic}", queue): 7 * topic + queue for topic in (0, 1) for queue in (0, 1)}
    )
    segments = broker.store.retention.segments()
    for doomed in plan(broker.store.retention, segments, standing):
        inside = [
            message
            for queue in broker.store.queues()
            for message in read_all(broker.store, queue.topic, queue.queue_id)
            if doomed.segment.first_phy_offset <= message.phy_offset < doomed.segment.end_phy_offset
        ]
        assert doomed.count == len(inside)
        assert doomed.unread == sum(message.topic == "T2" for message in inside)
        needed = {
            (message.topic, message.queue_id, message.queue_offset)
            for message in inside
            if message.queue_offset >= standing.offsets.get(("g", message.topic, message.queue_id), 1000)
        }
        assert {(v.topic, v.queue_id, offset) for v in doomed.victims for offset in v.offsets} == needed


def test_a_group_without_an_offset_in_one_queue_of_its_topic_needs_all_of_that_queue(open_broker):
    broker = open_broker()
    put(broker, "T", 12, queue_id=0)
    put(broker, "T", 12, queue_id=1)
    counted = victims(broker, Standing({("g", "T", 0): 12}))
    assert counted == victims(broker, Standing({("g", "T", 0): 12, ("g", "T", 1): 0}))
    assert sum(counted.values()) > 0
    assert victims(broker, Standing({("g", "T", 0): 12}, ignored_groups={"g"})) == {}
    assert victims(broker, Standing({("g", "Other", 0): 12})) == {}


def test_retries_of_a_group_count_even_if_it_never_fetched_one(open_broker):
    broker = open_broker()
    put(broker, "%RETRY%cg", 12)
    assert victims(broker, Standing({})) == {("undelivered", "cg"): 9}
    assert victims(broker, Standing({("cg", "%RETRY%cg", 0): 5})) == {("undelivered", "cg"): 4}


def test_dead_letters_count_until_somebody_looked_at_them(open_broker):
    broker = open_broker()
    put(broker, "%DLQ%cg", 12)
    assert victims(broker, Standing({})) == {("dead letters", "cg"): 9}
    assert victims(broker, Standing({("tool", "%DLQ%cg", 0): 7, ("b", "%DLQ%cg", 0): 3})) == {
        ("dead letters", "cg"): 2
    }


def test_delayed_messages_count_until_their_time(open_broker):
    broker = open_broker()
    put(broker, "SCHEDULE_TOPIC_XXXX", 12, queue_id=2, properties={props.DELAY: "3"})
    assert victims(broker, Standing({})) == {("delayed", ""): 9}
    assert victims(broker, Standing({}, {3: 4})) == {("delayed", ""): 5}


def test_half_messages_count_until_the_broker_has_passed_them(open_broker):
    broker = open_broker()
    put(broker, "RMQ_SYS_TRANS_HALF_TOPIC", 12)
    put(broker, "RMQ_SYS_TRANS_OP_HALF_TOPIC", 12)
    assert victims(broker, Standing({})) == {("half messages", ""): 12}
    done = {("CID_RMQ_SYS_TRANS", "RMQ_SYS_TRANS_HALF_TOPIC", 0): 12}
    assert victims(broker, Standing(done)) == {}


def test_topics_that_nobody_reads_and_broadcasting_clients_hold_nothing(open_broker):
    broker = open_broker()
    put(broker, "T", 12)
    assert victims(broker, Standing({("cg@broadcast", "T", 0): 1})) == {}


def test_groups_that_are_left_out_hold_nothing(open_broker):
    broker = open_broker()
    put(broker, "T", 12)
    offsets = {("cg", "T", 0): 1, ("dead", "T", 0): 0}
    assert victims(broker, Standing(offsets, ignored_groups={"dead"})) == {("undelivered", "cg"): 8}
