"""How much the searching tests do: a little in every run, all of it with ``pytest --full``."""

from __future__ import annotations

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
