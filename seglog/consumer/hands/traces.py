"""Traces the calls of a consumer's listener, in the form of Java's consumers.

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
        """Queues traces to be sent later."""


class ListenerTraces:
    """The traces of one consumer. Any thread or task may call it.

    Args:
        tracer: Sends them.
        group: The consumer group.
        clock: The clock of its client.
        timeout_ms: Duration from which on a call is reported as too long, ``consumeTimeout``.
    """

    def __init__(self, tracer: Traced, group: str, clock: Clock, timeout_ms: float) -> None:
        self._tracer = tracer
        self._group = group
        self._clock = clock
        self._timeout_ms = timeout_ms

    def before(self, messages: Sequence[Message]) -> tuple[ConsumeTrace, ...]:
        """Notes messages before the call of the listener, except those of brokers that want no traces."""
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
        """Notes the end of the call.

        Args:
            before: The notes made before the call.
            count: The number of messages given to it.
            took_ms: The duration of the call.
            said: Its result.
            has_raised: Whether it raised an exception instead of returning a result.
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
