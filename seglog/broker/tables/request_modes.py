"""The mode in which groups get messages of topics, kept in RocketMQ's ``config/messageRequestMode.json``.

This broker supports only the mode PULL. A table written by a Java broker may contain POP: those rows are
kept, for a Java broker that uses the directory later, and consumers are told to pull. A change is saved
before it is answered.

Truth: the file.

Source: ``MessageRequestModeManager.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from typing_extensions import override

from seglog.broker.tables.config_shape import as_object, as_text
from seglog.broker.tables.data_version import DataVersion
from seglog.broker.tables.entries import without_unreadable
from seglog.broker.tables.named_table import NamedTable
from seglog.clock import Clock
from seglog.logs import logger
from seglog.remoting.allocation import RequestMode, RequestModeBody
from seglog.storage.format.config import ConfigValue
from seglog.storage.small_files import ConfigFile
from seglog.text import printable

REQUEST_MODES_FILE: Final = "messageRequestMode.json"
_TABLE: Final = "messageRequestModeMap"
_MOST_NAMED: Final = 5
_Rows = Mapping[str, Mapping[str | int, ConfigValue]]
_log = logger(__name__)


class RequestModes(NamedTable[_Rows]):
    """The rows of each topic, by group. Any thread may call it.

    Args:
        file: ``config/messageRequestMode.json``.
        clock: Not used for this file.
    """

    def __init__(self, file: ConfigFile, clock: Clock) -> None:
        super().__init__(file, clock, {})
        rest = without_unreadable(_parse_table, (_TABLE,), REQUEST_MODES_FILE)
        self._values |= file.load(_parse_table, rest) or {}
        _tell_of_pop(self._values)

    def put(self, body: RequestModeBody) -> None:
        """Sets the mode of a group in a topic, and saves the table.

        Raises:
            InvalidArgumentError: The rows of the topic could not be read again.
            FullError: There is no space; nothing has changed.
        """
        row: Mapping[str | int, ConfigValue] = {
            "consumerGroup": body.consumer_group,
            "mode": body.mode.value,
            "popShareQueueNum": body.pop_share_queue_num,
            "topic": body.topic,
        }
        with self._changing():
            known = self._values.get(body.topic, {})
            self._save({**self._values, body.topic: {**known, body.consumer_group: row}})

    @override
    def _as_config(
        self, version: DataVersion, values: Mapping[str, _Rows]
    ) -> Mapping[str | int, ConfigValue]:
        return self._as_entries(values)

    @override
    def _entries_of(self, value: ConfigValue) -> Mapping[str, _Rows]:
        return _parse_table(value)

    @override
    def _as_entries(self, values: Mapping[str, _Rows]) -> Mapping[str | int, ConfigValue]:
        table: dict[str | int, ConfigValue] = {
            topic: {str(group): row for group, row in rows.items()} for topic, rows in values.items()
        }
        return {_TABLE: table}


def _parse_table(value: ConfigValue) -> dict[str, _Rows]:
    table = as_object(as_object(value, REQUEST_MODES_FILE).get(_TABLE, {}), _TABLE)
    return {
        str(topic): {str(group): _row(row, str(group)) for group, row in as_object(rows, str(topic)).items()}
        for topic, rows in table.items()
    }


def _row(value: ConfigValue, group: str) -> Mapping[str | int, ConfigValue]:
    row = as_object(value, group)
    as_text(row.get("mode", RequestMode.PULL.value), "mode")
    return row


def _tell_of_pop(values: Mapping[str, _Rows]) -> None:
    """Logs the groups that are told to pull although the table says POP."""
    names = [
        f"{group} of {topic}"
        for topic, rows in values.items()
        for group, row in rows.items()
        if row.get("mode") == RequestMode.POP.value
    ]
    if names:
        first = ", ".join(sorted(names)[:_MOST_NAMED])
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        _log.warning(
            "config/%s says that these consume by POP, which is not here; they are told to pull: %s%s",
            REQUEST_MODES_FILE,
            printable(first),
            more,
        )
