"""What every consumer has: a block that ends it well, close(timeout_s), and answers about where it is."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from seglog import (
    AsyncLitePullConsumer,
    AsyncOrderlyConsumer,
    AsyncPushConsumer,
    Broker,
    LitePullConsumer,
    Message,
    MessageQueue,
    OrderlyConsumer,
    Producer,
    PushConsumer,
)
from seglog.testing import VirtualBroker
from tests.support.consumers import until_idle
from tests.support.faces import driven
from tests.support.machine.patience import patience_s, wait_for_event

LISTENING = [OrderlyConsumer, PushConsumer, AsyncOrderlyConsumer, AsyncPushConsumer]
POLLED = [LitePullConsumer, AsyncLitePullConsumer]
QUEUE = MessageQueue("T", "broker-a", 0)


@pytest.mark.parametrize("kind", [*LISTENING, *POLLED])
def test_position_committed_and_lag_say_where_it_is_and_its_repr_what_it_is(tmp_path: Path, kind: Any):
    is_polled = kind in POLLED
    with VirtualBroker.at(tmp_path / "s") as broker:
        for number in range(5):
            broker.producer().send("T", b"%d" % number, queue_id=0)
        arguments: tuple[Any, ...] = () if is_polled else (lambda _message: None,)
        with driven(kind, broker.link(), "g", "T", *arguments) as consumer:
            assert consumer.lag() == {}, "it has no queue before it has joined its group"
            if is_polled:
                assert len(consumer.poll(count=2)) == 2
                assert (consumer.position(QUEUE), consumer.lag()[QUEUE]) == (2, 5)
                assert len(consumer.poll()) == 3
                consumer.commit()
            else:
                consumer.run_until_idle()
            assert (consumer.position(QUEUE), consumer.committed(QUEUE), consumer.lag()[QUEUE]) == (5, 5, 0)
            broker.producer().send("T", b"more", queue_id=0)
            assert consumer.lag()[QUEUE] == 1
            shown = repr(consumer.made)
            assert f"<{kind.__name__} g of client {consumer.client_id} with" in shown
        assert repr(consumer.made).endswith(" closed>")


@pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
@pytest.mark.parametrize("end", ["with", "close"])
def test_its_end_lets_a_listener_finish_commits_and_gives_the_locks_back(tmp_path: Path, kind: Any, end: str):
    has_one, may_go_on, seen = threading.Event(), threading.Event(), list[int]()

    def listen(message: Message) -> None:
        has_one.set()
        wait_for_event(may_go_on, idle_s=30)
        seen.append(message.queue_offset)

    with Broker.open(tmp_path / "s") as broker, Producer(broker) as producer:
        producer.send("T", b"x", queue_id=0)
        with driven(kind, broker, "g", "T", listen) as consumer:
            consumer.start()
            wait_for_event(has_one, idle_s=30)
            threading.Timer(0.05, may_go_on.set).start()
            if end == "close":
                consumer.close(timeout_s=patience_s(30))
        assert seen == [0]
        assert broker.offsets.query("g", "T", 0) == 1
        with OrderlyConsumer(broker, "g", "T", listen) as heir:
            assert until_idle(heir, idle_s=5) == 0, "nothing comes again, and no lock is waited for"
            assert QUEUE in heir.queues
