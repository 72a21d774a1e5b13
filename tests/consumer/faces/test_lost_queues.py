"""Once another member has begun in a queue, the member before gives and commits nothing more of it.

A member learns of a new one up to a second after that one has its share; what it commits in between must not
move the group back, nor count as committed what the new member is given too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from seglog import (
    AsyncLitePullConsumer,
    AsyncPushConsumer,
    ConsumeFrom,
    LitePullConsumer,
    Message,
    Producer,
    PushConsumer,
)
from seglog.broker.broker import Broker
from seglog.client.links.local_link import LocalLink
from seglog.errors import FencedError
from seglog.remoting.client_headers import MembersChangedHeader
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request, Response
from seglog.remoting.headers import (
    PullMessageHeader,
    QueryConsumerOffsetHeader,
    UpdateConsumerOffsetHeader,
)
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody
from seglog.remoting.later import Deferred
from seglog.remoting.subscription import parse_subscription
from seglog.testing import VirtualBroker
from tests.support.faces import driven
from tests.support.listening import BrokerServer
from tests.support.machine.patience import wait_until

POLLED = pytest.mark.parametrize("kind", [LitePullConsumer, AsyncLitePullConsumer])
PUSHED = pytest.mark.parametrize("kind", [PushConsumer, AsyncPushConsumer])
QUEUES = 2
FIRST: Any = {"consume_from": ConsumeFrom.FIRST}


class OfRocketMQ(LocalLink):
    """A link to a broker that takes every commit and notifies of nothing but members, as RocketMQ's does."""

    name_servers: Any = ("127.0.0.1:9876",)
    is_in_process: Any = False

    def __init__(self, broker: Broker, client_id: str) -> None:
        super().__init__(broker, client_id)
        notify = self._channel.notify

        def notify_as_theirs(request: Request) -> None:
            if not (isinstance(request.header, MembersChangedHeader) and request.header.topic):
                notify(request)

        self._channel.notify = notify_as_theirs

    @override
    def ask(
        self, request: Request, timeout_ms: float | None = None, to: str | None = None
    ) -> Deferred[Response]:
        header = request.header
        if isinstance(header, UpdateConsumerOffsetHeader):
            theirs = UpdateConsumerOffsetHeader(
                header.consumer_group, header.topic, header.queue_id, header.commit_offset
            )
            request = Request(request.code, theirs)
        return super().ask(request, timeout_ms, to)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    with VirtualBroker.at(tmp_path / "s") as opened:
        send(opened, 6)
        yield opened


def send(broker: Broker, count: int) -> None:
    with Producer(broker, new_topic_queue_nums=QUEUES) as producer:
        for queue_id in range(QUEUES):
            for number in range(count):
                producer.send("T", b"%d" % number, queue_id=queue_id)


def committed(broker: Broker) -> list[int | None]:
    return [broker.offsets.query("g", "T", queue_id) for queue_id in range(QUEUES)]


def all_of(consumer: Any) -> list[tuple[int, int]]:
    polled: list[Message] = []
    while found := consumer.poll():
        polled.extend(found)
    return [(one.queue_id, one.queue_offset) for one in polled]


def two_of_each(consumer: Any) -> None:
    for _ in range(QUEUES):
        assert len(consumer.poll(count=2)) == 2


@POLLED
@pytest.mark.parametrize("link", [LocalLink, OfRocketMQ])
def test_a_commit_of_a_queue_that_another_member_has_is_refused_and_moves_it_not_back(
    broker: VirtualBroker, kind: Any, link: type[LocalLink]
):
    with ExitStack() as stack:
        first = stack.enter_context(driven(kind, link(broker, "a"), "g", "T", auto_commit=False, **FIRST))
        two_of_each(first)
        second = stack.enter_context(driven(kind, broker.link(), "g", "T", auto_commit=False, **FIRST))
        (theirs,) = {queue_id for queue_id, _offset in all_of(second)}
        second.commit()
        with pytest.raises(FencedError, match=f"queue {theirs} of T at .* is not committed: another member"):
            first.commit()
        ours = 1 - theirs
        assert committed(broker)[theirs] == 6
        assert committed(broker)[ours] == 2
        first.commit()  # it was said once


