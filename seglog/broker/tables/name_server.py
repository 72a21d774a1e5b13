"""Data of a name server besides routes: values by namespace and key, and write permission of brokers.

Values are kept in ``<store>/seglog/kvConfig.json``, in RocketMQ's format but another place: a Java name
server keeps the file in its user's home. A change is saved before it is answered; several changes share a
save. Wiped write permission lasts until the process ends, as in RocketMQ.

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
        file: The file of the values.
        clock: Not used for this file.
    """

    def __init__(self, file: ConfigFile, clock: Clock) -> None:
        super().__init__(file, clock, {})
        rest = without_unreadable(_parse_table, (_TABLE,), KEY_VALUE_FILE)
        self._values |= file.load(_parse_table, rest) or {}

    def namespace(self, name: str | None) -> Mapping[str, str] | None:
        """Returns the values of a namespace by key, None if it never had a value, or has no name."""
        return None if name is None else self._values.get(name)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Sets a value, and saves the table.

        Raises:
            InvalidArgumentError: The namespace could not be read again, because of a ``$ref``.
            FullError: There is no space; nothing has changed.
        """
        with self._changing():
            known = self._values.get(namespace, {})
            if REF in (namespace, key) or REF in known:  # its meaning depends on the other keys
                self._save({**self._values, namespace: {**known, key: value}})
                return
            new = {key: value}
            check_entry(namespace, new, self._as_entries({namespace: new}), self._entries_of, None)
            self._save({**self._values, namespace: {**known, **new}}, is_ours=True)

    def delete(self, namespace: str | None, key: str | None) -> None:
        """Removes a value, if it exists, and saves the table; the namespace stays.

        Raises:
            FullError: There is no space; nothing has changed.
        """
        with self._changing():
            known = self.namespace(namespace) or {}
            if namespace is not None and key in known:
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
    """The write permission of the broker in routes; the broker accepts messages in any case."""

    def __init__(self) -> None:
        self._is_wiped = False

    def wipe(self) -> None:
        """Removes write permission from routes: producers avoid the broker once they have refreshed them."""
        self._is_wiped = True

    def add(self) -> None:
        """Makes routes show the topics' own permissions again."""
        self._is_wiped = False

    def shown(self, perm: int) -> int:
        """Returns the permissions in the route of a topic.

        Args:
            perm: The permissions in its settings.
        """
        return perm & ~PERM_WRITE if self._is_wiped else perm


def _parse_table(value: ConfigValue) -> dict[str, Mapping[str, str]]:
    table = as_object(as_object(value, "kvConfig").get(_TABLE, {}), _TABLE)
    return {
        str(name): {str(key): as_text(item, str(key)) for key, item in as_object(entries, str(name)).items()}
        for name, entries in table.items()
    }
