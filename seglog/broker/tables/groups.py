"""Consumer groups of a broker, kept in ``config/subscriptionGroup.json``: permissions and retries.

Truth: the file, which is saved before a new group can be used. A group that does not exist is created by its
first use, unless the broker is set otherwise. If the calling thread may not wait, the group is saved with the
other tables within seconds; if that save is lost, its clients name it again. The system's groups always
exist.

Source: ``SubscriptionGroupManager.java``, ``TopicValidator.java validateGroup``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from typing_extensions import override

from seglog.broker.settings.config import BrokerConfig
from seglog.broker.tables.config_shape import as_bool, as_int, as_object, as_text, check_int32
from seglog.broker.tables.data_version import DataVersion
from seglog.broker.tables.entries import without_unreadable
from seglog.broker.tables.named_table import NamedTable
from seglog.clock import Clock
from seglog.errors import InvalidArgumentError, NotFoundError
from seglog.remoting.subscription_group import (
    GROUP_FIELD_NAMES,
    GROUP_FIELDS,
    GroupFieldKind,
    SubscriptionGroup,
)
from seglog.remoting.topics import MAX_QUEUES, PERM_READ
from seglog.storage.format.config import ConfigValue
from seglog.storage.format.system_names import SYSTEM_GROUP_PREFIX, SYSTEM_GROUPS, is_system_group
from seglog.storage.small_files import ConfigFile

MAX_GROUP_CHARACTERS: Final = 120
"""Longest name of a new group, whether a request or its first use creates it."""

MAX_GROUP_SETTINGS: Final = 1 << 16
"""Characters that the settings of one group may take in the file; RocketMQ's take some 500."""

_NAME: Final = re.compile(r"[%|a-zA-Z0-9_-]+")
GROUP_TABLE: Final = "subscriptionGroupTable"
FORBIDDEN_TABLE: Final = "forbiddenTable"
"""Permissions taken from a group, by topic: bits as in a topic's ``perm``."""
_READ: Final[Mapping[GroupFieldKind, Callable[[ConfigValue, str], object]]] = {
    GroupFieldKind.TEXT: as_text,
    GroupFieldKind.FLAG: as_bool,
    GroupFieldKind.INT32: as_int,
    GroupFieldKind.INT64: as_int,
    GroupFieldKind.ANY: lambda value, _name: value,
    GroupFieldKind.OBJECT: as_object,
}
_NUMBERS: Final = tuple(
    field.attribute for field in GROUP_FIELDS if field.kind in (GroupFieldKind.INT32, GroupFieldKind.INT64)
)


