"""Requests wait in lanes, take turns, and are turned away in RocketMQ's words where they cannot be served."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from typing_extensions import override

from seglog.complaints import Complaints
from seglog.remoting.codec import Asked
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.remoting.command import Request, Response
from seglog.server.limits import ServerLimits
from seglog.server.processors import Processors, Queued, Waits

SEND, PULL, OTHER = RequestCode.SEND_MESSAGE_V2, RequestCode.PULL_MESSAGE, RequestCode.GET_MAX_OFFSET


class Cranked:
    """A loop whose time and turns the test makes."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.called: list[Callable[[], None]] = []

    def time(self) -> float:
        return self.now_s

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.called.append(callback)

    def turn(self) -> None:
        called, self.called = self.called, []
        for each in called:
            each()


class Client(Waits):
    """Notes what becomes of its requests; each that is served takes a time."""

    def __init__(self, name: str, loop: Cranked, served: list[str], each_ms: float = 0.1) -> None:
        self.name = name
        self.loop = loop
        self.served = served
        self.each_ms = each_ms
        self.is_reading = True
        self.refused: list[Response] = []
        self.queued = Queued(self)

    @property
    @override
    def takes_answers(self) -> bool:
        return self.is_reading

    @override
    def serve(self, asked: Asked) -> None:
        self.loop.now_s += self.each_ms / 1_000
        self.served.append(f"{self.name}{asked.opaque}")

    @override
    def turn_away(self, asked: Asked, answer: Response) -> None:
        self.refused.append(answer)


class Scene:
    def __init__(self, **limits: int) -> None:
        self.loop, self.served = Cranked(), []
        self.processors = Processors(
            self.loop, ServerLimits(**limits), Complaints(logging.getLogger(__name__), self.loop.time)
        )
        self.opaque = 0

    def client(self, name: str, each_ms: float = 0.1) -> Client:
        return Client(name, self.loop, self.served, each_ms)

    def ask(self, client: Client, code: RequestCode, count: int = 1, body: bytes = b"") -> None:
        for _ in range(count):
            self.opaque += 1
            self.processors.take(client.queued, Asked(self.opaque, Request(code, body=body)))

    def run(self) -> None:
        while self.loop.called:
            self.loop.turn()


def test_requests_of_one_kind_and_connection_keep_their_order():
    scene = Scene()
    client = scene.client("a")
    scene.ask(client, SEND, 500)
    scene.run()
    assert scene.served == [f"a{number}" for number in range(1, 501)]
    assert (scene.processors.count, client.queued.count, client.queued.waiting_bytes) == (0, 0, 0)


def test_a_pull_is_not_behind_the_sends_that_came_before_it():
    scene = Scene()
    producer, consumer = scene.client("p"), scene.client("c")
    scene.ask(producer, SEND, 2_000)
    scene.ask(consumer, PULL)
    scene.ask(consumer, OTHER)
    scene.run()
    assert max(scene.served.index("c2001"), scene.served.index("c2002")) <= 2 * 16 + 2
    assert len(scene.served) == 2_002


def test_a_client_that_asks_little_is_not_behind_one_that_asks_much():
    scene = Scene()
    greedy, modest = scene.client("g"), scene.client("m")
    scene.ask(greedy, SEND, 2_000)
    scene.ask(modest, SEND)
    scene.run()
    assert scene.served.index("m2001") <= 16


def test_a_turn_of_the_loop_serves_no_longer_than_its_time():
    scene = Scene(turn_ms=2)
    scene.ask(scene.client("a", each_ms=0.5), SEND, 10)
    scene.loop.turn()
    assert len(scene.served) == 4
    scene.loop.turn()
    assert len(scene.served) == 8


def test_s4_49_what_has_waited_for_too_long_is_not_carried_out():
    scene = Scene(send_wait_ms=200, pull_wait_ms=5_000)
    client = scene.client("a")
    scene.ask(client, SEND, 2)
    scene.ask(client, PULL)
    scene.loop.now_s += 0.25
    scene.run()
    assert scene.served == ["a3"]
    assert [each.code for each in client.refused] == [ResponseCode.SYSTEM_BUSY] * 2
    words = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 250ms, "
    assert [each.remark for each in client.refused] == [f"{words}size of queue: {n}" for n in (1, 0)]


