"""The rows of a table in one test: every row is tried, and every one that fails is reported by its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.machine.patience import is_late

_FAILURES = (Exception, pytest.fail.Exception)


class Rows:
    """Runs the body of each row; see :func:`every_row`."""

    def __init__(self) -> None:
        self.tried = 0
        self.failures: list[Exception] = []

    @contextmanager
    def __call__(self, *names: object) -> Iterator[None]:
        """Runs a row; an error in it is kept for the end, with the names of the row.

        A time-out is raised at once: where a row was too late, the next ones would be.
        """
        self.tried += 1
        try:
            yield
        except _FAILURES as error:
            if is_late(error):
                raise
            # An outcome of pytest is no Exception, which a group of them must hold.
            failure = error if isinstance(error, Exception) else AssertionError(str(error))
            failure.add_note(f"in row {', '.join(map(str, names))}")
            self.failures.append(failure)


@contextmanager
def every_row() -> Iterator[Rows]:
    """Tries all rows of a table, and fails at the end if one has failed.

    ::

        with every_row() as row:
            for name, wanted in TABLE.items():
                with row(name):
                    assert found(name) == wanted

    Raises:
        ExceptionGroup: Rows have failed; each error has the names of its row as a note.
        AssertionError: There was no row.
    """
    rows = Rows()
    yield rows
    assert rows.tried, "the table has no row"
    if rows.failures:
        raise ExceptionGroup(f"{len(rows.failures)} of {rows.tried} rows failed", rows.failures)
