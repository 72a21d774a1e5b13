"""Connections, brokers and routes fail, and every acknowledged message is still consumed, in order.

Links are cut at any byte, the broker is killed and comes back on its store, and the topic gets more queues,
while producers send and groups of both kinds consume. ``--full`` takes minutes; the seed is the commit's.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import defaultdict
from contextlib import suppress
from functools import partial

import pytest

from seglog.client.connect import make_client
from seglog.consumer.listener import Consume, ConsumeFrom
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.errors import SeglogError
from seglog.producer.producer import Producer
from seglog.remoting.bodies import RecordsBody
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_body
from seglog.remoting.headers import (
    CreateTopicHeader,
    OffsetResponseHeader,
    PullMessageHeader,
    QueryConsumerOffsetHeader,
)
from seglog.storage.format.record import decode_message
from tests.consumer.campaigns.brokers_that_die import KilledBroker
from tests.support.listening import CuttingProxy
from tests.support.machine.patience import join_thread, looks, patience_s, wait_until
from tests.support.peers import closed_port
from tests.support.scale import commit_seed, repeatable, scaled

TOPIC = "T"
SECONDS = 5, 180
FEWEST_SENT = 30
MEAN_BYTES = 15_000


class Seen:
    """What the listeners of one group have seen.

    Attributes:
        done: Ids of messages that succeeded, and for order the offset of each queue that is next.
        wrong: What must not be.
    """

    def __init__(self, name, chance, *, is_in_order):
        self.name = name
        self.done = set()
        self.next_of = defaultdict(int)
        self.wrong = []
        self._chance = chance
        self._is_in_order = is_in_order
        self._at_work = set()
        self._lock = threading.Lock()

    def listen(self, message):
        queue = message.topic, message.queue_id
        with self._lock:
            if self._is_in_order:
                if queue in self._at_work:
                    self.wrong.append(f"two listeners at {queue}")
                if message.queue_offset > self.next_of[queue]:
                    self.wrong.append(f"{queue} skips from {self.next_of[queue]} to {message.queue_offset}")
                self._at_work.add(queue)
            fails = self._chance.random() < 0.02
        time.sleep(0.0005)
        with self._lock:
            self._at_work.discard(queue)
            if fails:
                return Consume.RECONSUME_LATER
            self.done.add(message.unique_key)
            if self._is_in_order and message.queue_offset == self.next_of[queue]:
                self.next_of[queue] += 1
        return None


class Sender:
    """Sends until it is told to stop, and notes what was acknowledged."""

    def __init__(self, address, number):
        self.acknowledged = set()
        self.refused = 0
        self._is_over = threading.Event()
        self._number = number
        self._producer = Producer(address, f"p{number}")
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def stop(self):
        self._is_over.set()
        join_thread(self._thread, idle_s=30)
        self._producer.close()

    def _send(self):
        while not self._is_over.is_set():
            try:
                sent = self._producer.send(TOPIC, b"x" * 100, timeout_ms=1_000)
            except SeglogError:
                self.refused += 1
                time.sleep(0.05)
            else:
                self.acknowledged.add(sent.message_id)
            time.sleep(0.002)


def make_topic(link, address, queues):
    header = CreateTopicHeader(TOPIC, "TBW102", queues, queues, 6)
    until_answered(lambda: link.invoke(Request(RequestCode.UPDATE_AND_CREATE_TOPIC, header), 2_000, address))


def until_answered(ask):
    """Returns the first answer of a broker that may not be there."""
    answers = []
    for _ in looks("an answer of the broker", idle_s=30, look_s=0.1):
        with suppress(SeglogError):
            answers.append(ask())
            break
    return answers[0]


def stored_ids(link, address, queues):
    """Returns the ids of all that is stored, by queue in order."""
    found = {}
    for queue_id in range(queues):
        ids = found[queue_id] = []
        while True:
            flags = int(PullFlag.SUBSCRIPTION)
            header = PullMessageHeader("look", TOPIC, queue_id, len(ids), 32, flags, 0, 0, 0, "*", None)
            answer = link.invoke(Request(RequestCode.PULL_MESSAGE, header), 5_000, address)
            if answer.code is not ResponseCode.SUCCESS:
                break
            ids += [decode_message(record).unique_key for record in expect_body(answer, RecordsBody).records]
    return found


def committed(link, address, group, queues):
    found = []
    for queue_id in range(queues):
        header = QueryConsumerOffsetHeader(group, TOPIC, queue_id)
        answer = link.invoke(Request(RequestCode.QUERY_CONSUMER_OFFSET, header), 5_000, address)
        found.append(answer.header.offset if isinstance(answer.header, OffsetResponseHeader) else 0)
    return found


@pytest.mark.slow
def test_links_that_are_cut_brokers_that_are_killed_and_routes_that_change(tmp_path, caplog):
    caplog.set_level(logging.CRITICAL)
    seed = commit_seed()
    with repeatable(seed):
        chaos(tmp_path / "store", random.Random(seed))


def chaos(path, chance):
    port = closed_port()
    with CuttingProxy(port, chance, MEAN_BYTES) as proxy:
        broker = KilledBroker(path, port, proxy.address)
        groups = {
            kind: Seen(kind.__name__, chance, is_in_order=kind is OrderlyConsumer)
            for kind in (OrderlyConsumer, PushConsumer)
        }
        admin = make_client(proxy.address)
        queues = 2
        make_topic(admin.link, proxy.address, queues)
        members = [
            kind(
                proxy.address,
                seen.name,
                TOPIC,
                seen.listen,
                consume_from=ConsumeFrom.FIRST,
                suspend_ms=50,
            )
            for kind, seen in groups.items()
            for _ in range(2)
        ]
        for member in members:
            member.start()
        senders = [Sender(proxy.address, number) for number in range(2)]
        try:
            deadline = time.monotonic() + scaled(*SECONDS)
            limit = deadline + patience_s(30)

            def is_over() -> bool:
                """Returns whether its time is over, and, if that is at all possible, enough was sent."""
                now_s, sent = time.monotonic(), sum(len(sender.acknowledged) for sender in senders)
                return now_s >= (deadline if sent > FEWEST_SENT else limit)

            while not is_over():
                time.sleep(chance.uniform(0.5, 2))
                if chance.random() < 0.5:
                    broker.kill()
                    time.sleep(chance.uniform(0, 0.5))
                    broker.come_back()
                else:
                    queues = min(6, queues + 1)
                    make_topic(admin.link, proxy.address, queues)
            for sender in senders:
                sender.stop()
            proxy.is_calm = True
            stored = until_answered(lambda: stored_ids(admin.link, proxy.address, queues))
            everything = {one for ids in stored.values() for one in ids}
            acknowledged = senders[0].acknowledged | senders[1].acknowledged
            assert acknowledged <= everything, "what was acknowledged is stored"
            assert len(acknowledged) > FEWEST_SENT
            assert proxy.cuts > 3
            ends = [len(ids) for ids in stored.values()]

            def has_all(seen: Seen) -> bool:
                offsets = committed(admin.link, proxy.address, seen.name, queues)
                return everything <= seen.done and offsets == ends

            for seen in groups.values():
                # A member that was cut off has its locks for a minute still.
                wait_until(
                    partial(has_all, seen),
                    f"{seen.name} at its end, {len(everything)} messages,",
                    idle_s=100,
                    look_s=0.1,
                )
                assert seen.wrong == []
        finally:
            for sender in senders:
                sender.stop()
            proxy.is_calm = True
            for member in members:
                member.close(patience_s(10))
            admin.close()
            broker.kill()
