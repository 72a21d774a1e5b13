"""Logs the failures of listeners."""

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
    """Logs a failure with its traceback the first time; the second, fourth and so on alike in one line.

    Args:
        form: The form of the listener.
        handed: The messages handed over with it.
        queue: The queue that it was pulled from.
        message: The message that failed, or the first of a batch.
        error: The exception.
        was_given: Whether the listener raised it.
        others: The number of further messages in the batch.
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
    # Without an event loop asyncio's error does not name the cause, so the log adds a hint.
    hint = _STEPPED_HINT if isinstance(error, RuntimeError) and STEPPED.timers is not None else ""
    _log.warning("the listener failed at %s%s", attempt, hint, exc_info=error)
