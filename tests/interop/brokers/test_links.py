"""A link over connections at the real broker and its name server: all that a client does."""

from __future__ import annotations

import pytest

from seglog.client.home.thread_home import thread_home
from seglog.client.links.events import Connected
from seglog.client.links.remote_link import RemoteLink
from seglog.remoting.client_headers import ConsumerGroupHeader, MembersChangedHeader, RunningInfoHeader
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, expect_body, expect_header
from seglog.remoting.headers import (
    OffsetResponseHeader,
    QueryConsumerOffsetHeader,
    SendMessageResponseHeader,
    UpdateConsumerOffsetHeader,
)
from seglog.remoting.heartbeat import ConsumerListBody
from seglog.remoting.later import Deferred
from tests.interop.judging.differential import GEOMETRY, STORE_SETTINGS
from tests.support.asks import GROUP, beat_of, bodies_of, pull_from, route_of, send_to
from tests.support.machine.patience import wait_for_result, wait_until

pytestmark = pytest.mark.interop

TOPIC = "orders"
# It has several threads for sends, which pass each other, and refuses what waits 200 ms for one of them.
SETTINGS = {"sendMessageThreadPoolNums": 1, "waitTimeMillsInSendQueue": 60_000}


class Cluster:
    """The real broker and its name server, and links to them."""

    def __init__(self, broker):
        self.broker_address = f"127.0.0.1:{broker.port}"
        self.name_server_address = f"127.0.0.1:{broker.name_server_port}"
        self.links = []

    def link(self, client_id=None, **options):
        self.links.append(RemoteLink(self.name_server_address, thread_home(), client_id, **options))
        return self.links[-1]


@pytest.fixture(scope="module")
def cluster(judge, tmp_path_factory):
    path = tmp_path_factory.mktemp("store")
    with judge.broker(path, GEOMETRY, settings=SETTINGS, name_server=True, **STORE_SETTINGS) as broker:
        cluster = Cluster(broker)
        yield cluster
        for link in cluster.links:
            link.close()


def test_name_server_send_heartbeat_pull_commit(cluster):
    events = []
    link = cluster.link(on_event=events.append)
    assert link.invoke(route_of("unknown")).code is ResponseCode.TOPIC_NOT_EXIST
    address = cluster.broker_address
    asked = [link.ask(send_to(TOPIC, b"%d" % number), 30_000, address) for number in range(200)]
    sent = [expect_header(wait_for_result(one, idle_s=30), SendMessageResponseHeader) for one in asked]
    assert [header.queue_offset for header in sent] == list(range(200))
    clusters = Request(106)  # GET_BROKER_CLUSTER_INFO, answered by name servers
    wait_until(
        lambda: any(
            address in broker.broker_addresses.values()
            for broker in link.invoke(clusters, 10_000).body.brokers.values()
        )
    )
    assert link.invoke(beat_of(link.client_id, TOPIC), to=address).code is ResponseCode.SUCCESS
    pulled = []
    while len(pulled) < 200:
        pulled += bodies_of(link.invoke(pull_from(TOPIC, len(pulled)), to=address))
    assert pulled == [b"%d" % number for number in range(200)]
    link.tell(
        Request(RequestCode.UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetHeader(GROUP, TOPIC, 0, 200)), address
    )
    ask = Request(RequestCode.QUERY_CONSUMER_OFFSET, QueryConsumerOffsetHeader(GROUP, TOPIC, 0))
    wait_until(
        lambda: (
            (answer := link.invoke(ask, to=address)).code is ResponseCode.SUCCESS
            and expect_header(answer, OffsetResponseHeader).offset == 200
        )
    )
    assert events == [Connected(cluster.name_server_address), Connected(address)]


def test_a_held_pull_is_answered_when_a_message_comes(cluster):
    link, address, topic = cluster.link(), cluster.broker_address, "held"
    link.invoke(send_to(topic), 10_000, address)
    link.invoke(beat_of(link.client_id, topic, GROUP), to=address)
    # What is stored is in its queue a moment later there; until then offset 1 is beyond the end.
    wait_until(lambda: link.invoke(pull_from(topic, 0), to=address).code is ResponseCode.SUCCESS)
    held = link.ask(pull_from(topic, 1, 20_000), 30_000, address)
    link.invoke(send_to(topic, b"late"), 10_000, address)
    assert bodies_of(wait_for_result(held, idle_s=30)) == [b"late"]


def test_members_of_a_group_are_told_of_each_other(cluster):
    told, address = [], cluster.broker_address
    first, second = (cluster.link(name, on_notice=told.append) for name in ("first", "second"))
    first.invoke(send_to("shared"), 10_000, address)
    first.invoke(beat_of("first", "shared", "members"), to=address)
    told.clear()
    second.invoke(beat_of("second", "shared", "members"), to=address)
    wait_until(lambda: told, idle_s=20)
    assert {(one.code, one.header, one.is_oneway) for one in told} == {
        (RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, MembersChangedHeader("members"), True)
    }
    who = Request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupHeader("members"))
    everyone = expect_body(first.invoke(who, to=address), ConsumerListBody).client_ids
    assert sorted(everyone) == ["first", "second"]
    second.close()

    def is_alone():
        return expect_body(first.invoke(who, to=address), ConsumerListBody).client_ids == ("first",)

    wait_until(is_alone, idle_s=20)


@pytest.mark.parametrize("is_later", [False, True])
def test_a_client_answers_what_the_broker_asks_it(cluster, is_later):
    answer = Response(ResponseCode.SUCCESS, body=b'{"jstack":"x"}')
    later = Deferred()
    name, address = f"asked-{is_later}", cluster.broker_address

    def on_request(_):
        thread_home().timers.after(50, lambda: later.resolve(answer))
        return later if is_later else answer

    link, admin = cluster.link(name, on_request=on_request), cluster.link()
    link.invoke(send_to("asked"), 10_000, address)
    link.invoke(beat_of(name, "asked", "asked"), to=address)
    ask = Request(RequestCode.GET_CONSUMER_RUNNING_INFO, RunningInfoHeader("asked", name))
    assert bytes(admin.invoke(ask, 15_000, address).body) == b'{"jstack":"x"}'
