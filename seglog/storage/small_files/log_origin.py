"""``seglog/log-origin.json``: the compaction that rewrote the log, and the new log's first offset.

If a log does not begin at 0, only this file shows whether its front was removed by a compaction, and not by
retention or a loss. A file that cannot be read is ignored.
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
    """The compaction that wrote a log.

    Attributes:
        first_phy_offset: First physical offset of the new log.
        made_ms: Time of the compaction.
        kept: Number of messages that it kept.
        dropped: Number of messages that it dropped.
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
    """Returns the content of the file, None if there is none."""
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
