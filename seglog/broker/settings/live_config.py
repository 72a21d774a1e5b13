"""The settings of a broker as they are now: some can be changed while it runs (UPDATE_BROKER_CONFIG).

A change is one value in place of another, so a reader sees all of a change or nothing. It holds until the
broker closes: how it is opened next is its caller's to say. A part that stands on the broker, such as a
server, lends its own settings for as long as it is there, so that tools find them beside the broker's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from seglog.broker.settings.config import BrokerConfig


class Lent(NamedTuple):
    """A setting that is not the broker's: a number from 1 on.

    Attributes:
        now: Returns it.
        change: Changes it; any thread may call it.
    """

    now: Callable[[], int]
    change: Callable[[int], None]


class LiveConfig:
    """The settings of one broker. Any thread may call it.

    Attributes:
        now: The settings of now.
        changes: How often they were changed.
        changed_ms: When that was last; when they were made, before.
        told_unused: Settings that clients have set and that change nothing, which the log has already: where
            they would belong, and their names.

    Args:
        config: The settings that the broker was opened with.
        now_ms: The wall clock.
    """

    def __init__(self, config: BrokerConfig, now_ms: Callable[[], int]) -> None:
        self.now = config
        self.changes = 0
        self.told_unused: set[tuple[str, str]] = set()
        self.changed_ms = now_ms()
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._told: list[Callable[[BrokerConfig], object]] = []
        self._lent: tuple[tuple[str, Lent], ...] = ()

    @property
    def lent(self) -> dict[str, int]:
        """The settings that are lent, by RocketMQ's name; of several the first that came."""
        return {name: setting.now() for name, setting in reversed(self._lent)}

    def lend(self, name: str, setting: Lent) -> Callable[[], None]:
        """Shows a setting under RocketMQ's name, and has it changed.

        Returns:
            What takes it back.
        """
        mine = name, setting

        def take_back() -> None:
            with self._lock:
                self._lent = tuple(one for one in self._lent if one is not mine)

        with self._lock:
            self._lent = (*self._lent, mine)
        return take_back

    def tell(self, told: Callable[[BrokerConfig], object]) -> None:
        """Has a function called with the settings after each change."""
        self._told.append(told)

    def change(self, values: Mapping[str, Any], lent: Mapping[str, int] | None = None) -> None:
        """Changes settings, all or none.

        Args:
            values: By attribute of :class:`BrokerConfig`.
            lent: What is lent, by RocketMQ's name; a number for each that has one changes.

        Raises:
            InvalidArgumentError: A value is none of its setting; nothing has changed.
        """
        with self._lock:
            changed = replace(self.now, **values)
            self.changes += 1
            self.changed_ms = self._now_ms()
            if changed != self.now:
                self.now = changed
                for told in self._told:
                    told(changed)
            for name, setting in self._lent:
                if lent is not None and name in lent:
                    setting.change(lent[name])
