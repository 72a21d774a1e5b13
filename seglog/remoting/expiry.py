"""When a message is too old to be of use: TTL milliseconds after it was born.

The property TTL is stored with the message and means nothing to a broker: consumers look at it. One
of 0 or less, or that is no number, never ends. A retry keeps the birth of its message, so waiting counts as
well. RocketMQ writes the same property into requests, whose sender waits no longer for the reply.

Source: ``MessageConst.java PROPERTY_MESSAGE_TTL``; ActiveMQ's ``JMSExpiration`` is the birth plus its TTL.
"""

from __future__ import annotations

from typing import Final

from seglog.storage.format.record import TTL, find_property

_NAME: Final = TTL.encode()
_MAX_DIGITS: Final = 18


def expires_at_ms(properties: bytes, born_timestamp_ms: int) -> int | None:
    """Returns the moment from which a message is of no use, None if there is none.

    Args:
        properties: Stored form.
        born_timestamp_ms: When its producer made it.
    """
    value = find_property(properties, _NAME)
    if value is None or not value.isdigit() or len(value) > _MAX_DIGITS or not int(value):
        return None
    return born_timestamp_ms + int(value)


def is_expired(properties: bytes, born_timestamp_ms: int, now_ms: int) -> bool:
    """Returns whether a message is of no use any more."""
    end_ms = expires_at_ms(properties, born_timestamp_ms)
    return end_ms is not None and now_ms >= end_ms
