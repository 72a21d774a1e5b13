"""Says to the type checker what a test knows, and fails where it is wrong."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def not_none(value: T | None) -> T:
    """Returns a value that must be one."""
    assert value is not None
    return value
