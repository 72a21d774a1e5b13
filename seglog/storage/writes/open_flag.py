"""Whether a writer still takes appends: its parts check this flag before they change anything."""

from __future__ import annotations

from pathlib import Path

from seglog.errors import ClosedError
from seglog.forked import forked_error


class OpenFlag:
    """Open until the writer begins to close, or its process is a forked child.

    Args:
        root: The store directory, for messages.

    Attributes:
        is_closed: Whether the writer was closed; it never opens again.
        is_forked: Whether it is closed because this process is a forked child.
    """

    __slots__ = ("_root", "is_closed", "is_forked")

    def __init__(self, root: Path) -> None:
        self._root = root
        self.is_closed = self.is_forked = False

    def check(self) -> None:
        """Does nothing while the store is open.

        Raises:
            ClosedError: The store was closed, or belongs to the parent process.
        """
        if self.is_forked:
            raise forked_error(f"the store {self._root}")
        if self.is_closed:
            raise ClosedError(f"the store {self._root} was closed")
