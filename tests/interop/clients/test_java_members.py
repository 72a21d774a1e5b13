"""Java's consumers and ours share groups at our server: they join, leave and are killed while messages come.

One group is consumed side by side, one in order, and in one each member is given everything. Nothing is lost.
Twice comes only what a member was given and had not committed when its queue went to another: in a group that
is consumed in order that is what a kill leaves.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from typing import Any, Final

import pytest

from seglog import ConsumeFrom, MessageModel, OrderlyConsumer, Producer, PushConsumer
from seglog.client.connect import make_client
from seglog.remoting.bodies import LockBatchBody
from seglog.remoting.client_headers import ConsumerGroupHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, expect_body
from seglog.remoting.headers import CreateTopicHeader
from seglog.remoting.heartbeat import ConsumerListBody
from seglog.remoting.message_queue import MessageQueue
from tests.interop.judging.java_worker import JavaWorker, Place
from tests.interop.judging.places import BROKER_NAME
from tests.support.listening import BrokerServer
from tests.support.machine.patience import wait_until
from tests.support.scale import is_full, scaled

pytestmark = pytest.mark.interop

QUEUES: Final = 8
ROUND: Final = scaled(80, 2_000)
KINDS: Final = ("CLUSTERING", "ORDERLY", "BROADCASTING")
STAYS, LEAVES, KILLED, OURS = "stays", "leaves", "killed", "ours"
LOCKS_END_S: Final = 90
"""How long a killed member's locks keep its queues, at most: 60 s after the last renewal."""


class Group:
    """One group of members, three of Java and one of ours.

    Args:
        kind: How it is consumed.
        server: Where.
        stays: The process of two of Java's members.
        killed: That of the third.
        folder: For the offsets of ours where it keeps them itself.
    """

    def __init__(self, kind, server, stays, killed, folder):
        self.kind, self.name = kind, f"g-{kind}"
        self._processes = {STAYS: stays, LEAVES: stays, KILLED: killed}
        self._mine = []
        self.owners = []
        for member, process in self._processes.items():
            process.join(self._called(member), self.name, "T", kind)
        make = OrderlyConsumer if kind == "ORDERLY" else PushConsumer
        options: dict[str, Any] = {"consume_from": ConsumeFrom.FIRST}
        if kind == "BROADCASTING":
            options |= {"message_model": MessageModel.BROADCASTING, "offset_folder": folder}
        self._consumer = make(server.address, self.name, "T", self._take, **options)
        self._consumer.start()
        self.alive = {*self._processes, OURS}

    def _called(self, member):
        return f"{member}-{self.kind}"

    def _take(self, message):
        self._mine.append(Place(message.queue_id, message.queue_offset, bytes(message.body).decode()))

    def given(self, member):
        """Returns what a member was given, in its order."""
        if member == OURS:
            return list(self._mine)
        return list(self._processes[member].given[self._called(member)])

    def of_all(self):
        """Returns how often each message was given, to members that share the queues."""
        return Counter(place for member in (*self._processes, OURS) for place in self.given(member))

    def has_all(self, sent):
        """Returns whether members that share the queues have everything that was sent."""
        return set(self.of_all()) >= sent

    def leave(self, member):
        """Has a member leave, in order."""
        self._processes[member].leave(self._called(member))
        self.alive -= {member}

    def _share(self, member):
        if member == OURS:
            return {queue.queue_id for queue in self._consumer.queues if queue.topic == "T"}
        return set(self._processes[member].queues(self._called(member), "T"))

    def is_settled(self):
        """Returns whether those that are alive have the queues that they are to have; notes whose each is."""
        shares = {member: self._share(member) for member in self.alive}
        if self.kind == "BROADCASTING":
            return all(len(share) == QUEUES for share in shares.values())
        sizes = sorted(len(share) for share in shares.values())
        if sum(sizes) != QUEUES or sizes[-1] - sizes[0] > 1 or len(set().union(*shares.values())) != QUEUES:
            return False
        self.owners.append({queue_id: member for member, share in shares.items() for queue_id in share})
        return True

    def client_id(self, client, member):
        """Returns the id of a member at the broker."""
        asked = Request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupHeader(self.name))
        ids = expect_body(client.link.invoke(asked), ConsumerListBody).client_ids
        (found,) = (one for one in ids if one.partition("@")[2].startswith(self._called(member)))
        return found

    def close(self):
        """Closes our member."""
        self._consumer.close()


