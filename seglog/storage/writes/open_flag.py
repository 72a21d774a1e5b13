"""Whether a writer still takes appends: what its parts ask before they change anything."""

from __future__ import annotations

from pathlib import Path

from seglog.errors import ClosedError
from seglog.forked import forked_error


class OpenFlag:
    """Open until the writer begins to close, or its process is a forked child.

    Args:
        root: The store directory, for messages.

    Attributes:
        is_closed: Whether it was closed; a closed one stays closed.
        is_forked: Whether it is so because this process is a forked child.
    """

    __slots__ = ("_root", "is_closed", "is_forked")

    def __init__(self, root: Path) -> None:
        self._root = root
        self.is_closed = self.is_forked = False

    def check(self) -> None:
        """Does nothing while the store is open.

        Raises:
            ClosedError: It was closed, or is the parent's.
        """
        if self.is_forked:
            raise forked_error(f"the store {self._root}")
        if self.is_closed:
            raise ClosedError(f"the store {self._root} was closed")
