"""The expiry of messages: TTL milliseconds after their birth.

The property TTL is stored with the message; brokers ignore it, and consumers check it. A TTL of 0 or less, or
that is not a number, never expires. A retry keeps the birth time of its message, so its delays count too.
RocketMQ writes the same property into requests, whose sender waits no longer for the reply.

Source: ``MessageConst.java PROPERTY_MESSAGE_TTL``; ActiveMQ's ``JMSExpiration`` is the birth plus its TTL.
"""

from __future__ import annotations

from typing import Final

from seglog.storage.format.record import TTL, find_property

_NAME: Final = TTL.encode()
_MAX_DIGITS: Final = 18


def expires_at_ms(properties: bytes, born_timestamp_ms: int) -> int | None:
    """Returns the time at which a message expires, None if it never does.

    Args:
        properties: Stored form.
        born_timestamp_ms: Its birth time at the producer.
    """
    value = find_property(properties, _NAME)
    if value is None or not value.isdigit() or len(value) > _MAX_DIGITS or not int(value):
        return None
    return born_timestamp_ms + int(value)


def is_expired(properties: bytes, born_timestamp_ms: int, now_ms: int) -> bool:
    """Returns whether a message has expired."""
    end_ms = expires_at_ms(properties, born_timestamp_ms)
    return end_ms is not None and now_ms >= end_ms
