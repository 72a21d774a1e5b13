"""For any order of consumers, clocks and failures: nothing is skipped, and all is consumed in the end."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from typing_extensions import override

from seglog.broker.tables.topics import TopicConfig
from seglog.client.links.local_link import LocalLink
from seglog.clock import VirtualClock
from seglog.consumer.listener import Consume
from seglog.consumer.orderly import OrderlyConsumer
from seglog.producer.producer import Producer
from seglog.remoting.topics import PERM_READ, PERM_WRITE
from tests.support.brokers import open_broker
from tests.support.recording import RecordingLink
from tests.support.scale import scaled

QUEUES = 2


class JumpingClock(VirtualClock):
    """A virtual clock whose wall clock people set, forward and back; the other one goes on."""

    def __init__(self):
        super().__init__()
        self.set_by_ms = 0

    @override
    def now_ms(self):
        return super().now_ms() + self.set_by_ms


class GroupMachine(RuleBasedStateMachine):
    """A group of consumers that join, crash, leave, fail and are cut off, on one clock, which may be set.

    Their topic may lose its permission to be read for a while.
    """

    def __init__(self):
        super().__init__()
        self.path = Path(tempfile.mkdtemp(prefix="seglog-group-"))
        self.clock = JumpingClock()
        self.broker = open_broker(self.path, self.clock)
        self.producer = Producer(LocalLink(self.broker), new_topic_queue_nums=QUEUES)
        self.consumers: dict[str, tuple[OrderlyConsumer, RecordingLink]] = {}
        self.names = iter(range(10**9))
        self.succeeded = [0] * QUEUES  # the next offset that never succeeded
        self.sent = [0] * QUEUES
        self.fails_next = False
        self.skipped = []

    def listener(self, message):
        queue_id, offset = message.queue_id, message.queue_offset
        if offset > self.succeeded[queue_id]:
            self.skipped.append((queue_id, offset))  # raising here would look like a failing listener
        if self.fails_next:
            self.fails_next = False
            return Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT
        if offset == self.succeeded[queue_id]:
            self.succeeded[queue_id] += 1
        return None

    def pick(self, data):
        return data.draw(st.sampled_from(sorted(self.consumers)))

    @rule(queue_id=st.integers(0, QUEUES - 1), count=st.integers(1, 5))
    def send(self, queue_id, count):
        for _ in range(count):
            self.producer.send("T", b"x", queue_id=queue_id)
        self.sent[queue_id] += count

    @precondition(lambda self: len(self.consumers) < 3)
    @rule(pull_count=st.integers(1, 4))
    def join(self, pull_count):
        name = f"c{next(self.names)}"
        link = RecordingLink(self.broker, name)
        consumer = OrderlyConsumer(link, "g", "T", self.listener, pull_count=pull_count)
        consumer.start()
        self.consumers[name] = consumer, link

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def crash(self, data):
        _consumer, link = self.consumers.pop(self.pick(data))
        link.close()

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def leave(self, data):
        consumer, _link = self.consumers.pop(self.pick(data))
        consumer.close()

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), codes=st.sets(st.sampled_from([11, 14, 15, 34, 38, 41])), is_refused=st.booleans())
    def cut(self, data, codes, is_refused):
        _consumer, link = self.consumers[self.pick(data)]
        link.cut, link.refused = (set(), codes) if is_refused else (codes, set())

    @rule()
    def fail(self):
        self.fails_next = True

    @rule(by_ms=st.sampled_from([-3_600_000, -1_000, 1_000, 3_600_000]))
    def set_the_clock(self, by_ms):
        self.clock.set_by_ms += by_ms

    @precondition(lambda self: self.broker.topics.get("T"))
    @rule(perm=st.sampled_from([PERM_WRITE, PERM_READ | PERM_WRITE]))
    def change_the_route(self, perm):
        self.broker.topics.put(TopicConfig("T", QUEUES, QUEUES, perm))

    @rule(by_ms=st.sampled_from([0, 1, 500, 1_000, 20_000, 30_001, 60_001]))
    def advance(self, by_ms):
        self.broker.advance(by_ms)

    @invariant()
    def nothing_is_skipped(self):
        assert self.skipped == []

    @override
    def teardown(self):
        try:
            for _consumer, link in self.consumers.values():
                link.close()
            if self.broker.topics.get("T"):
                self.change_the_route(PERM_READ | PERM_WRITE)
            last = OrderlyConsumer(LocalLink(self.broker, "last"), "g", "T", self.listener)
            last.start()
            self.broker.advance(65_000)
            assert (self.succeeded, self.skipped) == (self.sent, [])
            last.close()
        finally:
            self.broker.close()
            shutil.rmtree(self.path)


TestGroupMachine = GroupMachine.TestCase
TestGroupMachine.settings = settings(max_examples=scaled(25, 1_000), stateful_step_count=30, deadline=None)
