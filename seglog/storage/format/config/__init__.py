"""Configuration: JSON as RocketMQ's fastjson writes it, properties as Java writes them, and lines of JSON.

Pure: text to values and back.

Called by the broker's tables, checks of them, and exports.
Truth: RocketMQ's files, which are not standard JSON.
"""

from __future__ import annotations

from seglog.storage.format.config.config_json import decode_config, encode_config
from seglog.storage.format.config.config_value import ConfigValue
from seglog.storage.format.config.json_line import decode_json_line, decode_json_object

__all__ = [
    "ConfigValue",
    "decode_config",
    "decode_json_line",
    "decode_json_object",
    "encode_config",
]
