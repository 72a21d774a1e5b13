"""Versions that clients say they are of, as numbers on the wire.

Source: ``MQVersion.java``.
"""

from __future__ import annotations

from typing import Final

V3_0_7_SNAPSHOT: Final = 28
"""The first that says how far it is (GET_CONSUMER_STATUS_FROM_CLIENT)."""
V3_1_8_SNAPSHOT: Final = 62
"""The first that says how it runs, and consumes a message that it is given."""
V5_3_1: Final = 475
"""The last that does not know GO_AWAY."""
_STAGES: Final = (
    "SNAPSHOT",
    "ALPHA1",
    *(f"BETA{number}" for number in range(1, 6)),
    *(f"BETA{number}{suffix}" for number in range(6, 10) for suffix in ("_SNAPSHOT", "")),
    "FINAL",
)
"""Of 3.0.0; later releases have a snapshot only."""
_RELEASES: Final = (
    *(f"V3_0_{number}" for number in range(1, 16)),
    *(f"V3_1_{number}" for number in range(9)),
)
OLD_VERSIONS: Final = (
    *(f"V3_0_0_{stage}" for stage in _STAGES),
    *(f"{release}{suffix}" for release in _RELEASES for suffix in ("_SNAPSHOT", "")),
)
"""Names by number."""

_V4_9_0: Final = 393
"""From here on each release has a snapshot before it, and the tenth of a minor number begins the next one."""


def old_version_name(version: int) -> str:
    """Returns the name of a version as old as these, its number where it has none."""
    return OLD_VERSIONS[version] if 0 <= version < len(OLD_VERSIONS) else str(version)


def version_name(version: int) -> str:
    """Returns the name of a version, its number where it is of a time whose names are not here."""
    if version < _V4_9_0 - 1:
        return old_version_name(version)
    steps, is_released = divmod(version + 1 - _V4_9_0, 2)
    number = 490 + steps
    release = f"V{number // 100}_{number // 10 % 10}_{number % 10}"
    return release if is_released else f"{release}_SNAPSHOT"
