"""The calling form of a listener: with a message or a batch, with or without a context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seglog.clock import Clock
from seglog.consumer.contexts import ConsumeConcurrentlyContext, ConsumeOrderlyContext, Context
from seglog.consumer.hands.by_topic import ByTopic
from seglog.consumer.hands.handed import as_given
from seglog.consumer.hands.traces import ListenerTraces
from seglog.consumer.listener import is_awaited, takes_context
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import Message


@dataclass(frozen=True, slots=True)
class Form:
    """The calling form of one consumer's listener.

    Attributes:
        listener: The application's.
        group: The consumer group.
        clock: Measures calls, and expires messages.
        batch_size: Most messages of one call.
        is_batched: Whether it is given a tuple of messages instead of one message.
        is_async: Whether its result is awaited.
        is_in_order: Whether later messages must wait for failed ones.
        takes_context: Whether it is also given a context.
        traces: Traces each call; None if calls are not traced.
        is_by_topic: Whether all messages of a batch must be of one topic.
        read: Converts a pulled message to the form given to the listener; may raise ``BodyError``.
    """

    listener: Callable[..., object]
    group: str
    clock: Clock
    batch_size: int
    is_batched: bool
    is_async: bool
    is_in_order: bool
    takes_context: bool
    is_by_topic: bool
    read: Callable[[Message], Message]
    traces: ListenerTraces | None = None

    @classmethod
    def of(
        cls,
        listener: Callable[..., object],
        group: str,
        clock: Clock,
        batch_size: int,
        *,
        is_in_order: bool,
        traces: ListenerTraces | None = None,
        read: Callable[[Message], Message] = as_given,
    ) -> Form:
        """Returns the form of a listener.

        Raises:
            InvalidArgumentError: It cannot be called with a message.
        """
        is_by_topic = isinstance(listener, ByTopic)
        return cls(
            listener,
            group,
            clock,
            batch_size,
            batch_size > 1,
            is_awaited(listener),
            is_in_order,
            listener.takes_context if isinstance(listener, ByTopic) else takes_context(listener),
            is_by_topic,
            read,
            traces,
        )

    @property
    def is_plain(self) -> bool:
        """Whether it is given single messages without a context or traces."""
        return not (self.is_batched or self.takes_context or self.traces)

    def context(self, queue: MessageQueue) -> Context:
        """Returns a context for the next call."""
        kind = ConsumeOrderlyContext if self.is_in_order else ConsumeConcurrentlyContext
        return kind(queue, self.clock.now_ms())

    def call(self, messages: Sequence[Message], context: Context) -> object:
        """Calls the listener; returns its result, which must be awaited if the listener is async."""
        given = tuple(messages) if self.is_batched else messages[0]
        return self.listener(given, context) if self.takes_context else self.listener(given)
