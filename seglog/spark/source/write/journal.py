"""The note of a job that writes to a store: the end of the log before it, and the files that it appends."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from seglog.errors import ConfigError, CorruptError
from seglog.storage.files import Files
from seglog.storage.format.config import decode_json_object

WRITES: Final = "spark-writes"
"""The folder of these notes, in the store's own folder of seglog."""
_DONE: Final = -1


@dataclass(frozen=True, slots=True)
class Staged:
    """The rows that one task staged.

    Attributes:
        number: Index of the task's partition: files are appended in that order.
        path: The file; several attempts at a partition have files of their own.
        rows: Number of rows.
    """

    number: int
    path: Path
    rows: int


@dataclass(frozen=True, slots=True)
class Entry:
    """The contents of a note.

    Attributes:
        phy_offset: End of the log when the job began; -1 when all is appended.
        batch_id: Number of the batch of a stream; 0 for other jobs.
        staged: The staged files, in the order of appending; empty when all is appended.
    """

    phy_offset: int
    batch_id: int = 0
    staged: tuple[Staged, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether all is appended."""
        return self.phy_offset == _DONE

    def done(self) -> Entry:
        """Returns the note of a job of which all is appended."""
        return Entry(_DONE, self.batch_id)


class Journal:
    """The entry of one job; each save is durable, and replaces the one before.

    Args:
        files: Access to the store.
        path: The file.
        staging: Folder for the rows of tasks.
    """

    def __init__(self, files: Files, path: Path, staging: Path) -> None:
        self._files = files
        self._path = path
        self._staging = staging

    def load(self) -> Entry | None:
        """Returns the entry, None if the job did not begin.

        Raises:
            ConfigError: The file is no journal.
        """
        if not self._files.exists(self._path):
            return None
        try:
            found = decode_json_object(self._files.read_file(self._path))
            staged = [
                Staged(int(one["number"]), self._staging / str(one["file"]), int(one["rows"]))
                for one in found.get("staged", [])
            ]
            return Entry(int(found["physicalOffset"]), int(found.get("batchId", 0)), tuple(staged))
        except (CorruptError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"{self._path} is no journal of a job that writes: {error!r}",
                help="a job may have been interrupted there: look for its last messages in the store, then"
                " move the file away",
            ) from error

    def save(self, entry: Entry) -> None:
        """Notes an entry, durably."""
        staged = [{"number": one.number, "file": one.path.name, "rows": one.rows} for one in entry.staged]
        text = {"physicalOffset": entry.phy_offset, "batchId": entry.batch_id, "staged": staged}
        self._files.make_dirs(self._path.parent)
        new = self._path.with_suffix(".tmp")
        self._files.write_file(new, json.dumps(text).encode())
        self._files.rename(new, self._path)
        self._files.sync_dir(self._path.parent)
