"""Config files of a store, read as plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seglog.storage.format.config.config_json import decode_config


def read_config(path: Path) -> Any:
    """Returns what a config file holds; its shape is the test's business."""
    return decode_config(path.read_bytes())