class Sending:
    """Messages to all queues in turn, for as long as it is wanted."""

    def __init__(self, producer):
        self._producer = producer
        self._numbers = itertools.count()
        self.sent = set()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def one(self):
        """Sends one."""
        number = next(self._numbers)
        sent = self._producer.send("T", b"%d" % number, queue_id=number % QUEUES)
        self.sent.add(Place(sent.queue.queue_id, sent.queue_offset, str(number)))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()

    def _run(self):
        while not self._is_over.wait(0.005):
            self.one()


def unlock(client, group, client_id, queue_ids):
    """Gives the locks of a dead member back for it, as an operator does."""
    queues = frozenset(MessageQueue("T", BROKER_NAME, queue_id) for queue_id in queue_ids)
    asked = Request(RequestCode.UNLOCK_BATCH_MQ, body=LockBatchBody(group.name, client_id, queues))
    assert client.link.invoke(asked).code is ResponseCode.SUCCESS


def settle(groups, most_s=60):
    for group in groups:
        wait_until(group.is_settled, idle_s=most_s)


def test_members_of_both_share_groups_while_some_join_leave_and_are_killed(judge, tmp_path):
    with ExitStack() as opened:
        server = opened.enter_context(BrokerServer(tmp_path / "served"))
        client = opened.enter_context(make_client(server.address))
        header = CreateTopicHeader("T", "TBW102", QUEUES, QUEUES, 6)
        made = client.link.invoke(Request(RequestCode.UPDATE_AND_CREATE_TOPIC, header))
        assert made.code is ResponseCode.SUCCESS
        stays, killed = (
            opened.enter_context(JavaWorker(server.address, tmp_path / name)) for name in (STAYS, KILLED)
        )
        groups = [Group(kind, server, stays, killed, tmp_path / "offsets") for kind in KINDS]
        for group in groups:
            opened.callback(group.close)
        side_by_side, in_order, broadcast = groups
        settle(groups)
        sending = Sending(opened.enter_context(Producer(server.address)))
        for _ in range(ROUND):
            sending.one()
        for group in (side_by_side, in_order):
            wait_until(partial(group.has_all, sending.sent), idle_s=60)
            assert group.of_all() == Counter(sending.sent)
        wait_until(
            lambda: all(set(broadcast.given(one)) == sending.sent for one in broadcast.alive), idle_s=60
        )
        dead = in_order.client_id(client, KILLED)
        with sending:
            for group in groups:
                group.leave(LEAVES)
            settle(groups)
            before = len(sending.sent)
            wait_until(lambda: len(sending.sent) >= before + ROUND, idle_s=60)
            left = dict(in_order.owners[-1])
            killed.kill()
            for group in groups:
                group.alive -= {KILLED}
            of_dead = {queue_id for queue_id, owner in left.items() if owner == KILLED}
            if not is_full():
                unlock(client, in_order, dead, of_dead)
            settle(groups, LOCKS_END_S)
            before = len(sending.sent)
            wait_until(lambda: len(sending.sent) >= before + ROUND, idle_s=60)
        for group in (side_by_side, in_order):
            wait_until(partial(group.has_all, sending.sent), idle_s=60)
            assert set(group.of_all()) == sending.sent
        wait_until(lambda: all(set(broadcast.given(one)) == sending.sent for one in (STAYS, OURS)), idle_s=60)
        moved = {
            queue_id
            for one, other in pairwise(side_by_side.owners)
            for queue_id in range(QUEUES)
            if one[queue_id] != other[queue_id]
        }
        twice = {place.queue_id for place, count in side_by_side.of_all().items() if count > 1}
        assert twice <= moved
        twice = {place.queue_id for place, count in in_order.of_all().items() if count > 1}
        assert twice <= of_dead
        for member in (STAYS, LEAVES, KILLED, OURS):
            for queue_id in range(QUEUES):
                offsets = [one.queue_offset for one in in_order.given(member) if one.queue_id == queue_id]
                assert offsets == sorted(set(offsets)), (member, queue_id)
            assert max(Counter(broadcast.given(member)).values()) == 1, member
