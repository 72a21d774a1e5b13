"""The topics that a broker knows, as far as its store shows.

A topic that is not among them, and whose queues have no files, was deleted: its records wait in the log
for retention, and making its queues again would bring it back from the dead.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seglog.errors import ConfigError, CorruptError
from seglog.storage.files.files import Files
from seglog.storage.format.config.config_value import ConfigValue
from seglog.storage.format.names import CONFIG
from seglog.storage.small_files.config_file import ConfigFile

TOPICS_FILE = "topics.json"


@dataclass(frozen=True, slots=True)
class TopicKinds:
    """Topics whose messages do not go to plain queues, or not only.

    Attributes:
        batch: Those with ``queue.type=BatchCQ``.
        compaction: Those with ``cleanup.policy=COMPACTION``.
    """

    batch: frozenset[str] = frozenset()
    compaction: frozenset[str] = frozenset()

    @property
    def special(self) -> frozenset[str]:
        """All of them."""
        return self.batch | self.compaction


def configured_kinds(files: Files, root: Path) -> TopicKinds:
    """Returns what the attributes in ``config/topics.json`` say; nothing where it is missing or damaged."""
    try:
        attributes = ConfigFile(files, root / CONFIG / TOPICS_FILE).load(_attributes)
    except ConfigError:
        attributes = None

    def having(name: str, value: str) -> frozenset[str]:
        return frozenset(topic for topic, found in (attributes or {}).items() if found.get(name) == value)

    return TopicKinds(having("queue.type", "BatchCQ"), having("cleanup.policy", "COMPACTION"))


def known_topics(files: Files, root: Path) -> frozenset[str] | None:
    """Returns the names in ``config/topics.json``; None where it is missing or empty."""
    try:
        return ConfigFile(files, root / CONFIG / TOPICS_FILE).load(_names)
    except ConfigError:
        return None


def _names(value: ConfigValue) -> frozenset[str]:
    return frozenset(_table(value))


def _attributes(value: ConfigValue) -> dict[str, dict[str | int, ConfigValue]]:
    found: dict[str, dict[str | int, ConfigValue]] = {}
    for topic, config in _table(value).items():
        attributes = config.get("attributes") if isinstance(config, dict) else None
        if isinstance(attributes, dict):
            found[topic] = attributes
    return found


def _table(value: ConfigValue) -> dict[str, ConfigValue]:
    table = value.get("topicConfigTable") if isinstance(value, dict) else None
    if not isinstance(table, dict):
        raise CorruptError(
            "topics", file=TOPICS_FILE, expected="a topicConfigTable", found=type(table).__name__
        )
    return {str(name): config for name, config in table.items()}
