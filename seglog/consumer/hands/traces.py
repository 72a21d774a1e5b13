"""What a consumer has traced of the calls of its listener, as Java's consumers say it.

Source: ``ConsumeMessageTraceHookImpl.java``, ``ConsumeMessageConcurrentlyService.java run``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from seglog.client.traces import ConsumeEnd, ConsumeEndTrace, ConsumeTrace, Trace
from seglog.clock import Clock
from seglog.consumer.listener import AGAIN, Consume
from seglog.remoting.unique_id import UniqueIds
from seglog.storage.format.record import Message
from seglog.storage.format.record import properties as props

REGION: Final = "MSG_REGION"
TRACE_ON: Final = "TRACE_ON"


class Traced(Protocol):
    """Takes traces; see ``seglog.client.tracing``."""

    @property
    def ids(self) -> UniqueIds:
        """Makes ids of calls."""

    def add(self, traces: Sequence[Trace]) -> None:
        """Has traces sent later."""


class ListenerTraces:
    """The traces of one consumer. Any thread or task may call it.

    Args:
        tracer: Takes them.
        group: Of the consumer.
        clock: Of its client.
        timeout_ms: After how long a call is said to have taken too long, ``consumeTimeout``.
    """

    def __init__(self, tracer: Traced, group: str, clock: Clock, timeout_ms: float) -> None:
        self._tracer = tracer
        self._group = group
        self._clock = clock
        self._timeout_ms = timeout_ms

    def before(self, messages: Sequence[Message]) -> tuple[ConsumeTrace, ...]:
        """Notes that the listener is about to get messages; of brokers that want no traces none is noted."""
        request_id, now_ms = self._tracer.ids.next(), self._clock.now_ms()
        found = tuple(
            ConsumeTrace(
                now_ms,
                message.properties.get(REGION),
                self._group,
                request_id,
                message.topic,
                message.unique_key or message.message_id,
                message.reconsume_times,
                message.properties.get(props.KEYS),
            )
            for message in messages
            if message.properties.get(TRACE_ON) != "false"
        )
        self._tracer.add(found)
        return found

    def after(
        self, before: Sequence[ConsumeTrace], count: int, took_ms: float, said: Consume, *, has_raised: bool
    ) -> None:
        """Notes that the listener came back.

        Args:
            before: What was noted before the call.
            count: How many messages it was given.
            took_ms: How long the call took.
            said: What it says of them.
            has_raised: Whether it has raised something, in place of saying that.
        """
        end = ConsumeEnd.SUCCESS
        if has_raised:
            end = ConsumeEnd.EXCEPTION
        elif took_ms >= self._timeout_ms:
            end = ConsumeEnd.TIME_OUT
        elif said in AGAIN:
            end = ConsumeEnd.FAILED
        now_ms, is_success = self._clock.now_ms(), said in (Consume.SUCCESS, Consume.COMMIT)
        self._tracer.add(
            [ConsumeEndTrace(one, int(took_ms / max(1, count)), is_success, end, now_ms) for one in before]
        )
