"""In order: what a listener says commits, has come again, or waits; by itself, or when it says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seglog.broker.broker import Broker
from seglog.clock import VirtualClock
from seglog.consumer.listener import Consume
from seglog.consumer.orderly import OrderlyConsumer
from seglog.remoting.codes import RequestCode
from tests.support.consumers import Send
from tests.support.recording import recording

SUSPEND = Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT
Script = list[tuple[Consume | None, bool, float]]


class Scripted:
    """A listener that answers what it is told to, and notes what it got and when."""

    def __init__(self, clock: VirtualClock, script: Script):
        self.script = script
        self.calls: list[tuple[int, list[int]]] = []
        self.times: list[int] = []
        self._clock = clock
        self._began_ms = clock.now_ms()

    def __call__(self, messages: Any, context: Any) -> Consume | None:
        given = [message.queue_offset for message in messages]
        self.calls.append((self._clock.now_ms() - self._began_ms, given))
        self.times.append(messages[0].reconsume_times)
        said, context.auto_commit, context.suspend_ms = (
            self.script.pop(0) if self.script else (None, True, -1)
        )
        return said


@pytest.fixture
def scripted(broker: Broker, clock: VirtualClock) -> Callable[..., tuple[OrderlyConsumer, Scripted]]:
    def scripted(script: Script, **options: Any) -> tuple[OrderlyConsumer, Scripted]:
        listener = Scripted(clock, script)
        consumer = OrderlyConsumer(broker, "g", "T", listener, **{"batch_size": 2, **options})
        consumer.start()
        return consumer, listener

    return scripted


def committed(broker: Broker, consumer: OrderlyConsumer) -> int | None:
    consumer.commit()
    return broker.offsets.query("g", "T", 0)


def without(bad: bytes) -> Callable[[bytes], bytes]:
    """Returns what decodes all bodies but one."""

    def decode(body: bytes) -> bytes:
        if body == bad:
            raise ValueError("it is no such body")
        return body

    return decode


def dead(broker: Broker) -> list[int]:
    if broker.topics.get("%DLQ%g") is None:
        return []
    return [int(message.body) for message in broker.store.get("%DLQ%g", 0, 0, 32).messages]


def test_s2_23_a_success_commits_up_to_the_last_message(broker: Broker, send: Send, scripted: Any):
    send(4)
    consumer, listener = scripted([(None, True, -1), (SUSPEND, True, -1)])
    broker.advance(0)
    assert [given for _moment, given in listener.calls] == [[0, 1], [2, 3]]
    assert committed(broker, consumer) == 2
    consumer.close()


@pytest.mark.parametrize("said", [Consume.COMMIT, Consume.ROLLBACK])
def test_s2_23_where_it_commits_by_itself_both_ends_of_a_transaction_are_successes_with_a_warning(
    broker: Broker, send: Send, scripted: Any, caplog: pytest.LogCaptureFixture, said: Consume
):
    send(6)
    consumer, listener = scripted([(said, True, -1)] * 3)
    broker.advance(0)
    assert len(listener.calls) == 3
    assert committed(broker, consumer) == 6
    assert caplog.text.count(f"returned {said}, which is taken for a success") == 1
    consumer.close()


@pytest.mark.parametrize("said", [Consume.COMMIT, Consume.ROLLBACK])
def test_s2_23_that_holds_without_a_context_too(
    broker: Broker, send: Send, caplog: pytest.LogCaptureFixture, said: Consume
):
    send(2)
    with OrderlyConsumer(broker, "g", "T", lambda _message: said) as consumer:
        assert consumer.run_until_idle() == 2
    assert broker.offsets.query("g", "T", 0) == 2
    assert "is taken for a success" in caplog.text


@pytest.mark.parametrize(
    ("suspend_ms", "waited_ms"), [(-1, 1_000), (5, 10), (0, 10), (10, 10), (250.0, 250), (99_999, 30_000)]
)
def test_s2_23_a_suspended_batch_comes_again_alone_after_a_time_within_bounds(
    broker: Broker, send: Send, scripted: Any, suspend_ms: float, waited_ms: int
):
    send(3)
    consumer, listener = scripted([(SUSPEND, True, suspend_ms)])
    broker.advance(waited_ms - 1)
    assert listener.calls == [(0, [0, 1])]
    broker.advance(1)
    assert listener.calls == [(0, [0, 1]), (waited_ms, [0, 1]), (waited_ms, [2])]
    assert listener.times == [0, 1, 0]
    assert committed(broker, consumer) == 3
    consumer.close()


def test_s2_23_after_its_last_attempt_a_batch_is_given_up_and_the_queue_goes_on_at_once(
    broker: Broker, send: Send, scripted: Any
):
    send(3)
    consumer, listener = scripted([(SUSPEND, True, -1)] * 2, max_reconsume_times=1)
    broker.advance(1_000)
    assert listener.calls == [(0, [0, 1]), (1_000, [0, 1]), (1_000, [2])]
    assert (dead(broker), committed(broker, consumer)) == ([0, 1], 3)
    consumer.close()


def test_s2_24_a_success_commits_nothing_until_a_commit_ends_all_of_them(
    broker: Broker, send: Send, scripted: Any
):
    send(6)
    script: Script = [(None, False, -1), (Consume.SUCCESS, False, -1), (SUSPEND, False, -1)]
    consumer, listener = scripted([*script, (Consume.COMMIT, False, -1)])
    broker.advance(0)
    assert [given for _moment, given in listener.calls] == [[0, 1], [2, 3], [4, 5]], "it goes on all the same"
    assert (committed(broker, consumer), consumer.counts.delivered) == (0, 0)
    broker.advance(1_000)
    assert listener.calls[3:] == [(1_000, [4, 5])], "what succeeded does not come again"
    assert (committed(broker, consumer), consumer.counts.delivered) == (6, 6)
    consumer.close()


def test_s2_24_a_rollback_has_all_come_again_that_is_not_committed(broker: Broker, send: Send, scripted: Any):
    send(6)
    script: Script = [(Consume.COMMIT, False, -1), (None, False, -1), (Consume.ROLLBACK, False, 400)]
    consumer, listener = scripted([*script, (None, False, -1), (Consume.COMMIT, False, -1)])
    broker.advance(399)
    assert committed(broker, consumer) == 2
    broker.advance(1)
    assert listener.calls[3:] == [(400, [2, 3]), (400, [4, 5])]
    assert set(listener.times) == {0}, "none of them has failed"
    assert committed(broker, consumer) == 6
    consumer.close()


def test_s2_24_what_is_given_up_is_committed_with_the_next_commit(broker: Broker, send: Send, scripted: Any):
    send(4)
    consumer, listener = scripted([(SUSPEND, False, -1), (None, False, -1)], max_reconsume_times=0)
    broker.advance(0)
    assert [given for _moment, given in listener.calls] == [[0, 1], [2, 3]]
    assert (dead(broker), committed(broker, consumer)) == ([0, 1], 0)
    listener.script.append((Consume.COMMIT, False, -1))
    send(1)
    broker.advance(0)
    assert committed(broker, consumer) == 5
    consumer.close()


def test_s2_24_what_is_given_up_without_being_given_is_committed_with_the_next_commit(
    broker: Broker, send: Send, scripted: Any
):
    """The listener has had no context for it: a transaction that is open stays open."""
    send(4)
    open_: Script = [(None, False, -1)] * 3
    consumer, listener = scripted(open_, max_reconsume_times=0, decode=without(b"1"))
    broker.advance(0)
    assert [given for _moment, given in listener.calls] == [[0], [2, 3]]
    assert (dead(broker), committed(broker, consumer)) == ([1], 0)
    listener.script[:] = [(Consume.COMMIT, False, -1)]
    send(1)
    broker.advance(0)
    assert committed(broker, consumer) == 5
    consumer.close()


def test_s2_24_what_is_given_up_without_being_given_is_committed_where_nothing_is_open(
    broker: Broker, send: Send, scripted: Any
):
    send(3)
    consumer, listener = scripted([], max_reconsume_times=0, decode=without(b"2"))
    broker.advance(0)
    assert [given for _moment, given in listener.calls] == [[0, 1]]
    assert (dead(broker), committed(broker, consumer)) == ([2], 3)
    consumer.close()


def test_s2_24_what_was_not_committed_comes_again_in_the_next_life(broker: Broker, send: Send, scripted: Any):
    send(4)
    consumer, _listener = scripted([(Consume.COMMIT, False, -1), (None, False, -1)])
    broker.advance(0)
    assert "2 messages wait for a COMMIT" in " ".join(consumer._member.why_busy())
    consumer.close()
    heir, seen = scripted([])
    broker.advance("1s")
    assert [given for _moment, given in seen.calls] == [[2, 3]]
    heir.close()


@pytest.mark.parametrize("said", [Consume.COMMIT, Consume.ROLLBACK])
def test_side_by_side_there_is_no_transaction(
    broker: Broker, send: Send, caplog: pytest.LogCaptureFixture, said: Consume
):
    from seglog.consumer.push import PushConsumer

    send(1)
    with PushConsumer(broker, "g", "T", lambda _message: said) as consumer:
        consumer.run_until_idle()
        assert consumer.counts.failed == 1
    assert "expected None or one of Consume: SUCCESS" in caplog.text


def test_s2_25_the_fourth_failure_of_three_is_a_dead_letter_by_way_of_the_retry_topic(
    broker: Broker, send: Send, clock: VirtualClock
):
    listener = Scripted(clock, [(SUSPEND, True, -1)] * 4)
    send(2)
    with recording(broker) as link:
        consumer = OrderlyConsumer(link, "g", "T", listener, max_reconsume_times=3, batch_size=1_024)
        consumer.start()
        broker.advance("2s")
        assert dead(broker) == []
        broker.advance("1s")
        (first, second) = [
            request for _moment, request in link.asked if request.code == RequestCode.SEND_MESSAGE_V2
        ]
        assert {getattr(sent.header, "topic", None) for sent in (first, second)} == {"%RETRY%g"}
        assert (listener.times, dead(broker)) == ([0, 1, 2, 3], [0, 1])
        assert committed(broker, consumer) == 2
        consumer.close()


def test_s2_25_without_a_number_a_batch_blocks_its_queue_for_ever(broker: Broker, send: Send, scripted: Any):
    send(3)
    consumer, listener = scripted([(SUSPEND, True, -1)] * 10_000)
    broker.advance("1h")
    assert {tuple(given) for _moment, given in listener.calls} == {(0, 1)}
    assert listener.times[-1] == 3_600
    assert (dead(broker), committed(broker, consumer)) == ([], 0)
    consumer.close()