@POLLED
def test_no_message_is_given_of_a_queue_in_which_another_member_has_begun(broker: VirtualBroker, kind: Any):
    with ExitStack() as stack:
        first = stack.enter_context(driven(kind, broker.link(), "g", "T", auto_commit=False, **FIRST))
        two_of_each(first)
        second = stack.enter_context(driven(kind, broker.link(), "g", "T", auto_commit=False, **FIRST))
        taken = {queue_id for queue_id, _offset in all_of(second)}
        second.commit()
        left = all_of(first)
        assert {queue_id for queue_id, _offset in left} == set(range(QUEUES)) - taken
        assert [offset for _queue_id, offset in left] == [2, 3, 4, 5]


def test_a_loop_too_gives_no_message_of_such_a_queue(broker: VirtualBroker):
    with (
        LitePullConsumer(broker.link(), "g", "T", **FIRST) as first,
        LitePullConsumer(broker.link(), "g", "T", **FIRST) as second,
    ):
        loop = iter(first)
        seen = [next(loop)]
        taken = {queue_id for queue_id, _offset in all_of(second)}
        seen += loop
        again = [one for one in seen[1:] if one.queue_id in taken]
        assert again == []


@POLLED
def test_a_commit_by_a_close_counts_no_message_that_another_member_is_given(broker: VirtualBroker, kind: Any):
    with ExitStack() as stack:
        first = stack.enter_context(driven(kind, broker.link(), "g", "T", **FIRST))
        two_of_each(first)
        first.poll(count=2)  # so the messages before are done
        second = stack.enter_context(driven(kind, broker.link(), "g", "T", auto_commit=False, **FIRST))
        (theirs,) = {queue_id for queue_id, _offset in all_of(second)}
        first.close()
        assert committed(broker)[theirs] is None, "the other one is at them"
        second.commit()
        assert committed(broker)[theirs] == 6


@PUSHED
def test_what_a_listener_has_done_of_such_a_queue_is_not_committed_and_is_said(
    broker: VirtualBroker, kind: Any
):
    def listener(_message: Message) -> None:
        """Does it."""

    with ExitStack() as stack:
        first = stack.enter_context(driven(kind, broker.link(), "g", "T", listener, **FIRST))
        first.start()
        broker.advance("10ms")
        assert first.counts.delivered == 12
        second = stack.enter_context(driven(LitePullConsumer, broker.link(), "g", "T", **FIRST))
        taken = {queue_id for queue_id, _offset in all_of(second)}
        (theirs,) = taken
        send(broker, 2)
        all_of(second)
        second.commit()
        with pytest.raises(FencedError, match=f"queue {theirs} of T"):
            first.commit()
        assert committed(broker)[theirs] == 8
        first.commit()


@POLLED
def test_a_queue_that_comes_back_goes_on_where_the_other_member_has_committed(
    broker: VirtualBroker, kind: Any
):
    with driven(kind, broker.link(), "g", "T", auto_commit=False, **FIRST) as first:
        two_of_each(first)
        with driven(kind, broker.link(), "g", "T", auto_commit=False, **FIRST) as second:
            (theirs,) = {queue_id for queue_id, _offset in all_of(second)}
            second.commit()
        # It has gone before the first one has heard of it: the members are as they were.
        broker.advance("2s")
        assert all_of(first) == [(1 - theirs, offset) for offset in range(2, 6)]
        first.commit()
        assert committed(broker) == [6, 6]


