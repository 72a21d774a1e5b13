"""Scenarios of consumers in C++."""

from __future__ import annotations

from typing import Final

from rocketmq.client import Producer

from tests.interop.cpp.site import QUEUES, Seen, Site, message

BAD: Final = "m1"
"""The body of a message that listeners fail at."""
SETTLED_ROUNDS: Final = 3
"""How many rounds of probes in a row come as they should, once members have settled."""


def send_all(at: Site, topic: str, count: int) -> None:
    """Sends messages to all queues in turn, and returns when they are there; each four have a tag."""
    by = at.producer()
    for number in range(count):
        by.send_orderly(message(topic, number, "ABCD"[number // 4 % 4]), number)
    at.stored(topic, *[count // QUEUES] * QUEUES)


def concurrent(at: Site) -> object:
    """Each message comes, with all that it has."""
    topic, seen = at.topic(), Seen()
    send_all(at, topic, 40)
    at.consumer(at.group(), topic, seen)
    at.wait("40 messages", lambda: seen.count() >= 40)
    return seen.sorted()


def by_tags(at: Site) -> object:
    """Those of two tags come."""
    topic, seen = at.topic(), Seen()
    send_all(at, topic, 40)
    at.consumer(at.group(), topic, seen, expression="A || C")
    at.wait("20 messages", lambda: seen.count() >= 20)
    return seen.bodies()


def in_order(at: Site) -> object:
    """Each queue is consumed in its order; a message that fails is tried again before those behind it."""
    topic, seen = at.topic(), Seen(lambda body, before: body == BAD and before < 2)
    send_all(at, topic, 40)
    at.consumer(at.group(), topic, seen, is_orderly=True)
    at.wait("42 attempts", lambda: seen.count() >= 42)
    return seen.of_queues()


def retried(at: Site) -> object:
    """A message that fails twice comes a third time."""
    topic, seen = at.topic(), Seen(lambda body, before: body == BAD and before < 2)
    send_all(
        at, topic, QUEUES
    )  # one in a queue: if one of many fails, all that were pulled with it come again
    group = at.group()
    at.consumer(group, topic, seen)
    at.wait("three attempts", lambda: seen.count() >= QUEUES + 2)
    return {"attempts": seen.attempts(), "retries": at.stored(f"%RETRY%{group}", 2)}


def dead(at: Site) -> object:
    """After the last attempt that its group allows a message is a dead letter."""
    topic, seen = at.topic(), Seen(lambda body, _before: body == BAD)
    send_all(at, topic, QUEUES)
    group = at.group(retry_max_times=1)
    at.consumer(group, topic, seen)
    letters = at.stored(f"%DLQ%{group}", 1)
    return {"attempts": seen.attempts(), "dead": letters}


def broadcast(at: Site) -> object:
    """Each member is given each message that is sent once it is there; a new one begins at the end."""
    topic, all_seen, group, by = at.topic(), [Seen(), Seen()], at.group(), at.producer()
    for number, seen in enumerate(all_seen):
        at.consumer(group, topic, seen, instance=f"c{number}", is_broadcast=True)
    await_members(at, topic, by, all_seen, QUEUES)
    for number in range(20):
        by.send_orderly(message(topic, number), number)
    at.wait("20 messages each", lambda: all(seen.count("m") >= 20 for seen in all_seen))
    return [seen.bodies("m") for seen in all_seen]


def shared(at: Site) -> object:
    """Two members share the queues, and each message comes to one of them."""
    topic, all_seen, group, by = at.topic(), [Seen(), Seen()], at.group(), at.producer()
    for number, seen in enumerate(all_seen):
        at.consumer(group, topic, seen, instance=f"c{number}")
    await_members(at, topic, by, all_seen, QUEUES // 2)
    for number in range(40):
        by.send_orderly(message(topic, number), number)
    at.wait("40 messages", lambda: sum(seen.count("m") for seen in all_seen) >= 40)
    return {
        "bodies": sorted(body for seen in all_seen for body in seen.bodies("m")),
        "of each": sorted(seen.count("m") for seen in all_seen),
    }


def await_members(at: Site, topic: str, by: Producer, all_seen: list[Seen], each: int) -> None:
    """Sends rounds of probes, one to a queue, until the members have settled.

    A member takes a queue before the other one has given it up, and then both are given what comes to it. So
    some rounds in a row must have come as they should, and no probe of them twice.

    Args:
        at: Where.
        topic: What they consume.
        by: Who sends.
        all_seen: What each member was given.
        each: How many probes of a round a member is given.
    """
    sent = 0

    def are_settled() -> bool:
        nonlocal sent
        body = f"probe {sent} "
        for queue_id in range(QUEUES):
            probe = message(topic, queue_id)
            probe.set_body(body)
            by.send_orderly(probe, queue_id)
        sent += 1
        at.wait("probes", lambda: any(seen.count(body) for seen in all_seen))
        rounds = range(sent - 1 - SETTLED_ROUNDS, sent - 1)  # the last one may not have come whole yet
        return rounds.start >= 0 and all(
            seen.count(f"probe {number} ") == each for seen in all_seen for number in rounds
        )

    at.wait("members that have settled", are_settled)


def again(at: Site) -> object:
    """A consumer that ends commits; the next one of its group continues there."""
    topic, first, group = at.topic(), Seen(), at.group()
    send_all(at, topic, 8)
    consumer = at.consumer(group, topic, first, instance="first")
    at.wait("8 messages", lambda: first.count() >= 8)
    consumer.shutdown()
    second = Seen()
    by = at.producer()
    for number in range(8, 16):
        by.send_orderly(message(topic, number), number)
    at.consumer(group, topic, second, instance="second")
    at.wait("8 more", lambda: second.count() >= 8)
    return [first.bodies(), second.bodies()]


def pulled(at: Site) -> object:
    """It pulls each queue to its end."""
    topic = at.topic()
    send_all(at, topic, 20)
    found = Seen()
    for each in at.puller(at.group()).pull(topic):
        found.take(each)
    return found.sorted()
