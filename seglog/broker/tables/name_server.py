"""What a name server has besides routes: values by namespace and key, and whether brokers may be written to.

Values are kept in ``<store>/seglog/kvConfig.json``, which is RocketMQ's file of them but in a place of its
own: a name server in Java keeps it in the home of its user. A change is saved before it is answered; several
share a save. That a broker may not be written to holds until the process ends, as in RocketMQ.

Truth: the file; memory for the rest.

Source: ``KVConfigManager.java``, ``RouteInfoManager.java operateWritePermOfBroker``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from typing_extensions import override

from seglog.broker.tables.config_shape import as_object, as_text
from seglog.broker.tables.data_version import DataVersion
from seglog.broker.tables.entries import check_entry, without_unreadable
from seglog.broker.tables.named_table import NamedTable
from seglog.clock import Clock
from seglog.remoting.topics import PERM_WRITE
from seglog.storage.format.config import REF, ConfigValue
from seglog.storage.format.names import OURS
from seglog.storage.small_files import ConfigFile

KEY_VALUE_FILE: Final = f"{OURS}/kvConfig.json"
_TABLE: Final = "configTable"


class KeyValues(NamedTable[Mapping[str, str]]):
    """Values by namespace and key. Any thread may call it.

    Args:
        file: Where they are kept.
        clock: Its time is in no file here.
    """

    def __init__(self, file: ConfigFile, clock: Clock) -> None:
        super().__init__(file, clock, {})
        rest = without_unreadable(_parse_table, (_TABLE,), KEY_VALUE_FILE)
        self._values |= file.load(_parse_table, rest) or {}

    def namespace(self, name: str) -> Mapping[str, str] | None:
        """Returns the values of a namespace by key, None if it never had any."""
        return self._values.get(name)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Sets a value, and saves the table.

        Raises:
            InvalidArgumentError: The namespace could not be read again: ``$ref`` leads to another place.
            FullError: There is no space; nothing has changed.
        """
        with self._changing():
            known = self._values.get(namespace, {})
            if REF in (namespace, key) or REF in known:  # what that means depends on the rest
                self._save({**self._values, namespace: {**known, key: value}})
                return
            new = {key: value}
            check_entry(namespace, new, self._as_entries({namespace: new}), self._entries_of, None)
            self._save({**self._values, namespace: {**known, **new}}, is_ours=True)

    def delete(self, namespace: str, key: str) -> None:
        """Takes a value away, if there is one, and saves the table; the namespace stays.

        Raises:
            FullError: There is no space; nothing has changed.
        """
        with self._changing():
            known = self._values.get(namespace, {})
            if key in known:
                left = {name: value for name, value in known.items() if name != key}
                self._save({**self._values, namespace: left}, is_ours=REF not in left)

    @override
    def _as_config(
        self, version: DataVersion, values: Mapping[str, Mapping[str, str]]
    ) -> Mapping[str | int, ConfigValue]:
        return self._as_entries(values)

    @override
    def _entries_of(self, value: ConfigValue) -> Mapping[str, Mapping[str, str]]:
        return _parse_table(value)

    @override
    def _as_entries(self, values: Mapping[str, Mapping[str, str]]) -> Mapping[str | int, ConfigValue]:
        table: dict[str | int, ConfigValue] = {}
        for name, entries in values.items():
            table[name] = {str(key): value for key, value in entries.items()}
        return {_TABLE: table}


class WritePermission:
    """Whether routes say that the broker takes messages; it takes them in any case."""

    def __init__(self) -> None:
        self._is_wiped = False

    def wipe(self) -> None:
        """Has producers leave the broker alone once they have asked for routes again."""
        self._is_wiped = True

    def add(self) -> None:
        """Has routes say again what topics say."""
        self._is_wiped = False

    def shown(self, perm: int) -> int:
        """Returns what the route of a topic says may be done with it.

        Args:
            perm: What its settings say.
        """
        return perm & ~PERM_WRITE if self._is_wiped else perm


def _parse_table(value: ConfigValue) -> dict[str, Mapping[str, str]]:
    table = as_object(as_object(value, "kvConfig").get(_TABLE, {}), _TABLE)
    return {
        str(name): {str(key): as_text(item, str(key)) for key, item in as_object(entries, str(name)).items()}
        for name, entries in table.items()
    }
