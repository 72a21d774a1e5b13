"""Whether a writer still takes appends: what its parts ask before they change anything."""

from __future__ import annotations

from pathlib import Path

from seglog.errors import ClosedError


class OpenFlag:
    """Open until the writer begins to close, or its process is a forked child.

    Args:
        root: The store directory, for messages.

    Attributes:
        is_closed: Whether it was closed; a closed one stays closed.
    """

    __slots__ = ("_root", "is_closed")

    def __init__(self, root: Path) -> None:
        self._root = root
        self.is_closed = False

    def check(self) -> None:
        """Does nothing while the store is open.

        Raises:
            ClosedError: It was closed.
        """
        if self.is_closed:
            raise ClosedError(f"the store {self._root} was closed")