def test_what_waits_is_shown_in_rocketmqs_words():
    scene = Scene(queued_sends=50, queued_others=70)
    first, second = scene.client("a"), scene.client("b")
    scene.ask(first, SEND, 2)
    scene.loop.now_s += 0.25
    scene.ask(second, SEND)
    scene.ask(second, OTHER)
    shown = scene.processors.figures()
    assert {name: number for name, number in shown.items() if name.startswith("send")} == {
        "sendThreadPoolQueueSize": "3",
        "sendThreadPoolQueueCapacity": "50",
        "sendThreadPoolQueueHeadWaitTimeMills": "250",
    }
    assert (shown["queryThreadPoolQueueSize"], shown["queryThreadPoolQueueCapacity"]) == ("1", "70")
    assert (shown["pullThreadPoolQueueSize"], shown["queryThreadPoolQueueHeadWaitTimeMills"]) == ("0", "0")
    scene.run()
    assert scene.processors.figures()["sendThreadPoolQueueSize"] == "0"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("waitTimeMillsInSendQueue", SEND),
        ("waitTimeMillsInPullQueue", PULL),
        ("waitTimeMillsInAdminBrokerQueue", OTHER),
    ],
)
def test_how_long_requests_may_wait_can_be_changed_while_they_wait(name, code):
    scene = Scene(send_wait_ms=100, pull_wait_ms=100, other_wait_ms=100)
    client = scene.client("a")
    for wait_ms in (150, 50):
        scene.ask(client, code)
        wait = scene.processors.waits()[name]
        wait.change(wait_ms)
        assert wait.now() == wait_ms
        scene.loop.now_s += 0.12
        scene.run()
    assert scene.served == ["a1"]
    assert [each.code for each in client.refused] == [ResponseCode.SYSTEM_BUSY]


@pytest.mark.parametrize(
    ("limits", "kind", "others"),
    [
        ({"queued_sends": 3}, SEND, (PULL, OTHER)),
        ({"queued_pulls": 3}, PULL, (SEND, OTHER)),
        ({"queued_others": 3}, OTHER, (SEND, PULL)),
    ],
)
def test_s4_49_a_full_queue_turns_away_its_own_kind_only(limits, kind, others):
    scene = Scene(**limits)
    client = scene.client("a")
    scene.ask(client, kind, 5)
    for other in others:
        scene.ask(client, other)
    scene.run()
    assert sorted(scene.served) == ["a1", "a2", "a3", "a6", "a7"]
    assert [(each.code, each.remark) for each in client.refused] == [
        (ResponseCode.SYSTEM_BUSY, "[OVERLOAD]system busy, start flow control for a while")
    ] * 2


def test_what_waits_of_all_has_a_size():
    scene = Scene(all_queued_bytes=10_000)
    first, second = scene.client("a"), scene.client("b")
    scene.ask(first, SEND, 2, bytes(4_000))
    scene.ask(second, SEND, 1, bytes(4_000))
    assert (len(first.refused), len(second.refused)) == (0, 1)
    scene.run()
    scene.ask(second, SEND, 1, bytes(4_000))
    scene.run()
    assert scene.served == ["a1", "a2", "b4"]


def test_a_client_that_reads_nothing_has_no_turn_until_it_reads_and_holds_up_no_other():
    scene = Scene()
    stuffed, other = scene.client("s"), scene.client("o")
    scene.ask(stuffed, PULL, 3)
    scene.ask(other, PULL, 3)
    stuffed.is_reading = False
    scene.run()
    assert scene.served == ["o4", "o5", "o6"]
    assert stuffed.queued.count == 3
    scene.ask(stuffed, PULL)
    scene.run()
    assert scene.served == ["o4", "o5", "o6"]
    stuffed.is_reading = True
    scene.processors.go_on(stuffed.queued)
    scene.run()
    assert scene.served[3:] == ["s1", "s2", "s3", "s7"]


def test_more_is_not_read_where_what_waits_takes_half_of_what_a_send_may_wait():
    scene = Scene(send_wait_ms=200)
    client, behind = scene.client("a", each_ms=1), []
    scene.ask(client, SEND, 60)
    scene.run()  # it is known now that one takes a millisecond
    for count in (80, 40):
        scene.ask(client, SEND, count)
        behind.append(scene.processors.is_behind)
    scene.run()
    assert [*behind, scene.processors.is_behind] == [False, True, False]
    assert not client.refused


def test_nothing_is_served_after_the_server_has_stopped():
    scene = Scene()
    scene.ask(scene.client("a"), SEND, 3)
    scene.processors.drop()
    scene.run()
    assert scene.served == []
    assert scene.processors.count == 0
