"""The topics that a broker knows, as far as its store tells.

A topic that is not among them, and whose queues have no files, was deleted: its records wait in the log
for retention, and making its queues again would bring it back from the dead.
"""

from __future__ import annotations

from pathlib import Path

from seglog.errors import ConfigError, CorruptError
from seglog.storage.config_file import ConfigFile
from seglog.storage.files import Files
from seglog.storage.format.config_json import ConfigValue
from seglog.storage.format.names import CONFIG

TOPICS_FILE = "topics.json"


def known_topics(files: Files, root: Path) -> frozenset[str] | None:
    """Returns the names in ``config/topics.json``; None where it is missing or tells nothing."""
    try:
        return ConfigFile(files, root / CONFIG / TOPICS_FILE).load(_names)
    except ConfigError:
        return None


def _names(value: ConfigValue) -> frozenset[str]:
    table = value.get("topicConfigTable") if isinstance(value, dict) else None
    if not isinstance(table, dict):
        raise CorruptError(
            "topics", file=TOPICS_FILE, expected="a topicConfigTable", found=type(table).__name__
        )
    return frozenset(str(name) for name in table)
