"""The rows of a table in one test: every row is tried, and every one that fails is reported by its name."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.machine.patience import is_late

_NAME_CHARACTERS = 80
_FAILURES = (Exception, pytest.fail.Exception)
_PARAM = type(pytest.param())


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
            shortened = (str(name)[:_NAME_CHARACTERS] for name in names)  # some rows are long texts
            failure.add_note(f"in row {', '.join(shortened)}")
            self.failures.append(failure)

    def failed(self, then: str = "") -> ExceptionGroup[Exception]:
        """Returns the error that has those of all rows."""
        return ExceptionGroup(f"{len(self.failures)} of {self.tried} rows failed{then}", self.failures)


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
    try:
        yield rows
    except BaseException as error:
        if rows.failures:  # what is late or broken now hides no row that was wrong before
            raise rows.failed(f", then {error!r}") from None
        raise
    assert rows.tried, "the table has no row"
    if rows.failures:
        raise rows.failed()


def each_row(names: str, rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes one test of a function and its table: ``pytest.mark.parametrize`` in a single case.

    Fixtures are made once for all rows, which must not disturb each other. Each row has a folder of its own
    as ``tmp_path``, and a ``caplog`` without the lines of the rows before it.

    Args:
        names: The parameters that rows are for, separated by commas.
        rows: Their values, tuples where there is more than one parameter; or what ``pytest.param`` returns.

    Raises:
        ValueError: A row has marks, which would have no effect.
    """
    wanted = [name.strip() for name in names.split(",")]
    table = list(rows)
    if marked := [given for given in table if isinstance(given, _PARAM) and given.marks]:
        raise ValueError(f"rows of one test have no marks of their own: {_shown(marked)}")

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        def test(**fixtures: Any) -> None:
            with every_row() as row:
                for number, given in enumerate(table):
                    name, values = str(number), (given,) if len(wanted) == 1 else given
                    if isinstance(given, _PARAM):
                        name, values = str(given.id or name), given.values
                    own = _of_the_row(fixtures, number)
                    with row(name, *map(_shown, values)):
                        function(**own, **dict(zip(wanted, values, strict=True)))

        # No functools.wraps(): pytest would find the parameters of the wrapped function.
        test.__name__, test.__qualname__ = function.__name__, function.__qualname__
        test.__module__, test.__doc__ = function.__module__, function.__doc__
        signature = inspect.signature(function)
        fixtures = [one for name, one in signature.parameters.items() if name not in wanted]
        test.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        test.pytestmark = getattr(function, "pytestmark", [])  # type: ignore[attr-defined]
        return test

    return decorate


def _of_the_row(fixtures: dict[str, Any], number: int) -> dict[str, Any]:
    own = dict(fixtures)
    if "caplog" in own:
        own["caplog"].clear()
    if "tmp_path" in own:
        own["tmp_path"] = fixtures["tmp_path"] / f"row-{number}"
        own["tmp_path"].mkdir()
    return own


def _shown(value: object) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:  # an integer of more digits than Python writes
        return type(value).__name__
