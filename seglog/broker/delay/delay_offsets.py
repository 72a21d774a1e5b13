"""The offset up to which each delay level was delivered, kept in ``config/delayOffset.json``.

Truth: the table in memory; the file is written every few seconds and at close. Deliveries after the last save
are found again in the log (:mod:`seglog.broker.delay.delivery_recovery`): beside the offsets the file holds
the end of the log at that moment, in a field that RocketMQ does not know and drops when it saves the file
itself.

The table is saved only after the deliveries that it counts are on the disk, so a delivery that is lost in a
power failure is repeated, not left out. RocketMQ does not wait for that.

Source: ``ScheduleMessageService.java load, correctDelayOffset``, ``DelayOffsetSerializeWrapper.java``.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from seglog.broker.tables import DataVersion, as_int, as_int_key, as_object
from seglog.clock import Clock
from seglog.logs import logger
from seglog.storage.files import explained
from seglog.storage.format.config import ConfigValue
from seglog.storage.small_files import ConfigFile

_TABLE: Final = "offsetTable"
_LOG_END: Final = "seglogLogEnd"

_log = logger(__name__)


class DelayOffsets:
    """The next queue offset of each level. Any thread may call it.

    Args:
        file: ``config/delayOffset.json``.
        clock: Stamps the table's version.

    Attributes:
        log_end: Physical offset: deliveries before it are counted in the table, later ones are not; None if
            that is not known.
    """

    def __init__(self, file: ConfigFile, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._lock = threading.Lock()
        self._version = DataVersion()
        self._table: dict[int, int] = {}
        self._unknown: Mapping[str | int, ConfigValue] = {}
        self._is_dirty = False
        self.log_end: int | None = None
        stored = file.load(_parse_table)
        if stored is not None:
            self._version, self._table, self.log_end, self._unknown = stored

    @property
    def is_dirty(self) -> bool:
        """Whether :meth:`save` has changes to save."""
        return self._is_dirty

    def get(self, level: int) -> int | None:
        """Returns the queue offset at which a level continues, None if it never had one."""
        return self._table.get(level)

    def all(self) -> dict[int, int]:
        """Returns the queue offset of every level that has one."""
        return dict(self._table)

    def to_config(self) -> Mapping[str | int, ConfigValue]:
        """Returns the table as RocketMQ has it."""
        with self._lock:
            return {"dataVersion": self._version.to_config(), _TABLE: dict(sorted(self._table.items()))}

    def set(self, level: int, queue_offset: int) -> None:
        """Notes where a level continues."""
        with self._lock:
            if self._table.get(level) != queue_offset:
                self._table[level] = queue_offset
                self._is_dirty = True

    def clamp(self, level: int, min_offset: int, max_offset: int) -> int:
        """Returns the offset at which a level continues, limited to the range of its queue."""
        known = self._table.get(level, 0)
        offset = min(max(known, min_offset), max_offset)
        if offset != known and level in self._table:
            _log.warning(
                "delay level %d stood at %d of %d..%d and continues at %d",
                *(level, known, min_offset, max_offset, offset),
            )
        return offset

    def save(self, offsets: Mapping[int, int], log_end: int) -> None:
        """Saves offsets taken at one moment.

        Args:
            offsets: The result of :meth:`all`.
            log_end: The end of the log at that moment; all before it is on the disk.

        Raises:
            FullError: There is no space; what was saved before is unchanged.
        """
        with self._lock:
            version = self._version.next(self._clock.now_ms())
            with explained():
                self._file.save(
                    {
                        "dataVersion": version.to_config(),
                        _TABLE: dict(sorted(offsets.items())),
                        **self._unknown,
                        _LOG_END: log_end,
                    }
                )
            self._version = version
            self.log_end = log_end
            self._is_dirty = self._table != offsets


_Table = tuple[DataVersion, dict[int, int], int | None, Mapping[str | int, ConfigValue]]


def _parse_table(value: ConfigValue) -> _Table:
    fields = as_object(value, "delayOffset")
    table = {
        as_int_key(level, "delay level"): as_int(offset, "delay offset")
        for level, offset in as_object(fields.get(_TABLE, {}), _TABLE).items()
    }
    end = fields.get(_LOG_END)
    unknown = {key: item for key, item in fields.items() if key not in ("dataVersion", _TABLE, _LOG_END)}
    log_end = None if end is None else as_int(end, _LOG_END)
    return DataVersion.parse(fields.get("dataVersion")), table, log_end, unknown
