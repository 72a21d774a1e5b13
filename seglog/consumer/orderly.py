"""OrderlyConsumer: consumes its share of a group's queues, each queue one message after another.

    with OrderlyConsumer(broker, "billing", {"orders": "paid || refunded"}, handle) as consumer:
        consumer.start()                        # consumes until the end of the block, or:
        consumer.run_until_idle()               # consumes all that is stored

Before it consumes a queue it locks it at its broker, so of several consumers of a group one has each
queue at a time. A message is committed after its success: after a crash the last ones come again.

Source: ``DefaultMQPushConsumer.java`` with a ``MessageListenerOrderly``.
"""

from __future__ import annotations

from seglog.consumer.consumer import AsyncConsumer, Consumer
from seglog.consumer.services.orderly_service import OrderlyService
from seglog.consumer.subscribing import AsyncSubscribing, Subscribing


class OrderlyConsumer(Subscribing, Consumer):
    """A member of a group that consumes each queue in order, one message after another.

    A message that fails stays first in its queue, which waits ``suspend_ms``; other queues go on.
    """

    _service = OrderlyService


class AsyncOrderlyConsumer(AsyncSubscribing, AsyncConsumer):
    """An :class:`OrderlyConsumer` whose calls are awaited; it is made in the event loop where it is used."""

    _service = OrderlyService
