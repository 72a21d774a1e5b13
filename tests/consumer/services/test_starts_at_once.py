"""A consumer that is closed, or started again, before its start() has returned."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from seglog.broker.broker import Broker
from seglog.broker.settings.config import BrokerConfig
from seglog.client.connect import make_client
from seglog.client.home import Flow, start
from seglog.client.links.local_link import LocalLink
from seglog.consumer import member_parts
from seglog.consumer.lite.lite_pull import AsyncLitePullConsumer
from seglog.consumer.orderly import AsyncOrderlyConsumer, OrderlyConsumer
from seglog.consumer.push import AsyncPushConsumer, PushConsumer
from seglog.errors import ClientClosedError, ConsumerError
from seglog.producer.producer import Producer
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request, Response
from seglog.remoting.later import Deferred
from seglog.remoting.message_queue import MessageQueue
from seglog.remoting.subscription import Subscription
from seglog.storage.format.record.message import Message
from tests.support.consumers import until_idle, until_idle_in_loop
from tests.support.machine.patience import patience_s, wait_until_in_loop

BOTH = pytest.mark.parametrize("kind", [OrderlyConsumer, PushConsumer])
BOTH_AWAITED = pytest.mark.parametrize("kind", [AsyncOrderlyConsumer, AsyncPushConsumer])
ALL = {"T": Subscription.by_sql("TRUE")}
"""What a broker is asked about first, for which start() waits."""
ONCE = "a consumer can be started once"


@pytest.fixture
def real_broker(tmp_path: Path):
    """A broker on real time with one message, which filters by SQL92."""
    with Broker.open(tmp_path / "real", config=BrokerConfig(enable_property_filter=True)) as broker:
        with Producer(broker) as producer:
            producer.send("T", b"x")
        yield broker


class SlowLink(LocalLink):
    """A link in process whose answers about subscriptions wait until they are let through."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.let_through: list[Callable[[], object]] = []

    @override
    def ask(
        self, request: Request, timeout_ms: float | None = None, to: str | None = None
    ) -> Deferred[Response]:
        answer = super().ask(request, timeout_ms, to)
        if request.code != RequestCode.CHECK_CLIENT_CONFIG:
            return answer
        late: Deferred[Response] = Deferred()
        self.let_through.append(lambda: answer.then(lambda known: late.resolve(known.result())))
        return late


def listener(_message: Message) -> None:
    """Is done with anything."""


async def asked(link: SlowLink, count: int) -> None:
    """Waits until so many answers wait to be let through."""
    await wait_until_in_loop(lambda: len(link.let_through) >= count)


@BOTH
def test_a_listener_that_closes_its_consumer_before_start_has_returned_is_refused(
    real_broker: Broker, monkeypatch: pytest.MonkeyPatch, kind: Any
):
    errors: list[Exception] = []
    real_start = start

    def start_and_be_interrupted(*args: Any) -> Flow[Any]:
        flow = real_start(*args)
        time.sleep(0.1)  # as a thread is that the machine has no time for
        return flow

    async def closing(_message: Message) -> None:
        try:
            consumer.close()
        except ConsumerError as error:
            errors.append(error)

    with kind(real_broker, "g", "T", closing) as consumer:
        with monkeypatch.context() as patch:
            patch.setattr(member_parts, "start", start_and_be_interrupted)
            consumer.start()
        until_idle(consumer)
        assert "close() was called by a listener" in str(errors[0])
        assert real_broker.clients.consumers("g") is not None
    assert real_broker.offsets.query("g", "T", 0) in (0, 1)


@BOTH_AWAITED
def test_one_that_is_closed_while_start_waits_for_a_broker_does_not_join(real_broker: Broker, kind: Any):
    async def main() -> None:
        link = SlowLink(real_broker)
        async with make_client(link) as client:
            consumer = kind(client, "g", ALL, listener)
            starting = asyncio.create_task(consumer.start())
            await asked(link, 1)
            await consumer.close()
            link.let_through[0]()
            with pytest.raises(ConsumerError, match=ONCE):
                await starting
            assert consumer.queues == ()
            async with kind(client, "g", "T", listener) as other:  # the group is free
                await until_idle_in_loop(other)
                assert other.counts.delivered == 1
        link.close()

    asyncio.run(main())
    assert real_broker.clients.consumers("g") is None


@BOTH_AWAITED
def test_two_starts_at_once_are_one(real_broker: Broker, kind: Any):
    async def main() -> None:
        link = SlowLink(real_broker)
        async with kind(link, "g", ALL, listener) as consumer:
            starts = [asyncio.create_task(consumer.start()) for _ in range(2)]
            await asked(link, 1)  # both wait for one answer
            link.let_through[0]()
            outcomes = await asyncio.gather(*starts, return_exceptions=True)
            assert outcomes.count(None) == 1
            assert [str(each).splitlines()[0] for each in outcomes if each is not None] == [ONCE]
            await until_idle_in_loop(consumer)
            assert consumer.counts.delivered == 1
        link.close()

    asyncio.run(main())


def test_a_seek_while_the_first_poll_begins_waits_for_the_same(real_broker: Broker):
    queue = MessageQueue("T", "broker-a", 0)

    async def main() -> None:
        async with AsyncLitePullConsumer(real_broker, "g", ALL) as consumer:
            polled, sought = await asyncio.gather(
                consumer.poll(patience_s(30)), consumer.seek(queue, "begin"), return_exceptions=True
            )
            assert ONCE not in str(sought)
            assert polled or await consumer.poll(patience_s(30))

    asyncio.run(main())


@BOTH
def test_a_consumer_of_a_link_or_broker_that_is_closed_does_not_start(tmp_path: Path, kind: Any):
    with Broker.open(tmp_path / "real") as broker:
        link = LocalLink(broker)
        link.close()
        with pytest.raises(ClientClosedError, match="was closed"):
            kind(link, "g", "T", listener).start()
    with pytest.raises(ClientClosedError, match="was closed") as refused:
        kind(broker, "g", "T", listener).start()
    assert "open the broker again" in refused.value.help
