"""The ways to open a path beneath a folder that this machine has."""

from __future__ import annotations

import os
from typing import Final

import pytest

from seglog.storage.files import beneath
from seglog.storage.files.beneath import openat2_beneath, walk_beneath


def has_openat2() -> bool:
    """Returns whether the system opens beneath a folder in one call."""
    folder = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        return beneath.choose_opener(folder) is openat2_beneath
    finally:
        os.close(folder)


OPENERS: Final = [
    pytest.param(
        openat2_beneath,
        id="openat2",
        marks=pytest.mark.skipif(not has_openat2(), reason="no C kernel, or a kernel without openat2"),
    ),
    pytest.param(walk_beneath, id="walk"),
]
