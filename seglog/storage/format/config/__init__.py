"""Configuration: JSON as RocketMQ's fastjson writes it, properties as Java writes them, and lines of JSON.

Pure: text to values and back.

Called by the broker's tables, checks of them, and exports.
Truth: RocketMQ's files, which are not standard JSON.
"""

from seglog.storage.format.config.config_json import decode_config as decode_config
from seglog.storage.format.config.config_json import encode_config as encode_config
from seglog.storage.format.config.config_refs import REF as REF
from seglog.storage.format.config.config_value import ConfigValue as ConfigValue
from seglog.storage.format.config.java_properties import java_properties_text as java_properties_text
from seglog.storage.format.config.java_properties import numbered_java_properties as numbered_java_properties
from seglog.storage.format.config.java_properties import parse_java_properties as parse_java_properties
from seglog.storage.format.config.json_line import decode_json_line as decode_json_line
from seglog.storage.format.config.json_line import decode_json_object as decode_json_object
