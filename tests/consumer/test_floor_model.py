"""A commit never passes unfinished work: listeners end in any order, and links and brokers fail."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from typing_extensions import override

from seglog.client.connect import make_client
from seglog.client.home import run_at_once, start
from seglog.clock import VirtualClock
from seglog.consumer.brokers import Brokers
from seglog.consumer.group_member import GroupMember
from seglog.consumer.listener import Consume, ConsumeFrom
from seglog.consumer.offsets.first_offsets import FirstOffsets
from seglog.consumer.offsets.offset_store import BrokerOffsetStore
from seglog.consumer.services.concurrent_service import ConcurrentService
from seglog.consumer.settings import ConsumerSettings, subscriptions_of
from seglog.producer.producer import Producer
from seglog.remoting.later import Deferred
from tests.support.brokers import open_broker
from tests.support.recording import RecordingLink
from tests.support.scale import scaled

QUEUES = 2


class HandPool:
    """A pool whose calls are made when the test says so, in any order: what waits is with a listener."""

    LEAVES_ALONE: ClassVar[bool] = True

    def __init__(self):
        self.calls = []
        self.is_closed = False

    def is_here(self):
        return False

    def run(self, call):
        result = Deferred()
        if self.is_closed:
            result.cancel()
        else:
            self.calls.append((call, result))
        return result

    def end(self, index):
        call, result = self.calls.pop(index)
        result.resolve(run_at_once(call()))

    def surface(self, error):
        """The message comes again, and the others go on."""

    def close(self):
        self.is_closed = True
        for _call, result in self.calls:
            result.cancel()
        self.calls.clear()


class FloorMachine(RuleBasedStateMachine):
    """Members of a group whose listeners end in any order, at brokers that refuse and links that break."""

    def __init__(self):
        super().__init__()
        self.path = Path(tempfile.mkdtemp(prefix="seglog-floor-"))
        self.broker = open_broker(self.path, VirtualClock())
        self.producer = Producer(self.broker, new_topic_queue_nums=QUEUES)
        self.members = {}
        self.names = iter(range(10**9))
        self.numbers = iter(range(10**9))
        self.unfinished = [{} for _ in range(QUEUES)]  # number of a message by its offset
        self.succeeded = set()
        self.sent = 0
        self.sent_to = [0] * QUEUES
        self.outcomes = []

    def listener(self, message):
        number = int(message.body)
        outcome = self.outcomes.pop() if self.outcomes else None
        for offsets in self.unfinished:
            for offset, other in list(offsets.items()):
                if other == number:
                    del offsets[offset]
        if outcome is None:
            self.succeeded.add(number)
            return None
        if outcome is Consume.RECONSUME_LATER:
            return outcome
        raise outcome

    def pick(self, data):
        return self.members[data.draw(st.sampled_from(sorted(self.members)))]

    @rule(queue_id=st.integers(0, QUEUES - 1), count=st.integers(1, 6))
    def send(self, queue_id, count):
        for _ in range(count):
            number = next(self.numbers)
            sent = self.producer.send("T", b"%d" % number, queue_id=queue_id)
            self.unfinished[queue_id][sent.queue_offset] = number
            self.sent += 1
            self.sent_to[queue_id] += 1

    @precondition(lambda self: len(self.members) < 2)
    @rule(pull_count=st.integers(1, 5), threads=st.integers(1, 3))
    def join(self, pull_count, threads):
        name, pool = f"c{next(self.names)}", HandPool()
        link = RecordingLink(self.broker, name)
        client = make_client(link)
        chosen = ConsumerSettings(
            "g",
            subscriptions_of("T"),
            consume_from=ConsumeFrom.FIRST,
            pull_count=pull_count,
            threads=threads,
        )
        service = ConcurrentService(client, chosen, self.listener, pool)
        offsets = BrokerOffsetStore(
            Brokers(client), "g", FirstOffsets(Brokers(client), chosen.consume_from, 0), client.clock, name
        )
        member = GroupMember(client, chosen, offsets, service)
        start(client.home, member.begin(), f"start of {name}")
        self.members[name] = member, pool, link, client

    @precondition(lambda self: any(pool.calls for _, pool, _, _ in self.members.values()))
    @rule(
        data=st.data(),
        outcomes=st.lists(
            st.sampled_from([None, None, Consume.RECONSUME_LATER, ValueError("no"), SystemExit(3)]),
            max_size=3,
        ),
    )
    def end(self, data, outcomes):
        busy = sorted(name for name, (_, pool, _, _) in self.members.items() if pool.calls)
        _, pool, _, _ = self.members[data.draw(st.sampled_from(busy))]
        self.outcomes = outcomes
        pool.end(data.draw(st.integers(0, len(pool.calls) - 1)))
        self.broker.advance(0)

    @precondition(lambda self: self.members)
    @rule(data=st.data(), codes=st.sets(st.sampled_from([11, 15, 34, 36, 38, 310])), is_refused=st.booleans())
    def cut(self, data, codes, is_refused):
        _, _, link, _ = self.pick(data)
        link.cut, link.refused = (set(), codes) if is_refused else (codes, set())

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def crash(self, data):
        name = data.draw(st.sampled_from(sorted(self.members)))
        _, pool, link, _ = self.members.pop(name)
        link.close()
        pool.close()

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def leave(self, data):
        name = data.draw(st.sampled_from(sorted(self.members)))
        member, pool, link, client = self.members.pop(name)
        start(client.home, member.leave(), f"end of {name}")
        self.broker.advance(0)
        pool.close()
        self.broker.advance(0)
        link.close()

    @rule(queue_id=st.integers(0, QUEUES - 1))
    def reset_back(self, queue_id):
        """It is stored; members hear of it with their next pull."""
        if self.broker.offsets.query("g", "T", queue_id):
            self.broker.offsets.reset("g", "T", queue_id, 0)

    @rule(by_ms=st.sampled_from([0, 1, 5_000, 10_000, 20_000, 65_000]))
    def advance(self, by_ms):
        self.broker.advance(by_ms)

    @invariant()
    def what_is_committed_is_finished(self):
        for queue_id, offsets in enumerate(self.unfinished):
            committed = self.broker.offsets.query("g", "T", queue_id) or 0
            assert committed <= min(offsets, default=committed), f"queue {queue_id}: {committed}, {offsets}"

    def committed(self):
        return [self.broker.offsets.query("g", "T", queue_id) or 0 for queue_id in range(QUEUES)]

    @override
    def teardown(self):
        try:
            if not self.members:
                self.join(5, 3)
            self.outcomes = []
            for _, _, link, _ in self.members.values():
                link.cut, link.refused = set(), set()
            self.broker.advance(0)
            for _ in range(60):
                if self.succeeded == set(range(self.sent)) and self.committed() == self.sent_to:
                    break  # a reset is heard of with the next pull, which may be held for ten minutes
                self.broker.advance(20_000)
                for _, pool, _, _ in self.members.values():
                    while pool.calls:
                        pool.end(0)
                        self.broker.advance(0)
            assert self.succeeded == set(range(self.sent)), "all that was sent has succeeded in the end"
            assert self.committed() == self.sent_to
        finally:
            for _, pool, link, _ in self.members.values():
                link.close()
                pool.close()
            self.broker.close()
            shutil.rmtree(self.path)


TestFloorMachine = FloorMachine.TestCase
TestFloorMachine.settings = settings(max_examples=scaled(15, 500), stateful_step_count=30, deadline=None)
