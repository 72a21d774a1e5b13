"""What all calls of an open store share."""

from __future__ import annotations

from pathlib import Path

from seglog.errors import ClosedError
from seglog.storage.core import StoreCore
from seglog.storage.directory.geometry import StoreGeometry
from seglog.storage.files.files import Files


class StoreBase:
    """An open store: its place, the side that serves it, and whether it still does.

    Attributes:
        path: The store directory.
        files: Its files. Whoever keeps more in its directory goes through them: a failed sync of any is the
            last one of all.
    """

    def __init__(self, path: Path, files: Files, core: StoreCore) -> None:
        self.path = path
        self.files = files
        self._core = core
        self._closed = False

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
        """Where the log starts; -1 for a store that was opened for reading and has no log file."""
        return self._core.log.min_phy_offset

    @property
    def max_phy_offset(self) -> int:
        """Where the log ends."""
        return self._core.log.end_phy_offset

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the store {self.path} was closed")
