"""PushConsumer: consumes its share of a group's queues, many messages at a time.

    with PushConsumer(broker, "billing", "orders", handle) as consumer:
        consumer.start()

A message that fails goes back to its broker, which brings it again after a while; the offset of a queue is
committed up to the first message that is not done.

Source: ``DefaultMQPushConsumer.java`` with a ``MessageListenerConcurrently``.
"""

from __future__ import annotations

from seglog.consumer.consumer import AsyncConsumer, Consumer
from seglog.consumer.services.concurrent_service import ConcurrentService
from seglog.consumer.subscribing import AsyncSubscribing, Subscribing


class PushConsumer(Subscribing, Consumer):
    """A member of a group that consumes messages side by side; one that fails comes again after a while."""

    _service = ConcurrentService


class AsyncPushConsumer(AsyncSubscribing, AsyncConsumer):
    """A :class:`PushConsumer` whose calls are awaited; it is made in the event loop where it is used.

    As many listeners that are ``async def`` are at work at a time as ``threads`` says.
    """

    _service = ConcurrentService
