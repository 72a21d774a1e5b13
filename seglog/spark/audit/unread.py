"""Stores of a job that could not be read, while the others could: what a row of results says of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from seglog.errors import SeglogError
from seglog.storage.files import explain_os_error

ERROR_COLUMNS: Final = "error string, help string, exitCode int"
"""Columns of a store that could not be read, beside its name; null where it was read."""


@dataclass(frozen=True, slots=True)
class UnreadStore:
    """A store of which nothing is known.

    Attributes:
        named: The store as it was asked for.
        store: Its directory or address, as results name it.
        error: Why.
    """

    named: str
    store: str
    error: SeglogError

    def fields(self) -> dict[str, object]:
        """Returns it as JSON has it."""
        return {
            "store": self.store,
            "error": str(self.error),
            "help": self.error.help,
            "exitCode": self.error.exit_code,
        }


Unread: TypeAlias = list[UnreadStore]
"""Takes the stores that cannot be read; without one, the first of them ends the job."""


@contextmanager
def unread_into(unread: Unread | None, named: str, store: str) -> Iterator[None]:
    """Notes a store that cannot be read, and goes on behind the block; raises where nothing takes the note.

    Args:
        unread: Where it is noted.
        named: The store as it was asked for.
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
