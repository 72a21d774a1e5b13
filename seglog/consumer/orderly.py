"""OrderlyConsumer: consumes its share of a group's queues, each queue one message after another.

    with OrderlyConsumer(broker, "billing", {"orders": "paid || refunded"}, handle) as consumer:
        consumer.start()                        # consumes until the end of the block, or:
        consumer.run_until_idle()               # consumes all that is stored

Before it consumes a queue it locks it at its broker, so of several consumers of a group one has each
queue at a time. A message is committed after its success: after a crash the last ones come again.

Source: ``DefaultMQPushConsumer.java`` with a ``MessageListenerOrderly``.
"""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from seglog.client.client import Client
from seglog.consumer.consumer import Consumer
from seglog.consumer.listener import Listener
from seglog.consumer.listener_pool import ListenerPool
from seglog.consumer.orderly_service import OrderlyService
from seglog.consumer.service import Service
from seglog.consumer.settings import ConsumerSettings


class OrderlyConsumer(Consumer):
    """A member of a group that consumes each queue in order; arguments are those of a ``Consumer``.

    A message that fails stays first in its queue, which waits ``suspend_ms``; other queues go on.
    """

    is_in_order: ClassVar[bool] = True

    @override
    def _service(
        self, client: Client, settings: ConsumerSettings, listener: Listener, pool: ListenerPool
    ) -> Service:
        return OrderlyService(client, settings, listener, pool)
