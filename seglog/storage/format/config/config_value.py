"""The values that a config file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

ConfigValue: TypeAlias = (
    "bool | int | float | str | Sequence[ConfigValue] | Mapping[str | int, ConfigValue] | None"
)
"""What a config file holds; reading makes lists and dicts."""
