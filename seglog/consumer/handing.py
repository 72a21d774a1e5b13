"""Gives some messages of a queue to the listener, one call each, where its pool runs that."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from seglog.clock import Clock
from seglog.consumer.listener import SAID, Listener, is_again
from seglog.consumer.message_bodies import body_of
from seglog.remoting.expiry import is_expired
from seglog.remoting.later import STEPPED
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import COMPRESSED, COMPRESSION_MASK, INNER_BATCH, Message
from seglog.storage.format.record import properties as props

_STORED_OTHERWISE: Final = COMPRESSED | INNER_BATCH
_TTL: Final = props.TTL.encode() + b"\x01"

_STEPPED_HINT: Final = (
    ": on virtual time it may await calls of seglog's clients and sleep_ms(), and no event loop"
)
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Handed:
    """What became of messages; those that are in neither list were not given to the listener.

    Attributes:
        done: Those that the listener was done with, and those whose TTL was over.
        failed: Those that it failed at.
        expired: How many of the former it did not get.
        error: What it raised at the last of the latter, if that would end a program or a task.
        spent_ms: How long all that took.
    """

    done: list[Message] = field(default_factory=list)
    failed: list[Message] = field(default_factory=list)
    expired: int = 0
    error: BaseException | None = None
    spent_ms: float = 0.0


def as_given(message: Message) -> Message:
    """Returns a message with its body as its producer gave it.

    Raises:
        BodyError: It does not inflate, or no codec is here for it.
    """
    if not message.sys_flag & _STORED_OTHERWISE:
        return message
    body = body_of(message)
    return replace(message, body=body, sys_flag=message.sys_flag & ~(COMPRESSED | COMPRESSION_MASK))


async def hand(
    listener: Listener,
    group: str,
    queue: MessageQueue,
    messages: Sequence[Message],
    clock: Clock,
    may_go_on: Callable[[], bool],
    *,
    is_async: bool,
    stops_at_failure: bool,
) -> Handed:
    """Calls the listener with each message, as long as that is permitted; one that is awaited, it awaits.

    Args:
        listener: The application's.
        group: Of the consumer, for the log.
        queue: Likewise.
        messages: In their order.
        clock: For their TTL, and how long it takes.
        may_go_on: Asked before each call.
        is_async: Whether what the listener returns is awaited.
        stops_at_failure: Whether what follows a message that failed has to wait for it.
    """
    handed = Handed()
    began_ms = clock.monotonic_ms()
    for message in messages:
        if not may_go_on():
            break
        raw = message.properties_raw
        if raw.find(_TTL) >= 0 and is_expired(raw, message.born_timestamp_ms, clock.now_ms()):
            handed.expired += 1
            handed.done.append(message)
            continue
        is_done, given = False, None
        try:
            given = as_given(message)
            result = listener(given)
            if is_async and not isinstance(result, SAID):
                result = await result
            is_done = not is_again(result)
        except Exception as error:  # noqa: BLE001 - the application's code: on any error the message comes again
            _log_failure(error, named(group, queue, message), was_given=given is not None)
        except BaseException as error:  # noqa: BLE001 - bookkeeping comes first; the pool knows what it is
            handed.failed.append(message)
            handed.error = error
            break
        if is_done:
            handed.done.append(message)
            continue
        handed.failed.append(message)
        if stops_at_failure:
            break
    handed.spent_ms = clock.monotonic_ms() - began_ms
    return handed


def named(group: str, queue: MessageQueue, message: Message) -> str:
    """Returns what the log calls an attempt at a message.

    Args:
        group: Whose.
        queue: That it was pulled from, which may be one of the retry topic.
        message: The message, with its failures so far.
    """
    place = f"message {message.unique_key or message.message_id} of topic {message.topic}"
    attempt = f"attempt {message.reconsume_times + 1} of group {group}"
    where = f"{queue.topic}, queue {queue.queue_id} of {queue.broker_name}, offset {message.queue_offset}"
    return f"{place}, {attempt}, {where}"


def _log_failure(error: Exception, attempt: str, *, was_given: bool) -> None:
    if not was_given:
        _log.warning("not given to the listener: %s: %s", attempt, error)
        return
    # Where there is no loop asyncio says no more than that, and the listener may not know why.
    hint = _STEPPED_HINT if isinstance(error, RuntimeError) and STEPPED.timers is not None else ""
    _log.warning("the listener failed at %s%s", attempt, hint, exc_info=error)
