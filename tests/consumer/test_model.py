"""Whatever consumers, clocks and failures do: nothing is skipped, and in the end everything was consumed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from typing_extensions import override

from seglog.client.links.local_link import LocalLink
from seglog.clock import VirtualClock
from seglog.consumer.listener import Consume
from seglog.consumer.orderly import OrderlyConsumer
from seglog.producer.producer import Producer
from tests.support.brokers import open_broker

QUEUES = 2


class GroupMachine(RuleBasedStateMachine):
    """A group of consumers that join, crash, leave, fail and stand still, on one virtual clock."""

    def __init__(self):
        super().__init__()
        self.path = Path(tempfile.mkdtemp(prefix="seglog-group-"))
        self.clock = VirtualClock()
        self.broker = open_broker(self.path, self.clock)
        self.link = LocalLink(self.broker)
        self.producer = Producer(self.link, clock=self.clock, new_topic_queue_nums=QUEUES)
        self.consumers = {}
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

    @rule(queue_id=st.integers(0, QUEUES - 1), count=st.integers(1, 5))
    def send(self, queue_id, count):
        for _ in range(count):
            self.producer.send("T", b"x", queue_id=queue_id)
        self.sent[queue_id] += count

    @precondition(lambda self: len(self.consumers) < 3)
    @rule(pull_count=st.integers(1, 4))
    def join(self, pull_count):
        name = f"c{next(self.names)}"
        self.consumers[name] = OrderlyConsumer(
            self.link, "g", "T", self.listener, client_id=name, clock=self.clock, pull_count=pull_count
        )

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def step(self, data):
        self.consumers[data.draw(st.sampled_from(sorted(self.consumers)))].poll()

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def crash(self, data):
        del self.consumers[data.draw(st.sampled_from(sorted(self.consumers)))]

    @precondition(lambda self: self.consumers)
    @rule(data=st.data())
    def leave(self, data):
        self.consumers.pop(data.draw(st.sampled_from(sorted(self.consumers)))).close()

    @precondition(lambda self: self.consumers)
    @rule(data=st.data(), share=st.booleans())
    def rebalance(self, data, share):
        members = sorted(self.consumers) if share else None
        self.consumers[data.draw(st.sampled_from(sorted(self.consumers)))].set_members(members)

    @rule()
    def fail(self):
        self.fails_next = True

    @rule(by_ms=st.sampled_from([1, 500, 1_000, 20_000, 30_001, 60_001]))
    def advance(self, by_ms):
        self.clock.advance(by_ms)

    @rule()
    def restart_the_broker(self):
        for consumer in self.consumers.values():
            consumer.commit()
        self.broker.close()
        self.broker = open_broker(self.path, self.clock)
        self.link._broker = self.broker

    @invariant()
    def nothing_is_skipped(self):
        assert self.skipped == []

    @override
    def teardown(self):
        try:
            self.consumers.clear()
            self.clock.advance(60_001)
            last = OrderlyConsumer(self.link, "g", "T", self.listener, client_id="last", clock=self.clock)
            for _ in range(3):
                last.run_until_idle()
                self.clock.advance(1_000)
            assert (self.succeeded, self.skipped) == (self.sent, [])
            last.close()
        finally:
            self.broker.close()
            shutil.rmtree(self.path)


TestGroupMachine = GroupMachine.TestCase
TestGroupMachine.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
