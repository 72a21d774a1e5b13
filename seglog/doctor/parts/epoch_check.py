"""Findings on a store of controller mode, which has a file of epochs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from seglog.errors import CorruptError
from seglog.storage.files import Files
from seglog.storage.findings import Finding
from seglog.storage.format.checkpoint import Checkpoint
from seglog.storage.format.epochs import Epoch, decode_epochs
from seglog.storage.format.names import CHECKPOINT_FILE, EPOCH_FILE
from seglog.text import count_text

_BACKUP: Final = f"{EPOCH_FILE}.bak"


def epoch_findings(files: Files, root: Path, checkpoint: Checkpoint, end_phy_offset: int) -> list[Finding]:
    """Returns the findings; empty for a store without a file of epochs.

    Args:
        files: Access to the store.
        root: The store directory.
        checkpoint: Its checkpoint, which has the offset that all in-sync replicas had.
        end_phy_offset: End of its log.
    """
    if not any(files.exists(root / name) for name in (EPOCH_FILE, _BACKUP)):
        return []
    try:
        epochs, is_backup = _read(files, root)
    except CorruptError as error:
        return [Finding("epoch-damaged", EPOCH_FILE, expected=str(error.expected), found=str(error.found))]
    findings = [Finding("epoch-backup-only", _BACKUP)] if is_backup else []
    findings += [
        Finding(
            "epoch-beyond-log",
            EPOCH_FILE,
            expected=f"epochs that begin before the end of the log, {end_phy_offset}",
            found=f"epoch {epoch.epoch} begins at {epoch.start_phy_offset}",
        )
        for epoch in epochs
        if epoch.start_phy_offset > end_phy_offset
    ]
    confirmed = checkpoint.confirm_phy_offset
    if epochs and 0 < confirmed < end_phy_offset:
        behind = end_phy_offset - confirmed
        found = f"{count_text(behind, 'byte')} of the log behind it, in epoch {epochs[-1].epoch}"
        findings.append(
            Finding("epoch-tail", CHECKPOINT_FILE, expected=f"confirmed: {confirmed}", found=found)
        )
    return findings


def _read(files: Files, root: Path) -> tuple[tuple[Epoch, ...], bool]:
    """Returns the epochs as RocketMQ reads them, and whether they are those of the backup.

    RocketMQ reads the backup if the file is missing or damaged.

    Raises:
        CorruptError: Neither can be read; the error describes the file's damage.
    """
    try:
        return decode_epochs(files.read_file(root / EPOCH_FILE)), False
    except (CorruptError, FileNotFoundError):
        if not files.exists(root / _BACKUP):
            raise
        return decode_epochs(files.read_file(root / _BACKUP)), True
