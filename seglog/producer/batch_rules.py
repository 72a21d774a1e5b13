"""The rules of Java's client for delays, and for the messages of one batch.

A broker does not look into a batch: a delayed message in it would be consumed at once.

Source: ``MessageBatch.java generateFromList``, ``Message.java getDelayTimeLevel, isWaitStoreMsgOK``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from seglog.arguments import MAX_I32, as_int, refusal
from seglog.errors import InvalidArgumentError
from seglog.storage.format.names import RETRY_PREFIX
from seglog.storage.format.record import properties as props

LEVELS: Final = (
    "1s",
    "5s",
    "10s",
    "30s",
    *(f"{minutes}m" for minutes in (*range(1, 11), 20, 30)),
    "1h",
    "2h",
)
"""The default ``messageDelayLevel`` of brokers, from level 1 on."""
DELAYS: Final = (props.DELAY, "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")


def as_delay_level(level: object) -> int:
    """Returns a delay level.

    Raises:
        InvalidArgumentError: It is not an integer from 0 on.
    """
    if isinstance(level, str) and level in LEVELS:
        advice = f"{level} is level {LEVELS.index(level) + 1} where a broker has RocketMQ's levels"
        raise refusal("delay_level", level, f"an integer in 0..{MAX_I32}", advice)
    return as_int("delay_level", level, 0, MAX_I32)


def check_batch_topic(topic: str) -> None:
    """Refuses a retry topic.

    Raises:
        InvalidArgumentError: It is one.
    """
    if topic.startswith(RETRY_PREFIX):
        raise InvalidArgumentError(
            "Retry Group is not supported for batching", help=f"send each message of {RETRY_PREFIX} by itself"
        )


def check_not_delayed(properties: Mapping[str, str]) -> None:
    """Refuses a delayed message.

    Raises:
        InvalidArgumentError: It has a delay, or a delay that is not a number.
    """
    for name in DELAYS:
        if _is_delay(properties.get(name)):
            raise InvalidArgumentError(
                "Delayed messages are not supported for batching",
                help=f"send a message with {name} by itself",
            )


def check_waits_alike(properties: Mapping[str, str], first: Mapping[str, str]) -> None:
    """Refuses a message with another durability than the first of its batch.

    Raises:
        InvalidArgumentError: It does.
    """
    if waits(properties) != waits(first):
        raise InvalidArgumentError(
            "The waitStoreMsgOK of the messages in one batch should the same",
            help=f"leave {props.WAIT} away and give wait_for_disk",
        )


def waits(properties: Mapping[str, str]) -> bool:
    """Returns whether the answer waits for the broker's configured durability (``isWaitStoreMsgOK``)."""
    return (properties.get(props.WAIT) or "true").lower() == "true"


def _is_delay(text: str | None) -> bool:
    try:
        return int(text or "0") > 0
    except ValueError:  # Java's parseInt fails at it
        return True
