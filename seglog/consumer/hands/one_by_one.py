"""Gives messages of a queue to a plain listener, one call each; runs in its pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from seglog.clock import Clock
from seglog.consumer.hands.failing import note_failure
from seglog.consumer.hands.form import Form
from seglog.consumer.hands.handed import STORED_OTHERWISE, Handed, as_given
from seglog.consumer.listener import AGAIN, ENDS, SAID, end_of
from seglog.remoting.expiry import is_expired
from seglog.remoting.message_queue import MessageQueue
from seglog.storage.format.record import Message
from seglog.storage.format.record import properties as props

_TTL: Final = props.TTL.encode() + b"\x01"


async def hand(form: Form, handed: Handed, queue: MessageQueue, may_go_on: Callable[[], bool]) -> None:
    """Calls the listener with each message, as long as it may, and awaits an async listener's result.

    Args:
        form: The form of the listener, which takes a message and nothing else.
        handed: The messages; their results are stored there.
        queue: The queue that they were pulled from.
        may_go_on: Asked before each call.
    """
    listener, read, clock, is_async = form.listener, form.read, form.clock, form.is_async
    is_plain = read is as_given
    take, note_done = handed.waiting.popleft, handed.done.append
    began_ms = handed.began_ms = clock.monotonic_ms()
    while may_go_on():
        try:  # other threads take from the end: a message seen to wait may be gone
            handed.current = message = take()
        except IndexError:
            break
        handed.is_begun = True
        if _TTL in message.properties_raw and is_gone(clock, message):
            handed.expired += 1
            note_done(message)
            continue
        is_done, given = False, None
        try:
            given = message if is_plain and not message.sys_flag & STORED_OTHERWISE else read(message)
            if is_async:
                handed.began_ms = clock.monotonic_ms()
            said = listener(given)
            if is_async and not (said is None or isinstance(said, SAID)):
                said = await said  # type: ignore[misc]  # what an async listener returns
            is_done = said is None or _is_done(form, handed, said)
        except Exception as error:  # noqa: BLE001 - the application's code: on any error the message comes again
            note_failure(form, handed, queue, message, error, was_given=given is not None)
        except BaseException as error:  # noqa: BLE001 - bookkeeping comes first; the pool knows what it is
            handed.error = error
        if is_done:
            note_done(message)
            continue
        handed.failed.append(message)
        if form.is_in_order or handed.error is not None:
            break
    handed.is_ended = True
    handed.spent_ms = clock.monotonic_ms() - began_ms


def _is_done(form: Form, handed: Handed, answer: object) -> bool:
    """Returns whether a message is done by its listener's result, and notes that result."""
    said = end_of(answer, is_in_order=form.is_in_order)
    if said in ENDS:
        handed.acks = said
    return said not in AGAIN


def is_gone(clock: Clock, message: Message) -> bool:
    """Returns whether the TTL of a message has passed, so that no listener gets it."""
    raw = message.properties_raw
    return raw.find(_TTL) >= 0 and is_expired(raw, message.born_timestamp_ms, clock.now_ms())
