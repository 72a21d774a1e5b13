"""What works through a link in process works through connections, from a thread and from a loop."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager

import pytest

from seglog.client.home.loop_home import LoopHome
from seglog.client.home.thread_home import thread_home
from seglog.client.links.link import Link
from seglog.client.links.local_link import LocalLink
from seglog.client.links.remote_link import RemoteLink
from seglog.client.links.served import unsupported
from seglog.errors import AskTimeoutError, ClientClosedError, NoPermissionError
from seglog.remoting.bodies import TopicRouteBody
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
from tests.support.asks import GROUP, beat_of, bodies_of, pull_from, route_of, send_to
from tests.support.listening import BrokerServer
from tests.support.machine.patience import join_thread, wait_for_result, wait_until


class Place:
    """A broker, and the way to it."""

    def __init__(self, kind, server):
        self.kind = kind
        self.server = server
        self.address = None if kind == "in process" else server.address
        self.home = None if kind == "in process" else thread_home()
        self.links = []

    def link(self, client_id=None, on_notice=None, on_request=None):
        made: Link
        if self.home is None:
            made = LocalLink(self.server.broker, client_id, on_notice, on_request)
        else:
            made = RemoteLink(
                self.server.address, self.home, client_id, on_notice=on_notice, on_request=on_request
            )
        self.links.append(made)
        return made


@contextmanager
def own_loop():
    """Runs a loop of a user, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield LoopHome(loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        join_thread(thread, idle_s=30)
        loop.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with BrokerServer(tmp_path_factory.mktemp("store")) as server:
        yield server


@pytest.fixture(params=["in process", "thread", "loop"])
def place(request, server):
    place = Place(request.param, server)
    with own_loop() as home:
        if request.param == "loop":
            place.home = home
        yield place
        for link in place.links:
            link.close()


@pytest.fixture
def topic(request):
    # The whole name: the places share a broker, and one must not find what was sent from another.
    name = request.node.name.removeprefix("test_").replace("[", "-").replace("]", "").replace(" ", "_")
    return f"T-{name}"


def test_route_send_pull(place, topic):
    link = place.link()
    assert link.invoke(route_of(topic)).code is ResponseCode.TOPIC_NOT_EXIST
    for number in range(3):
        sent = link.invoke(send_to(topic, b"%d" % number), to=place.address)
        assert expect_header(sent, SendMessageResponseHeader).queue_offset == number
    found = expect_body(link.invoke(route_of(topic)), TopicRouteBody)
    assert [one.broker_addresses for one in found.brokers] == [{0: place.server.address}]
    assert link.invoke(beat_of(link.client_id, topic), to=place.address).code is ResponseCode.SUCCESS
    assert bodies_of(link.invoke(pull_from(topic, 1), to=place.address)) == [b"1", b"2"]


def test_a_thousand_sends_keep_their_order_and_are_answered(place, topic):
    link = place.link()
    asked = [link.ask(send_to(topic, b"%d" % number), 30_000, place.address) for number in range(1_000)]
    offsets = [expect_header(wait_for_result(one), SendMessageResponseHeader).queue_offset for one in asked]
    assert offsets == list(range(1_000))


def test_a_held_pull_is_answered_when_a_message_comes(place, topic):
    link = place.link()
    link.invoke(send_to(topic), to=place.address)
    link.invoke(beat_of(link.client_id, topic), to=place.address)
    held = link.ask(pull_from(topic, 1, 20_000), 30_000, place.address)
    assert link.invoke(pull_from(topic, 0), to=place.address).code is ResponseCode.SUCCESS
    assert not held.is_done
    link.invoke(send_to(topic, b"late"), to=place.address)
    assert bodies_of(wait_for_result(held, idle_s=5)) == [b"late"]


def test_an_ask_ends_in_time_and_can_be_cancelled(place, topic):
    link = place.link()
    link.invoke(send_to(topic), to=place.address)
    link.invoke(beat_of(link.client_id, topic), to=place.address)
    with pytest.raises(AskTimeoutError, match=r"request 11 .*within 50 ms"):
        wait_for_result(link.ask(pull_from(topic, 1, 20_000), 50, place.address), idle_s=5)
    cancelled = link.ask(pull_from(topic, 1, 20_000), 30_000, place.address)
    assert cancelled.cancel()
    link.invoke(send_to(topic, b"late"), to=place.address)
    assert bodies_of(link.invoke(pull_from(topic, 1), to=place.address)) == [b"late"]


def test_what_is_told_has_no_answer_and_is_done_before_what_is_asked_next(place, topic):
    link = place.link()
    link.invoke(send_to(topic), to=place.address)
    link.invoke(beat_of(link.client_id, topic), to=place.address)
    commit = Request(RequestCode.UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetHeader(GROUP, topic, 0, 1))
    link.tell(commit, to=place.address)
    asked = link.invoke(
        Request(RequestCode.QUERY_CONSUMER_OFFSET, QueryConsumerOffsetHeader(GROUP, topic, 0)),
        to=place.address,
    )
    assert expect_header(asked, OffsetResponseHeader).offset == 1


def test_members_of_a_group_hear_of_each_other(place, topic):
    told, group = [], f"g-{topic}"
    links = [place.link(f"c{number}", told.append) for number in range(2)]
    for link in links:
        assert link.invoke(beat_of(link.client_id, topic, group), to=place.address).code == 0
    wait_until(lambda: told)
    assert {(one.code, one.header, one.is_oneway) for one in told} == {
        (RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, MembersChangedHeader(group), True)
    }
    who = Request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupHeader(group))
    assert set(expect_body(links[0].invoke(who, to=place.address), ConsumerListBody).client_ids) == {
        "c0",
        "c1",
    }
    told.clear()
    links[1].close()

    def members() -> tuple[str, ...]:
        return expect_body(links[0].invoke(who, to=place.address), ConsumerListBody).client_ids

    wait_until(lambda: members() == ("c0",), "who is left in the group")
    wait_until(lambda: told)


