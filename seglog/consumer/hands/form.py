"""How a listener is called: with a message or a batch of them, with a context or without one."""

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
    """How the listener of one consumer is called.

    Attributes:
        listener: The application's.
        group: Of the consumer.
        clock: For how long it takes, and for what expires.
        batch_size: How many messages it is given at most.
        is_batched: Whether it is given a tuple of messages, and not one message.
        is_async: Whether what it returns is awaited.
        is_in_order: Whether what follows messages that failed has to wait for them.
        takes_context: Whether it is given a context too.
        traces: Hears of each call; None where calls are not traced.
        is_by_topic: Whether the messages of a batch are to be of one topic.
        read: Makes of a message that was pulled one that is given; it raises a ``BodyError``.
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
            InvalidArgumentError: No message can be given to it.
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
        """Whether it is given a message and nothing else, and that is not traced."""
        return not (self.is_batched or self.takes_context or self.traces)

    def context(self, queue: MessageQueue) -> Context:
        """Returns a context for the next call."""
        kind = ConsumeOrderlyContext if self.is_in_order else ConsumeConcurrentlyContext
        return kind(queue, self.clock.now_ms())

    def call(self, messages: Sequence[Message], context: Context) -> object:
        """Calls the listener; returns what it does, which is still to be awaited where that is so."""
        given = tuple(messages) if self.is_batched else messages[0]
        return self.listener(given, context) if self.takes_context else self.listener(given)
