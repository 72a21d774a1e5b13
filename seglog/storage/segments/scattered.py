"""Maps of which single pages are read, far from each other, as a binary search does.

The system reads ahead around each page of a map that is touched, up to 128 KiB and more; a search in a file
that is not in memory needs none of that.
"""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self


class Scatterable(Protocol):
    """A mapped file that may be told so."""

    def scatter(self) -> None:
        """Has the system read the pages alone that are touched, until :meth:`gather`."""

    def gather(self) -> None:
        """Ends what :meth:`scatter` began."""


class ScatteredReads:
    """Files that are read here and there, while this is entered."""

    def __init__(self) -> None:
        self._files: dict[Scatterable, None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        while self._files:
            self._files.popitem()[0].gather()

    def take_in(self, file: Scatterable | None) -> None:
        """Takes in the file that is read next, None for what is in memory."""
        if file is not None and file not in self._files:
            file.scatter()
            self._files[file] = None