class GroupTable(NamedTable[SubscriptionGroup]):
    """All groups of a broker. Any thread may call it.

    Args:
        file: ``config/subscriptionGroup.json``.
        config: Whether groups are created by their first use.
        clock: Stamps the table's version.
        with_system: Whether the groups that every broker has exist, even if the file lacks them.
    """

    most_entry_characters = MAX_GROUP_SETTINGS

    def __init__(
        self, file: ConfigFile, config: BrokerConfig, clock: Clock, *, with_system: bool = True
    ) -> None:
        self._config = config
        self._forbidden: dict[str, dict[str, int]] = {}
        super().__init__(
            file, clock, {name: SubscriptionGroup(name) for name in SYSTEM_GROUPS if with_system}
        )
        rest = without_unreadable(_parse_table, (GROUP_TABLE, FORBIDDEN_TABLE), "subscriptionGroup.json")
        stored = file.load(_parse_table, rest)
        self._is_gone = stored is None
        if stored is not None:
            self._version, groups, self._forbidden, self._unknown = stored
            self._values |= groups

    def use(self, config: BrokerConfig) -> None:
        """Uses other settings from now on."""
        self._config = config

    def get(self, name: str) -> SubscriptionGroup | None:
        """Returns a group's settings, None if there is no such group."""
        return self._values.get(name)

    def all(self) -> list[SubscriptionGroup]:
        """Returns every group, the system's included, by name."""
        return sorted(self._values.values(), key=lambda group: group.name)

    def take_over(self, owners: Callable[[], Iterable[str]]) -> int:
        """Adds groups that have offsets, if the file is gone or empty; returns how many.

        They get the usual settings: those that they had are not known. They are saved with the next change
        or at close.

        Args:
            owners: Returns the groups that have offsets; called if the file is gone.
        """
        if not self._is_gone:
            return 0
        with self._quick:
            new = {
                name: SubscriptionGroup(name)
                for name in sorted({*owners()})
                if name not in self._values and group_name_problem(name) is None
            }
            self._values = {**self._values, **new}
            self._is_dirty |= bool(new)
        return len(new)

    def find(self, name: str) -> SubscriptionGroup | None:
        """Returns the group of a client, creating it if permitted.

        A new group is saved later if the calling thread may not wait: clients name their groups again.

        Raises:
            FullError: There is no space; the group is not created.
        """
        return self.find_all((name,))[name]

    def find_all(self, names: Iterable[str]) -> dict[str, SubscriptionGroup | None]:
        """Returns groups of a client as :meth:`find` does, by name; new ones are saved together.

        Raises:
            FullError: There is no space; none is created.
        """
        names = tuple(names)
        known = self._values
        new = {
            name: SubscriptionGroup(name) for name in names if name not in known and self._may_create(name)
        }
        self._ensure_all(new, lazily=True)
        known = self._values
        return {name: known.get(name) for name in names}

    def put(self, group: SubscriptionGroup) -> None:
        """Creates a group or replaces its settings, and saves the table.

        Raises:
            InvalidArgumentError: A number does not fit, or the settings could not be read again.
            FullError: There is no space; nothing has changed.
        """
        self.put_all((group,))

    def put_all(self, groups: Iterable[SubscriptionGroup]) -> None:
        """Creates groups or replaces their settings, and saves the table once.

        Raises:
            InvalidArgumentError: A number does not fit, and a Java broker would drop the whole file; or a
                retry topic is to have more than :data:`MAX_QUEUES` queues; or settings could not be read
                again, or take too much.
            FullError: There is no space; nothing has changed.
        """
        groups = tuple(groups)
        for group in groups:
            for attribute in _NUMBERS:
                check_int32(getattr(group, attribute), group.name)
            known = self._values.get(group.name)
            if group.retry_queue_nums > max(MAX_QUEUES, 0 if known is None else known.retry_queue_nums):
                raise InvalidArgumentError(
                    f"the retry topic of {group.name} would have {group.retry_queue_nums} queues, and at most"
                    f" {MAX_QUEUES} are served",
                    help="one is enough for all but the largest groups",
                )
        with self._changing():
            changed = {**self._values, **{group.name: group for group in groups}}
            if changed != self._values:
                self._save(changed)

    def delete(self, name: str) -> None:
        """Deletes a group and its forbidden topics, and saves the table.

        Its offsets are in another table.

        Raises:
            NotFoundError: There is no such group.
            InvalidArgumentError: It is the system's.
            FullError: There is no space; nothing has changed.
        """
        if is_system_group(name):
            raise InvalidArgumentError(f"the group {name} is the system's own and cannot be deleted")
        with self._changing():
            if name not in self._values:
                raise NotFoundError(f"there is no group {name}", help="`seglog group ls STORE` lists groups")
            groups = {key: group for key, group in self._values.items() if key != name}
            self._save_with(groups, {key: perms for key, perms in self._forbidden.items() if key != name})

    def is_told(self, name: str) -> bool:
        """Returns whether the clients of a group are notified when one joins or leaves."""
        group = self._values.get(name)
        return group is None or group.is_notified

    def is_forbidden(self, name: str, topic: str) -> bool:
        """Returns whether a group may not read a topic."""
        return bool(self._forbidden and self._forbidden.get(name, {}).get(topic, 0) & PERM_READ)

    def forbid(self, name: str, topic: str, is_forbidden: bool) -> None:
        """Sets whether a group may not read a topic, and saves the table.

        Other topics stay forbidden; RocketMQ forgets them when one topic is permitted.

        Raises:
            FullError: There is no space; nothing has changed.
        """
        with self._changing():
            perms = self._forbidden.get(name, {}).get(topic, 0)
            changed = perms | PERM_READ if is_forbidden else perms & ~PERM_READ
            if changed == perms:
                return
            topics = {key: perm for key, perm in self._forbidden.get(name, {}).items() if key != topic}
            if changed:
                topics[topic] = changed
            forbidden = {key: value for key, value in self._forbidden.items() if key != name}
            if topics:
                forbidden[name] = topics
            self._save_with(self._values, forbidden)

    def permit(self, name: str) -> None:
        """Permits all topics to a group, which need not exist, and saves the table.

        Raises:
            FullError: There is no space; nothing has changed.
        """
        with self._changing():
            if name in self._forbidden:
                forbidden = {key: perms for key, perms in self._forbidden.items() if key != name}
                self._save_with(self._values, forbidden)

    def _may_create(self, name: str) -> bool:
        if not self._config.auto_create_groups and not name.startswith(SYSTEM_GROUP_PREFIX):
            return False
        return group_name_problem(name) is None

    @override
    def _as_config(
        self, version: DataVersion, values: Mapping[str, SubscriptionGroup]
    ) -> Mapping[str | int, ConfigValue]:
        return {
            "dataVersion": version.to_config(),
            FORBIDDEN_TABLE: _to_config(self._forbidden),
            **self._unknown,
            **self._as_entries(values),
        }

    @override
    def _entries_of(self, value: ConfigValue) -> Mapping[str, SubscriptionGroup]:
        return _parse_table(value)[1]

    @override
    def _as_entries(self, values: Mapping[str, SubscriptionGroup]) -> Mapping[str | int, ConfigValue]:
        return {GROUP_TABLE: {name: group_to_config(group) for name, group in values.items()}}

    def _save_with(self, groups: dict[str, SubscriptionGroup], forbidden: dict[str, dict[str, int]]) -> None:
        """Saves groups and their forbidden topics; if the save fails, both stay unchanged."""
        before, self._forbidden = self._forbidden, forbidden
        is_saved = False
        try:
            self._save(groups, together=False)
            is_saved = True
        finally:
            if not is_saved:
                self._forbidden = before


