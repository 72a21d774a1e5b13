"""Findings about the checkpoint and the config files of a store, from a quick check.

Neither is needed to open the store. A checkpoint that is newer than every record shows that records are
missing.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final

from seglog.errors import CorruptError
from seglog.storage.files.files import Files
from seglog.storage.findings.findings import Finding
from seglog.storage.format.checkpoint import CHECKPOINT_FILE_BYTES, Checkpoint
from seglog.storage.format.config.config_json import decode_config
from seglog.storage.format.names import CHECKPOINT_FILE, CONFIG
from seglog.storage.small_files.config_file import is_config_table

_STALE_MS: Final = 3_600_000
"""A writer updates the checkpoint every second, so a crash does not explain one that is this much older."""


@dataclass(frozen=True, slots=True)
class LogTail:
    """The facts about a log that a checkpoint must agree with.

    Attributes:
        newest_ms: Latest store time of all records.
        last_ms: Store time of the last record.
        phy_offset: End of the log.
    """

    newest_ms: int
    last_ms: int
    phy_offset: int


def checkpoint_findings(
    files: Files, root: Path, checkpoint: Checkpoint, log_end: LogTail, mode: str
) -> list[Finding]:
    """Returns the findings about a checkpoint.

    Args:
        files: Where the store is.
        root: The store directory.
        checkpoint: Its content before the walk over the log, because a writer may change it meanwhile.
        log_end: The log, which has records.
        mode: ``normal`` or ``abnormal``.
    """
    sizes = [entry.size_bytes for entry in files.list_dir(root) if entry.name == CHECKPOINT_FILE]
    if not sizes:
        return [Finding("checkpoint-missing", CHECKPOINT_FILE)]
    if sizes[0] != CHECKPOINT_FILE_BYTES:
        return [Finding("checkpoint-size", CHECKPOINT_FILE, 0, 0, str(CHECKPOINT_FILE_BYTES), str(sizes[0]))]
    newest_ms, last_ms, end = log_end.newest_ms, log_end.last_ms, log_end.phy_offset
    latest_ms = max(
        checkpoint.physic_timestamp_ms, checkpoint.logics_timestamp_ms, checkpoint.index_timestamp_ms
    )
    found: list[Finding] = []
    if latest_ms > newest_ms or min(astuple(checkpoint)) < 0:
        found.append(
            Finding("checkpoint-ahead", CHECKPOINT_FILE, 0, 0, f"times up to {newest_ms}", str(latest_ms))
        )
    elif checkpoint.confirm_phy_offset > end:
        stated = str(checkpoint.confirm_phy_offset)
        found.append(Finding("checkpoint-ahead", CHECKPOINT_FILE, 0, 0, f"a place up to {end}", stated))
    elif latest_ms < last_ms - _STALE_MS and (latest_ms > 0 or mode == "normal"):
        found.append(
            Finding("checkpoint-behind", CHECKPOINT_FILE, 0, 0, f"a time near {last_ms}", str(latest_ms))
        )
    return found


def config_findings(files: Files, root: Path) -> list[Finding]:
    """Returns findings about the config files that are not JSON."""
    found: list[Finding] = []
    for entry in files.list_dir(root / CONFIG):
        if entry.is_dir or not is_config_table(entry.name):
            continue
        try:
            decode_config(files.read_file(root / CONFIG / entry.name))
        except CorruptError as error:
            name = f"{CONFIG}/{entry.name}"
            found.append(
                Finding(
                    "config-damaged",
                    name,
                    error.position_bytes,
                    entry.size_bytes,
                    str(error.expected),
                    str(error.found),
                )
            )
    return found
