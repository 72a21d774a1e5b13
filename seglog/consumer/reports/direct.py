"""Gives a message chosen by an operator to the listener, outside the order of its queue.

It commits nothing, retries nothing, and checks no lock: the request ``consumeMessageDirectly`` of
``mqadmin``.

Source: ``ConsumeMessageConcurrentlyService.java``, ``ConsumeMessageOrderlyService.java
consumeMessageDirectly``.
"""

from __future__ import annotations

from typing import Final

from seglog.consumer.hands.form import Form
from seglog.consumer.listener import SAID, Consume, end_of
from seglog.logs import logger
from seglog.remoting.heartbeat import ConsumedDirectlyBody, DirectEnd
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import Message
from seglog.text import text_of

_ENDS: Final = {
    Consume.SUCCESS: DirectEnd.SUCCESS,
    Consume.RECONSUME_LATER: DirectEnd.LATER,
    Consume.SUSPEND_CURRENT_QUEUE_A_MOMENT: DirectEnd.LATER,
    Consume.COMMIT: DirectEnd.COMMIT,
    Consume.ROLLBACK: DirectEnd.ROLLBACK,
}
_log = logger(__name__)


async def consume_directly(form: Form, message: Message, queue: MessageQueue) -> ConsumedDirectlyBody:
    """Calls a listener, and returns the result of the message.

    Args:
        form: The form of the listener.
        message: The message from the broker.
        queue: Its queue, for the context.
    """
    end, remark = DirectEnd.THROW_EXCEPTION, None
    began_ms = form.clock.monotonic_ms()
    try:
        result = form.call([form.read(message)], form.context(queue))
        if form.is_async and not isinstance(result, SAID):
            result = await result  # type: ignore[misc]  # what an async listener returns
        end = _ENDS[end_of(result, is_in_order=form.is_in_order)]
    except BaseException as error:  # noqa: BLE001 - the application's code; Java catches Throwable
        _log.warning("the listener failed at message %s, which was picked", message.message_id, exc_info=True)
        remark = f"{type(error).__name__}: {text_of(error)}"
    spent_ms = int(form.clock.monotonic_ms() - began_ms)
    return ConsumedDirectlyBody(end, remark, spent_ms, is_in_order=form.is_in_order)
