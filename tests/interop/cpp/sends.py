"""Scenarios of producers in C++."""

from __future__ import annotations

from typing import Any

from rocketmq.client import Producer
from rocketmq.exceptions import RocketMQException

from tests.interop.cpp.site import QUEUES, Facts, Site, bodies, facts_of_send, message


def alone(at: Site) -> object:
    """Messages one by one, with all that a message can have."""
    topic, by = at.topic(1), at.producer()
    sent = [facts_of_send(by.send_sync(message(topic, number))) for number in range(8)]
    return {"sent": sent, "stored": at.stored(topic, 8)}


def spread(at: Site) -> object:
    """It sends to all queues in turn."""
    topic, by = at.topic(), at.producer()
    for number in range(2 * QUEUES):
        by.send_sync(message(topic, number))
    stored = at.stored(topic, *[2] * QUEUES)
    return bodies([one for queue in stored for one in queue])


def oneway(at: Site) -> object:
    """It does not wait for an answer."""
    topic, by = at.topic(1), at.producer()
    by.send_sync(message(topic, 0))  # it has the route and a connection then
    for number in range(1, 6):
        by.send_oneway(message(topic, number))
    return bodies(at.stored(topic, 6)[0])


def in_flight(at: Site) -> object:
    """Sends that do not wait, and their answers."""
    topic, by = at.topic(1), at.producer()
    answers: list[Facts] = []
    failed: list[str] = []

    def done(sent: Any) -> None:
        answers.append(facts_of_send(sent))

    def lost(error: Exception) -> None:
        failed.append(str(error))

    by.send_sync(message(topic, 0))  # it has the route then
    for number in range(1, 21):
        by.send_async(message(topic, number), done, lost)
    at.wait("20 answers", lambda: len(answers) + len(failed) == 20)
    answers.sort(key=lambda one: one["queueOffset"])
    return {"answers": answers, "failed": failed, "bodies": bodies(at.stored(topic, 21)[0])}


def selected(at: Site) -> object:
    """The queue is chosen by a key, in both ways of sending that have it."""
    topic, by = at.topic(), at.producer()
    sent = [facts_of_send(by.send_orderly(message(topic, number), number % 3)) for number in range(12)]
    sent.append(
        facts_of_send(
            by.send_orderly(message(topic, 12), 0, queue_selector=lambda size, _message, _key: size - 1)
        )
    )
    for number in range(13, 16):
        by.send_oneway_orderly(message(topic, number), 1)
    found = at.stored(topic, 4, 7, 4, 1)
    return {"sent": sent, "queues": [bodies(queue) for queue in found], "stored": found[0]}


def batch(at: Site) -> object:
    """Many messages at once: it says ``batch=1``, which RocketMQ reads as false: they are one."""
    topic, by = at.topic(1), at.producer()
    sent = facts_of_send(by.send_batch([message(topic, number) for number in range(16)]))
    ((stored,),) = at.stored(topic, 1)
    del stored["bodyCrc"]  # ids are within
    return {"sent": sent, "stored": stored}


def delayed(at: Site) -> object:
    """A message comes to its topic when its time has come."""
    topic, by = at.topic(1), at.producer()
    later = message(topic, 1)
    later.set_delay_time_level(1)
    sent = facts_of_send(by.send_sync(later))
    del sent["queueOffset"]  # in the queue of the level, which others use
    return {"sent": sent, "stored": at.stored(topic, 1)}


def big(at: Site) -> object:
    """Bodies that the client compresses, and one that it does not."""
    topic, by = at.topic(1), at.producer()
    sent = []
    for size_bytes in (4_000, 5_000, 100_000):
        made = message(topic, 0)
        made.set_body("ab cd" * (size_bytes // 5))
        sent.append(facts_of_send(by.send_sync(made)))
    return {"sent": sent, "stored": at.stored(topic, 3)}


def new_topic(at: Site) -> object:
    """A topic is made by the first send to it."""
    topic, by = at.name("new"), at.producer()
    sent = facts_of_send(by.send_sync(message(topic, 0)))
    at.wait("its route", lambda: at.queues_of(topic))
    return {"sent": sent, "queues": at.queues_of(topic)}


def refused(at: Site) -> object:
    """What the client or the broker does not take."""
    by, found = at.producer(), {}
    for name, topic in {
        "a topic of the system": "SCHEDULE_TOPIC_XXXX",
        "a name with a space": "no name",
        "a long name": "x" * 300,
    }.items():
        try:
            found[name] = facts_of_send(Producer.send_sync(by, message(topic, 0)))
        except RocketMQException as error:
            found[name] = {"error": type(error).__name__, "words": str(error)}
    return found