@pytest.mark.parametrize("is_later", [False, True])
def test_a_client_answers_what_the_broker_asks_it(place, topic, is_later):
    answer, group = Response(ResponseCode.SUCCESS, body=b"{}"), f"g-{topic}-{is_later}"
    later = Deferred()

    def on_request(request):
        if not is_later:
            return answer
        threading.Timer(0.05, later.resolve, (answer,)).start()
        return later

    link, admin = place.link("asked", None, on_request), place.link()
    link.invoke(beat_of("asked", topic, group), to=place.address)
    ask = Request(RequestCode.GET_CONSUMER_RUNNING_INFO, RunningInfoHeader(group, "asked"))
    found = admin.invoke(ask, 10_000, place.address)
    assert (found.code, bytes(found.body)) == (ResponseCode.SUCCESS, b"{}")


def test_a_client_that_fails_at_a_request_or_does_not_know_it_says_so(place, topic):
    def on_request(request):
        if request.code == RequestCode.GET_CONSUMER_RUNNING_INFO:
            raise NoPermissionError("not you")
        return unsupported(request)

    group = f"g-{topic}"
    link, admin = place.link("failing", None, on_request), place.link()
    link.invoke(beat_of("failing", topic, group), to=place.address)
    ask = Request(RequestCode.GET_CONSUMER_RUNNING_INFO, RunningInfoHeader(group, "failing"))
    found = admin.invoke(ask, 10_000, place.address)
    assert (found.code, found.remark) == (ResponseCode.NO_PERMISSION, "not you")


def test_a_link_that_is_closed_ends_what_waits_and_refuses_the_rest(place, topic):
    link = place.link()
    link.invoke(send_to(topic), to=place.address)
    link.invoke(beat_of(link.client_id, topic), to=place.address)
    held = [link.ask(pull_from(topic, 1, 20_000), 30_000, place.address) for _ in range(3)]
    link.close()
    link.close()
    for one in (*held, link.ask(route_of(topic))):
        with pytest.raises(ClientClosedError, match="was closed"):
            wait_for_result(one, idle_s=5)
    with pytest.raises(ClientClosedError):
        link.invoke(route_of(topic))
    link.tell(route_of(topic))


def test_threads_that_ask_at_once_get_their_own_answers(place, topic):
    link, wrong = place.link(), []

    def run(number):
        for turn in range(40):
            sent = link.invoke(send_to(topic, b"x", number), 30_000, place.address)
            header = expect_header(sent, SendMessageResponseHeader)
            if (header.queue_id, header.queue_offset) != (number, turn):
                wrong.append(header)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        join_thread(thread, idle_s=30)
    assert wrong == []
