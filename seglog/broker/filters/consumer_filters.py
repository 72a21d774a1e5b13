"""The SQL92 filters of consumer groups, from their heartbeats, kept in ``config/consumerFilter.json``.

A filter is dead while its group has no client or does not subscribe to the topic, and is removed a day later.
If the group returns with the same version before that, the filter is alive again.

Truth: memory, filled by heartbeats; the file is for a Java broker that opens the store later.

Source: ``ConsumerFilterManager.java``, ``ConsumerFilterData.java``. Difference: a filter with wrong bits is
kept and its bits are corrected; RocketMQ then drops all filters.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from seglog.broker.filters.bloom import BIT_NUM, bit_positions
from seglog.broker.filters.subscription_filter import expression_filter
from seglog.broker.tables.config_shape import as_int, as_object, as_text
from seglog.broker.tables.entries import without_unreadable
from seglog.clock import Clock
from seglog.errors import InvalidArgumentError
from seglog.remoting.subscription import SubscriptionData, is_tag_type
from seglog.storage.files import explained
from seglog.storage.format.config import ConfigValue
from seglog.storage.small_files import ConfigFile

KEPT_DEAD_MS: Final = 24 * 3_600_000
"""``filterDataCleanTimeSpan``."""
DEAD_SINCE_MS: Final = 30_000
"""When a broker opens, all groups are assumed to have left this long before."""

_TABLE: Final = "filterDataByTopic"
_GROUPS: Final = "groupFilterData"


@dataclass(frozen=True, slots=True)
class ConsumerFilter:
    """The filter of one group for one topic.

    Attributes:
        born_ms: When it was made, in ms since the epoch.
        dead_ms: When its group left; less than ``born_ms`` while the filter is alive.
        version: The version of the client's subscription.
        unknown: Fields that this version does not know; written back as they were.
    """

    group: str
    topic: str
    expression: str
    expression_type: str
    born_ms: int
    dead_ms: int = 0
    version: int = 0
    unknown: Mapping[str | int, ConfigValue] = field(default_factory=dict)

    @property
    def is_dead(self) -> bool:
        """Whether no consumer uses the filter now."""
        return self.dead_ms >= self.born_ms


class ConsumerFilters:
    """All filters of a broker. Any thread may call it; reads take no lock.

    Args:
        file: ``config/consumerFilter.json``.
        clock: Its wall clock stamps births and deaths.
    """

    def __init__(self, file: ConfigFile, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._lock = threading.Lock()
        """Guards the state in memory; never held during a wait for the disk."""
        self._saving = threading.Lock()
        self._filters: dict[tuple[str, str], ConsumerFilter] = {}
        self._topics: dict[str, set[str]] = {}  # topics for which each group has filters
        self._unknown: Mapping[str | int, ConfigValue] = {}
        self._is_changed = False
        stored = file.load(_parse_table, without_unreadable(_parse_table, (_TABLE,), "consumerFilter.json"))
        if stored is not None:
            filters, self._unknown = stored
            dead_ms = clock.now_ms() - DEAD_SINCE_MS
            for one in filters:
                dead = one if one.is_dead else replace(one, dead_ms=max(dead_ms, one.born_ms))
                self._keep(dead)

    @property
    def is_dirty(self) -> bool:
        """Whether :meth:`persist` has changes to save."""
        return self._is_changed or any(self._is_outdated(one) for one in self._filters.copy().values())

    def get(self, group: str, topic: str) -> ConsumerFilter | None:
        """Returns a group's filter for a topic, None if it has none or its expression was not valid."""
        return self._filters.get((group, topic))

    def all(self) -> list[ConsumerFilter]:
        """Returns every filter, dead ones too, by topic and group."""
        return sorted(self._filters.copy().values(), key=lambda one: (one.topic, one.group))

    def register(self, group: str, subscriptions: Iterable[SubscriptionData]) -> None:
        """Takes over the subscriptions of a group; its filters for other topics become dead."""
        now_ms = self._clock.now_ms()
        subscriptions = tuple(subscriptions)
        wanted = [one for one in subscriptions if one.expression and not is_tag_type(one.expression_type)]
        unsound = {id(one) for one in wanted if not self._is_known(group, one) and not _is_sound(one)}
        with self._lock:
            topics = {one.topic for one in subscriptions}
            for subscription in wanted:
                self._register(group, subscription, now_ms, is_sound=id(subscription) not in unsound)
            for topic in self._topics.get(group, set()) - topics:
                self._kill(self._filters[group, topic], now_ms)

    def unregister(self, group: str) -> None:
        """Marks the filters of a group as dead: it has no client any more."""
        now_ms = self._clock.now_ms()
        with self._lock:
            for topic in tuple(self._topics.get(group, ())):
                self._kill(self._filters[group, topic], now_ms)

    def persist(self) -> None:
        """Saves the filters if they have changed, without those that have been dead for a day.

        Raises:
            FullError: There is no space; the file is as it was and the next call tries again.
        """
        with self._saving:
            with self._lock:
                found, unknown = dict(self._filters), self._unknown
                is_changed, self._is_changed = self._is_changed, False
            kept = {key: one for key, one in found.items() if not self._is_outdated(one)}
            if not is_changed and len(kept) == len(found):
                return
            is_saved = False
            try:
                with explained():
                    self._file.save({_TABLE: _to_config(kept.values()), **unknown})
                is_saved = True
            finally:
                with self._lock:
                    for key in (found.keys() - kept.keys()) if is_saved else ():
                        if self._filters.get(key) is found[key]:
                            self._drop(key)
                    self._is_changed = self._is_changed or not is_saved

    def _is_known(self, group: str, said: SubscriptionData) -> bool:
        """Returns whether a group has a filter with the same expression, which is compiled already."""
        old = self._filters.get((group, said.topic))
        return old is not None and (old.expression, old.expression_type) == (
            said.expression,
            str(said.expression_type),
        )

    def _register(self, group: str, subscription: SubscriptionData, now_ms: int, *, is_sound: bool) -> None:
        key = group, subscription.topic
        old = self._filters.get(key)
        language = str(subscription.expression_type)
        new = ConsumerFilter(
            group, subscription.topic, subscription.expression, language, now_ms, 0, subscription.version
        )
        if old is not None and new.version <= old.version:
            if new.version == old.version and old.is_dead:
                self._put(replace(old, dead_ms=0))
        elif old is not None and (old.expression, old.expression_type) == (new.expression, language):
            self._put(replace(old, version=new.version, dead_ms=0))
        elif is_sound:
            self._put(new)
        elif old is not None:
            # The client is told of the error in the answer to its next pull.
            self._drop(key)
            self._is_changed = True

    def _put(self, one: ConsumerFilter) -> None:
        self._keep(one)
        self._is_changed = True

    def _keep(self, one: ConsumerFilter) -> None:
        self._filters[one.group, one.topic] = one
        self._topics.setdefault(one.group, set()).add(one.topic)

    def _drop(self, key: tuple[str, str]) -> None:
        group, topic = key
        del self._filters[key]
        self._topics[group].discard(topic)
        if not self._topics[group]:
            del self._topics[group]

    def _kill(self, one: ConsumerFilter, now_ms: int) -> None:
        if not one.is_dead:
            self._put(replace(one, dead_ms=now_ms))

    def _is_outdated(self, one: ConsumerFilter) -> bool:
        return one.is_dead and self._clock.now_ms() - one.dead_ms >= KEPT_DEAD_MS


