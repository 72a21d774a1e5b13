"""``dataVersion`` of config files: by it replicas and name servers see that a table has changed.

Source: ``DataVersion.java``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seglog.broker.tables.config_shape import as_int, as_object
from seglog.storage.format.config import ConfigValue


@dataclass(frozen=True, slots=True)
class DataVersion:
    """A state of a table."""

    counter: int = 0
    state_version: int = 0
    timestamp_ms: int = 0

    @classmethod
    def parse(cls, value: ConfigValue) -> DataVersion:
        """Returns the version that a file holds, the first one if it holds none.

        Raises:
            CorruptError: It is not a version.
        """
        if value is None:
            return cls()
        fields = as_object(value, "dataVersion")
        return cls(
            as_int(fields.get("counter", 0), "counter"),
            as_int(fields.get("stateVersion", 0), "stateVersion"),
            as_int(fields.get("timestamp", 0), "timestamp"),
        )

    def next(self, now_ms: int) -> DataVersion:
        """Returns the version after a change."""
        return DataVersion(self.counter + 1, self.state_version, now_ms)

    def to_config(self) -> Mapping[str | int, ConfigValue]:
        """Returns what a file holds."""
        return {
            "counter": self.counter,
            "stateVersion": self.state_version,
            "timestamp": self.timestamp_ms,
        }
