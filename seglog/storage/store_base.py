"""The base class of an open store, shared by all its calls."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from typing_extensions import override

from seglog.errors import ClosedError
from seglog.forked import abandon_in_children, forked_error
from seglog.storage.directory.geometry import StoreGeometry
from seglog.storage.files.files import Files
from seglog.storage.reads.reader import Reader
from seglog.storage.writes.writer import Writer

StoreCore: TypeAlias = Writer | Reader
"""The writer or the reader of an open store: a reader refuses a writer's calls, so no call tests the kind."""


class StoreBase:
    """An open store: its directory, its writer or reader, and whether it is closed.

    Attributes:
        path: The store directory.
        files: Its files. Programs that keep other files in its directory must use them: after a failed sync
            of any file, nothing is synced any more.
    """

    def __init__(self, path: Path, files: Files, core: StoreCore) -> None:
        self.path = path
        self.files = files
        self._core = core
        self._closed = self._is_forked = False
        if not core.read_only:
            abandon_in_children(self, StoreBase._abandon)

    @override
    def __repr__(self) -> str:
        other = " of another process" if self._is_forked else " closed" if self._closed else ""
        return f"<{type(self).__name__} {self.path}{other or (' read-only' if self.read_only else '')}>"

    @property
    def read_only(self) -> bool:
        """Whether puts are refused."""
        return self._core.read_only

    @property
    def geometry(self) -> StoreGeometry:
        """Lengths of its files."""
        return self._core.geometry

    @property
    def min_phy_offset(self) -> int:
        """Physical offset of the first byte of the log; -1 for a read-only store without a log file."""
        return self._core.log.min_phy_offset

    @property
    def max_phy_offset(self) -> int:
        """Physical offset of the end of the log."""
        return self._core.log.end_phy_offset

    @property
    def synced_phy_offset(self) -> int:
        """End of the synced part of the log; a power failure may lose the messages behind it."""
        core = self._core
        return core.commit.flushed if isinstance(core, Writer) else core.log.end_phy_offset

    def _abandon(self) -> None:
        """Closes the object in a forked child; the store of the parent stays open."""
        self._closed = self._is_forked = True

    def _check_open(self) -> None:
        if self._is_forked:
            raise forked_error(f"the store {self.path}")
        if self._closed:
            raise ClosedError(f"the store {self.path} was closed")