def _is_sound(one: SubscriptionData) -> bool:
    try:
        expression_filter(one.expression, one.expression_type)
    except InvalidArgumentError:
        return False
    return True


def _to_config(filters: Iterable[ConsumerFilter]) -> Mapping[str | int, ConfigValue]:
    topics: dict[str, dict[str | int, ConfigValue]] = {}
    for one in filters:
        topics.setdefault(one.topic, {})[one.group] = {
            "bloomFilterData": {"bitNum": BIT_NUM, "bitPos": bit_positions(one.group, one.topic)},
            "bornTime": one.born_ms,
            "clientVersion": one.version,
            "consumerGroup": one.group,
            "dead": one.is_dead,
            "deadTime": one.dead_ms,
            "expression": one.expression,
            "expressionType": one.expression_type,
            "topic": one.topic,
            **one.unknown,
        }
    return {topic: {_GROUPS: groups, "topic": topic} for topic, groups in topics.items()}


_KNOWN: Final = frozenset(
    (
        "bloomFilterData", "bornTime", "clientVersion", "consumerGroup", "dead", "deadTime", "expression",
        "expressionType", "topic",
    )
)  # fmt: skip
_Table = tuple[list[ConsumerFilter], Mapping[str | int, ConfigValue]]


def _parse_table(value: ConfigValue) -> _Table:
    fields = as_object(value, "consumerFilter")
    found: list[ConsumerFilter] = []
    for topic, data in as_object(fields.get(_TABLE, {}), _TABLE).items():
        groups = as_object(as_object(data, str(topic)).get(_GROUPS, {}), _GROUPS)
        for group, item in groups.items():
            one = as_object(item, str(group))
            found.append(
                ConsumerFilter(
                    str(group),
                    str(topic),
                    as_text(one.get("expression", ""), "expression"),
                    as_text(one.get("expressionType", ""), "expressionType"),
                    as_int(one.get("bornTime", 0), "bornTime"),
                    as_int(one.get("deadTime", 0), "deadTime"),
                    as_int(one.get("clientVersion", 0), "clientVersion"),
                    {key: field for key, field in one.items() if key not in _KNOWN},
                )
            )
    return found, {key: item for key, item in fields.items() if key != _TABLE}
