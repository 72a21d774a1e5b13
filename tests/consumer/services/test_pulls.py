"""When a queue is pulled next; what is done where a broker refuses, is silent, or corrects the offset."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from typing_extensions import override

from seglog import sleep_ms
from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.push import PushConsumer
from seglog.errors import InvalidArgumentError
from seglog.remoting.bodies import TopicRouteBody
from seglog.remoting.codes import PullFlag, RequestCode, ResponseCode
from seglog.remoting.command import Request, Response, expect_header
from seglog.remoting.headers import PullMessageHeader, PullMessageResponseHeader
from seglog.remoting.later import Deferred
from seglog.storage.format.record.message import Message
from tests.support.consumers import Send
from tests.support.recording import RecordingLink

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
PULL = RequestCode.PULL_MESSAGE


class ScriptedLink(RecordingLink):
    """A link that loses pulls of queue 0 of T, as long as that is set."""

    loses_pulls = False

    @override
    def ask(
        self, request: Request, timeout_ms: float | None = None, to: str | None = None
    ) -> Deferred[Response]:
        if self.loses_pulls and request.code == PULL and place(request) == ("T", 0):
            self.asked.append(((self.clock.monotonic_ms() - self._made_ms) / 1000, request))
            return Deferred()
        return super().ask(request, timeout_ms, to)


def place(request: Request) -> tuple[str, int]:
    header = expect_header(request, PullMessageHeader)
    return header.topic, header.queue_id


def pulls(link: RecordingLink) -> list[tuple[float, int]]:
    """Returns when queue 0 of T was pulled, in seconds, and from which offset on."""
    return [
        (moment, expect_header(request, PullMessageHeader).queue_offset)
        for moment, request in link.asked
        if request.code == PULL and place(request) == ("T", 0)
    ]


@pytest.fixture
def link(broker: Broker) -> Iterator[ScriptedLink]:
    made = ScriptedLink(broker, "127.0.0.1@1#one")
    yield made
    made.close()


@BOTH
def test_s4_16_a_queue_is_pulled_while_its_consumer_runs_is_not_suspended_and_has_it(
    broker: Broker, link: ScriptedLink, send: Send, kind: Any
):
    seen: list[int] = []
    send(1)
    consumer = kind(link, "g", "T", lambda message: seen.append(message.queue_offset))
    broker.advance("5s")
    assert pulls(link) == [], "it is not started"
    consumer.start()
    broker.advance(0)
    assert [offset for _moment, offset in pulls(link)] == [0, 1]
    consumer.suspend()
    send(1)
    broker.advance(0)
    assert seen == [0, 1], "the pull that was on its way"
    asked = len(pulls(link))
    send(1)
    broker.advance("1m")
    assert (seen, len(pulls(link))) == ([0, 1], asked)
    assert "it is suspended" in consumer._member.why_busy()
    consumer.resume()
    broker.advance("1s")
    assert seen == [0, 1, 2]
    consumer.close()
    asked = len(pulls(link))
    send(1)
    broker.advance("1m")
    assert len(pulls(link)) == asked


@BOTH
def test_s4_18_what_is_done_is_committed_with_the_next_pull(
    broker: Broker, link: ScriptedLink, send: Send, kind: Any
):
    link.cut = {RequestCode.UPDATE_CONSUMER_OFFSET}
    send(3)
    consumer = kind(link, "g", "T", lambda _message: None)
    consumer.start()
    broker.advance(0)
    send(1)
    broker.advance(0)
    assert broker.offsets.query("g", "T", 0) == 3
    asked = [expect_header(one, PullMessageHeader) for one in link.pulls if place(one) == ("T", 0)]
    last = asked[-1]
    assert (last.sys_flag & PullFlag.COMMIT_OFFSET, last.commit_offset) == (PullFlag.COMMIT_OFFSET, 3)
    consumer.close()


@BOTH
@pytest.mark.parametrize(
    ("spoil", "wait_s"),
    [
        ("no answer", 1.0),
        (ResponseCode.SYSTEM_ERROR, 1.0),
        (ResponseCode.NO_PERMISSION, 1.0),
        (ResponseCode.SUBSCRIPTION_NOT_LATEST, 1.0),
        (ResponseCode.FLOW_CONTROL, 0.02),
    ],
)
def test_s4_20_a_pull_that_fails_is_asked_again_in_a_second_and_an_overloaded_broker_in_20_ms(
    broker: Broker, link: ScriptedLink, send: Send, kind: Any, spoil: Any, wait_s: float
):
    send(1)
    if spoil == "no answer":
        link.cut = {PULL}
    else:
        link.refused, link.refusal = {PULL}, spoil
    seen: list[int] = []
    consumer = kind(link, "g", "T", lambda message: seen.append(message.queue_offset))
    consumer.start()
    broker.advance(int(2_500 * wait_s))
    assert pulls(link) == [(0, 0), (wait_s, 0), (2 * wait_s, 0)]
    link.cut, link.refused = set(), set()
    broker.advance(int(1_000 * wait_s))
    assert seen == [0]
    consumer.close()


@pytest.mark.parametrize(
    ("refusal", "level"),
    [(ResponseCode.SUBSCRIPTION_NOT_LATEST, logging.DEBUG), (ResponseCode.SYSTEM_ERROR, logging.WARNING)],
)
def test_s4_20_that_a_subscription_is_on_its_way_is_said_softly(
    broker: Broker,
    link: ScriptedLink,
    send: Send,
    caplog: pytest.LogCaptureFixture,
    refusal: ResponseCode,
    level: int,
):
    caplog.set_level(logging.DEBUG, "seglog.consumer.pulling")
    send(1)
    link.refused, link.refusal = {PULL}, refusal
    consumer = PushConsumer(link, "g", "T", lambda _message: None)
    consumer.start()
    broker.advance(0)
    levels = {one.levelno for one in caplog.records if "is pulled again in 1000 ms" in one.getMessage()}
    assert levels == {level}
    consumer.close()


def test_s4_22_after_messages_the_next_pull_waits_the_interval_and_else_it_does_not(
    broker: Broker, link: ScriptedLink, send: Send
):
    """The codes of the tags Aa and BB are one, so what the broker finds may be nothing that is wanted."""
    for tags in ("Aa", "Aa", "BB", "BB", "Aa"):
        send(1, tags=tags)
    seen: list[int] = []
    consumer = PushConsumer(
        link,
        "g",
        {"T": "Aa"},
        lambda message: seen.append(message.queue_offset),
        pull_count=1,
        pull_interval_ms=300,
    )
    consumer.start()
    broker.advance("2s")
    assert pulls(link) == [(0, 0), (0.3, 1), (0.6, 2), (0.6, 3), (0.6, 4), (0.9, 5)]
    assert seen == [0, 1, 4]
    info = consumer._member.running_info()
    assert info.rates["T"].pulled_per_s == 3 / 60, "what was filtered here is not counted"
    consumer.close()


def test_s4_22_without_an_interval_the_next_pull_comes_at_once(
    broker: Broker, link: ScriptedLink, send: Send
):
    send(5)
    consumer = PushConsumer(link, "g", "T", lambda _message: None, pull_count=2)
    consumer.start()
    broker.advance(0)
    assert pulls(link) == [(0, 0), (0, 2), (0, 4), (0, 5)]
    consumer.close()


def test_s4_23_where_nothing_is_wanted_the_offset_goes_on_at_once_unless_something_is_cached(
    broker: Broker, link: ScriptedLink, send: Send
):
    async def listener(_message: Message) -> None:
        await sleep_ms(60_000)

    send(1, tags="A")
    send(40, tags="B")
    consumer = PushConsumer(link, "g", {"T": "A"}, listener, pull_interval_ms=5_000)
    consumer.start()
    broker.advance("15s")
    assert pulls(link)[-1][1] == 41
    assert broker.offsets.query("g", "T", 0) == 0, "the first one is at work"
    broker.advance("50s")
    assert broker.offsets.query("g", "T", 0) == 41
    moment = pulls(link)[-1][0]
    send(40, tags="B")
    broker.advance("10s")
    consumer.commit()
    assert broker.offsets.query("g", "T", 0) == 81 or pulls(link)[-1] == (moment, 41), "or the pull is held"
    consumer.close()


@BOTH
def test_s4_24_frozen_the_queue_goes_on_at_once_and_what_ends_late_is_not_committed(
    broker: Broker, link: ScriptedLink, send: Send, kind: Any
):
    seen: list[int] = []

    async def listener(message: Message) -> None:
        seen.append(message.queue_offset)
        await sleep_ms(20_000)

    send(4)
    consumer = kind(link, "g", "T", listener, threads=1, offset_illegal="freeze", pull_count=1)
    consumer.start()
    broker.advance("1s")
    assert seen == [0]
    broker.offsets.reset("g", "T", 0, 3)
    send(1)
    broker.advance(0)
    assert broker.offsets.query("g", "T", 0) == 3, "at once"
    broker.advance("19s")
    consumer.commit()
    assert broker.offsets.query("g", "T", 0) == 3, "offset 0 has ended meanwhile"
    broker.advance("1s")
    assert seen == [0, 3]
    broker.advance("1m")
    consumer.commit()
    assert (seen, broker.offsets.query("g", "T", 0)) == ([0, 3, 4], 5)
    consumer.close()


@BOTH
def test_s4_24_dropped_the_queue_goes_on_after_10_s_from_where_the_broker_says(
    broker: Broker, link: ScriptedLink, send: Send, clock: VirtualClock, kind: Any
):
    seen: list[tuple[int, int]] = []
    began_ms = clock.now_ms()
    send(3)
    broker.offsets.commit("g", "T", 0, 99)
    consumer = kind(
        link,
        "g",
        "T",
        lambda message: seen.append((clock.now_ms() - began_ms, message.queue_offset)),
        offset_illegal="drop",
    )
    consumer.start()
    broker.advance(9_999)
    send(1)
    assert (seen, broker.offsets.query("g", "T", 0)) == ([], 99)
    broker.advance(1)
    assert broker.offsets.query("g", "T", 0) == 3
    broker.advance(1_000)
    assert [offset for _moment, offset in seen] == [3]
    assert seen[0][0] >= 10_000
    consumer.close()
    assert broker.offsets.query("g", "T", 0) == 4


@BOTH
def test_s4_24_a_close_before_the_10_s_are_over_leaves_the_offset(
    broker: Broker, link: ScriptedLink, send: Send, kind: Any
):
    send(3)
    broker.offsets.commit("g", "T", 0, 99)
    consumer = kind(link, "g", "T", lambda _message: None, offset_illegal="drop")
    consumer.start()
    broker.advance("5s")
    consumer.close()
    broker.advance("1m")
    assert broker.offsets.query("g", "T", 0) == 99


@pytest.mark.parametrize("wrong", ["", "DROP", None, 5])
def test_s4_24_the_way_is_one_of_two(broker: Broker, wrong: Any):
    with pytest.raises(InvalidArgumentError, match="offset_illegal"):
        PushConsumer(broker, "g", "T", print, offset_illegal=wrong)


@BOTH
def test_s4_35_a_queue_that_was_not_pulled_for_120_s_is_taken_anew(
    broker: Broker, link: ScriptedLink, send: Send, caplog: pytest.LogCaptureFixture, kind: Any
):
    seen: list[int] = []
    send(2)
    link.loses_pulls = True
    consumer = kind(link, "g", "T", lambda message: seen.append(message.queue_offset))
    consumer.start()
    broker.advance("120s")
    assert pulls(link) == [(0, 0)], "one pull, which has no answer"
    link.loses_pulls = False
    broker.advance("22s")
    assert seen == [0, 1]
    assert "group g takes queue 0 of T at broker-a again" in caplog.text
    consumer.close()


@BOTH
def test_s4_35_a_queue_that_is_held_full_or_suspended_is_not_lost(
    broker: Broker, link: ScriptedLink, send: Send, caplog: pytest.LogCaptureFixture, kind: Callable[..., Any]
):
    async def listener(_message: Message) -> None:
        await sleep_ms(1_000_000)

    send(5)
    consumer = kind(link, "g", "T", listener, max_cached=1, pull_count=2, threads=1)
    consumer.start()
    broker.advance("5m")
    consumer.suspend()
    broker.advance("5m")
    assert "takes queue 0 of T at broker-a again" not in caplog.text
    broker.advance("2h")
    consumer.close()


class SuggestingLink(RecordingLink):
    """A link to a broker that seems to have a slave, and that suggests who is to be pulled from next."""

    SLAVE = "127.0.0.2:10911"

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, "127.0.0.1@1#one")
        self.suggested = [1, 1, 0]
        self.pulled: list[str | None] = []

    @override
    def ask(
        self, request: Request, timeout_ms: float | None = None, to: str | None = None
    ) -> Deferred[Response]:
        answer = super().ask(request, timeout_ms, to)
        if request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            return self.edited(answer, self.with_slave)
        if request.code == PULL and place(request) == ("T", 0):
            self.pulled.append(to)
            return self.edited(answer, self.with_suggestion)
        return answer

    @staticmethod
    def edited(answer: Deferred[Response], edit: Callable[[Response], Response]) -> Deferred[Response]:
        found: Deferred[Response] = Deferred()
        answer.then(lambda _: found.resolve(edit(answer.result())))
        return found

    def with_slave(self, answer: Response) -> Response:
        if not isinstance(answer.body, TopicRouteBody):
            return answer
        brokers = tuple(
            replace(one, broker_addresses={**one.broker_addresses, 1: self.SLAVE})
            for one in answer.body.brokers
        )
        return replace(answer, body=replace(answer.body, brokers=brokers))

    def with_suggestion(self, answer: Response) -> Response:
        header = expect_header(answer, PullMessageResponseHeader)
        suggested = self.suggested.pop(0) if self.suggested else 0
        return replace(answer, header=replace(header, suggest_which_broker_id=suggested))


@BOTH
def test_s4_19_the_next_pull_goes_to_the_broker_that_the_last_one_suggested(
    broker: Broker, send: Send, kind: Any
):
    send(4)
    link = SuggestingLink(broker)
    consumer = kind(link, "g", "T", lambda _message: None, pull_count=1)
    consumer.start()
    broker.advance(0)
    master = link.pulled[0]
    assert master not in (None, link.SLAVE)
    assert link.pulled == [master, link.SLAVE, link.SLAVE, master, master]
    assert consumer.counts.delivered == 4
    consumer.close()
    link.close()
