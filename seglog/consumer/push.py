"""PushConsumer: consumes its share of a group's queues, many messages at a time.

    with PushConsumer(broker, "billing", "orders", handle) as consumer:
        consumer.start()

A message that fails goes back to its broker, which brings it again after a while; the offset of a queue is
committed up to the first message that is not done.

Source: ``DefaultMQPushConsumer.java`` with a ``MessageListenerConcurrently``.
"""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from seglog.client.client import Client
from seglog.consumer.concurrent_service import ConcurrentService
from seglog.consumer.consumer import Consumer
from seglog.consumer.listener import Listener
from seglog.consumer.listener_pool import ListenerPool
from seglog.consumer.service import Service
from seglog.consumer.settings import ConsumerSettings


class PushConsumer(Consumer):
    """A member of a group that consumes messages side by side; arguments are those of a ``Consumer``."""

    is_in_order: ClassVar[bool] = False

    @override
    def _service(
        self, client: Client, settings: ConsumerSettings, listener: Listener, pool: ListenerPool
    ) -> Service:
        return ConcurrentService(client, settings, listener, pool)
