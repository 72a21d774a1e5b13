"""A message that people have picked, given to the listener outside the order of its queue.

Nothing is committed by it, nothing is retried, and no lock is looked at: it is what ``mqadmin`` calls
``consumeMessageDirectly``.

Source: ``ConsumeMessageConcurrentlyService.java``, ``ConsumeMessageOrderlyService.java
consumeMessageDirectly``.
"""

from __future__ import annotations

import logging

from seglog.clock import Clock
from seglog.consumer.handing import as_given
from seglog.consumer.listener import SAID, Listener, is_again
from seglog.remoting.heartbeat import ConsumedDirectlyBody, DirectEnd
from seglog.storage.format.record import Message

_log = logging.getLogger(__name__)


async def consume_directly(
    listener: Listener, message: Message, clock: Clock, *, is_async: bool, is_in_order: bool
) -> ConsumedDirectlyBody:
    """Calls a listener, and returns what became of the message.

    Args:
        listener: The application's.
        message: As the broker has it.
        clock: For how long it takes.
        is_async: Whether what the listener returns is awaited.
        is_in_order: Of which kind the consumer is.
    """
    end, remark = DirectEnd.THROW_EXCEPTION, None
    began_ms = clock.monotonic_ms()
    try:
        result = listener(as_given(message))
        if is_async and not isinstance(result, SAID):
            result = await result
        end = DirectEnd.LATER if is_again(result) else DirectEnd.SUCCESS
    except BaseException as error:  # noqa: BLE001 - the application's code; Java catches Throwable
        _log.warning("the listener failed at message %s, which was picked", message.message_id, exc_info=True)
        remark = f"{type(error).__name__}: {error}"
    return ConsumedDirectlyBody(end, remark, int(clock.monotonic_ms() - began_ms), is_in_order=is_in_order)
