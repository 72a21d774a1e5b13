"""Delay levels: how long a message waits before it can be consumed, and in which queue.

A message of level n is stored in queue n-1 of the delay topic, under its own properties and with REAL_TOPIC
and REAL_QID, which name its destination when it is due. Within a level all messages wait equally long, so
each of these queues is in the order of delivery.

Source: ``ScheduleMessageService.java parseDelayLevel``, ``HookUtils.java transformDelayLevelMessage``.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from seglog.errors import InvalidArgumentError, ProtocolError
from seglog.storage.format.names import SCHEDULE_TOPIC
from seglog.storage.format.record import DELAY_LEVELS_S
from seglog.storage.format.record import properties as props

_UNITS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LEVEL: Final = re.compile(r"([0-9]{1,9})([smhd])")
_INT: Final = re.compile(r"[+-]?[0-9]{1,19}")
MAX_LEVELS: Final = 99
"""A store reads levels of at most two digits."""
TIMERS: Final = ("TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS")
"""Properties of timers, RocketMQ's other way to delay a message; a level takes precedence over them."""


class DelayLevels:
    """The levels of one broker.

    Args:
        text: Their delays from level 1 on, such as ``1s 5s 10s 1m 2h`` (``messageDelayLevel``).

    Raises:
        InvalidArgumentError: The text has another form.
    """

    def __init__(self, text: str) -> None:
        parts = [_LEVEL.fullmatch(part) for part in text.split(" ")]
        if None in parts or len(parts) > MAX_LEVELS:
            raise InvalidArgumentError(
                f"{text!r} names no delay levels",
                help=f"give up to {MAX_LEVELS} delays like 1s, 10m, 2h or 1d, with one space between",
            )
        self._delays_ms = tuple(int(part[1]) * _UNITS_MS[part[2]] for part in parts if part is not None)
        self._is_default = self._delays_ms == tuple(delay_s * 1_000 for delay_s in DELAY_LEVELS_S)

    @property
    def highest(self) -> int:
        """The highest level; a message that asks for a higher one gets this one."""
        return len(self._delays_ms)

    @property
    def is_default(self) -> bool:
        """Whether they are RocketMQ's defaults, which the store knows by itself."""
        return self._is_default

    def delay_ms(self, level: int) -> int:
        """Returns how long messages of a level, from 1 on, wait."""
        return self._delays_ms[level - 1]

    def own_delay_ms(self, level: int) -> int | None:
        """Returns the delay of a level in ms if the store does not know it by itself, else None."""
        return None if self._is_default or level <= 0 else self.delay_ms(level)

    def level_of(self, text: str | None) -> int:
        """Returns the level that a DELAY property asks for; 0 or less for none.

        Raises:
            ProtocolError: It is not a number; RocketMQ refuses such a message too.
        """
        if not text:
            return 0
        if not _INT.fullmatch(text) or not -(1 << 31) <= int(text) < 1 << 31:
            raise ProtocolError(f'the property DELAY holds no number: For input string: "{text[:40]}"')
        return min(int(text), self.highest)


class Held(NamedTuple):
    """The queue in which a message waits, and its properties there."""

    topic: str
    queue_id: int
    properties: bytes


def hold(raw: bytes, topic: str, queue_id: int, level: int) -> Held:
    """Returns the delay-topic form of a message, without its properties of timers.

    Args:
        raw: Its properties, stored form.
        topic: The topic that it will be delivered to.
        queue_id: The queue that it will be delivered to.
        level: Its delay level, from 1 on.
    """
    properties = {
        **{name: value for name, value in props.decode_properties(raw).items() if name not in TIMERS},
        props.DELAY: str(level),
        props.REAL_TOPIC: topic,
        props.REAL_QUEUE_ID: str(queue_id),
    }
    return Held(SCHEDULE_TOPIC, level - 1, props.encode_properties(properties))
