"""The present settings of a broker: some can be changed while it runs (UPDATE_BROKER_CONFIG).

A change replaces the whole settings object, so a reader sees all of a change or nothing. A change holds until
the broker closes; the next opening uses the caller's settings. A part on top of the broker, such as a server,
lends its own settings as long as it exists, so that tools find them beside the broker's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from seglog.broker.settings.config import BrokerConfig


class Lent(NamedTuple):
    """A setting of another part: a number from 1 on.

    Attributes:
        now: Returns its value.
        change: Changes it; any thread may call it.
    """

    now: Callable[[], int]
    change: Callable[[int], None]


class LiveConfig:
    """The settings of one broker. Any thread may call it.

    Attributes:
        now: The present settings.
        changes: How often they were changed.
        changed_ms: The time of the last change; before the first one, the time of creation.
        told_unused: Settings without effect that were logged already: their owner and their name.

    Args:
        config: The settings that the broker was opened with.
        now_ms: Returns the wall clock's time.
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
        """The lent settings, by RocketMQ's name; of several with one name the first."""
        return {name: setting.now() for name, setting in reversed(self._lent)}

    def lend(self, name: str, setting: Lent) -> Callable[[], None]:
        """Adds a setting under RocketMQ's name, which requests can read and change.

        Returns:
            A function that removes it.
        """
        mine = name, setting

        def take_back() -> None:
            with self._lock:
                self._lent = tuple(one for one in self._lent if one is not mine)

        with self._lock:
            self._lent = (*self._lent, mine)
        return take_back

    def tell(self, told: Callable[[BrokerConfig], object]) -> None:
        """Registers a function that is called with the settings after each change."""
        self._told.append(told)

    def change(self, values: Mapping[str, Any], lent: Mapping[str, int] | None = None) -> None:
        """Changes settings, all or none.

        Args:
            values: Values by attribute of :class:`BrokerConfig`.
            lent: New numbers of lent settings, by RocketMQ's name.

        Raises:
            InvalidArgumentError: A value is not valid; nothing has changed.
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
