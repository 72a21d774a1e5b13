"""The fast path of the kernels, which a put tries before the ordinary way."""

from __future__ import annotations

from typing import Final, TypeAlias

from seglog.storage.kernels.calls import fast_path
from seglog.storage.kernels.calls.fast_path import Gathered
from seglog.storage.writes.flush import Durability
from seglog.storage.writes.values import BatchResult, PutResult


class NoFastPath:
    """The fast path of a store that is open for reading: it leaves every call to the ordinary way."""

    lacks_window = False
    gathered: Final[list[Gathered[PutResult]]] = []
    """Stays empty."""

    def try_put(self, *_arguments: object) -> None:
        """Returns None."""

    def try_puts(self, *_arguments: object) -> bool:
        """Returns False."""
        return False

    def try_put_batch(self, *_arguments: object) -> None:
        """Returns None."""

    def try_append(self, *_arguments: object) -> None:
        """Returns None."""

    def try_append_batch(self, *_arguments: object) -> None:
        """Returns None."""

    def add(self, *_arguments: object) -> None:
        """Does nothing."""

    def forget(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


NO_FAST_PATH: Final = NoFastPath()
FastPath: TypeAlias = "fast_path.FastPath[PutResult, BatchResult, Durability] | NoFastPath"
