"""Requests of a loop: none of them waits for the disk, and none is acknowledged before it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from seglog import Durability
from seglog.broker.answers.answering import Answering
from seglog.broker.answers.send_deadlines import FLUSH_TIMEOUT_MS, SendDeadlines
from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.broker.state.refusals import Refusals
from seglog.clock import Clock, VirtualClock
from seglog.errors import FullError, StoreFailedError
from seglog.remoting.admin_headers import KeyValueHeader
from seglog.remoting.bodies import LockBatchBody
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Header, Request, Response
from seglog.remoting.headers import (
    CreateTopicHeader,
    GetRouteInfoHeader,
    PullMessageHeader,
    SendMessageHeader,
    SendMessageResponseHeader,
)
from seglog.remoting.heartbeat import ConsumerData, HeartbeatBody
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.peer import Peer
from seglog.storage.format.record import Host
from seglog.storage.threads import check_may_wait
from tests.support.brokers import on_a_roomy_disk
from tests.support.machine.held_files import HeldFiles
from tests.support.machine.patience import (
    join_thread,
    wait_for_event,
    wait_for_result,
    wait_until,
)

OTHER = Peer("other", Host(b"\x7f\x00\x00\x01", 2), is_remote=True)
REMOTE = Peer("c", Host(b"\x7f\x00\x00\x01", 1), is_remote=True)


def send_request(topic, body=b"x", queue_id=0, code=RequestCode.SEND_MESSAGE_V2):
    header = SendMessageHeader("pg", topic, "TBW102", 4, queue_id, 0, 1_234, 0, b"")
    return Request(code, header, body)


def pull_request(topic, offset=0, hold_ms=0, group="cg"):
    flags = int(PullFlag.SUBSCRIPTION | PullFlag.SUSPEND)
    return Request(
        RequestCode.PULL_MESSAGE, PullMessageHeader(group, topic, 0, offset, 32, flags, 0, hold_ms, 0, "*")
    )


def heartbeat(*groups):
    return Request(
        RequestCode.HEART_BEAT, Header(), HeartbeatBody("c", ("pg",), tuple(map(ConsumerData, groups)))
    )


def lock(*queue_ids, code=RequestCode.LOCK_BATCH_MQ):
    queues = frozenset(MessageQueue("T", "broker-a", queue_id) for queue_id in queue_ids)
    return Request(code, Header(), LockBatchBody("cg", "c", queues))


class Disk:
    """A broker whose disk can be held back."""

    def __init__(
        self, path: Path, durability: Durability = Durability.SYNC, clock: Clock | None = None
    ) -> None:
        self.files = HeldFiles(path)
        self.broker = Broker.open(
            path,
            clock=clock,
            config=on_a_roomy_disk(BrokerConfig()),
            background=clock is None,
            durability=durability,
            segment_size_bytes=1 << 20,
            queue_file_size_bytes=20_000,
            files=self.files,
        )
        self.broker.dispatch(send_request("T"))


@pytest.fixture
def disk(tmp_path):
    made = Disk(tmp_path / "s")
    yield made
    with suppress(StoreFailedError):  # of the test that has the disk fail
        made.broker.close()


def waited(answer):
    return answer if isinstance(answer, Response) else wait_for_result(answer)


def bodies(broker, topic, queue_id=0):
    return [message.body for message in broker.store.get(topic, queue_id, 0, 1_000).messages]


def test_finding_1_of_the_broker_a_send_is_stored_at_once_and_answered_when_it_is_on_the_disk(disk):
    with disk.files.held():
        answer = disk.broker.answer(send_request("T", b"later"))
        assert isinstance(answer, Deferred)
        assert bodies(disk.broker, "T") == [b"x", b"later"]
        time.sleep(0.02)
        assert not answer.is_done
    assert waited(answer).code is ResponseCode.SUCCESS
    assert waited(answer).header.queue_offset == 1


def test_finding_1_of_the_broker_what_does_not_wait_is_answered_while_the_disk_is_held_back(disk):
    broker = disk.broker
    broker.dispatch(heartbeat("cg"), REMOTE)
    broker.dispatch(lock(0), REMOTE)
    with disk.files.held():
        sends = [broker.answer(send_request("T")), broker.answer(send_request("New", b"a"))]
        asked = [
            heartbeat("cg"),
            heartbeat("group that is new"),
            heartbeat("new-group"),
            pull_request("T"),
            pull_request("T", group="group-that-pulls"),
            Request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader("T")),
            lock(0),
        ]
        answers = [broker.answer(request, REMOTE) for request in asked]
        assert [answer.code for answer in answers] == [ResponseCode.SUCCESS] * len(asked)
        pull = broker.answer(pull_request("T", 2, hold_ms=60_000))
        sends.append(broker.answer(send_request("T", b"third"), OTHER))
        assert waited(pull).code is ResponseCode.SUCCESS
        assert not any(answer.is_done for answer in sends)
    assert [waited(answer).code for answer in sends] == [ResponseCode.SUCCESS] * 3
    assert None not in map(broker.groups.get, ("new-group", "group-that-pulls"))


def test_sends_of_one_connection_keep_their_order_whatever_they_need(disk):
    broker = disk.broker
    answers = []
    for number in range(300):  # a new topic, new files of queues and of the log
        topic, big = f"T{number % 7}", b"%d " % number + b"x" * (20_000 if number % 5 == 0 else 1)
        code = RequestCode.SEND_REPLY_MESSAGE_V2 if number % 2 else RequestCode.SEND_MESSAGE_V2
        answers.append(broker.answer(send_request(topic, big, code=code)))
    # A reply that names no producer is stored, and goes nowhere.
    codes = [ResponseCode.SUCCESS, ResponseCode.SYSTEM_ERROR] * 150
    assert [waited(answer).code for answer in answers] == codes
    for first in range(7):
        stored = [int(body.split()[0]) for body in bodies(broker, f"T{first}")]
        assert stored == list(range(first, 300, 7))


def test_finding_1_of_the_broker_a_hundred_sends_at_once_share_fewer_than_ten_syncs(disk):
    async def scene():
        broker = disk.broker
        before = disk.files.log_syncs
        answers = await asyncio.gather(*(broker.dispatch_async(send_request("T")) for _ in range(100)))
        assert {answer.code for answer in answers} == {ResponseCode.SUCCESS}
        return disk.files.log_syncs - before

    assert 1 <= asyncio.run(scene()) < 10


def test_finding_2_of_the_broker_topics_that_are_new_at_once_are_saved_at_once(disk):
    with disk.files.held():
        answers = [disk.broker.answer(send_request(f"new{number}")) for number in range(50)]
        before = disk.files.saves.count("topics.json")
        wait_until(lambda: disk.files.saves[before:])  # the first holds the line
    assert {waited(answer).code for answer in answers} == {ResponseCode.SUCCESS}
    assert disk.files.saves.count("topics.json") - before <= 2


def value_of(number, namespace="n"):
    return Request(RequestCode.PUT_KV_CONFIG, KeyValueHeader(namespace, f"key{number}", "value"))


def test_values_that_are_put_at_once_are_saved_at_once(disk):
    with disk.files.held():
        answers = [disk.broker.answer(value_of(number)) for number in range(50)]
        wait_until(lambda: disk.files.saves.count("kvConfig.json"))  # the first holds the line
        assert not any(answer.is_done for answer in answers)
    assert {waited(answer).code for answer in answers} == {ResponseCode.SUCCESS}
    assert disk.files.saves.count("kvConfig.json") <= 2
    kept = json.loads((disk.broker.path / "seglog/kvConfig.json").read_text())["configTable"]
    assert kept == {"n": {f"key{number}": "value" for number in range(50)}}


def test_a_send_to_a_new_topic_is_answered_when_topics_json_is_on_the_disk(disk):
    with disk.files.held():
        answer = disk.broker.answer(send_request("new"))
        time.sleep(0.02)
        assert not answer.is_done
    assert waited(answer).code is ResponseCode.SUCCESS
    assert '"new"' in (disk.broker.path / "config/topics.json").read_text()


def test_a_topic_that_is_made_on_request_and_a_lock_go_aside(disk):
    create = Request(RequestCode.UPDATE_AND_CREATE_TOPIC, CreateTopicHeader("made", "TBW102", 2, 2, 6))
    with disk.files.held():
        answers = [disk.broker.answer(create), disk.broker.answer(lock(1, 2), REMOTE)]
        assert not any(answer.is_done for answer in answers)
    assert [waited(answer).code for answer in answers] == [ResponseCode.SUCCESS] * 2
    assert waited(answers[1]).body.queues == lock(1, 2).body.queues
    assert disk.broker.topics.get("made").read_queue_nums == 2


def test_finding_1_of_the_broker_a_disk_that_takes_too_long_is_flush_disk_timeout_and_the_message_stays(
    disk, monkeypatch
):
    monkeypatch.setattr("seglog.broker.answers.send_deadlines.FLUSH_TIMEOUT_MS", 50)
    with disk.files.held():
        answer = disk.broker.answer(send_request("T", b"slow"))
        late = waited(answer)
    assert late.code is ResponseCode.FLUSH_DISK_TIMEOUT
    assert isinstance(late.header, SendMessageResponseHeader)
    assert (late.header.queue_offset, late.ext) == (1, disk.broker.dispatch(send_request("T")).ext)
    assert bodies(disk.broker, "T")[:2] == [b"x", b"slow"]


def test_sends_wait_five_seconds_and_each_from_its_own_moment():
    clock = VirtualClock()
    deadlines, answers = SendDeadlines(clock), [Deferred() for _ in range(3)]
    assert (FLUSH_TIMEOUT_MS, deadlines.left_ms()) == (5_000, None)
    for answer in answers:
        deadlines.add(answer, Response(ResponseCode.SUCCESS))
        clock.advance(1_000)
    assert deadlines.left_ms() == 2_000
    answers[0].resolve(Response(ResponseCode.SUCCESS))
    assert deadlines.left_ms() == 3_000
    clock.advance(3_500)
    deadlines.run()
    assert [answer.is_done for answer in answers] == [True, True, False]
    assert answers[1].result().code is ResponseCode.FLUSH_DISK_TIMEOUT
    assert deadlines.left_ms() == 500


def test_after_a_sync_that_failed_all_that_wait_are_refused_and_nothing_more_is_acknowledged(disk):
    with disk.files.held():
        answers = [disk.broker.answer(send_request("T")) for _ in range(20)]
        disk.files.fails = True
    assert {waited(answer).code for answer in answers} == {ResponseCode.SERVICE_NOT_AVAILABLE}
    assert waited(disk.broker.answer(send_request("T"))).code is ResponseCode.SERVICE_NOT_AVAILABLE
    assert all(waited(answer).ext for answer in answers)


def test_without_space_for_topics_json_sends_that_need_it_are_refused_together(disk, monkeypatch):
    def no_space(path, data, *, sync=True):
        raise FullError(f"no space for {path}")

    with monkeypatch.context() as patch:
        patch.setattr(disk.files, "write_file", no_space)
        answers = [disk.broker.answer(send_request(topic)) for topic in ("a", "b", "a")]
        refused = [waited(answer) for answer in answers]
    assert refused[0].code is refused[1].code is ResponseCode.SERVICE_NOT_AVAILABLE
    assert disk.broker.topics.get("a") is disk.broker.topics.get("b") is None
    assert waited(disk.broker.answer(send_request("a"))).code is ResponseCode.SUCCESS


def test_closing_the_broker_makes_waiting_sends_durable_and_answers_them(tmp_path):
    disk = Disk(tmp_path / "s")
    with ExitStack() as held:
        held.enter_context(disk.files.held())
        answers = [disk.broker.answer(send_request(topic)) for topic in ("T", "U", "T")]
        closing = threading.Thread(target=disk.broker.close)
        closing.start()
        time.sleep(0.02)
    join_thread(closing, idle_s=20)
    codes = [waited(answer).code for answer in answers]
    assert codes[0] is ResponseCode.SUCCESS
    assert set(codes) <= {ResponseCode.SUCCESS, ResponseCode.SERVICE_NOT_AVAILABLE}
    with Broker.open(tmp_path / "s", background=False) as broker:
        stored = len(bodies(broker, "T")) + len(bodies(broker, "U"))
    assert stored >= 1 + codes.count(ResponseCode.SUCCESS)


def test_a_task_that_is_cancelled_takes_no_message_back(disk):
    async def scene():
        with disk.files.held():
            task = asyncio.create_task(disk.broker.dispatch_async(send_request("T", b"stays")))
            await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scene())
    assert bodies(disk.broker, "T") == [b"x", b"stays"]


def test_on_virtual_time_a_send_is_on_the_disk_when_it_returns(tmp_path):
    disk = Disk(tmp_path / "s", clock=VirtualClock())
    with disk.broker:
        before = disk.files.log_syncs
        answer = disk.broker.answer(send_request("T"))
        assert isinstance(answer, Response)
        assert answer.code is ResponseCode.SUCCESS
        assert disk.files.log_syncs > before


def test_an_async_store_answers_at_once_but_for_new_files(tmp_path):
    disk = Disk(tmp_path / "s", durability=Durability.ASYNC)
    with disk.broker, disk.files.held():
        answer = disk.broker.answer(send_request("T"))
        assert isinstance(answer, Response)
        assert answer.code is ResponseCode.SUCCESS


def test_a_follower_that_raises_keeps_no_other_send_from_its_answer(disk):
    with disk.files.held():
        answers = [disk.broker.answer(send_request("T")) for _ in range(3)]
        answers[0].then(lambda _: 1 // 0)
    assert {waited(answer).code for answer in answers} == {ResponseCode.SUCCESS}
    assert waited(disk.broker.answer(send_request("T"))).code is ResponseCode.SUCCESS


def test_a_held_pull_that_fails_in_any_way_is_an_answer_and_is_logged(disk, monkeypatch, caplog):
    def broken(*_, **__):
        raise KeyError("k")

    answer = disk.broker.answer(pull_request("T", 1, hold_ms=60_000))
    with monkeypatch.context() as patch:
        patch.setattr(disk.broker.store, "get", broken)
        answer.end()
        failed = waited(answer)
    assert (failed.code, failed.remark) == (ResponseCode.SYSTEM_ERROR, "KeyError: 'k'")
    assert "code 11 failed" in caplog.text


def test_a_loop_that_was_closed_leaves_its_sends_to_others(disk):
    async def scene():
        with disk.files.held():
            asked = disk.broker.answer(
                send_request("T", b"stays"), REMOTE, asyncio.get_running_loop().call_soon
            )
            task = asyncio.ensure_future(_awaited(asked))
            await asyncio.sleep(0.01)
            task.cancel()
        return asked

    asyncio.run(scene())
    assert waited(disk.broker.answer(send_request("T", b"next"))).code is ResponseCode.SUCCESS
    assert bodies(disk.broker, "T") == [b"x", b"stays", b"next"]


async def _awaited(answer):
    return await answer


def test_what_comes_from_aside_is_given_up_with_its_answer(disk):
    passed_on: Deferred[Response] = Deferred()

    def handle(*_):
        check_may_wait()
        return passed_on

    broker = disk.broker
    answering = Answering(
        broker.store,
        (broker.topics, broker.groups),
        SendDeadlines(broker.clock),
        handle,
        broker._hold,
        Refusals(),
        lambda *_: None,
    )
    answer = answering.answer(heartbeat("g"), REMOTE, lambda begin: begin())
    assert isinstance(answer, Deferred)
    answering.close()
    assert not answer.is_done
    assert answer.cancel()
    assert passed_on.is_done


def test_after_the_end_everything_is_refused_at_once(disk):
    disk.broker.close()
    for request in (
        send_request("T"),
        send_request("new"),
        heartbeat("g"),
        pull_request("T", 9, 60_000),
        lock(0),
    ):
        answer = disk.broker.answer(request, REMOTE)
        assert isinstance(answer, Response)
        assert answer.code is ResponseCode.SERVICE_NOT_AVAILABLE


def test_every_answer_comes_however_the_close_meets_the_requests(tmp_path):
    for round_number in range(5):
        disk = Disk(tmp_path / f"s{round_number}")
        answers, begin = [], threading.Event()

        def ask(number, broker=disk.broker, answers=answers, begin=begin):
            peer = Peer(f"p{number}", REMOTE.host, is_remote=True)
            for turn in range(60):
                topic = f"new{number}-{turn}" if turn % 20 == 19 else "T"
                answers.append(broker.answer(send_request(topic), peer))
                answers.append(broker.answer(pull_request("T", 10_000, hold_ms=60_000), peer))
                if turn == 20:
                    begin.set()

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        wait_for_event(begin, idle_s=20)
        disk.broker.close()
        for thread in threads:
            join_thread(thread, idle_s=20)
        codes = [waited(answer).code for answer in answers]
        assert len(codes) == 3 * 120
        acknowledged = codes.count(ResponseCode.SUCCESS)
        with Broker.open(tmp_path / f"s{round_number}", background=False) as broker:
            stored = sum(queue.max_offset - queue.min_offset for queue in broker.store.queues())
        assert stored >= 1 + acknowledged
