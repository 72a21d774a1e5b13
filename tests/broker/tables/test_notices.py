"""What changes in a group in short order is one notice more; clients that go cost only their own groups."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.broker.tables.clients import EXPIRY_MS, ClientTable
from seglog.broker.tables.notices import GAP_MS, Notices
from seglog.clock import VirtualClock
from seglog.remoting.heartbeat import ConsumerData
from seglog.remoting.peer import Peer
from seglog.remoting.subscription import SubscriptionData
from seglog.storage.format.record import Host
from tests.support.clients import ToldClient
from tests.support.connections import QuietConnection

HOST = Host(b"\x7f\x00\x00\x01", 1)
ALL_OF_T = SubscriptionData("T", "*", 1)


class Connection(QuietConnection):
    """A connection that counts what its client is sent."""

    def __init__(self, clock):
        self._clock = clock
        self.notified_ms = []

    @override
    def notify(self, request):
        self.notified_ms.append(self._clock.monotonic_ms())


def table(clock):
    return ClientTable(clock, lambda _group: True, lambda _group: None)


def joined(clients, clock, group, count):
    """Returns the peers of clients that came into a group."""
    peers = [Peer(f"{group}-{number}", HOST, Connection(clock)) for number in range(count)]
    for peer in peers:
        clients.heard_consumer(peer, peer.client_id, ConsumerData(group, (ALL_OF_T,)))
    return peers


def run_notices(clients, clock):
    """Lets time pass until no notice is put off."""
    while (left_ms := clients.notices.left_ms()) is not None:
        clock.advance(max(0, left_ms))
        clients.notices.send_due()


def test_the_first_notice_comes_at_once_and_all_of_the_next_100_ms_together():
    clock = VirtualClock()
    sent = []
    notices = Notices(clock, lambda group: sent.append((clock.monotonic_ms(), group)))
    begun_ms = clock.monotonic_ms()
    for _ in range(5):
        notices.tell("g")
        clock.advance(10)
    notices.tell("other")
    assert sent == [(begun_ms, "g"), (begun_ms + 50, "other")]
    assert notices.left_ms() == GAP_MS - 50
    clock.advance(GAP_MS - 50)
    notices.send_due()
    assert sent[2:] == [(begun_ms + GAP_MS, "g")]
    assert notices.left_ms() is None
    notices.tell("g")
    assert sent[3:] == []
    clock.advance(GAP_MS)
    notices.tell("g")
    assert sent[3:] == [(begun_ms + 2 * GAP_MS, "g")]


def test_a_group_that_has_no_client_any_more_is_not_notified():
    clock = VirtualClock()
    sent = []
    notices = Notices(clock, sent.append)
    notices.tell("g")
    notices.tell("g")
    notices.forget("g")
    clock.advance(GAP_MS)
    notices.send_due()
    assert sent == ["g"]


def test_groups_that_were_notified_long_ago_take_no_memory():
    clock = VirtualClock()
    notices = Notices(clock, lambda _group: None)
    for number in range(1_000):
        notices.tell(f"g{number}")
        clock.advance(GAP_MS)
    notices.send_due()
    assert len(notices._free_ms) < 100


@pytest.mark.parametrize("count", [2, 300])
def test_who_comes_in_a_crowd_is_notified_with_it(count):
    clock = VirtualClock()
    clients = table(clock)
    peers = joined(clients, clock, "g", count)
    run_notices(clients, clock)
    assert {len(peer.channel.notified_ms) for peer in peers} == {1, 2}
    assert sum(len(peer.channel.notified_ms) for peer in peers) == count + 1


def test_finding_3_of_the_broker_4000_clients_that_leave_cost_little_and_at_most_a_notice_each_100_ms():
    clock = VirtualClock()
    clients = table(clock)
    peers = [peer for group in range(100) for peer in joined(clients, clock, f"g{group}", 40)]
    run_notices(clients, clock)
    for peer in peers:
        peer.channel.notified_ms.clear()
    began_s = time.thread_time()
    for number in range(40):
        for peer in peers[number::40]:
            clients.lose(peer)
        clock.advance(5)
        clients.notices.send_due()
    run_notices(clients, clock)
    spent_s = time.thread_time() - began_s
    assert clients.is_empty
    for peer in peers:
        times = peer.channel.notified_ms
        assert all(later - earlier >= GAP_MS for earlier, later in pairwise(times))
    # 0.05 s on a machine of 2026, where 4.6 s were spent before.
    assert spent_s < 1


def test_a_client_is_known_by_its_connection_in_all_its_groups(tmp_path):
    with Broker.open(tmp_path, clock=VirtualClock()) as broker:
        one, other = ToldClient(broker, "a"), ToldClient(broker, "b")
        for group in ("g1", "g2"):
            one.beat(ALL_OF_T, group=group, producer_groups=("p1", "p2"))
            other.beat(ALL_OF_T, group=group)
        one.link.close()
        assert [len(found.clients) for found in broker.clients.all_consumers()] == [1, 1]
        assert broker.clients.producers("p1") == broker.clients.producers("p2") == ()
        assert max(other.told_groups) == "g2"
        again = ToldClient(broker, "a")
        again.beat(ALL_OF_T, group="g1")
        other.link.close()
        again.link.close()
        assert broker.clients.is_empty
        assert broker.clients._groups_of == {}


def test_clients_that_are_silent_for_two_minutes_go_and_leave_nothing():
    clock = VirtualClock()
    clients = table(clock)
    joined(clients, clock, "g", 5)
    clock.advance(119_000)
    kept = joined(clients, clock, "g", 1)
    clock.advance(2_000)
    clients.expire()
    run_notices(clients, clock)
    online = clients.consumers("g")
    assert online is not None
    assert [client.client_id for client in online.clients.values()] == [kept[0].client_id]
    clients.lose(kept[0])
    assert clients._groups_of == {}


class Ended(QuietConnection):
    """A connection that has ended, with a transport that says so by raising."""

    @override
    def notify(self, request):
        raise BrokenPipeError("the other end is gone")


@pytest.mark.parametrize("leaves", ["by itself", "because it is silent"])
def test_a_client_that_is_gone_hurts_no_request_of_another_and_the_others_are_notified(leaves, caplog):
    clock = VirtualClock()
    clients = table(clock)
    heard = ConsumerData("g", (ALL_OF_T,))
    leaving, gone = Peer("leaving", HOST, Connection(clock)), Peer("gone", HOST, Ended())
    ear = Connection(clock)
    staying = Peer("staying", HOST, ear)
    for peer in (leaving, gone, staying):
        clients.heard_consumer(peer, peer.client_id, heard)
    run_notices(clients, clock)
    clock.advance(GAP_MS)
    before = len(ear.notified_ms)
    caplog.clear()
    if leaves == "by itself":
        clients.leave_consumers(leaving, "leaving", "g")
    else:
        clock.advance(EXPIRY_MS + 1)
        for peer in (gone, staying):
            clients.heard_consumer(peer, peer.client_id, heard)
        clients.expire()
    assert len(ear.notified_ms) == before + 1
    assert [client.client_id for client in clients.consumers("g").clients.values()] == ["gone", "staying"]
    assert "client gone of group g is not notified" in caplog.text
