"""What the log says of messages that a listener failed at."""

from __future__ import annotations

import logging
from typing import Final

from seglog.consumer.hands.form import Form
from seglog.consumer.hands.handed import Handed, named
from seglog.logs import logger
from seglog.remoting.later import STEPPED
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import Message

_STEPPED_HINT: Final = (
    ": on virtual time it may await calls of seglog's clients and sleep_ms(), and no event loop"
)
_log = logger(__name__)


def note_failure(
    form: Form,
    handed: Handed,
    queue: MessageQueue,
    message: Message,
    error: Exception,
    *,
    was_given: bool,
    others: int = 0,
) -> None:
    """Says all of a failure the first time; of those alike the second, fourth and so on in one line.

    Args:
        form: Of the listener.
        handed: What the message was in.
        queue: That it was pulled from.
        message: The one that failed, or the first of a batch that did.
        error: What was raised.
        was_given: Whether the listener has raised it.
        others: How many messages more the batch had.
    """
    failures = handed.failures
    # Messages of one inner batch have one id.
    key = str(message.unique_key or f"{message.message_id} {message.queue_offset}")
    times = 1 if failures is None else failures.count(key, error)
    attempt = named(form.group, queue, message)
    if others:
        attempt += f", and {others} more of its batch"
    is_said = times & (times - 1) == 0
    level = logging.WARNING if is_said else logging.DEBUG
    if not was_given:
        _log.log(level, "not given to the listener: %s: %s", attempt, error)
        return
    if times > 1:
        text = "the listener failed at %s, as %s before: %s: %s"
        trace = None if is_said else error
        before = "once" if times == 2 else f"{times - 1} times"
        _log.log(level, text, attempt, before, type(error).__name__, error, exc_info=trace)
        return
    # Where there is no loop asyncio says no more than that, and the listener may not know why.
    hint = _STEPPED_HINT if isinstance(error, RuntimeError) and STEPPED.timers is not None else ""
    _log.warning("the listener failed at %s%s", attempt, hint, exc_info=error)
