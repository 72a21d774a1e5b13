"""Clients of a broadcasting group are watched one by one; what the slowest has is the group's."""

from __future__ import annotations

import dataclasses

import pytest

from seglog.broker.offsets.broadcast_offsets import PROXY_FOR_BROADCAST
from seglog.clock import VirtualClock
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request
from seglog.remoting.headers import PullMessageHeader
from seglog.remoting.heartbeat import MessageModel
from seglog.remoting.subscription import SubscriptionData
from tests.support.brokers import open_broker, send
from tests.support.clients import GROUP, ToldClient

HEADER = PullMessageHeader(GROUP, "T", 0, 0, 1, int(PullFlag.SUBSCRIPTION), 0, 0, 0)


@pytest.fixture
def broker(tmp_path):
    with open_broker(tmp_path, VirtualClock()) as opened:
        for _ in range(10):
            send(opened, "T")
        yield opened


def beat(client):
    client.beat(SubscriptionData("T"), message_model=MessageModel.BROADCASTING)


def ask(client, queue_offset, **changes):
    header = dataclasses.replace(HEADER, queue_offset=queue_offset, **changes)
    return client.link.invoke(Request(RequestCode.PULL_MESSAGE, header))


def behind_proxy(client, queue_offset, client_id):
    return ask(client, queue_offset, request_source=PROXY_FOR_BROADCAST, proxy_client_id=client_id)


def test_s4_43_the_group_is_as_far_as_its_slowest_client(broker):
    slow, fast = ToldClient(broker, "slow"), ToldClient(broker, "fast")
    for client, offset in ((slow, 2), (fast, 7), (slow, 1)):
        beat(client)
        assert ask(client, offset).code is ResponseCode.SUCCESS
    assert broker.offsets.query_broadcast(GROUP, "T", 0) is None
    broker.advance("5s")
    assert broker.offsets.query_broadcast(GROUP, "T", 0) == 2, "an offset that goes back is passed over"
    assert broker.offsets.query(GROUP, "T", 0) is None, "the group itself has committed nothing"


def test_s4_43_a_client_that_was_sent_elsewhere_is_noted_there(broker):
    client = ToldClient(broker, "a")
    beat(client)
    assert ask(client, 99).code is ResponseCode.PULL_OFFSET_MOVED
    broker.advance("5s")
    assert broker.offsets.query_broadcast(GROUP, "T", 0) == 10


def test_s4_43_a_client_that_is_gone_is_forgotten_after_two_minutes(broker):
    slow, fast = ToldClient(broker, "slow"), ToldClient(broker, "fast")
    for client, offset in ((slow, 2), (fast, 7)):
        beat(client)
        ask(client, offset)
    slow.link.close()
    for _ in range(8):
        broker.advance("15s")
        beat(fast)
        ask(fast, 8)
    assert broker.offsets.query_broadcast(GROUP, "T", 0) == 8


def test_s4_43_a_client_that_is_online_is_forgotten_after_five_minutes(broker):
    client = ToldClient(broker, "a")
    beat(client)
    ask(client, 2)
    for _ in range(10):
        assert not broker._state.broadcasts.is_empty
        broker.advance("30s")
        beat(client)
    assert broker._state.broadcasts.is_empty


def test_clients_that_share_their_queues_are_not_watched(broker):
    client = ToldClient(broker, "a")
    client.beat(SubscriptionData("T"))
    ask(client, 2)
    assert broker._state.broadcasts.is_empty


def test_a_client_behind_a_proxy_that_does_not_know_goes_on_where_it_was(broker):
    proxy = ToldClient(broker, "proxy")
    assert behind_proxy(proxy, 3, "c").code is ResponseCode.SUCCESS
    answer = behind_proxy(proxy, -1, "c")
    assert (answer.code, answer.remark) == (ResponseCode.PULL_OFFSET_MOVED, "OFFSET_RESET")
    assert answer.header.next_begin_offset == 3
    assert behind_proxy(proxy, 4, "c").code is ResponseCode.SUCCESS


def test_a_new_client_behind_a_proxy_begins_with_its_group_or_with_a_young_queue(broker):
    proxy = ToldClient(broker, "proxy")
    assert behind_proxy(proxy, -1, "new").header.next_begin_offset == 0
    behind_proxy(proxy, 6, "old")
    broker.advance("5s")
    broker.advance("3m")
    broker.offsets.commit_broadcast(GROUP, "T", 0, 6)
    assert behind_proxy(proxy, -1, "newer").header.next_begin_offset == 6


def test_a_client_that_leaves_its_proxy_goes_on_where_it_was(broker):
    proxy, own = ToldClient(broker, "proxy"), ToldClient(broker, "c")
    behind_proxy(proxy, 3, "c")
    beat(own)
    assert ask(own, 0).header.next_begin_offset == 3
    assert ask(own, 3).code is ResponseCode.SUCCESS