def group_name_problem(name: str) -> str | None:
    """Returns why a group with this name cannot be created, in RocketMQ's words; None if it can."""
    if not name.strip():
        return "The specified group is blank."
    if not _NAME.fullmatch(name):
        allowed = "^[%|a-zA-Z0-9_-]+$"
        return f"The specified group: {name}, contains illegal characters, allowing only {allowed}"
    if len(name) > MAX_GROUP_CHARACTERS:
        return f"The specified group: {name}, is longer than group max length: {MAX_GROUP_CHARACTERS}"
    return None


def parse_group(name: str, value: ConfigValue) -> SubscriptionGroup:
    """Returns the settings that a file holds.

    Raises:
        CorruptError: A field has another type.
    """
    fields = as_object(value, name)
    like = SubscriptionGroup(name)
    known: dict[str, Any] = {
        field.attribute: _READ[field.kind](fields.get(field.name, getattr(like, field.attribute)), field.name)
        for field in GROUP_FIELDS
    }
    unknown = {key: item for key, item in fields.items() if key not in GROUP_FIELD_NAMES}
    return SubscriptionGroup(**known, unknown=unknown)


def group_to_config(group: SubscriptionGroup) -> Mapping[str | int, ConfigValue]:
    """Returns what a file holds."""
    return {**{field.name: getattr(group, field.attribute) for field in GROUP_FIELDS}, **group.unknown}


def _to_config(forbidden: Mapping[str, Mapping[str, int]]) -> Mapping[str | int, ConfigValue]:
    table: dict[str | int, ConfigValue] = {}
    for name, topics in forbidden.items():
        perms: dict[str | int, ConfigValue] = dict(topics.items())
        table[name] = perms
    return table


_Table = tuple[
    DataVersion,
    dict[str, SubscriptionGroup],
    dict[str, dict[str, int]],
    Mapping[str | int, ConfigValue],
]


def _parse_table(value: ConfigValue) -> _Table:
    fields = as_object(value, "subscriptionGroup")
    table = as_object(fields.get(GROUP_TABLE, {}), GROUP_TABLE)
    groups = {str(name): parse_group(str(name), group) for name, group in table.items()}
    forbidden = {
        str(name): {
            str(topic): as_int(perms, str(topic)) for topic, perms in as_object(topics, str(name)).items()
        }
        for name, topics in as_object(fields.get(FORBIDDEN_TABLE, {}), FORBIDDEN_TABLE).items()
    }
    unknown = {
        key: item for key, item in fields.items() if key not in ("dataVersion", GROUP_TABLE, FORBIDDEN_TABLE)
    }
    return DataVersion.parse(fields.get("dataVersion")), groups, forbidden, unknown