@POLLED
def test_over_connections_the_broker_refuses_such_a_commit(tmp_path: Path, kind: Any):
    def poll(consumer: Any, count: int) -> list[Message]:
        found: list[Message] = []

        def is_there() -> bool:
            found.extend(consumer.poll(0.05, count=count))
            return len(found) >= count

        wait_until(is_there, "messages", idle_s=20)
        return found

    with BrokerServer(tmp_path / "s") as server, ExitStack() as stack:
        send(server.broker, 6)
        settings = {"auto_commit": False, **FIRST}
        first = stack.enter_context(driven(kind, server.address, "g", "T", **settings))
        queues: set[int] = set()
        while len(queues) < 2:  # the second one then gets a queue of which the first has polled something
            queues |= {one.queue_id for one in poll(first, 1)}
        second = stack.enter_context(driven(kind, server.address, "g", "T", **settings))
        theirs = {one.queue_id for one in poll(second, 6)}
        second.commit()
        with pytest.raises(FencedError):
            first.commit()
        assert all(committed(server.broker)[queue_id] == 6 for queue_id in theirs)


class TestTheBroker:
    """What it takes, by the member that has begun last in a queue."""

    @pytest.fixture
    def members(self, broker: VirtualBroker) -> Sequence[LocalLink]:
        links = [LocalLink(broker, name) for name in ("a", "b")]
        for link in links:
            wanted = (parse_subscription("*").in_heartbeat("T", 1),)
            body = HeartbeatBody(link.client_id, (), (ConsumerData("g", wanted),))
            assert link.invoke(Request(RequestCode.HEART_BEAT, body=body)).code is ResponseCode.SUCCESS
            begin(link)
        return links

    @pytest.mark.parametrize("by_pull", [False, True])
    def test_a_commit_of_the_member_before_is_refused_until_it_begins_again(
        self, broker: VirtualBroker, members: Sequence[LocalLink], by_pull: bool
    ):
        commit = pull_commit if by_pull else plain_commit
        first, second = members
        assert commit(second, 4, "b") is ResponseCode.SUCCESS
        assert commit(first, 2, "a") is ResponseCode.ILLEGAL_OPERATION
        assert committed(broker)[0] == 4
        begin(first)
        assert commit(first, 5, "a") is ResponseCode.SUCCESS
        assert commit(second, 6, "b") is ResponseCode.ILLEGAL_OPERATION
        assert committed(broker)[0] == 5

    def test_a_commit_that_names_no_member_is_taken_as_rocketmq_takes_it(
        self, broker: VirtualBroker, members: Sequence[LocalLink]
    ):
        assert plain_commit(members[0], 3, None) is ResponseCode.SUCCESS
        assert committed(broker)[0] == 3

    def test_who_is_no_member_takes_no_queue(self, broker: VirtualBroker, members: Sequence[LocalLink]):
        begin(LocalLink(broker, "admin"))
        assert plain_commit(members[1], 3, "b") is ResponseCode.SUCCESS

    def test_of_a_queue_that_is_not_there_nothing_is_noted(
        self, broker: VirtualBroker, members: Sequence[LocalLink]
    ):
        first, second = members
        for queue_id in (QUEUES, 1 << 30):
            begin(first, queue_id)
            assert plain_commit(second, 3, "b", queue_id) is ResponseCode.SUCCESS

    def test_a_group_that_is_deleted_and_there_again_has_no_owners(
        self, broker: VirtualBroker, members: Sequence[LocalLink]
    ):
        broker.offsets.delete("g")
        assert plain_commit(members[0], 3, "a") is ResponseCode.SUCCESS


def begin(link: LocalLink, queue_id: int = 0) -> None:
    link.invoke(Request(RequestCode.QUERY_CONSUMER_OFFSET, QueryConsumerOffsetHeader("g", "T", queue_id)))


def plain_commit(link: LocalLink, offset: int, owner: str | None, queue_id: int = 0) -> ResponseCode:
    header = UpdateConsumerOffsetHeader("g", "T", queue_id, offset, owner)
    return link.invoke(Request(RequestCode.UPDATE_CONSUMER_OFFSET, header)).code


def pull_commit(link: LocalLink, offset: int, owner: str | None) -> ResponseCode:
    header = PullMessageHeader("g", "T", 0, 0, 1, int(PullFlag.COMMIT_OFFSET), offset, 0, 1, owner=owner)
    return link.invoke(Request(RequestCode.PULL_MESSAGE, header)).code
