"""The first steps of the demo: stores many messages, and consumes them in order.

Every step checks its result and returns it in one sentence. Messages are numbered by the thread that sends
them and their queue, so that their order can be checked without a list of all messages.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Final

from seglog.broker.broker import Broker
from seglog.cli.ui import render
from seglog.client.links import LocalLink
from seglog.consumer.listener import ConsumeFrom
from seglog.consumer.orderly import OrderlyConsumer
from seglog.errors import SeglogError
from seglog.producer.producer import Producer
from seglog.storage.format.record import Message
from seglog.storage.writes import NewMessage

TOPICS: Final = ("orders", "payments", "shipments")
QUEUES: Final = 4
TAGS: Final = ("new", "changed", "done")
GROUP: Final = "demo"
THREADS: Final = 2
CONSUMERS: Final = 2
BATCH: Final = 50
CONSUME_LIMIT_S: Final = 300.0
_LOOK_S: Final = 0.05
_FILLING: Final = b"." * 64


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a step.

    Attributes:
        ok: Whether all checks passed; None for a step that was skipped.
        text: The result, or the reason for skipping the step.
        facts: The result for programs.
    """

    ok: bool | None
    text: str
    facts: dict[str, object] = field(default_factory=dict)


class Sender:
    """One thread's share of the messages, sent in batches to all queues in turn."""

    def __init__(self, link: LocalLink, thread: int, message_count: int) -> None:
        self.sent = 0
        self.failure: SeglogError | None = None
        self._producer = Producer(link, GROUP)
        self._number = thread
        self._share = message_count // THREADS + (thread < message_count % THREADS)
        self.thread = threading.Thread(target=self._run, name=f"demo-sender-{thread}")

    def _run(self) -> None:
        following = {(topic, queue_id): 0 for topic in TOPICS for queue_id in range(QUEUES)}
        turns = cycle(following)
        try:
            while self.sent < self._share:
                topic, queue_id = next(turns)
                first = following[topic, queue_id]
                size = min(BATCH, self._share - self.sent)
                messages = [numbered(self._number, number) for number in range(first, first + size)]
                self._producer.send_batch(topic, messages, queue_id=queue_id)
                following[topic, queue_id] += size
                self.sent += size
        except SeglogError as error:
            self.failure = error
        finally:
            self._producer.close()


def write(root: Path, message_count: int, tell: render.Tell) -> Outcome:
    """Sends messages from two threads to all queues of all topics.

    Raises:
        SeglogError: A send failed.
    """
    with Broker.open(root) as broker:
        senders = [Sender(LocalLink(broker), thread, message_count) for thread in range(THREADS)]
        begun_s = time.monotonic()
        for sender in senders:
            sender.thread.start()
        for sender in senders:
            while sender.thread.is_alive():
                sender.thread.join(_LOOK_S)
                tell(sum(sender.sent for sender in senders), message_count)
        seconds = time.monotonic() - begun_s
        stored = sum(queue.max_offset for queue in broker.store.queues())
        size_bytes = broker.store.max_phy_offset
    for sender in senders:
        if sender.failure is not None:
            raise sender.failure
    return Outcome(
        stored == message_count,
        f"{render.count_text(stored)} stored in {seconds:.1f} s: {render.rate_text(stored, seconds)},"
        f" {render.size_text(size_bytes / seconds)}/s",
        {"messages": stored, "bytes": size_bytes, "seconds": round(seconds, 3)},
    )


class OrderCheck:
    """Listener of the consumers: counts messages, and detects duplicate, missing and reordered ones."""

    def __init__(self) -> None:
        self.count = 0
        self.wrong = 0
        self._next: dict[tuple[str, int, int], int] = {}
        self._lock = threading.Lock()

    def __call__(self, message: Message) -> None:
        """Checks the next message of its queue; several threads call it, one thread for each queue."""
        thread, number = map(int, message.body[: -len(_FILLING)].split())
        key = (message.topic, message.queue_id, thread)
        with self._lock:
            self.wrong += number != self._next.get(key, 0)
            self._next[key] = number + 1
            self.count += 1


def consume(root: Path, message_count: int, tell: render.Tell) -> Outcome:
    """Lets two members of a group consume everything, and checks their committed offsets after reopening.

    Raises:
        SeglogError: A consumer failed.
    """
    check = OrderCheck()
    with Broker.open(root) as broker:
        wanted = dict.fromkeys(sorted({queue.topic for queue in broker.store.queues()}), "*")
        consumers = [
            OrderlyConsumer(broker, GROUP, wanted, check, consume_from=ConsumeFrom.FIRST)
            for _ in range(CONSUMERS)
        ]
        begun_s = time.monotonic()
        for consumer in consumers:
            consumer.start()
        while check.count < message_count and time.monotonic() < begun_s + CONSUME_LIMIT_S:
            time.sleep(_LOOK_S)
            tell(check.count, message_count)
        seconds = time.monotonic() - begun_s
        for consumer in consumers:
            consumer.close()
        shares = [consumer.counts.delivered for consumer in consumers]
    with Broker.open(root, background=False) as broker:
        committed = {queue: end for queue, end in broker.offsets.of_group(GROUP).items() if end}
        ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in broker.store.queues()}
    order = f"{render.count_text(check.wrong)} out of order" if check.wrong else "each queue in order"
    offsets = "all committed" if committed == ends else "NOT all committed"
    return Outcome(
        check.count == message_count == sum(shares) and not check.wrong and committed == ends,
        f"{' + '.join(map(render.count_text, shares))} consumed, {order}, {offsets}, in {seconds:.1f} s:"
        f" {render.rate_text(check.count, seconds)}",
        {
            "messages": check.count,
            "shares": shares,
            "outOfOrder": check.wrong,
            "allCommitted": committed == ends,
            "seconds": round(seconds, 3),
        },
    )


def numbered(thread: int, number: int) -> NewMessage:
    """Returns the message with a number of a thread and queue; :class:`OrderCheck` reads them back."""
    body = b"%d %d" % (thread, number) + _FILLING
    return NewMessage(body, tags=TAGS[number % len(TAGS)], keys=f"{thread}-{number}")
