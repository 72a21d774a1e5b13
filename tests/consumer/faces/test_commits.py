"""A commit that an application asks for is taken, or an error; those that are due by time are in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from seglog import (
    AsyncLitePullConsumer,
    AsyncOrderlyConsumer,
    AsyncPushConsumer,
    ConsumeFrom,
    LitePullConsumer,
    Message,
    OrderlyConsumer,
    PushConsumer,
    sleep_ms,
)
from seglog.errors import (
    AskTimeoutError,
    ClientClosedError,
    CommitError,
    ConsumerError,
    FencedError,
    RemoteProtocolError,
    Uncommitted,
    error_classes,
)
from seglog.remoting.codes import RequestCode, ResponseCode
from seglog.testing import VirtualBroker
from tests.support.faces import driven
from tests.support.recording import RecordingLink

LISTENING = [OrderlyConsumer, PushConsumer, AsyncOrderlyConsumer, AsyncPushConsumer]
POLLED = [LitePullConsumer, AsyncLitePullConsumer]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[VirtualBroker]:
    with VirtualBroker.at(tmp_path / "s") as opened:
        for queue_id in range(2):
            for number in range(3):
                opened.producer().send("T", b"%d" % number, queue_id=queue_id)
        yield opened


def consumed(kind: Callable[..., Any], broker: VirtualBroker, consumer: Any) -> None:
    if kind in POLLED:
        while consumer.poll():
            pass
    else:
        consumer.start()
        broker.advance("1s")


@pytest.mark.parametrize("kind", [*LISTENING, *POLLED])
def test_what_no_broker_takes_is_an_error_of_commit_and_a_line_of_the_log_for_those_by_time(
    broker: VirtualBroker, kind: Any, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.WARNING, "seglog")
    link = RecordingLink(broker, "c1")
    listener = () if kind in POLLED else (lambda _message: None,)
    with driven(kind, link, "g", "T", *listener) as consumer:
        consumed(kind, broker, consumer)
        link.refused, link.refusal = {RequestCode.UPDATE_CONSUMER_OFFSET}, ResponseCode.SYSTEM_BUSY
        with pytest.raises(CommitError, match=r"group g is not committed everywhere: .*not now") as error:
            consumer.commit()
        assert error.value.is_retryable
        assert {(one.topic, one.queue_id, one.queue_offset) for one in error.value.failures} >= {
            ("T", 0, 3),
            ("T", 1, 3),
        }
        assert "not now" not in caplog.text, "what is raised is not logged too"
        link.refused = {RequestCode.UPDATE_CONSUMER_OFFSET, RequestCode.PULL_MESSAGE}
        broker.advance("10s")
        assert "is not committed at 3" in caplog.text
        link.refused = set()
        consumer.commit()
        assert [broker.offsets.query("g", "T", queue_id) for queue_id in range(2)] == [3, 3]
        broker.close()
        with pytest.raises(ClientClosedError, match="the broker in this process was closed"):
            consumer.commit()


def test_what_one_broker_refuses_keeps_no_other_queue_from_its_commit(broker: VirtualBroker):
    link = RecordingLink(broker, "c1")
    with PushConsumer(link, "g", {"T": "*", "U": "*"}, lambda _message: None) as consumer:
        broker.producer().send("U", b"x", queue_id=0)
        consumer.start()
        broker.advance("1s")
        assert consumer.counts.delivered == 7
        broker.topics.delete("U")
        with pytest.raises(CommitError, match="Topic U not exist") as error:
            consumer.commit()
        assert {one.topic for one in error.value.failures} == {"U"}
        assert not error.value.is_retryable
        assert [broker.offsets.query("g", "T", queue_id) for queue_id in range(2)] == [3, 3]


def test_errors_are_retryable_fenced_or_fatal():
    busy = RemoteProtocolError(ResponseCode.SYSTEM_BUSY, "busy")
    unknown = RemoteProtocolError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "no group")
    fenced = FencedError("another member has it")
    late = AskTimeoutError("no answer")

    def commit_of(*errors: Any) -> CommitError:
        return CommitError("g", tuple(Uncommitted("T", "b", 0, 7, error) for error in errors))

    assert [one.is_retryable for one in (busy, late, unknown, fenced)] == [True, True, False, False]
    assert commit_of(busy, late, fenced).is_retryable
    assert not commit_of(busy, unknown).is_retryable
    assert isinstance(fenced, ConsumerError)
    assert isinstance(commit_of(busy), ConsumerError)
    retryable = {kind.__name__ for kind in error_classes() if kind.is_retryable}
    assert retryable == {
        "AskLimitError",
        "AskTimeoutError",
        "BrokerNotFoundError",
        "CannotConnectError",
        "ConnectionEndedError",
        "FullError",
    }


def test_who_gave_a_queue_up_while_its_listener_was_at_work_moves_no_other_back(broker: VirtualBroker):
    async def slow(_: Message) -> None:
        await sleep_ms(600_000)

    seen: list[bytes] = []
    second = PushConsumer(
        broker.link(), "g", "T", lambda message: seen.append(message.body), consume_from=ConsumeFrom.FIRST
    )
    first = PushConsumer(broker.link(), "g", "T", slow, threads=2, consume_from=ConsumeFrom.FIRST)
    with second:
        first.start()
        broker.advance("10s")
        second.start()
        broker.advance("2m")  # the first one is still at a message of each queue that the second one has
        assert len(seen) == 6
        for by in ("1s", "11m", "20m"):
            broker.advance(by)
            assert [broker.offsets.query("g", "T", queue_id) for queue_id in range(2)] == [3, 3]
    with suppress(TimeoutError):
        first.close(0)
