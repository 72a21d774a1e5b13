"""What is called before each handler: who it is given, when it runs, and that a refusal changes nothing."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from seglog import Durability, LocalLink, Producer
from seglog.broker.access import Access
from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.errors import FullError, NoPermissionError, RemoteProtocolError, SeglogError
from seglog.remoting import admin_headers as admin
from seglog.remoting import headers as header
from seglog.remoting.admin_bodies import GroupListBody
from seglog.remoting.bodies import BatchMessage, LockBatchBody, MessageBatch
from seglog.remoting.codes import PullFlag, ResponseCode
from seglog.remoting.codes import RequestCode as Code
from seglog.remoting.command import NO_HEADER, Request, Response
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.peer import Peer
from seglog.remoting.subscription import SubscriptionData
from seglog.remoting.subscription_group import SubscriptionGroup
from seglog.storage.format.record import Host
from seglog.storage.threads import WouldWaitError
from seglog.testing import VirtualBroker
from tests.support.brokers import on_a_roomy_disk, open_broker, send
from tests.support.machine.held_files import HeldFiles
from tests.support.machine.patience import wait_for_result
from tests.support.rows import each_row

PEER = Peer("c", Host(b"\x7f\x00\x00\x01", 1), is_remote=True, principal="billing")
QUEUE = MessageQueue("T", "broker-a", 0)


def send_request(topic="T", body=b"x", **options):
    head = header.SendMessageHeader("pg", topic, "TBW102", 4, 0, 0, 1_234, 0, b"")
    return Request(Code.SEND_MESSAGE_V2, head, body, **options)


def pull_request(queue_offset=0, hold_ms=0, flags=PullFlag.SUBSCRIPTION | PullFlag.SUSPEND, commit_offset=0):
    head = header.PullMessageHeader(
        "cg", "T", 0, queue_offset, 32, int(flags), commit_offset, hold_ms, 0, "*"
    )
    return Request(Code.PULL_MESSAGE, head)


CHANGES = [
    send_request(),
    send_request("new"),
    send_request("%RETRY%cg"),
    Request(
        Code.SEND_BATCH_MESSAGE, send_request().header, MessageBatch([BatchMessage(b"a"), BatchMessage(b"b")])
    ),
    pull_request(flags=PullFlag.SUBSCRIPTION | PullFlag.COMMIT_OFFSET, commit_offset=1),
    Request(Code.CONSUMER_SEND_MSG_BACK, header.SendBackHeader(0, "cg", 0)),
    Request(Code.UPDATE_CONSUMER_OFFSET, header.UpdateConsumerOffsetHeader("cg", "T", 0, 1)),
    Request(Code.INVOKE_BROKER_TO_RESET_OFFSET, header.ResetOffsetHeader("cg", "T", -1, is_forced=False)),
    Request(Code.CLONE_GROUP_OFFSET, header.CloneGroupOffsetHeader("cg", "other")),
    Request(Code.LOCK_BATCH_MQ, NO_HEADER, LockBatchBody("cg", "c", frozenset((QUEUE,)))),
    Request(
        Code.HEART_BEAT,
        NO_HEADER,
        HeartbeatBody("c", ("pg",), (ConsumerData("newcomer", (SubscriptionData("T"),)),)),
    ),
    Request(Code.UPDATE_AND_CREATE_TOPIC, header.CreateTopicHeader("new", "TBW102", 1, 1, 6)),
    Request(Code.DELETE_TOPIC_IN_BROKER, admin.DeleteTopicHeader("T")),
    Request(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, NO_HEADER, SubscriptionGroup("new")),
    Request(
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, NO_HEADER, GroupListBody((SubscriptionGroup("new"),))
    ),
    Request(Code.GET_SUBSCRIPTIONGROUP_CONFIG, admin.GroupHeader("new")),
    Request(Code.DELETE_SUBSCRIPTIONGROUP, header.DeleteGroupHeader("cg", cleans_offsets=True)),
]


IDS = [f"{number}-{request.code.name}" for number, request in enumerate(CHANGES)]


class Hook:
    """Notes what it is asked, and raises what it is told to."""

    def __init__(self) -> None:
        self.seen: list[Access] = []
        self.threads: set[int] = set()
        self.error: BaseException | None = None

    def __call__(self, access: Access) -> None:
        self.seen.append(access)
        self.threads.add(threading.get_ident())
        if self.error is not None:
            raise self.error


@pytest.fixture
def hook() -> Hook:
    return Hook()


@pytest.fixture
def guarded(tmp_path, hook):
    with open_broker(tmp_path / "store", before=hook) as broker:
        send(broker, "T")
        broker.groups.find("cg")
        broker.offsets.commit("cg", "T", 0, 0)
        hook.seen.clear()
        yield broker


def dispatched(broker, request):
    return broker.dispatch(request, PEER)


def answered(broker, request):
    answer = broker.answer(request, PEER)
    assert isinstance(answer, Response)  # it is refused at once, without a thread or the disk
    return answer


def awaited(broker, request):
    return asyncio.run(broker.dispatch_async(request, PEER))


WAYS = pytest.mark.parametrize("ask", [dispatched, answered, awaited])


def state_of(broker):
    """Returns what requests change: files of tables and log, and what is in memory alone."""
    broker.persist()
    tables = {
        path.name: path.read_bytes() for path in sorted((broker.path / "config").iterdir()) if path.is_file()
    }
    queues = [(queue.topic, queue.queue_id, queue.max_offset) for queue in broker.store.queues()]
    online = broker.clients.consumers("newcomer"), broker.clients.producers("pg")
    return tables, queues, broker.store.max_phy_offset, broker.locks.owner("cg", QUEUE), online


@WAYS
@each_row("request_", CHANGES)
def test_a_refusal_is_answered_on_every_way_and_has_changed_nothing(guarded, hook, ask, request_):
    hook.seen.clear()
    before = state_of(guarded)
    hook.error = NoPermissionError("billing may not do that")
    answer = ask(guarded, request_)
    assert (answer.code, answer.remark) == (ResponseCode.NO_PERMISSION, "billing may not do that")
    assert state_of(guarded) == before
    assert [access.code for access in hook.seen] == [request_.code]


def test_all_of_these_change_something_where_they_are_let_pass(tmp_path, hook):
    for number, request in enumerate(CHANGES):
        with open_broker(tmp_path / str(number), before=hook) as broker:
            send(broker, "T")
            broker.groups.find("cg")
            broker.offsets.commit("cg", "T", 0, 0)
            before = state_of(broker)
            assert broker.dispatch(request, PEER).code is not ResponseCode.NO_PERMISSION
            assert state_of(broker) != before, request


@WAYS
def test_a_oneway_request_is_refused_like_any_other(guarded, hook, ask):
    hook.error = NoPermissionError("no")
    assert ask(guarded, send_request(is_oneway=True)).code is ResponseCode.NO_PERMISSION
    assert guarded.store.max_offset("T", 0) == 1


def test_finding_10_of_the_broker_the_principal_of_the_peer_arrives_with_the_code(guarded, hook):
    guarded.dispatch(send_request(), PEER)
    guarded.dispatch(send_request())
    assert [(one.principal, one.peer.client_id, one.code) for one in hook.seen] == [
        ("billing", "c", Code.SEND_MESSAGE_V2),
        (None, "local", Code.SEND_MESSAGE_V2),
    ]


def test_the_principal_of_a_link_arrives(tmp_path, hook):
    with VirtualBroker.at(tmp_path, before=hook) as broker:
        Producer(LocalLink(broker, principal="shop")).send("T", b"x")
        assert {access.principal for access in hook.seen} == {"shop"}
        hook.error = NoPermissionError("the shop is closed")
        with pytest.raises(RemoteProtocolError, match="the shop is closed"):
            Producer(LocalLink(broker, principal="shop")).send("T", b"x")


@WAYS
@pytest.mark.parametrize(
    ("error", "code", "remark"),
    [
        (FullError("too much"), ResponseCode.SERVICE_NOT_AVAILABLE, "too much"),
        (SeglogError("no"), ResponseCode.SYSTEM_ERROR, "no"),
    ],
)
def test_an_error_of_the_tree_chooses_the_code(guarded, hook, ask, error, code, remark, caplog):
    hook.error = error
    answer = ask(guarded, send_request())
    assert (answer.code, answer.remark) == (code, remark)
    assert caplog.records == []


@WAYS
@pytest.mark.parametrize("error", [KeyError("policy of secret"), RecursionError(), WouldWaitError("disk")])
def test_a_hook_that_fails_refuses_and_is_logged(guarded, hook, ask, error, caplog):
    hook.error = error
    with caplog.at_level(logging.ERROR):
        answer = ask(guarded, send_request())
    assert answer.code is ResponseCode.SYSTEM_ERROR
    assert type(error).__name__ in str(answer.remark)
    assert "secret" not in str(answer.remark)  # the client is not told what the log is
    assert "code 310 failed" in caplog.text
    assert guarded.store.max_offset("T", 0) == 1


@WAYS
def test_a_hook_that_returns_something_refuses(tmp_path, ask, caplog):
    def allows(_access: Access) -> Any:
        return False

    with open_broker(tmp_path, before=allows) as broker:
        answer = ask(broker, send_request())
        assert (answer.code, broker.store.max_offset("T", 0)) == (ResponseCode.SYSTEM_ERROR, 0)
    assert "returned False" in caplog.text


def test_what_ends_the_process_is_no_refusal(guarded, hook):
    hook.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        guarded.dispatch(send_request())
    assert guarded.store.max_offset("T", 0) == 1


def test_a_refused_send_has_the_fields_of_all_answers_to_sends(guarded, hook):
    accepted = guarded.dispatch(send_request())
    hook.error = NoPermissionError("no")
    assert guarded.dispatch(send_request()).ext == accepted.ext
    assert guarded.dispatch(pull_request()).ext is None


@pytest.mark.parametrize(
    "request_",
    [Request(Code.LOCK_BATCH_MQ), Request(Code.SEND_MESSAGE, header.GetMaxOffsetHeader("T", 0), b"x")],
)
def test_what_cannot_be_found_out_is_refused_without_asking(guarded, hook, request_):
    assert guarded.dispatch(request_).code is ResponseCode.SYSTEM_ERROR
    assert hook.seen == []


def test_codes_that_no_handler_answers_are_refused_as_before(guarded, hook):
    assert guarded.dispatch(Request(9_999)).code is ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert hook.seen == []


def test_a_broker_that_was_closed_says_so(guarded, hook):
    guarded.close()
    hook.error = NoPermissionError("no")
    for ask in (dispatched, answered, awaited):
        assert ask(guarded, send_request()).code is ResponseCode.SERVICE_NOT_AVAILABLE
    assert hook.seen == []


def test_a_held_pull_is_asked_about_when_it_arrives_and_not_when_it_wakes(guarded, hook):
    asked = [guarded.answer(pull_request(1, 15_000), PEER)]
    assert isinstance(asked[0], Deferred)
    assert len(hook.seen) == 1
    send(guarded, "T")
    hook.error = NoPermissionError("no")  # from now on
    assert wait_for_result(asked[0]).code is ResponseCode.SUCCESS
    assert [access.code for access in hook.seen] == [Code.PULL_MESSAGE, Code.SEND_MESSAGE_V2]


def test_a_pull_that_is_refused_is_not_held(guarded, hook):
    hook.error = NoPermissionError("no")
    assert guarded.dispatch(pull_request(1, 15_000)).code is ResponseCode.NO_PERMISSION
    assert guarded.held_count == 0


@pytest.fixture
def slow(tmp_path, hook):
    """Returns a broker in real time whose disk can be held back, and the files that hold it."""
    files = HeldFiles(tmp_path / "slow")
    broker = Broker.open(
        tmp_path / "slow",
        config=on_a_roomy_disk(BrokerConfig()),
        before=hook,
        durability=Durability.SYNC,
        segment_size_bytes=1 << 20,
        queue_file_size_bytes=20_000,
        files=files,
    )
    broker.dispatch(send_request())
    hook.seen.clear()
    yield broker, files
    broker.close()


def test_a_send_that_waits_aside_is_asked_about_once_by_the_thread_that_asks(slow, hook):
    broker, files = slow
    with files.held():
        # A new topic has to be saved first: the handler runs twice, the second time in another thread.
        answers = [broker.answer(send_request("new"), PEER), broker.answer(send_request("T"), PEER)]
        assert all(isinstance(answer, Deferred) for answer in answers)
    assert [wait_for_result(answer).code for answer in answers] == [ResponseCode.SUCCESS] * 2
    assert [access.touches[0].name for access in hook.seen] == ["new", "T"]
    assert hook.threads == {threading.get_ident()}
