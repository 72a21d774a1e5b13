"""How far delayed messages were delivered, as ``config/delayOffset.json`` has it.

Source: ``ScheduleMessageService.java``.
"""

from __future__ import annotations

from pathlib import Path

from seglog.broker.config_shape import as_int, as_int_key, as_object
from seglog.storage.config_file import ConfigFile
from seglog.storage.files import Files
from seglog.storage.format.config_value import ConfigValue
from seglog.storage.format.names import CONFIG


def read_delay_progress(files: Files, root: Path) -> dict[int, int]:
    """Returns the queue offset of the next message by delay level; nothing without the file.

    Raises:
        ConfigError: Neither the file nor its backup can be read.
    """
    return ConfigFile(files, root / CONFIG / "delayOffset.json").load(_offsets) or {}


def _offsets(value: ConfigValue) -> dict[int, int]:
    table = as_object(as_object(value, "delayOffset").get("offsetTable", {}), "offsetTable")
    return {as_int_key(level, "level"): as_int(offset, "offset") for level, offset in table.items()}
