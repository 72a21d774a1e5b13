"""Delayed messages and dead letters, on virtual time: hours pass in a moment."""

from pathlib import Path
from tempfile import TemporaryDirectory

from seglog import Consume, Message
from seglog.testing import VirtualBroker

TWO_HOURS = 18  # delay levels: 1s 5s 10s 30s 1m 2m … 10m 20m 30m 1h 2h

called: list[bytes] = []


def call(reminder: Message) -> Consume | None:
    called.append(reminder.body)
    return Consume.RECONSUME_LATER if reminder.body == b"wrong number" else None


with TemporaryDirectory() as folder, VirtualBroker.at(Path(folder) / "store") as broker:
    producer = broker.producer()
    producer.send("reminders", b"call back", delay_level=TWO_HOURS)
    consumer = broker.consumer("callers", "reminders", call, in_order=False)
    consumer.start()
    broker.advance("1h 59m")
    assert called == []
    broker.advance("2m")
    assert called == [b"call back"]

    producer.send("reminders", b"wrong number")
    broker.advance("6h")  # it fails, comes again after 10s, 30s, 1m, … 2h, and is given up
    dead = [message.body for message in broker.messages("%DLQ%callers")]
    print(len(called) - 1, "calls, then", dead)
    assert dead == [b"wrong number"]
    assert called.count(b"wrong number") == 17
