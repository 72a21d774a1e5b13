"""What the fixtures of consumers give to tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Unpack

import pytest

from seglog.broker.broker import Broker
from seglog.client.connect import Target
from seglog.consumer.consumer import AsyncConsumer, Consumer
from seglog.consumer.listener import PlainListener
from seglog.consumer.orderly import OrderlyConsumer
from seglog.consumer.settings import ConsumerOptions
from seglog.remoting.body_json import RUNNING_INFO
from seglog.remoting.client_headers import RunningInfoHeader
from seglog.remoting.codes import RequestCode
from seglog.remoting.command import Request, Response
from seglog.remoting.frames.limits import DEFAULT_LIMITS
from seglog.remoting.message_queue import MessageQueue
from tests.support.machine.patience import LateError, patience_s, wait_until


class Send(Protocol):
    """Sends ``count`` messages with the bodies 0, 1, ... to one queue."""

    def __call__(
        self, count: int = 1, *, queue_id: int = 0, tags: str | None = None, topic: str = "T"
    ) -> None: ...


class NewConsumer(Protocol):
    """Makes a consumer of group ``g`` and the list that its listener fills with (queue id, offset)."""

    def __call__(
        self,
        subscription: str | Mapping[str, str] = "T",
        *,
        listener: PlainListener | None = None,
        via: Target | None = None,
        **options: Unpack[ConsumerOptions],
    ) -> tuple[OrderlyConsumer, list[tuple[int, int]]]: ...


def cached_counts(broker: Broker, client_id: str, group: str = "g") -> Mapping[MessageQueue, int]:
    """Returns how many messages of each queue a consumer has in memory, as a broker on virtual time hears."""
    answer = broker.answer(
        Request(RequestCode.GET_CONSUMER_RUNNING_INFO, RunningInfoHeader(group, client_id))
    )
    broker.advance(0)
    found = answer if isinstance(answer, Response) else answer.result()
    assert isinstance(found.body, bytes | memoryview)
    queues = RUNNING_INFO.decode(found.body, DEFAULT_LIMITS).queues
    return {queue: report.cached_count for queue, report in queues.items()}


def until_idle(consumer: Consumer[Any], *, idle_s: float = 30) -> int:
    """Returns how many messages a consumer finished until nothing was left.

    Raises:
        LateError: Something is left after that time on an idle machine.
    """
    try:
        return consumer.run_until_idle(patience_s(idle_s))
    except TimeoutError as error:
        raise _late(error) from None


async def until_idle_in_loop(consumer: AsyncConsumer[Any], *, idle_s: float = 30) -> int:
    """Returns as :func:`until_idle`, where a loop runs the consumer."""
    try:
        return await consumer.run_until_idle(patience_s(idle_s))
    except TimeoutError as error:
        raise _late(error) from None


def wait_until_named(consumer: Any, reason: str) -> None:
    """Returns once a wait until idle that is too short says for what it waits; if it ends well, this fails.

    Args:
        consumer: A plain one, or what drives an awaited one.
        reason: Part of the error.
    """

    def is_named() -> bool:
        with pytest.raises(TimeoutError) as late:
            consumer.run_until_idle(0.05)
        return reason in str(late.value)

    wait_until(is_named, f"{reason!r} as a reason", idle_s=30)


def _late(error: TimeoutError) -> BaseException:
    """Returns what to raise: errors of our own that are time-outs too are answers, and not late."""
    return LateError(str(error)) if type(error) is TimeoutError else error
