"""OrderlyConsumer: consumes its share of a group's queues, each queue one message after another.

    with OrderlyConsumer(broker, "billing", {"orders": "paid || refunded"}, handle) as consumer:
        consumer.start()                        # consumes until the end of the block, or:
        consumer.run_until_idle()               # consumes all that is stored

It locks a queue at its broker before it consumes it, so only one consumer of a group has a queue at a time. A
message is committed after its success: after a crash the last messages are delivered again.

Source: ``DefaultMQPushConsumer.java`` with a ``MessageListenerOrderly``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack, overload

from typing_extensions import override

from seglog.client.connect import Target
from seglog.consumer.consumer import AsyncConsumer, Consumer
from seglog.consumer.contexts import ConsumeOrderlyContext
from seglog.consumer.hands.by_topic import On
from seglog.consumer.listener import M, OrderlyListener
from seglog.consumer.payloads import DecodedMessage, P
from seglog.consumer.services.orderly_service import OrderlyService
from seglog.consumer.settings import ConsumerOptions, Wanted
from seglog.consumer.subscribing import AsyncSubscribing, Subscribing
from seglog.remoting.subscription import ALL_TAGS, Subscription
from seglog.storage.format.record import Message


class OrderlyConsumer(Subscribing[M], Consumer[M]):
    """A consumer of a group that consumes each queue in order, one message at a time.

    A message that fails stays first in its queue, which waits ``suspend_ms``; other queues continue.
    """

    _service = OrderlyService

    if TYPE_CHECKING:  # of a constructor of the class itself alone checkers take which class a message has

        @overload
        def __init__(
            self: OrderlyConsumer[Message],
            target: Target,
            group: str,
            subscription: Wanted | None = None,
            listener: OrderlyListener | None = None,
            *,
            decode: None = None,
            **options: Unpack[ConsumerOptions],
        ) -> None: ...
        @overload
        def __init__(
            self: OrderlyConsumer[DecodedMessage[P]],
            target: Target,
            group: str,
            subscription: Wanted | None = None,
            listener: OrderlyListener[DecodedMessage[P]] | None = None,
            *,
            decode: Callable[[bytes], P],
            **options: Unpack[ConsumerOptions],
        ) -> None: ...
        def __init__(self, *given: object, **options: object) -> None: ...
        @override
        def on(self, topic: str, tags: str | Subscription = ALL_TAGS) -> On[ConsumeOrderlyContext, M]: ...


class AsyncOrderlyConsumer(AsyncSubscribing[M], AsyncConsumer[M]):
    """An :class:`OrderlyConsumer` whose calls are awaited; it is made in the event loop where it is used."""

    _service = OrderlyService

    if TYPE_CHECKING:  # of a constructor of the class itself alone checkers take which class a message has

        @overload
        def __init__(
            self: AsyncOrderlyConsumer[Message],
            target: Target,
            group: str,
            subscription: Wanted | None = None,
            listener: OrderlyListener | None = None,
            *,
            decode: None = None,
            **options: Unpack[ConsumerOptions],
        ) -> None: ...
        @overload
        def __init__(
            self: AsyncOrderlyConsumer[DecodedMessage[P]],
            target: Target,
            group: str,
            subscription: Wanted | None = None,
            listener: OrderlyListener[DecodedMessage[P]] | None = None,
            *,
            decode: Callable[[bytes], P],
            **options: Unpack[ConsumerOptions],
        ) -> None: ...
        def __init__(self, *given: object, **options: object) -> None: ...
        @override
        def on(self, topic: str, tags: str | Subscription = ALL_TAGS) -> On[ConsumeOrderlyContext, M]: ...
