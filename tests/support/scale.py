"""How much the searching tests do: a little in every run, all of it with ``pytest --full``."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from collections.abc import Iterator

_full = False


def set_full(full: bool) -> None:
    """Called once, before the test modules are imported."""
    global _full  # noqa: PLW0603 - decided by the command line, before any test is collected
    _full = full


def is_full() -> bool:
    """Returns whether ``--full`` was given."""
    return _full


def scaled(usual: int, full: int) -> int:
    """Returns how many examples, rounds or samples to try."""
    return full if _full else usual


def seed_of_the_day() -> str:
    """Returns what random tests draw from besides their fixed seeds: the date, or ``SEGLOG_TEST_SEED``."""
    return os.environ.get("SEGLOG_TEST_SEED") or dt.datetime.now(dt.UTC).date().isoformat()


@contextlib.contextmanager
def repeatable(seed: str) -> Iterator[None]:
    """Adds to an error the line that repeats it, because tomorrow's seed is another one."""
    try:
        yield
    except BaseException as error:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
        error.add_note(f"to repeat: SEGLOG_TEST_SEED={seed} .venv/bin/pytest '{test}'")
        raise
