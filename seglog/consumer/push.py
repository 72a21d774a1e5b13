"""PushConsumer: consumes its share of a group's queues, many messages at a time.

    with PushConsumer(broker, "billing", "orders", handle) as consumer:
        consumer.start()

A message that fails is sent back to its broker, which delivers it again later; the offset of a queue is
committed up to the first message that is not done.

Source: ``DefaultMQPushConsumer.java`` with a ``MessageListenerConcurrently``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack, overload

from typing_extensions import override

from seglog.client.connect import Target
from seglog.consumer.consumer import AsyncConsumer, Consumer
from seglog.consumer.contexts import ConsumeConcurrentlyContext
from seglog.consumer.hands.by_topic import On
from seglog.consumer.listener import ConcurrentListener, M
from seglog.consumer.payloads import DecodedMessage, P
from seglog.consumer.services.concurrent_service import ConcurrentService
from seglog.consumer.settings import ConsumerOptions, Wanted
from seglog.consumer.subscribing import AsyncSubscribing, Subscribing
from seglog.remoting.subscription import ALL_TAGS, Subscription
from seglog.storage.format.record import Message


class PushConsumer(Subscribing[M], Consumer[M]):
    """A consumer of a group that runs listeners concurrently; failed messages are retried with a delay."""

    _service = ConcurrentService

    if TYPE_CHECKING:  # of a constructor of the class itself alone checkers take which class a message has

        @overload
        def __init__(
            self: PushConsumer[Message],
            target: Target,
            group: str,
            subscription: Wanted | None = None,
            listener: ConcurrentListener | None = None,
            *,
            decode: None = None,
            **options: Unpack[ConsumerOptions],
        ) -> None: ...
        @overload
        def __init__(
            self: PushConsumer[DecodedMessage[P]],
            target: Target,
            group: str,
            subscription: Wanted | None = None,
            listener: ConcurrentListener[DecodedMessage[P]] | None = None,
            *,
            decode: Callable[[bytes], P],
            **options: Unpack[ConsumerOptions],
        ) -> None: ...
        def __init__(self, *given: object, **options: object) -> None: ...
        @override
        def on(
            self, topic: str, tags: str | Subscription = ALL_TAGS
        ) -> On[ConsumeConcurrentlyContext, M]: ...


class AsyncPushConsumer(AsyncSubscribing[M], AsyncConsumer[M]):
    """A :class:`PushConsumer` whose calls are awaited; it is made in the event loop where it is used.

    At most ``threads`` calls of an ``async def`` listener run at a time.
    """

    _service = ConcurrentService

    if TYPE_CHECKING:  # of a constructor of the class itself alone checkers take which class a message has

        @overload
        def __init__(
            self: AsyncPushConsumer[Message],
            target: Target,
            group: str,
            subscription: Wanted | None = None,
            listener: ConcurrentListener | None = None,
            *,
            decode: None = None,
            **options: Unpack[ConsumerOptions],
        ) -> None: ...
        @overload
        def __init__(
            self: AsyncPushConsumer[DecodedMessage[P]],
            target: Target,
            group: str,
            subscription: Wanted | None = None,
            listener: ConcurrentListener[DecodedMessage[P]] | None = None,
            *,
            decode: Callable[[bytes], P],
            **options: Unpack[ConsumerOptions],
        ) -> None: ...
        def __init__(self, *given: object, **options: object) -> None: ...
        @override
        def on(
            self, topic: str, tags: str | Subscription = ALL_TAGS
        ) -> On[ConsumeConcurrentlyContext, M]: ...
