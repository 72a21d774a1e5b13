"""Stores that a job could not read, while it read others: their columns in a table of results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from seglog.errors import SeglogError
from seglog.storage.files import explain_os_error

ERROR_COLUMNS: Final = "error string, help string, exitCode int"
"""Columns of the error of a store that could not be read; null for stores that were read."""


@dataclass(frozen=True, slots=True)
class UnreadStore:
    """A store that could not be read.

    Attributes:
        named: The store as the caller named it.
        store: Its directory or address, as results name it.
        error: The error.
    """

    named: str
    store: str
    error: SeglogError

    def fields(self) -> dict[str, object]:
        """Returns the fields of the store for JSON."""
        return {
            "store": self.store,
            "error": str(self.error),
            "help": self.error.help,
            "exitCode": self.error.exit_code,
        }


Unread: TypeAlias = list[UnreadStore]
"""Collects the stores that cannot be read; None means that the first such store ends the job."""


@contextmanager
def unread_into(unread: Unread | None, named: str, store: str) -> Iterator[None]:
    """Collects the error of a store that cannot be read, and continues after the block.

    Args:
        unread: The list for errors; None raises the error.
        named: The store as the caller named it.
        store: Its directory or address.
    """
    try:
        yield
    except SeglogError as error:
        if unread is None:
            raise
        unread.append(UnreadStore(named, store, error))
    except OSError as error:
        if unread is None:
            raise
        unread.append(UnreadStore(named, store, explain_os_error(error)))
