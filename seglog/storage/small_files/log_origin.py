"""``seglog/log-origin.json``: that a compaction wrote the log anew, and from which place on.

Without it, of a log that begins behind 0, it cannot be told whether its front was taken by retention or a
compaction, or was lost. A claim about what is not there any more: a file that cannot be read says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.errors import CorruptError
from seglog.storage.files.files import Files
from seglog.storage.format.config import ConfigValue, decode_json_object, encode_config
from seglog.storage.format.names import OURS

LOG_ORIGIN_FILE: Final = f"{OURS}/log-origin.json"


@dataclass(frozen=True, slots=True)
class LogOrigin:
    """How a log came to begin where it does.

    Attributes:
        first_phy_offset: Where the compaction began the new log.
        made_ms: When it did.
        kept: Messages that it kept.
        dropped: Messages that it dropped.
    """

    first_phy_offset: int
    made_ms: int
    kept: int
    dropped: int


def write_log_origin(files: Files, root: Path, origin: LogOrigin) -> None:
    """Writes the file, durably."""
    fields: ConfigValue = {
        "firstPhyOffset": origin.first_phy_offset,
        "madeTimestamp": origin.made_ms,
        "kept": origin.kept,
        "dropped": origin.dropped,
    }
    files.make_dirs(root / OURS)
    files.write_file(root / LOG_ORIGIN_FILE, encode_config(fields).encode(), sync=True)
    files.sync_dir(root / OURS)


def read_log_origin(files: Files, root: Path) -> LogOrigin | None:
    """Returns what the file says, None without one."""
    path = root / LOG_ORIGIN_FILE
    if not files.exists(path):
        return None
    try:
        fields = decode_json_object(files.read_file(path))
        numbers = [fields[name] for name in ("firstPhyOffset", "madeTimestamp", "kept", "dropped")]
    except (CorruptError, KeyError, OSError):
        return None
    if not all(type(number) is int for number in numbers):
        return None
    return LogOrigin(*numbers)
